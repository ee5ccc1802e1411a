"""Kernel rules about partitions without deliveries while records wait: in the quiet window, after or during a step."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fencepost.checkers.detections import blamed
from fencepost.checkers.group_rules.recovery import PAUSED, another_cause
from fencepost.checkers.kernel.aggregates import Label, Totals
from fencepost.checkers.kernel.partitioning import joined
from fencepost.checkers.kernel.task_data import TaskData
from fencepost.checkers.tables.rows import PerformedStep, Window

Array = NDArray[Any]


class _Watch(NamedTuple):
    """A time in which a partition must not stand still for longer than a bound while records wait.

    Attributes:
        first: whether only the first gap between deliveries counts.
        owner: the incarnation that must deliver; None: the owner when the bound is over.
        step: the step whose name is reported as the cause; None: no step.
    """

    kind: str
    window: Window
    bound_ns: int
    first: bool = False
    owner: str | None = None
    step: PerformedStep | None = None


class _Gap(NamedTuple):
    """A time longer than the bound without a delivery, or, for black boxes, without a commit.

    ``reached``: the offset that the commits of black boxes had reached before it.
    """

    watch: _Watch
    begin_ns: int
    end_ns: int
    reached: int = 0


class _Stop(NamedTuple):
    """A gap in which records waited too long: the smallest of their offsets, and since when they waited."""

    offset: int
    since_ns: int


def standing_still(part: TaskData) -> None:
    """``stuck-partition``, ``slow-recovery`` (only the first gap counts), ``collateral-stall``.

    First finds the gaps between deliveries that are long enough, then the records that waited in them. Usually there is
    no such gap.
    """
    watches = [watch for watch in _watches(part) if watch.window.length_ns > watch.bound_ns]
    find = _gaps_of_commits if part.tables.black_box else _gaps
    gaps = [*find(part, watches)] if watches else []
    for gap, stop in zip(gaps, _stops(part, gaps) if gaps else (), strict=True):
        if stop:
            _report(part, gap, stop)


def _watches(part: TaskData) -> Iterator[_Watch]:
    bounds = part.judged.bounds
    yield _Watch("stuck-partition", part.tables.quiet, bounds.stuck_ns)
    for step, recovery in part.judged.recoveries:
        yield _Watch("slow-recovery", recovery, bounds.recovers_ns, first=True, step=step)
    for step, owner, window in part.judged.bystanders.get(part.tp, ()):
        yield _Watch("collateral-stall", window, bounds.stuck_ns, owner=owner, step=step)


def _gaps(part: TaskData, watches: Sequence[_Watch]) -> list[_Gap]:
    runs: list[list[Window]] = [[] for _ in watches]
    for lot in part.lots:
        times = np.sort(lot.rows.delivered_ns, kind="stable")
        for watch, found in zip(watches, runs, strict=True):
            found += _runs(times, watch)
    gaps = []
    for watch, found in zip(watches, runs, strict=True):
        begin_ns, end_ns = watch.window
        runs_of_all = joined([Window(begin_ns, begin_ns), *found, Window(end_ns, end_ns)])
        edges = [(before[1], after[0]) for before, after in pairwise(runs_of_all)]
        edges = edges[:1] if watch.first else edges
        gaps += [_Gap(watch, *edge) for edge in edges if edge[1] - edge[0] > watch.bound_ns]
    return gaps


def _gaps_of_commits(part: TaskData, watches: Sequence[_Watch]) -> Iterator[_Gap]:
    """The gaps between the commits that advanced the partition; when each was written is known only as a window."""
    advances = sorted((advance.written, advance.offset) for advance in part.tables.advances(part.tp))
    for watch in watches:
        reached_ns, until_ns = watch.window
        later = [one for one in advances if one[0].end_ns > watch.window.begin_ns and one[0].begin_ns < until_ns]
        for when in [*(written for written, _ in later), Window(until_ns, until_ns)]:
            if when.begin_ns - reached_ns > watch.bound_ns:
                before = (o for written, o in advances if written.begin_ns <= reached_ns)
                yield _Gap(watch, reached_ns, when.begin_ns, max(before, default=0))
            if watch.first:
                break
            reached_ns = max(reached_ns, when.end_ns)


def _runs(times: Array, watch: _Watch) -> Iterator[Window]:
    """The times within the window of ``watch`` in which deliveries are at most the bound apart."""
    low, high = np.searchsorted(times, watch.window.begin_ns, "right"), np.searchsorted(times, watch.window.end_ns)
    inside = times[low:high]
    edges = np.concatenate([[0], 1 + np.flatnonzero(np.diff(inside) > watch.bound_ns), [len(inside)]])
    for begin, end in pairwise(edges.tolist()) if len(inside) else ():
        yield Window(int(inside[begin]), int(inside[end - 1]))


def _stops(part: TaskData, gaps: Sequence[_Gap]) -> list[_Stop | None]:
    """For each gap, since when records waited too long; None: they did not.

    A record waits if it is visible, acknowledged, and above all offsets that were delivered by the start of the gap.
    """
    firsts = [max(part.start, gap.reached) for gap in gaps]
    for lot in part.lots:
        rows = lot.rows
        for number, gap in enumerate(gaps):
            highest = rows.offset[rows.delivered_ns <= gap.begin_ns].max(initial=-1)
            firsts[number] = max(firsts[number], int(highest) + 1)
    stops: list[_Stop | None] = [None] * len(gaps)
    for lot in part.lots:
        acked_ns = acknowledged_ns(lot)
        waits = lot.visible & (acked_ns >= 0)
        for number, (gap, first) in enumerate(zip(gaps, firsts, strict=True)):
            stops[number] = _sooner(stops[number], _stop(lot, waits, acked_ns, gap, first))
    return stops


def _stop(part: TaskData, waits: Array, acked_ns: Array, gap: _Gap, first: int) -> _Stop | None:
    low = part.places.below(first)
    places = low + np.flatnonzero(waits[low:])
    since_ns = np.maximum(acked_ns[places], gap.begin_ns)
    late = gap.end_ns - since_ns > gap.watch.bound_ns
    return _Stop(int(part.places.offsets(places[late])[0]), int(since_ns[late].min())) if late.any() else None


def _sooner(one: _Stop | None, other: _Stop | None) -> _Stop | None:
    """Both stops as one; ``one`` has the lower offsets."""
    if one is None or other is None:
        return one or other
    return _Stop(one.offset, min(one.since_ns, other.since_ns))


def _report(part: TaskData, gap: _Gap, stop: _Stop) -> None:
    watch, time = gap.watch, Window(stop.since_ns, gap.end_ns)
    owner = owner_at(part, stop.since_ns + watch.bound_ns) if watch.owner is None else watch.owner
    paused = part.tables.paused_by(owner, part.tp, time, watch.bound_ns)
    why = "forked" if part.tables.forked(owner) else "" if owner else "unowned"
    cause = watch.step.name if watch.step else ("paused" if paused and owner else why)
    excuse = "no leader" if part.tables.leaderless(part.tp, *time) else ""
    if watch.owner is not None and watch.step and not excuse:
        excuse = PAUSED if paused else another_cause(part.tables, watch.step, time)
    numbers = Totals(1, stop.offset, stop.offset, *time)
    part.aggregates.put(watch.kind, part.tp, Label(blamed(owner), cause, excuse), numbers)


def acknowledged_ns(part: TaskData) -> Array:
    """When the record at each place was acknowledged; -1: never."""
    acked_ns = np.full(len(part.places), -1)
    for sent, where in zip(part.sent, part.sent_where, strict=True):
        where.put(acked_ns, sent["acked_ns"])
    return acked_ns


def owner_at(part: TaskData, at_ns: int) -> str:
    """The incarnation that owned the partition at a moment; empty: there was none."""
    if part.tables.black_box:
        return part.tables.coordinator_owner(part.tp, at_ns)
    owners = [
        (interval.assigned_begin_ns, interval.incarnation)
        for interval in part.intervals
        if interval.certain.begin_ns <= at_ns <= interval.certain.end_ns
    ]
    return min(owners, default=(0, ""))[1] or part.tables.unreachable_coordinator_owner(part.tp, at_ns)
