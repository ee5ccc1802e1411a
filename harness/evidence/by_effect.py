"""The rule ``effect``: a record is processed when its effect was there, and nobody knows by whom, nor when.

So the first delivery of each record that has an effect stands for all of them: it was done as early as can be. Of every
other delivery nobody knows whether anything was begun.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np

from fencepost.errors import RunFolderError
from fencepost.evidence import event_table, renewed
from fencepost.evidence.segment_reader import Records, Segment
from fencepost.history import HARNESS, EventKind
from fencepost.history.run_folder import RunFolder
from fencepost_member.config import EFFECT
from fencepost_member.segments import DELIVERED


def applied(folder: RunFolder, segments: Sequence[Segment]) -> list[Segment]:
    """The same segments, by this rule where the workload of the run names it, and effects are known."""
    try:
        workload = folder.read_json("scenario.json")["scenario"]["workload"]
        numbers = renewed.numbers(folder)
    except (RunFolderError, KeyError, TypeError):  # a judge says so
        return list(segments)
    if not isinstance(workload, dict) or workload.get("processed") != EFFECT:
        return list(segments)
    events, *_ = event_table.read_rows(folder.history / "events" / f"{HARNESS}.jsonl")
    if any(event["kind"] == EventKind.UNRECORDED for event in events):  # so the judge believes no delivery
        return list(segments)
    told = (event for event in events if event["kind"] == EventKind.EFFECT)
    places = [(numbers[e["topic"], e["partition"]], e["offset"]) for e in told if e["offset"] is not None]
    mine = [n for n, segment in enumerate(segments) if segment.header.layout is DELIVERED]
    changed = dict(zip(mine, _by_effect([np.array(segments[n].records) for n in mine], places), strict=True))
    return [replace(s, records=changed.get(n, s.records)) for n, s in enumerate(segments)]


def _by_effect(copies: Sequence[Records], places: Iterable[tuple[int, int]]) -> list[Records]:
    if not copies:
        return []
    rows: Records = np.concatenate(copies)
    order = np.lexsort((rows["delivered_ns"], rows["offset"], rows["tp"]))
    tp, offset = rows["tp"][order], rows["offset"][order]
    first = np.ones(len(rows), bool)
    first[1:] = (tp[1:] != tp[:-1]) | (offset[1:] != offset[:-1])
    done = np.zeros(len(rows), bool)
    affected: dict[int, list[int]] = {}
    for number, place in places:
        affected.setdefault(number, []).append(place)
    for number, those in affected.items():
        done[order] |= first & (tp == number) & np.isin(offset, those)
    rows["outcome"] = 0
    for name in ("begin_ns", "done_ns"):
        rows[name] = np.where(done, rows["delivered_ns"], 0)
    return np.split(rows, np.cumsum([len(copy) for copy in copies])[:-1])
