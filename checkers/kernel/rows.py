"""Delivered records in arrays, their streams, and the places of their offsets. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fencepost.checkers.kernel.columns import Columns
from fencepost.checkers.tables.rows import Window
from fencepost.history import State

Array = NDArray[Any]
SPARSE = 8  # places per record from which ranks are cheaper


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

    def take(self, index: Array) -> Rows:
        """Some of the rows, in the order of ``index``."""
        return Rows(self.names, *(getattr(self, f.name)[index] for f in fields(self)[1:]))

    def in_turn(self, which: Array) -> Rows:
        """Some of the rows, in the order of (offset, delivered_ns, incarnation, ord)."""
        index = np.flatnonzero(which)  # in the order of (incarnation, ord), which a stable sort keeps
        return self.take(index[np.lexsort((self.delivered_ns[index], self.offset[index]))])

    @cached_property
    def finished(self) -> Array:
        """Which are done or parked."""
        return np.asarray((self.state == State.DONE) | (self.state == State.PARKED))

    @cached_property
    def bounds(self) -> list[int]:
        """Where the rows of each incarnation begin, and where the last ones end."""
        return [int(n) for n in np.searchsorted(self.who, np.arange(len(self.names) + 1))]

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

    @cached_property
    def by_interval(self) -> Rows:
        """The rows in the order of (incarnation, interval, ord): themselves, unless a history is very odd."""
        falls = 1 + np.flatnonzero(self.interval[1:] < self.interval[:-1])
        return (
            self.take(np.lexsort((self.ord, self.interval, self.who))) if {*falls.tolist()} - {*self.bounds} else self
        )


def concatenate(parts: Iterable[tuple[str, Columns]]) -> Rows:
    """The rows of several files, each named by its incarnation."""
    named = sorted(parts, key=lambda part: part[0])
    names = tuple(name for name, _ in named)
    columns = [_in_order(part) for _, part in named]
    who = np.repeat(np.arange(len(names), dtype=np.int32), [len(part["ord"]) for part in columns])
    return Rows(names, who, *(_joined([_column(part, f.name) for part in columns]) for f in fields(Rows)[2:]))


def _column(part: Columns, name: str) -> Array:
    """A column that was not read is zero everywhere, and takes no room."""
    return part[name] if name in part else np.broadcast_to(np.int64(0), len(part["ord"]))


def _in_order(part: Columns) -> Columns:
    if (np.diff(part["ord"]) < 0).any():
        order = np.argsort(part["ord"], kind="stable")
        return {name: column[order] for name, column in part.items()}
    return part


def _joined(arrays: Sequence[Array]) -> Array:
    if len(arrays) == 1:
        return arrays[0]
    return np.concatenate(arrays) if arrays else np.empty(0, np.int64)


def inside(begin_ns: Array, end_ns: Array, windows: Sequence[Window]) -> Array:
    """Which of the spans from ``begin_ns`` to ``end_ns`` have a moment in common with a window."""
    if not windows:
        return np.zeros(len(begin_ns), bool)
    begins, ends = np.array(sorted(windows), np.int64).T
    before = np.searchsorted(begins, end_ns, side="right")  # those that begin before a span ends, and their last end
    return np.asarray(np.append(-1, np.maximum.accumulate(ends))[before] >= begin_ns)


def of_streams(who: Array, interval: Array, ask: Callable[[int, int], int]) -> Array:
    """For each row what ``ask`` says of its incarnation and interval number; asked once for each two."""
    streams, of = np.unique(np.stack([who, interval]), axis=1, return_inverse=True)
    return np.array([ask(*stream) for stream in streams.T.tolist()], np.int64)[of.ravel()]


class Places:
    """Every offset that occurs has a *place*, ascending, so that "for each offset" is an array.

    Where offsets are nearly dense a place is the offset minus the first one; where they are sparse it is a rank.
    """

    def __init__(self, columns: Sequence[Array]) -> None:
        """The places of all offsets in ``columns``."""
        columns = [column for column in columns if len(column)]
        self._first = min((int(column.min()) for column in columns), default=0)
        self._size = max((int(column.max()) for column in columns), default=-1) + 1 - self._first if columns else 0
        self._ranked: Array | None = None
        if self._size > SPARSE * (1024 + max((len(column) for column in columns), default=0)):
            self._ranked = np.unique(np.concatenate(columns))
            self._size = len(self._ranked)

    def __len__(self) -> int:
        return self._size

    def at(self, offsets: Array) -> Array:
        """The places of offsets that occur."""
        return offsets - self._first if self._ranked is None else np.searchsorted(self._ranked, offsets)

    def offsets(self, places: Array) -> Array:
        """The offsets of places."""
        return places + self._first if self._ranked is None else self._ranked[places]

    def below(self, offset: int) -> int:
        """How many places are below an offset, whether it occurs or not."""
        if self._ranked is None:
            return min(max(offset - self._first, 0), self._size)
        return int(np.searchsorted(self._ranked, offset))
