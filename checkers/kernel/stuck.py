"""Kernel rule ``stuck-partition``: records wait in the quiet window, and nothing is delivered for too long."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from fencepost.checkers.kernel.part import Part
from fencepost.checkers.kernel.tallies import Label, Numbers
from fencepost.checkers.sightings import people

Array = NDArray[Any]


def stuck_partition(part: Part) -> None:
    """First the gaps between deliveries that are long enough, then what waited in them: nearly always there is none."""
    quiet, bound_ns = part.tables.quiet, part.judged.bounds.stuck_ns
    if quiet.length_ns <= bound_ns:
        return
    delivered_ns = part.rows.delivered_ns
    inside = np.unique(delivered_ns[(delivered_ns > quiet.begin_ns) & (delivered_ns < quiet.end_ns)])
    edges = np.concatenate([[quiet.begin_ns], inside, [quiet.end_ns]])
    for gap in np.flatnonzero(np.diff(edges) > bound_ns):
        _gap(part, int(edges[gap]), int(edges[gap + 1]))


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
    excuse = "no leader" if part.tables.leaderless(part.tp, from_ns, end_ns) else ""
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
        for interval in part.intervals
        if interval.certain.begin_ns <= at_ns <= interval.certain.end_ns
    ]
    return min(owners, default=(0, ""))[1]
