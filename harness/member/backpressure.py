"""Backpressure: a member that has enough to do pauses its partitions and goes on polling, to stay in the group.

``pause``
    After a poll's records it pauses what it owns, polls on, and resumes after ``pause_ms`` at the earliest.
``resume``
    After a poll's records it resumes what it owns, although it never paused that, as programs do that resume everything
    whenever they have room. It should change nothing.
"""

from __future__ import annotations

import time
from typing import Any, Iterable, Set

from fencepost_member.commits import Work
from fencepost_member.ownership import Ownership, Tp


class Backpressure:
    """What one member has paused."""

    def __init__(self, kind: str, pause_ms: float, adapter: Any, ownership: Ownership) -> None:
        """``adapter`` satisfies ``Pauses``."""
        self._kind, self._pause_s, self._adapter = kind, pause_ms / 1000, adapter
        self._owned = ownership.intervals
        self._paused: Set[Tp] = set()
        self._until_s = 0.0

    def after(self, work: Work) -> None:
        """The records of a poll are processed; without any, it was one that keeps the member in the group."""
        if self._paused and time.monotonic() >= self._until_s:
            self._resume(set(self._paused))
        if not work:
            return
        if self._kind == "resume":
            self._resume(self._owned)
        elif not self._paused:
            self._until_s = time.monotonic() + self._pause_s
            self._paused.update(self._owned)
            for tp in self._paused:
                self._adapter.pause(tp)

    def giving_up(self, partitions: Iterable[Tp]) -> None:
        """In the callback, before the client lets go of them: it shall not remember that they were paused."""
        self._resume(self._paused.intersection(partitions))

    def _resume(self, partitions: Iterable[Tp]) -> None:
        for tp in partitions:
            self._adapter.resume(tp)
        self._paused.difference_update(partitions)
