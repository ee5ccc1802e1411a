"""Backpressure: a member that has enough to do pauses its partitions and goes on polling, to stay in the group.

``pause``
    After a poll's records it pauses what it owns, polls on, and resumes after ``pause_ms`` at the earliest.
``resume``
    After a poll's records it resumes what it owns, although it never paused that, as programs do that resume everything
    whenever they have room. It should change nothing.
"""

from __future__ import annotations

import time
from typing import Any, Collection, Iterable, Set

from fencepost_member.account import Account
from fencepost_member.commits import Work
from fencepost_member.ownership import Ownership, Tp


class Paused:
    """What a member has paused at the client, and tells of it.

    Attributes:
        partitions: these.
    """

    def __init__(self, adapter: Any, account: Account) -> None:
        """``adapter`` satisfies ``Pauses``."""
        self._adapter, self._account = adapter, account
        self.partitions: Set[Tp] = set()

    def pause(self, partitions: Collection[Tp]) -> None:
        """Pause these at the client."""
        self.partitions.update(partitions)
        for tp in partitions:
            self._adapter.pause(tp)
        self._account.paused(partitions)

    def resume(self, partitions: Collection[Tp]) -> None:
        """Resume these, paused or not."""
        for tp in partitions:
            self._adapter.resume(tp)
        self._account.resumed(partitions)
        self.partitions.difference_update(partitions)


class Backpressure:
    """What one member has paused."""

    def __init__(self, kind: str, pause_ms: float, paused: Paused, ownership: Ownership) -> None:
        """Nothing is ``paused`` yet."""
        self._kind, self._pause_s, self._paused = kind, pause_ms / 1000, paused
        self._owned = ownership.intervals
        self._until_s = 0.0

    def after(self, work: Work) -> None:
        """The records of a poll are processed; without any, it was one that keeps the member in the group."""
        if self._paused.partitions and time.monotonic() >= self._until_s:
            self._paused.resume(set(self._paused.partitions))
        if not work:
            return
        if self._kind == "resume":
            self._paused.resume(self._owned)
        elif not self._paused.partitions:
            self._until_s = time.monotonic() + self._pause_s
            self._paused.pause(self._owned)

    def giving_up(self, partitions: Iterable[Tp]) -> None:
        """In the callback, before the client lets go of them: it shall not remember that they were paused."""
        self._paused.resume(self._paused.partitions.intersection(partitions))
