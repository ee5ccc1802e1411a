"""What a few rules look up in the whole partition, of which their task may have only a part."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import Any

from numpy.typing import NDArray

from fencepost.checkers.kernel.columns import Files, Piece, among, joined
from fencepost.checkers.kernel.ranges import Task
from fencepost.checkers.kernel.rows import Rows, concatenate

Array = NDArray[Any]
PRODUCED = ("produced", "unacked")  # the folders of sends
POLLS = ["offset", "interval", "poll", "ord", "delivered_ns"]


class Whole:
    """The records of a partition: read when they are asked for, and only what tells of that."""

    def __init__(self, files: Files, task: Task) -> None:
        """``task``: the whole partition."""
        self._files, self._task = files, task
        self._rows: dict[str, tuple[int, int, Rows]] = {}

    def rows(self, part: Rows, name: str, number: int) -> Rows:
        """The rows by interval, without contents and times of work, of an incarnation: at least those of one interval.

        Row groups are read that have this interval, or one of those of which the task has a ``part``.
        """
        low, high, rows = self._rows.get(name) or (*_span(part, name, number), None)
        if rows is None or not low <= number <= high:
            low, high = min(low, number), max(high, number)
            pieces = self._files.read(self._task.only(name), "delivered", POLLS, ("interval", low, high))
            rows = concatenate(pieces).by_interval
            self._rows[name] = low, high, rows
        return rows

    def polls(self, part: Rows, name: str, number: int, after_ns: int = -1) -> Array:
        """The polls of a stream that returned after a moment."""
        rows = self.rows(part, name, number)
        stream = rows.stream(name, number)
        mine = slice(stream.begin, stream.end) if stream else slice(0)
        return rows.poll[mine][rows.delivered_ns[mine] > after_ns]

    @cached_property
    def logged(self) -> Array:
        """The visible offsets, in the order of the log."""
        return joined([piece["offset"] for piece in self._files.read(self._task, "log", ["offset"])])

    def sends(self, seq: Array) -> Iterator[tuple[Piece, Array]]:
        """The sends, of whatever outcome and offset, of some numbers (not none): a piece, and which rows of it."""
        span = ("seq", int(seq.min()), int(seq.max()))
        for folder in PRODUCED:
            for piece in self._files.read(self._task, folder, ["seq"], span):
                near = among(piece["seq"], seq)
                if len(near):
                    yield piece, near


def _span(part: Rows, name: str, number: int) -> tuple[int, int]:
    known = [stream.interval for stream in part.streams if part.names[stream.who] == name]
    return min([number, *known]), max([number, *known])
