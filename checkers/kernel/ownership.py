"""Kernel rule ``assignment-overlap``: a sweep over the assignment intervals, on the driver."""

from __future__ import annotations

from collections.abc import Iterator

from fencepost.checkers.detections import Detection, blamed
from fencepost.checkers.tables import Tables
from fencepost.checkers.tables.rows import Interval


def assignment_overlap(tables: Tables) -> Iterator[Detection]:
    """Compare an interval with others only if it certainly began before the end of an earlier one; usually none did."""
    for tp, intervals in tables.certain_by_tp.items():
        over_ns = 0
        for late in sorted(intervals, key=_begin):
            if late.certain.begin_ns < over_ns:
                for early in tables.certain_by_tp.meeting(tp, late.certain):
                    if _begin(early) < _begin(late) and early.incarnation != late.incarnation:
                        yield from _overlap(tables, early, late)
            over_ns = max(over_ns, late.certain.end_ns)


def _begin(interval: Interval) -> tuple[int, Interval]:
    return interval.certain.begin_ns, interval


def _overlap(tables: Tables, early: Interval, late: Interval) -> Iterator[Detection]:
    """The oracle's rule defines which of the two was removed, and which is named first."""
    both = early.certain.common(late.certain)
    if both.length_ns > 0:
        removed = {i: i.how == "lost" or bool(tables.removed(i, both.end_ns)) for i in (early, late)}
        pair = sorted(removed, key=lambda i: (not removed[i], i.assigned_end_ns, i.incarnation))
        excuse = "zombie" if any(removed.values()) else tables.recreated(late.tp, both.begin_ns)
        yield Detection("assignment-overlap", late.tp, blamed(*(i.incarnation for i in pair)), "", excuse, -1, *both)
