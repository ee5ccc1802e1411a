"""Checks that a history is complete: the run was completed, its files are readable, and the seal found no damage."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

from fencepost.checkers.tables.reading import Reader
from fencepost.checkers.tables.rows import Damage, Life
from fencepost.history import DELIVERED_COLUMNS, HARNESS, LOG_COLUMNS, PRODUCED_COLUMNS, EventKind
from fencepost.history.run_folder import digest, fingerprint, judged_files, listed, part_of, strangers

SEAL = "history/seal.json"


def check(
    reader: Reader,
    events: Iterable[Mapping[str, Any]],
    known: Mapping[str, Life],
    broken_off: str,
    pairs: Sequence[Sequence[int]],
) -> None:
    """Add all damage of the history to ``reader.damage``.

    The interruption of the run is first, because it explains the rest. Next are all unreadable entries of the folder,
    even entries that no check reads.

    Args:
        known: all incarnations. broken_off: the phase in which the run was interrupted; empty: it was completed.
        pairs: the clock's readings (monotonic_ns, wall_ns).
    """
    reader.damage[:0] = _unreadable(reader)
    if broken_off:
        sentence = f"the run ended in phase {broken_off}, and what should have followed is not in its history"
        why = [Damage("phase", "", reason) for reason in _reasons(events, broken_off)]
        reader.damage[:0] = [Damage("run", "", sentence), *why]
    if any(later[0] < earlier[0] for earlier, later in pairwise(pairs)):
        reader.note("clock", "history/clock.json", "its readings are not in order: the clock went back")
    _check_records(reader)
    _check_actors(reader, events, known)
    _check_seal(reader)


def _unreadable(reader: Reader) -> list[Damage]:
    """The entries of the folder that cannot be read, without files whose damage is already noted."""
    known = {damage.file for damage in reader.damage}
    found = ((name, why) for name, why in strangers(reader.run) if name not in known)
    return [Damage(part_of(name), name, f"it cannot be read: {why}") for name, why in found]


def _reasons(events: Iterable[Mapping[str, Any]], phase: str) -> list[str]:
    """The reasons that the runner recorded for the end of the run in ``phase``; a killed runner recorded none."""
    reported = (e["detail"] for e in events if e["kind"] == EventKind.PHASE)
    return list(dict.fromkeys(str(d["reason"]) for d in reported if d.get("name") == phase and d.get("reason")))


def _check_records(reader: Reader) -> None:
    """Note record files that are missing or have no readable footer; the detectors read the rows."""
    for part, columns in (("delivered", DELIVERED_COLUMNS), ("produced", PRODUCED_COLUMNS), ("log", LOG_COLUMNS)):
        for path in reader.files(part, part):
            reader.footer(part, path, columns)


def _check_seal(reader: Reader) -> None:
    """Note the damage that the seal found, and every file that changed since."""
    from fencepost.checkers.tables.schemas import SealFile

    seal = reader.json("events", SEAL, SealFile)
    if seal and seal.pop("digest") != digest(seal):
        reader.note("events", SEAL, "it is not as the seal wrote it")
        seal = {}
    if not seal:  # then the damage that it found is unknown
        noted = [damage for damage in reader.damage if damage.file == SEAL]
        reader.damage += [replace(damage, part=part) for part in ("delivered", "produced") for damage in noted]
        return
    for entry in seal["files"]:
        file = entry["file"]
        part = "events" if file.startswith("events/") else "produced" if "/producer" in file else "delivered"
        for what in entry["damage"]:
            reader.note(part, f"history/{file}", what)
    _check_fingerprints(reader, seal["fingerprints"])


def _check_fingerprints(reader: Reader, sealed: Mapping[str, str]) -> None:
    """Note files that were added, removed or changed after the seal, except files whose damage is already noted."""
    present = judged_files(reader.run)
    known = {damage.file for damage in reader.damage}
    for name in sorted({*present, *sealed} - known):
        if name not in present:
            reader.note(part_of(name), name, "it is missing, and it was there when the history was sealed")
        elif name not in sealed:
            reader.note(present[name], name, "it was not there when the history was sealed")
        elif not _is_as_sealed(reader.run, name, sealed[name]):
            reader.note(present[name], name, "it is not as it was when the history was sealed")


def _is_as_sealed(run: Path, name: str, sealed: str) -> bool:
    try:
        return fingerprint(run, name) == sealed
    except OSError:
        return False


def _check_actors(reader: Reader, events: Iterable[Mapping[str, Any]], known: Mapping[str, Life]) -> None:
    """Note missing files of members and producers that ran, and actors whose files are known to be incomplete.

    A producer has two files, which the seal always writes."""
    for life in known.values():
        if life.last_sign_ns:
            _expect(reader, "delivered", life.incarnation, "this member ran")
    for event in (e for e in events if e["kind"] == EventKind.UNRECORDED):
        sentence = f"it is incomplete: {event['detail'].get('text')}"
        if event["actor"] == HARNESS:  # its file records the effects
            for part in event["detail"].get("parts", ("effects",)):
                reader.note(part, f"history/events/{HARNESS}.jsonl", sentence)
            continue
        for part, suffix in (("events", "jsonl"), ("delivered", "parquet")):
            reader.note(part, f"history/{part}/{event['actor']}.{suffix}", sentence)
    stems = {path.stem.removesuffix(".unacked") for path in listed(reader.run, "history/produced/*.parquet")}
    started = {e["actor"] for e in events if e["kind"] == EventKind.STARTED and "writer" in e["detail"]}
    for writer in sorted(stems | started):
        for name in (writer, f"{writer}.unacked"):
            _expect(reader, "produced", name, "this producer ran")


def _expect(reader: Reader, folder: str, name: str, why: str) -> None:
    file = f"history/{folder}/{name}.parquet"
    if not os.path.lexists(reader.run / file):
        reader.note(folder, file, f"it is missing, but {why}")
