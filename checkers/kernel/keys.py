"""Kernel rule ``key-order``: a record begun before an earlier record of its key was finished."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from fencepost.checkers.kernel.part import Part
from fencepost.checkers.kernel.tallies import Label, Numbers
from fencepost.checkers.sightings import people

Array = NDArray[Any]


def key_order(part: Part) -> None:
    """Where nothing was begun before everything below it was finished, keys need no look at all.

    A task that has only some offsets of its partition tells the times of its edges, see ``seams``.
    """
    rows = part.rows
    begin_ns = _earliest(part, rows.begin_ns, rows.begin_ns > 0)
    finish_ns = _earliest(part, rows.done_ns, rows.finished)
    if part.task.rules == "offsets" and len(rows):
        first = int(min(begin_ns[begin_ns > 0], default=0))
        part.tallies.put("#edge", part.tp, Label(cause=_range(part)), Numbers(1, -1, -1, first, int(finish_ns.max())))
    if len(begin_ns) < 2:
        return
    early = (begin_ns[1:] < np.maximum.accumulate(finish_ns)[:-1]) & (begin_ns[1:] > 0)
    if early.any():
        _exact(part, 1 + np.flatnonzero(early))


def _earliest(part: Part, times: Array, which: Array) -> Array:
    """For each place the smallest time among its rows; 0 when there is none."""
    at, times = (part.at, times) if which.all() else (part.at[which], times[which])
    found = np.zeros(len(part.places), np.int64)
    found[at] = times
    again = np.flatnonzero((part.deliveries > 1)[at])
    found[at[again]] = np.iinfo(np.int64).max
    np.minimum.at(found, at[again], times[again])
    return found


def _first(part: Part, times: Array, which: Array) -> Array:
    """For each place its row with the smallest (time, incarnation); -1 when there is none."""
    index = np.flatnonzero(which)  # in the order of (incarnation, ord), which a stable sort keeps
    index = index[np.argsort(times[index], kind="stable")][::-1]
    first = np.full(len(part.places), -1)
    first[part.at[index]] = index  # the last one of a place stays: the smallest
    return first


def _times(times: Array, index: Array) -> Array:
    return np.where(index >= 0, times[index], 0)


def _exact(part: Part, early: Array) -> None:
    """Look at the keys of the places ``early`` one by one (all at once): a running maximum within each key."""
    rows = part.rows
    begun, finished = _first(part, rows.begin_ns, rows.begin_ns > 0), _first(part, rows.done_ns, rows.finished)
    delivered = _first(part, rows.delivered_ns, np.ones(len(rows), bool))
    places = np.flatnonzero(delivered >= 0)
    keys = rows.key[delivered[places]]
    places = places[np.isin(keys, rows.key[delivered[early]])]
    keys = rows.key[delivered[places]]
    order = np.argsort(keys, kind="stable")  # by key, and by offset within a key
    places, keys = places[order], keys[order]
    finish_ns = _times(rows.done_ns, finished[places])
    rank = np.empty(len(places), np.int64)  # by finish; of equal ones the lowest offset counts, so it ranks highest
    rank[np.lexsort((-np.arange(len(places)), finish_ns))] = np.arange(len(places))
    first_of_key = np.append(True, keys[1:] != keys[:-1])
    group = np.cumsum(first_of_key) * len(places)
    latest = np.maximum.accumulate(group + rank) - group
    by_rank = np.argsort(rank)
    blocker = np.full(len(places), -1)
    blocker[1:] = by_rank[latest[:-1]]
    blocker[first_of_key] = -1
    begin_ns = _times(rows.begin_ns, begun[places])
    wrong = (blocker >= 0) & (begin_ns > 0) & (begin_ns < finish_ns[blocker])
    late, blocker = places[wrong], places[blocker[wrong]]
    kind, of = ("#key-order", _range(part)) if part.task.rules == "offsets" else ("key-order", "")
    part.tallies.put_many(
        kind,
        part.tp,
        [rows.who[begun[late]], rows.who[finished[blocker]]],
        lambda beginner, finisher: Label(people(rows.names[beginner], rows.names[finisher]), "", of),
        first=part.places.offsets(late),
        from_ns=rows.begin_ns[begun[late]],
        to_ns=rows.done_ns[finished[blocker]],
    )


def _range(part: Part) -> str:
    return f"{part.task.low} {part.task.high}"
