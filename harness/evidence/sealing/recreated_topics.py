"""Separates the records of deleted and recreated partitions, before anything is judged.

Members and producers know a partition only by its name. A recreated partition has the same name as its predecessors, so
its records have the same number ``tp``. Here the records of each deleted partition get a new number. A record belongs

* to the existing partition, if the audit found it there;
* else to no partition that was created after the record was certainly acknowledged or delivered;
* if that leaves a choice, to the last partition that existed when it was sent. A record that was sent while the topic
  was being recreated, and was not found, counts for the predecessor: the truth is unknown, and losses there are
  excused.

For records of other writers no send is recorded: they belong to the partition that existed when they were delivered,
and at the latest to the last predecessor if the audit did not find them. ``ord`` is renumbered per partition; gaps are
kept.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow.dataset as ds
import pyarrow.parquet as pq
from numpy.typing import NDArray

from fencepost.evidence.sealing import parquet_events
from fencepost.evidence.sealing.segment_reader import Records, Segment
from fencepost.history import HARNESS, EventKind
from fencepost.history.run_folder import RunFolder
from fencepost_member.recording.segments import DELIVERED

PARTITIONS = "history/partitions.json"
Array = NDArray[Any]
SHIFT = 40  # the sequence number of a writer needs fewer bits


class Recreation(NamedTuple):
    """The time in which a partition was deleted and recreated."""

    begin_ns: int
    end_ns: int


@dataclass
class _PartitionLineage:
    """The successive partitions with one name."""

    entry: Mapping[str, Any]
    made: Sequence[Recreation]
    numbers: Sequence[int]
    log: Mapping[str, Array]
    known: Mapping[int, Mapping[str, Any]]
    gone: list[dict[str, Any]] = field(default_factory=list)

    def __post_init__(self) -> None:
        for number, successor, renewal in zip(self.numbers, self.numbers[1:], self.made, strict=False):
            about = {
                "as": successor,
                **renewal._asdict(),
                "last_ns": 0,
                "next": 0,
                "begun": -1,
                "begin_ns_of": {},
                "done_ns": {},
            }
            about |= self.known.get(number, {}).get("renewed", {})
            place = {"tp": number, "topic": self.entry["topic"], "partition": self.entry["partition"]}
            self.gone.append({**place, "log_start": 0, "log_end": 0, "committed": -1, "renewed": about})

    def which(self, sent_ns: Array, known_ns: Array, found: Array, sender: Array) -> Array:
        """The index (from 0) of the partition to which each record belongs.

        ``known_ns``: when a record was certainly in a log (0: unknown); ``found``: whether it is in the log now;
        ``sender``: whether ``sent_ns`` is the time of its send, or only that of its delivery.
        """
        last = len(self.made)
        begins = np.array([renewal.begin_ns for renewal in self.made], np.int64)
        ends = np.array([renewal.end_ns for renewal in self.made], np.int64)
        least = np.searchsorted(ends, sent_ns)  # the number of recreations that had ended
        least = np.where(sender, least, np.minimum(least, last - 1))
        most = np.where(known_ns > 0, np.searchsorted(begins, known_ns, side="right"), last)
        return np.minimum(np.where(found, last, least), most)

    def describe(self, actor: str, rows: Records, which: Array) -> None:
        """Update the judge's facts about each deleted partition and its successor, from one member's records."""
        for n, entry in enumerate(self.gone):
            about, old, new = entry["renewed"], rows[which == n], rows[which == n + 1]
            if len(old):
                times = (int(old[name].max()) for name in ("delivered_ns", "begin_ns", "done_ns"))
                about["last_ns"] = max(about["last_ns"], *times)
                about["next"] = max(about["next"], int(old["offset"].max()) + 1)
            if len(new):
                first = int(new["offset"].min())
                about["begun"] = first if about["begun"] < 0 else min(first, about["begun"])
            for name, of in (("begin_ns", "begin_ns_of"), ("done_ns", "done_ns")):
                if len(known := new[name][new[name] > 0]):
                    about[of] = {**about[of], actor: int(known.min())}


def recreations(history: Path) -> dict[tuple[str, int], list[Recreation]]:
    """The recreations of each partition (topic, number), in order, from the harness's events."""
    found: dict[tuple[str, int], list[Recreation]] = defaultdict(list)
    for row in parquet_events.read_rows(history / "events" / f"{HARNESS}.jsonl")[0]:
        if row["kind"] == EventKind.ACT and json.loads(row["detail"]).get("renews"):
            found[row["topic"], row["partition"]].append(Recreation(row["begin_ns"], row["end_ns"]))
    return {place: sorted(made) for place, made in found.items()}


def numbers(folder: RunFolder) -> dict[tuple[str, int], int]:
    """The numbers ``tp`` of the existing partitions, by topic and partition.

    Raises:
        RunFolderError, KeyError, TypeError: there was no audit, or its result is damaged.
    """
    entries = folder.read_json(PARTITIONS)["partitions"]
    return {(entry["topic"], entry["partition"]): entry["tp"] for entry in entries if "renewed" not in entry}


