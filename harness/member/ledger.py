"""What a member has in hand of one partition, of which it may finish records in any order. Pure."""

from __future__ import annotations

from collections import deque
from typing import Deque, Set, Tuple


class Ledger:
    """The records of one partition that were delivered in one assignment, in order, until they are finished.

    Attributes:
        reached: the next offset to commit: everything below it is finished; -1: nothing was finished yet.
    """

    def __init__(self) -> None:
        """Nothing is in hand."""
        self.reached = -1
        self._in_order: Deque[Tuple[int, int]] = deque()
        self._finished: Set[int] = set()  # of those, because one before them is not
        self._latest = -1  # of those that were begun
        self._closed = self._dropped = False

    @property
    def held(self) -> int:
        """Records that are not finished."""
        return len(self._in_order) - len(self._finished)

    @property
    def owes(self) -> bool:
        """Whether a record is not finished that is no later than one that was begun: what is finished behind it cannot
        be committed, and would be done again."""
        return bool(self._in_order) and self._in_order[0][0] <= self._latest

    def take(self, index: int, next_offset: int) -> None:
        """A record was delivered; ``index`` is its own, also when its offset comes again, and ascends."""
        self._in_order.append((index, next_offset))

    def begin(self, index: int) -> bool:
        """Somebody wants to begin this record; False: it is dropped."""
        if self._dropped or (self._closed and index > self._latest):
            return False
        self._latest = max(self._latest, index)
        return True

    def finish(self, index: int) -> None:
        """The record, which was begun, is finished."""
        self._finished.add(index)
        while self._in_order and self._in_order[0][0] in self._finished:
            first, next_offset = self._in_order.popleft()
            self._finished.discard(first)
            self.reached = max(self.reached, next_offset)

    def close(self) -> None:
        """From now on nothing is begun but what it ``owes``."""
        self._closed = True

    def drop(self) -> None:
        """From now on nothing is begun."""
        self._dropped = True
