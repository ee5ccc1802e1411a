"""Backpressure: a busy member pauses its partitions and continues to poll, to stay in the group.

``pause``
    After it processed a poll's records, it pauses all its partitions, continues to poll, and resumes them after
    ``pause_ms`` at the earliest.
``resume``
    After it processed a poll's records, it resumes all its partitions, although it never paused them, like programs
    that resume everything whenever they have capacity. This should change nothing.
"""

from __future__ import annotations

import time
from typing import Any, Collection, Iterable, Set

from fencepost_member.committing.commits import Work
from fencepost_member.member_events import MemberReporter
from fencepost_member.ownership import AssignmentNumbers, Tp


class PausedPartitions:
    """Pauses and resumes partitions at the client, and records it.

    Attributes:
        partitions: the partitions that are paused now.
    """

    def __init__(self, adapter: Any, account: MemberReporter) -> None:
        """``adapter`` satisfies ``Pauses``."""
        self._adapter, self._account = adapter, account
        self.partitions: Set[Tp] = set()

    def pause(self, partitions: Collection[Tp]) -> None:
        """Pause these partitions."""
        self.partitions.update(partitions)
        for tp in partitions:
            self._adapter.pause(tp)
        self._account.paused(partitions)

    def resume(self, partitions: Collection[Tp]) -> None:
        """Resume these partitions, whether they are paused or not."""
        for tp in partitions:
            self._adapter.resume(tp)
        self._account.resumed(partitions)
        self.partitions.difference_update(partitions)


class Backpressure:
    """The backpressure of one member."""

    def __init__(self, kind: str, pause_ms: float, paused: PausedPartitions, ownership: AssignmentNumbers) -> None:
        """``kind`` is one of ``config.BACKPRESSURE``; nothing is ``paused`` yet."""
        self._kind, self._pause_s, self._paused = kind, pause_ms / 1000, paused
        self._owned = ownership.intervals
        self._until_s = 0.0

    def after(self, work: Work) -> None:
        """After a poll, whose records (maybe none) are processed."""
        if self._paused.partitions and time.monotonic() >= self._until_s:
            self._paused.resume(set(self._paused.partitions))
        if not work:
            return
        if self._kind == "resume":
            self._paused.resume(self._owned)
        elif not self._paused.partitions:
            self._until_s = time.monotonic() + self._pause_s
            self._paused.pause(self._owned)

    def revoking(self, partitions: Iterable[Tp]) -> None:
        """In the revoked or lost callback: resume the partitions, so that the client does not keep the pause."""
        self._paused.resume(self._paused.partitions.intersection(partitions))
