"""Converts columns with an element per row to columns with an element per offset, and back. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fencepost.checkers.kernel.arrays import STEP, breaks

Array = NDArray[Any]
SPARSE = 8  # places per record above which ranks are cheaper
SHORT = 512  # rows per run below which it is cheaper to convert rows one by one


class ConsecutiveRuns:
    """The numbers of some rows, and the runs in which they ascend by 1.

    Attributes:
        numbers: one for each row.
        begins: the first row of each run; empty if there are too many runs to be useful.
        least, most: of the numbers; 0 and -1 if there are no rows.
    """

    def __init__(self, numbers: Array) -> None:
        """Looks for runs in the first rows; looks at all rows only if there are long ones."""
        self.numbers, self.begins = numbers, numbers[:0]
        for some in (numbers[:STEP], numbers):
            edges = breaks(some)
            if len(edges) * SHORT >= len(some):
                self.least, self.most = (int(numbers.min()), int(numbers.max())) if len(numbers) else (0, -1)
                return
        self.begins = np.append(0, edges)
        self.least, self.most = int(numbers[self.begins].min()), int(numbers[np.append(edges, 0) - 1].max())


class OffsetIndex:
    """Every offset that occurs has a *place*, its index in columns by offset; places ascend with offsets.

    If the offsets are nearly dense, a place is the offset minus the first one; if they are sparse, it is a rank.
    """

    def __init__(self, columns: Sequence[Array]) -> None:
        """The places of all offsets in ``columns``."""
        self._columns = [ConsecutiveRuns(column) for column in columns]
        some = [column for column in self._columns if len(column.numbers)]
        self._first = min((column.least for column in some), default=0)
        self._size = max((column.most for column in some), default=self._first - 1) + 1 - self._first
        self._ranked: Array | None = None
        if self._size > SPARSE * (1024 + max((len(column.numbers) for column in some), default=0)):
            self._ranked = np.unique(np.concatenate([column.numbers for column in some]))
            self._size = len(self._ranked)

    def __len__(self) -> int:
        return self._size

    def where(self, number: int) -> RowPositions:
        """The places of the rows of column ``number``."""
        column = self._columns[number]
        if self._ranked is None:
            return RowPositions(column, self._first, self._size)
        return RowPositions(ConsecutiveRuns(self.at(column.numbers)), 0, self._size)

    def at(self, offsets: Array) -> Array:
        """The places of offsets, all of which occur."""
        return offsets - self._first if self._ranked is None else np.searchsorted(self._ranked, offsets)

    def offsets(self, places: Array) -> Array:
        """The offsets at places."""
        return places + self._first if self._ranked is None else self._ranked[places]

    def below(self, offset: int) -> int:
        """How many places are below an offset, whether the offset occurs or not."""
        if self._ranked is None:
            return min(max(offset - self._first, 0), self._size)
        return int(np.searchsorted(self._ranked, offset))


class RowPositions:
    """The places of some rows: converts columns by row to columns by place, and back.

    Usually the rows are runs of consecutive places (a member's deliveries, the log): then columns are copied as slices,
    at the speed of memory, and the places are not stored. Otherwise columns are copied row by row.
    """

    def __init__(self, of: ConsecutiveRuns, first: int, size: int) -> None:
        """``of``: for each row its place plus ``first``; ``size``: the number of places."""
        self._rows, self._size = len(of.numbers), size
        self._at = None if len(of.begins) else of.numbers - first
        self._begins, self._firsts = of.begins, of.numbers[of.begins] - first  # of the runs: rows and places
        self.whole = self._rows == size and len(of.begins) == 1

    def places(self, index: Array) -> Array:
        """The places of a few rows."""
        if self._at is not None:
            return np.asarray(self._at[index])
        run = np.searchsorted(self._begins, index, side="right") - 1
        return np.asarray(self._firsts[run] + index - self._begins[run])

    def of(self, by_place: Array) -> Array:
        """A column by place, as a column by row."""
        if self.whole:
            return by_place
        if self._at is not None:
            return np.asarray(by_place[self._at])
        return np.concatenate([by_place[places] for _, places in self._slices()])

    def same(self, by_place: Array, column: Array) -> Array:
        """Whether each row has the value that ``by_place`` has at its place."""
        found = np.empty(self._rows, bool)
        for rows, places in self._slices():
            found[rows] = by_place[places] == column[rows]
        return found

    def put(self, by_place: Array, column: Array) -> None:
        """Write a column by row into a column by place. If several rows have one place, the last one stays."""
        for rows, places in self._slices():
            by_place[places] = column[rows]

    def occupied(self) -> Array:
        """Which places have a row."""
        found = np.full(self._size, self.whole)
        for _, places in self._slices() if not self.whole else ():
            found[places] = True
        return found

    def count(self) -> Array:
        """How many rows each place has."""
        if self._at is not None:
            return np.bincount(self._at, minlength=self._size)
        counts = np.zeros(self._size, np.int32)
        for _, places in self._slices():
            counts[places] += 1
        return counts

    def _slices(self) -> Iterator[tuple[Any, Any]]:
        """The rows and their places, piece by piece."""
        if self._at is not None:
            yield slice(None), self._at
        edges = [*self._begins.tolist(), self._rows]
        for (begin, end), first in zip(pairwise(edges), self._firsts.tolist(), strict=True):
            yield slice(begin, end), slice(first, first + end - begin)
