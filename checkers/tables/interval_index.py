"""An index of rows by key and time: it finds the rows of a key that meet a window in logarithmic time. Pure."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Generic, TypeVar

from fencepost.checkers.tables.rows import Window

FEW = 8  # up to so many rows are searched one by one
K = TypeVar("K")
R = TypeVar("R")


class IntervalIndex(dict[K, list[R]]):
    """Rows by key, in the order in which they were given, each with a window.

    Args:
        rows: the rows. key: the key of a row. window: when a row was, or may have been, in force.
    """

    def __init__(self, rows: Iterable[R], key: Callable[[R], K], window: Callable[[R], Window]) -> None:
        """The search tree of a key with many rows is built on first use."""
        super().__init__()
        self._window = window
        self._trees: dict[K, _Tree[R]] = {}
        for row in rows:
            self.setdefault(key(row), []).append(row)

    def meeting(self, key: K, window: Window) -> Iterator[R]:
        """The rows of a key whose windows overlap with ``window``, in the order of their starts."""
        rows = self.get(key, ())
        if len(rows) <= FEW:
            yield from sorted((row for row in rows if self._window(row).meets(window)), key=self._begin_ns)
            return
        if key not in self._trees:
            self._trees[key] = _Tree(sorted(rows, key=self._begin_ns), self._window)
        yield from self._trees[key].meeting(window)

    def _begin_ns(self, row: R) -> int:
        return self._window(row).begin_ns


class _Tree(Generic[R]):
    """Rows in the order of their starts, below a binary tree in which each node has the latest end of its rows."""

    def __init__(self, rows: Sequence[R], window: Callable[[R], Window]) -> None:
        windows = [window(row) for row in rows]
        self._rows, self._begins = rows, [w.begin_ns for w in windows]
        self._width = 1 << (len(rows) - 1).bit_length()
        ends = [w.end_ns for w in windows]
        earliest = min(ends)
        self._ends = [earliest] * self._width + ends + [earliest] * (self._width - len(rows))
        for node in range(self._width - 1, 0, -1):
            self._ends[node] = max(self._ends[2 * node], self._ends[2 * node + 1])

    def meeting(self, window: Window) -> Iterator[R]:
        until = bisect_right(self._begins, window.end_ns)
        waiting = [(1, 0, self._width)]  # node, and its rows: the first one and their number
        while waiting:
            node, first, width = waiting.pop()
            if first >= until or self._ends[node] < window.begin_ns:
                continue
            if width == 1:
                yield self._rows[first]
            else:
                half = width // 2
                waiting += ((2 * node + 1, first + half, half), (2 * node, first, half))
