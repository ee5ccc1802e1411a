"""What was in force when: rows by key, and those of them that meet a window, in logarithmic time. Pure."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Generic, TypeVar

from fencepost.checkers.tables.rows import Window

FEW = 8  # so many rows are looked at one by one
K = TypeVar("K")
R = TypeVar("R")


class IntervalIndex(dict[K, list[R]]):
    """Rows by key, in the order in which they were given, each with the window that it is about.

    Args:
        rows: what is looked up. key: what it is looked up by. window: when a row was, or may have been, in force.
    """

    def __init__(self, rows: Iterable[R], key: Callable[[R], K], window: Callable[[R], Window]) -> None:
        """The index of a key with many rows is made when it is first asked."""
        super().__init__()
        self._window = window
        self._trees: dict[K, _Tree[R]] = {}
        for row in rows:
            self.setdefault(key(row), []).append(row)

    def meeting(self, key: K, window: Window) -> Iterator[R]:
        """The rows of a key that have a moment in common with a window, in the order of their begins."""
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
    """Rows in the order of their begins, and above every two of them, and so on, the later end."""

    def __init__(self, rows: Sequence[R], window: Callable[[R], Window]) -> None:
        windows = [window(row) for row in rows]
        self._rows, self._begins = rows, [w.begin_ns for w in windows]
        self._width = 1 << (len(rows) - 1).bit_length()
        ends = [w.end_ns for w in windows]
        nowhere = min(ends)
        self._ends = [nowhere] * self._width + ends + [nowhere] * (self._width - len(rows))
        for node in range(self._width - 1, 0, -1):
            self._ends[node] = max(self._ends[2 * node], self._ends[2 * node + 1])

    def meeting(self, window: Window) -> Iterator[R]:
        until = bisect_right(self._begins, window.end_ns)
        waiting = [(1, 0, self._width)]  # node, and which rows are below it
        while waiting:
            node, first, width = waiting.pop()
            if first >= until or self._ends[node] < window.begin_ns:
                continue
            if width == 1:
                yield self._rows[first]
            else:
                half = width // 2
                waiting += ((2 * node + 1, first + half, half), (2 * node, first, half))
