"""Kernel rules about partitions that stand still while records wait: in the quiet window, after a step, beside one."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fencepost.checkers.coordination.aftermath import another_cause
from fencepost.checkers.kernel.part import Part
from fencepost.checkers.kernel.tallies import Label, Numbers
from fencepost.checkers.sightings import people
from fencepost.checkers.tables.rows import Window

Array = NDArray[Any]


class _Stop(NamedTuple):
    """A gap between deliveries in which records waited too long: the smallest of them, since when, the gap's end."""

    offset: int
    since_ns: int
    end_ns: int


def stuck_partition(part: Part) -> None:
    """``stuck-partition``."""
    quiet, bound_ns = part.tables.quiet, part.judged.bounds.stuck_ns
    for stop in _stops(part, quiet, bound_ns):
        owner = _owner(part, stop.since_ns + bound_ns)
        _tell(part, "stuck-partition", owner, "" if owner else "unowned", stop)


def slow_recovery(part: Part) -> None:
    """``slow-recovery``: only the first gap of a recovery counts."""
    bound_ns = part.judged.bounds.recovers_ns
    for step, recovery in part.judged.recoveries:
        inside = part.rows.delivered_ns[part.rows.delivered_ns > recovery.begin_ns]
        first = Window(recovery.begin_ns, min(recovery.end_ns, int(inside.min(initial=recovery.end_ns))))
        for stop in _stops(part, first, bound_ns):
            _tell(part, "slow-recovery", _owner(part, stop.since_ns + bound_ns), step.name, stop)


def collateral_stop(part: Part) -> None:
    """``collateral-stop``."""
    for step, owner, window in part.judged.bystanders.get(part.tp, ()):
        for stop in _stops(part, window, part.judged.bounds.stuck_ns):
            excuse = another_cause(part.tables, step, Window(stop.since_ns, stop.end_ns))
            _tell(part, "collateral-stop", owner, step.name, stop, excuse)


def _tell(part: Part, kind: str, owner: str, cause: str, stop: _Stop, excuse: str = "") -> None:
    leaderless = "no leader" if part.tables.leaderless(part.tp, stop.since_ns, stop.end_ns) else ""
    numbers = Numbers(1, stop.offset, stop.offset, stop.since_ns, stop.end_ns)
    part.tallies.put(kind, part.tp, Label(people(owner), cause, leaderless or excuse), numbers)


def _stops(part: Part, window: Window, bound_ns: int) -> Iterator[_Stop]:
    """First the gaps between deliveries that are long enough, then what waited in them: nearly always there is none."""
    if window.length_ns <= bound_ns:
        return
    delivered_ns = part.rows.delivered_ns
    inside = np.unique(delivered_ns[(delivered_ns > window.begin_ns) & (delivered_ns < window.end_ns)])
    edges = np.concatenate([[window.begin_ns], inside, [window.end_ns]])
    for gap in np.flatnonzero(np.diff(edges) > bound_ns):
        yield from _stop(part, int(edges[gap]), int(edges[gap + 1]), bound_ns)


def _stop(part: Part, begin_ns: int, end_ns: int, bound_ns: int) -> Iterator[_Stop]:
    """What waits is visible, acknowledged, and above all that was delivered up to the begin of the gap."""
    before = part.rows.offset[part.rows.delivered_ns <= begin_ns]
    first = max(part.start, int(before.max()) + 1 if len(before) else 0)
    acked_ns = _acknowledged_ns(part)
    waits = part.visible & (acked_ns >= 0)
    waits[: part.places.below(first)] = False
    places = np.flatnonzero(waits)
    since_ns = np.maximum(acked_ns[places], begin_ns)
    late = end_ns - since_ns > bound_ns
    if late.any():
        yield _Stop(int(part.places.offsets(places[late])[0]), int(since_ns[late].min()), end_ns)


def _acknowledged_ns(part: Part) -> Array:
    """When each place was acknowledged, -1: never."""
    acked_ns = np.full(len(part.places), -1)
    for sent, where in zip(part.sent, part.sent_where, strict=True):
        where.put(acked_ns, sent["acked_ns"])
    return acked_ns


def _owner(part: Part, at_ns: int) -> str:
    owners = [
        (interval.assigned_begin_ns, interval.incarnation)
        for interval in part.intervals
        if interval.certain.begin_ns <= at_ns <= interval.certain.end_ns
    ]
    return min(owners, default=(0, ""))[1]
