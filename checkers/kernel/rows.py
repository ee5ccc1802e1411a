"""Delivered records in arrays, and their streams. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fencepost.checkers.kernel.arrays import breaks, each
from fencepost.checkers.kernel.columns import Piece, joined
from fencepost.checkers.tables.rows import Window
from fencepost.history import RecordState

Array = NDArray[Any]


class Stream(NamedTuple):
    """The rows ``begin`` to before ``end`` of one incarnation and one interval number, in the order of ``ord``."""

    who: int
    interval: int
    begin: int
    end: int


@dataclass(frozen=True)
class Rows:
    """Delivered records, in the order of (incarnation, ord). ``who`` is an index into ``names``, which are sorted."""

    names: tuple[str, ...]
    who: Array
    offset: Array
    key: Array
    writer: Array
    seq: Array
    interval: Array
    poll: Array
    ord: Array
    delivered_ns: Array
    begin_ns: Array
    done_ns: Array
    state: Array

    def __len__(self) -> int:
        return len(self.offset)

    def take(self, index: Array | slice) -> Rows:
        """Some of the rows, in the order of ``index``."""
        return Rows(self.names, *(getattr(self, f.name)[index] for f in fields(self)[1:]))

    def in_turn(self, index: Array) -> Rows:
        """The rows of an ascending index, in the order of (offset, delivered_ns, incarnation, ord)."""
        return self.take(index[np.lexsort((self.delivered_ns[index], self.offset[index]))])

    @cached_property
    def finished(self) -> Array:
        """Which rows are done or parked."""
        return each(self.state, lambda state: (state == RecordState.DONE) | (state == RecordState.PARKED))

    @cached_property
    def begun(self) -> Array:
        """Which rows were begun."""
        return np.asarray(self.begin_ns > 0)

    @cached_property
    def breaks(self) -> Array:
        """The rows, except the first, whose ``ord`` is not that of the row before plus 1."""
        return breaks(self.ord)

    @cached_property
    def bounds(self) -> list[int]:
        """Where the rows of each incarnation begin, and where the last ones end."""
        edges = np.arange(len(self.names) + 1, dtype=self.who.dtype)  # with another type, numpy would copy all rows
        return [int(n) for n in np.searchsorted(self.who, edges)]

    @cached_property
    def streams(self) -> tuple[Stream, ...]:
        """The streams of ``by_interval``, rows without an interval number (-1) included."""
        rows = self.by_interval
        change = 1 + np.flatnonzero(rows.interval[1:] != rows.interval[:-1])
        edges = sorted({*self.bounds, *change.tolist()})
        return tuple(
            Stream(int(rows.who[begin]), int(rows.interval[begin]), begin, end) for begin, end in pairwise(edges)
        )

    def stream(self, name: str, interval: int) -> Stream | None:
        """The stream of one incarnation and interval number, if there is one."""
        return self._streams.get((name, interval))

    @cached_property
    def _streams(self) -> Mapping[tuple[str, int], Stream]:
        return {(self.names[stream.who], stream.interval): stream for stream in self.streams}

    @property
    def by_interval(self) -> Rows:
        """The rows in the order of (incarnation, interval, ord): ``self``, except in very unusual histories."""
        return self if self._sorted is None else self._sorted

    @cached_property
    def _sorted(self) -> Rows | None:
        """None if they are in order: a reference to themselves would delay the release of their memory."""
        falls = 1 + np.flatnonzero(self.interval[1:] < self.interval[:-1])
        in_order = not {*falls.tolist()} - {*self.bounds}
        return None if in_order else self.take(np.lexsort((self.ord, self.interval, self.who)))


def concatenate(pieces: Iterable[Piece]) -> Rows:
    """The rows of several pieces, each named by its incarnation. The columns are removed from the pieces."""
    named = sorted(pieces, key=lambda piece: piece.file)
    names = tuple(dict.fromkeys(piece.file for piece in named))
    numbers = np.array([names.index(piece.file) for piece in named], np.int32)
    who = np.repeat(numbers, [piece.rows for piece in named])
    rows = Rows(names, who, **joined(named, [field.name for field in fields(Rows)[2:]]))
    falls = rows.breaks[rows.ord[rows.breaks] < rows.ord[rows.breaks - 1]]
    return rows.take(np.lexsort((rows.ord, who))) if {*falls.tolist()} - {*rows.bounds} else rows


def inside(begin_ns: Array, end_ns: Array, windows: Sequence[Window]) -> Array:
    """Which of the spans from ``begin_ns`` to ``end_ns`` overlap or touch a window."""
    if not windows:
        return np.zeros(len(begin_ns), bool)
    begins, ends = np.array(sorted(windows), np.int64).T
    before = np.searchsorted(begins, end_ns, side="right")  # how many windows begin by the end of each span
    return np.asarray(np.append(-1, np.maximum.accumulate(ends))[before] >= begin_ns)


def of_streams(who: Array, interval: Array, ask: Callable[[int, int], int]) -> Array:
    """For each row, the result of ``ask`` for its incarnation and interval number; called once for each such pair."""
    both = (who.astype(np.int64) << 32) + interval  # one number: numpy finds unique pairs slowly
    _, first, of = np.unique(both, return_index=True, return_inverse=True)
    return np.array([ask(int(who[row]), int(interval[row])) for row in first], np.int64)[of]
