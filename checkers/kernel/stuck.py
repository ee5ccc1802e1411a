"""Kernel rule ``stuck-partition``: records wait in the quiet window, and nothing is delivered for too long."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fencepost.checkers.kernel.part import Part
from fencepost.checkers.kernel.tallies import Label, Numbers
from fencepost.checkers.sightings import people
from fencepost.checkers.tables.rows import Window

Array = NDArray[Any]


def stuck_partition(part: Part) -> None:
    """First the gaps between deliveries that are long enough, then what waited in them: nearly always there is none."""
    quiet, bound_ns = part.tables.quiet, part.judged.bounds.stuck_ns
    if quiet.length_ns <= bound_ns:
        return
    delivered_ns = part.rows.delivered_ns
    inside = np.unique(delivered_ns[(delivered_ns > quiet.begin_ns) & (delivered_ns < quiet.end_ns)])
    edges = np.array([quiet.begin_ns, *inside, quiet.end_ns])
    for begin_ns, end_ns in pairwise(edges):
        if end_ns - begin_ns > bound_ns:
            _gap(part, int(begin_ns), int(end_ns))


def _gap(part: Part, begin_ns: int, end_ns: int) -> None:
    """What waits is visible, acknowledged, and above all that was delivered up to the begin of the gap."""
    before = part.rows.offset[part.rows.delivered_ns <= begin_ns]
    first = max(part.start, int(before.max()) + 1 if len(before) else 0)
    acked_ns = _acknowledged_ns(part)
    waits = part.visible & (acked_ns >= 0)
    waits[: part.places.below(first)] = False
    places = np.flatnonzero(waits)
    since_ns = np.maximum(acked_ns[places], begin_ns)
    late = end_ns - since_ns > part.judged.bounds.stuck_ns
    if not late.any():
        return
    offset, from_ns = int(part.places.offsets(places[late])[0]), int(since_ns[late].min())
    owner = _owner(part, from_ns + part.judged.bounds.stuck_ns)
    excuse = "no leader" if _leaderless(part, Window(from_ns, end_ns)) else ""
    label = Label(people(owner), "" if owner else "unowned", excuse)
    part.tallies.put("stuck-partition", part.tp, label, Numbers(1, offset, offset, from_ns, end_ns))


def _acknowledged_ns(part: Part) -> Array:
    """When each place was acknowledged, -1: never."""
    acked_ns = np.full(len(part.places), -1)
    for sent in part.acknowledged("acked_ns"):
        acked_ns[part.places.at(sent["offset"])] = sent["acked_ns"]
    return acked_ns


def _owner(part: Part, at_ns: int) -> str:
    owners = [
        (interval.assigned_begin_ns, interval.incarnation)
        for interval in part.tables.intervals
        if interval.tp == part.tp and interval.certain.begin_ns <= at_ns <= interval.certain.end_ns
    ]
    return min(owners, default=(0, ""))[1]


def _leaderless(part: Part, window: Window) -> bool:
    """Whether the metadata log left the partition without a leader for a part of the window."""
    changes = [change for change in part.tables.leaders if change[2] == part.tp]
    for n, (at_ns, blur_ns, _, leader) in enumerate(changes):
        until_ns = changes[n + 1][0] + changes[n + 1][1] if n + 1 < len(changes) else window.end_ns
        if leader < 0 and at_ns - blur_ns <= window.end_ns and until_ns >= window.begin_ns:
            return True
    return False
