"""The records in flight of one partition, which may be finished in any order, and the offset to commit. Pure."""

from __future__ import annotations

from collections import deque
from typing import Deque, Set, Tuple


class OffsetTracker:
    """The records of one partition that were delivered in one assignment and are not finished, in order.

    Attributes:
        reached: the next offset to commit: all records below it are finished; -1: no record was finished yet.
    """

    def __init__(self) -> None:
        """No record is in flight."""
        self.reached = -1
        self._in_order: Deque[Tuple[int, int]] = deque()
        self._finished: Set[int] = set()  # finished records that wait for an earlier one
        self._latest = -1  # the highest index that was begun
        self._closed = self._dropped = False

    @property
    def held(self) -> int:
        """Number of records that are not finished."""
        return len(self._in_order) - len(self._finished)

    @property
    def owes(self) -> bool:
        """Whether a record must still be awaited: one that is not finished and not later than the latest begun record.
        Finished records after it cannot be committed, and would be repeated."""
        return bool(self._in_order) and self._in_order[0][0] <= self._latest

    def delivered(self, index: int, next_offset: int) -> None:
        """A record was delivered. ``index`` is ascending and unique, also for an offset that is delivered again."""
        self._in_order.append((index, next_offset))

    def begin(self, index: int) -> bool:
        """Begin this record; False: it is dropped and must not be begun."""
        if self._dropped or (self._closed and index > self._latest):
            return False
        self._latest = max(self._latest, index)
        return True

    def finish(self, index: int) -> None:
        """Finish a record that was begun."""
        self._finished.add(index)
        while self._in_order and self._in_order[0][0] in self._finished:
            first, next_offset = self._in_order.popleft()
            self._finished.discard(first)
            self.reached = max(self.reached, next_offset)

    def close(self) -> None:
        """From now on only records that must be awaited (``owes``) may be begun."""
        self._closed = True

    def drop(self) -> None:
        """From now on no record may be begun."""
        self._dropped = True