def split_generations(
    history: Path, segments: Sequence[Segment], entries: Sequence[Mapping[str, Any]]
) -> tuple[list[Segment], list[dict[str, Any]]]:
    """The same segments, in which each record has the number of its own partition; and the entries of deleted
    partitions.

    ``entries``: the entries of ``partitions.json``. What an earlier seal added there about its records is kept.
    """
    made, known = recreations(history), {entry["tp"]: entry for entry in entries if "renewed" in entry}
    there = [entry for entry in entries if "renewed" not in entry]
    lines, number = {}, 1 + max((entry["tp"] for entry in there), default=-1)
    for entry in there:
        renewals = made.get((entry["topic"], entry["partition"]), [])
        if renewals:
            numbers = [*range(number, number + len(renewals)), entry["tp"]]
            lines[entry["tp"]] = _PartitionLineage(entry, renewals, numbers, _log(history, entry["tp"]), known)
            number += len(renewals)
    if not lines:
        return list(segments), []
    actors: dict[tuple[str, int], list[Segment]] = defaultdict(list)
    for segment in segments:
        actors[segment.header.actor, segment.header.layout.kind].append(segment)
    sends = _sends(history, segments, lines)
    found = [one for of_actor in actors.values() for one in _of_actor(of_actor, lines, sends)]
    return found, [entry for line in lines.values() for entry in line.gone]


def _of_actor(
    segments: Sequence[Segment], lines: Mapping[int, _PartitionLineage], sends: tuple[Array, Array]
) -> list[Segment]:
    copies = [np.array(segment.records) for segment in segments]
    rows: Records = np.concatenate(copies)
    tps = np.array(rows["tp"])
    for tp, line in lines.items():
        mine = np.flatnonzero(tps == tp)
        if not len(mine):
            continue
        if segments[0].header.layout is DELIVERED:
            which = _delivered(line, rows[mine], sends)
            line.describe(segments[0].header.actor, rows[mine], which)
            rows["ord"][mine] = _numbered(rows["ord"][mine], which)
        else:
            which = _produced(line, rows[mine])
        rows["tp"][mine] = np.array(line.numbers)[which]
    cuts = np.cumsum([len(copy) for copy in copies])[:-1]
    return [replace(s, records=part) for s, part in zip(segments, np.split(rows, cuts), strict=True)]


def _delivered(line: _PartitionLineage, rows: Records, sends: tuple[Array, Array]) -> Array:
    calls, sent_ns = sends
    mine = _call(rows)
    at = np.minimum(np.searchsorted(calls, mine), max(0, len(calls) - 1))
    sender = (calls[at] == mine) & (rows["writer"] >= 0) if len(calls) else np.zeros(len(rows), bool)
    sent = np.where(sender, sent_ns[at], rows["delivered_ns"]) if len(calls) else rows["delivered_ns"]
    found = _found(line.log, rows, ("key", "writer", "seq"))
    return line.which(sent, rows["delivered_ns"], found, sender)


def _produced(line: _PartitionLineage, rows: Records) -> Array:
    acked = (rows["acked_ns"] > 0) & (rows["outcome"] == 0)
    found = np.where(acked, _found(line.log, rows, ("writer", "seq")), np.isin(_call(rows), _call(line.log)))
    return line.which(rows["sent_ns"], np.where(acked, rows["acked_ns"], 0), found, np.ones(len(rows), bool))


def _found(log: Mapping[str, Array], rows: Records, content: Iterable[str]) -> Array:
    """Whether the log has each record at its offset."""
    if not len(log["offset"]):
        return np.zeros(len(rows), bool)
    at = np.minimum(np.searchsorted(log["offset"], rows["offset"]), len(log["offset"]) - 1)
    same = log["offset"][at] == rows["offset"]
    for name in content:
        same &= log[name][at] == rows[name]
    return np.asarray(same)


def _numbered(ords: Array, which: Array) -> Array:
    """``ord`` renumbered per partition: each is lowered by the number of earlier records of other partitions."""
    order = np.argsort(ords, kind="stable")
    place, numbered = np.empty(len(ords), np.int64), np.array(ords)
    place[order] = np.arange(len(ords))
    for n in np.unique(which):
        mine = order[which[order] == n]
        numbered[mine] -= place[mine] - np.arange(len(mine))
    return numbered


def _call(rows: Any) -> Array:
    """One number that identifies the send of each record: its writer and its sequence number."""
    return (np.array(rows["writer"], np.int64) << SHIFT) + np.array(rows["seq"], np.int64)


def _log(history: Path, tp: int) -> Mapping[str, Array]:
    """The records that the audit found in a partition, in the order of its log; empty without an audit."""
    names, path = ("offset", "key", "writer", "seq"), history / "log" / "audit.parquet"
    try:
        table = pq.read_table(path, columns=list(names), filters=[("tp", "=", tp)])
    except (OSError, ValueError):  # the judge reports the damage
        return {name: np.empty(0, np.int64) for name in names}
    return {name: table[name].to_numpy() for name in names}


def _sends(history: Path, segments: Sequence[Segment], lines: Mapping[int, _PartitionLineage]) -> tuple[Array, Array]:
    """All sends in ascending order (see ``_call``), including sends that were sealed before, and the time of each."""
    parts = [s.records for s in segments if s.header.layout is not DELIVERED]
    mine = [rows[np.isin(rows["tp"], list(lines))] for rows in parts]
    calls, times = [_call(rows) for rows in mine], [np.array(rows["sent_ns"]) for rows in mine]
    try:
        sealed = ds.dataset(history / "produced").to_table(columns=["writer", "seq", "sent_ns"])
        columns = {name: sealed[name].to_numpy() for name in sealed.column_names}
        calls, times = [*calls, _call(columns)], [*times, columns["sent_ns"]]
    except (OSError, ValueError):  # nothing was sealed before
        pass
    every, sent_ns = np.concatenate([*calls, np.empty(0, np.int64)]), np.concatenate([*times, np.empty(0, np.int64)])
    order = np.argsort(every, kind="stable")
    return every[order], sent_ns[order]
