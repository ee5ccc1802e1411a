"""Lookups in a whole partition, for rules whose task may have only a range of it.

The files are read on demand, piece by piece. Only results are kept, not the records.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fencepost.checkers.kernel.arrays import among
from fencepost.checkers.kernel.columns import Files, Near, Piece
from fencepost.checkers.kernel.partitioning import Task
from fencepost.history import RecordState

Array = NDArray[Any]
PRODUCED = ("produced", "unacked")  # the folders of sends


class First(NamedTuple):
    """The first delivery of a stream."""

    offset: int
    delivered_ns: int


def _ascending(offsets: Array) -> Array:
    """Each offset once, ascending; offsets nearly always are so already."""
    return offsets if (offsets[1:] > offsets[:-1]).all() else np.unique(offsets)


class Between(NamedTuple):
    """For each of some pairs of offsets, the visible offsets between them: how many, the first and the last."""

    counts: Array
    firsts: Array
    lasts: Array


def between(visible: Iterable[Array], after: Array, before: Array) -> Between:
    """The visible offsets above ``after`` and below ``before``; ``visible``: arrays, each ascending, in any order."""
    counts, firsts, lasts = (np.zeros(len(after), np.int64) for _ in range(3))
    for offsets in visible:
        low, high = np.searchsorted(offsets, after, side="right"), np.searchsorted(offsets, before, side="left")
        some = np.flatnonzero(low < high)
        lowest = offsets[low[some]]
        firsts[some] = np.where(counts[some] > 0, np.minimum(firsts[some], lowest), lowest)
        lasts[some] = np.maximum(lasts[some], offsets[high[some] - 1])
        counts[some] += (high - low)[some]
    return Between(counts, firsts, lasts)


class PartitionLookup:
    """Lookups in the records of one partition."""

    def __init__(self, files: Files, task: Task) -> None:
        """``task``: the whole partition."""
        self._files, self._task = files, task
        self.first = cache(self._first)

    def _first(self, name: str, number: int) -> First | None:
        """The first delivery of an incarnation in one of its intervals."""
        found = []
        for piece, own in self._stream(name, number, ["interval", "ord", "offset", "delivered_ns"]):
            at = own[np.argmin(piece["ord"][own])]
            found.append((int(piece["ord"][at]), First(int(piece["offset"][at]), int(piece["delivered_ns"][at]))))
        return min(found, key=lambda one: one[0], default=(0, None))[1]

    def polls(self, name: str, number: int, after_ns: int = -1) -> tuple[int, int]:
        """The first and the last poll of a stream with deliveries after ``after_ns``; there must be one."""
        found = []
        for piece, own in self._stream(name, number, ["interval", "poll", "delivered_ns"]):
            polls = piece["poll"][own[piece["delivered_ns"][own] > after_ns]]
            found += [int(polls.min()), int(polls.max())] if len(polls) else []
        return min(found), max(found)

    def reached(self, name: str, number: int, by_ns: int) -> int:
        """The highest offset that a stream had delivered by ``by_ns``; -1: none."""
        found = [-1]
        for piece, own in self._stream(name, number, ["interval", "offset", "delivered_ns"]):
            found.append(int(piece["offset"][own[piece["delivered_ns"][own] <= by_ns]].max(initial=-1)))
        return max(found)

    def _stream(self, name: str, number: int, names: list[str]) -> Iterator[tuple[Piece, Array]]:
        """The deliveries of an incarnation in one of its intervals: pieces, and which rows of each (at least one)."""
        near = Near("interval", "interval", [(number, number)])
        for piece in self._files.read(self._task.only(name), "delivered", names, near):
            own = np.flatnonzero(piece["interval"] == number)
            if len(own):
                yield piece, own

    def between(self, after: Array, before: Array) -> Between:
        """The visible offsets above ``after`` and below ``before``, pair by pair."""
        return between(self._visible(int(after.min()), int(before.max())) if len(after) else (), after, before)

    def _visible(self, low: int, high: int) -> Iterator[Array]:
        """The visible offsets from ``low`` to ``high`` in ascending arrays, which are in the order of the files."""
        found = np.empty(0, np.int64)
        for piece in self._files.read(replace(self._task, low=low, high=high + 1), "log", ["offset"]):
            offsets = _ascending(piece["offset"])
            if len(found) and offsets[0] <= found[-1]:
                offsets = np.union1d(found, offsets)
            elif len(found):
                yield found
            found = offsets
        yield found

    def records(self, folder: str, names: list[str]) -> Iterator[Piece]:
        """All records of a folder, piece by piece."""
        return self._files.read(self._task, folder, names)

    def done(self, offsets: Iterable[int]) -> dict[int, int]:
        """When a member was first done with the record at each offset; offsets with no such member are left out."""
        asked = np.array(sorted(set(offsets)), np.int64)
        near, found = Near("offset", "offset", [(offset, offset) for offset in asked.tolist()]), dict[int, int]()
        for piece in self._files.read(self._task, "delivered", ["offset", "state", "done_ns"], near):
            own = among(piece["offset"], asked)
            own = own[piece["state"][own] == RecordState.DONE]
            for offset, done_ns in zip(piece["offset"][own].tolist(), piece["done_ns"][own].tolist(), strict=True):
                found[offset] = min(done_ns, found.get(offset, done_ns))
        return found

    def sends(self, seq: Array) -> Iterator[tuple[Piece, Array]]:
        """The sends with the numbers ``seq`` (not empty), of any outcome and offset: pieces, and which rows of each."""
        near = Near("seq", "seq", [(number, number) for number in np.unique(seq).tolist()])
        for folder in PRODUCED:
            for piece in self._files.read(self._task, folder, ["seq"], near):
                match = among(piece["seq"], seq)
                if len(match):
                    yield piece, match
