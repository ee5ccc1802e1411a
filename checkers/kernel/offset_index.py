"""The places of offsets, so that "for each offset" is an array, and how columns go there and back. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fencepost.checkers.kernel.arrays import STEP, breaks

Array = NDArray[Any]
SPARSE = 8  # places per record from which ranks are cheaper
SHORT = 512  # rows of a stretch below which they are cheaper one by one


class ConsecutiveRuns:
    """Numbers of some rows, and where they go up one by one.

    Attributes:
        numbers: one for each row.
        begins: the first row, and those that are not one above the row before; none, if they are too many to be of use.
        least, most: of the numbers, of which there is one.
    """

    def __init__(self, numbers: Array) -> None:
        """It is looked for in the first rows first."""
        self.numbers, self.begins = numbers, numbers[:0]
        for some in (numbers[:STEP], numbers):
            edges = breaks(some)
            if len(edges) * SHORT >= len(some):
                self.least, self.most = (int(numbers.min()), int(numbers.max())) if len(numbers) else (0, -1)
                return
        self.begins = np.append(0, edges)
        self.least, self.most = int(numbers[self.begins].min()), int(numbers[np.append(edges, 0) - 1].max())


class OffsetIndex:
    """Every offset that occurs has a *place*, ascending, so that "for each offset" is an array.

    Where offsets are nearly dense a place is the offset minus the first one; where they are sparse it is a rank.
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
        """The places of the column of that number."""
        column = self._columns[number]
        if self._ranked is None:
            return RowPositions(column, self._first, self._size)
        return RowPositions(ConsecutiveRuns(self.at(column.numbers)), 0, self._size)

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


class RowPositions:
    """The places of some rows: how a column goes from rows to places and back.

    Mostly rows are stretches of places that follow each other (a member's deliveries, the log): then columns go over as
    slices, at the speed of memory, and the places themselves are not kept. Else they go one by one.
    """

    def __init__(self, of: ConsecutiveRuns, first: int, size: int) -> None:
        """``of``: a number for each row, ``first`` above its place; ``size``: how many places there are."""
        self._rows, self._size = len(of.numbers), size
        self._at = None if len(of.begins) else of.numbers - first
        self._begins, self._firsts = of.begins, of.numbers[of.begins] - first  # of the stretches: rows and places
        self.whole = self._rows == size and len(of.begins) == 1

    def places(self, index: Array) -> Array:
        """The places of a few rows."""
        if self._at is not None:
            return np.asarray(self._at[index])
        stretch = np.searchsorted(self._begins, index, side="right") - 1
        return np.asarray(self._firsts[stretch] + index - self._begins[stretch])

    def of(self, by_place: Array) -> Array:
        """A column by place as one by row."""
        if self.whole:
            return by_place
        if self._at is not None:
            return np.asarray(by_place[self._at])
        return np.concatenate([by_place[places] for _, places in self._slices()])

    def same(self, by_place: Array, column: Array) -> Array:
        """Whether each row has the value of its place."""
        found = np.empty(self._rows, bool)
        for rows, places in self._slices():
            found[rows] = by_place[places] == column[rows]
        return found

    def put(self, by_place: Array, column: Array) -> None:
        """A column by row into one by place. Of several rows in one place the last one stays."""
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
