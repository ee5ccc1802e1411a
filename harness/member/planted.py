"""Members that are wrong on purpose, to show that the checks find what they claim to find. Never a model to follow.

``seek-back``
    Every second, seeks one of its partitions back by a few records inside one assignment interval. It commits only
    forward and processes everything.
``out-of-order``
    Processes the records of every poll back to front. It finishes and commits whole polls only, so nothing is lost.
    It needs ``batch`` > 1, and keys few enough that a poll holds two records of one.
``stale-backlog``
    Keeps records in a queue of its own for a while before it processes them, and goes on with those of partitions
    that it gave up, once somebody else has taken over. It never commits these.

``off-by-one``, ``commit-ahead``, ``foreign-commit``, ``late-commit``, ``wrong-start``
    See ``planted_commits``.
``die-silently``, ``stop-polling``
    See ``planted_progress``.

One planted bug is no code at all: the commit policy ``before-processing`` under an at-least-once promise.
"""

from __future__ import annotations

import time
from collections import deque
from typing import Any, Deque, Dict, Tuple

from fencepost_member.events import EventLog
from fencepost_member.ownership import Ownership, Tp, rows
from fencepost_member.planted_commits import BUGS as COMMIT_BUGS
from fencepost_member.planted_commits import Correct, Work
from fencepost_member.planted_progress import BUGS as PROGRESS_BUGS

SEEK_EVERY_S = 1.0
SEEK_RECORDS = 10
BACKLOG_S = 0.3  # how long a record of an owned partition waits
STALE_AFTER_S = 4.0  # how long a record of a given-up partition waits from its delivery: the new owner is at work then
STALE_RECORDS = 200  # records of one given-up partition that are gone on with, at most


class SeekBack(Correct):
    """See the module."""

    def __init__(self, adapter: Any, events: EventLog, ownership: Ownership) -> None:
        """The first seek is due after one period."""
        super().__init__(adapter, events, ownership)
        self._due_s = time.monotonic() + SEEK_EVERY_S
        self._seen: Dict[Tuple[Tp, int], Tuple[int, int]] = {}  # (first, next) offset of an interval
        self._turn = 0

    def arrange(self, work: Work) -> Work:
        """Now and then seek back; what was polled is processed as it should be."""
        intervals = self._ownership.intervals
        for _, tp, next_offset in work:
            if tp in intervals:
                first, reached = self._seen.get((tp, intervals[tp]), (next_offset - 1, 0))
                self._seen[tp, intervals[tp]] = (first, max(reached, next_offset))
        if time.monotonic() >= self._due_s:
            self._seek()
        return work

    def _seek(self) -> None:
        candidates = [
            (tp, reached - SEEK_RECORDS)
            for (tp, interval), (first, reached) in sorted(self._seen.items())
            if self._ownership.intervals.get(tp) == interval and reached - first >= 2 * SEEK_RECORDS
        ]
        if not candidates:
            return
        tp, offset = candidates[self._turn % len(candidates)]
        self._turn += 1
        self._due_s = time.monotonic() + SEEK_EVERY_S
        event = self._events.begin("seek", partitions=rows({tp: offset}))
        self._adapter.seek(tp, offset)
        self._events.end(event)


class OutOfOrder(Correct):
    """See the module."""

    undivided = True

    def arrange(self, work: Work) -> Work:
        """Back to front."""
        return work[::-1]


class StaleBacklog(Correct):
    """See the module."""

    def __init__(self, adapter: Any, events: EventLog, ownership: Ownership) -> None:
        """The backlog is empty."""
        super().__init__(adapter, events, ownership)
        self._backlog: Deque[Tuple[float, int, Tuple[int, Tp, int]]] = deque()
        self._stale: Deque[Tuple[float, int, Tuple[int, Tp, int]]] = deque()
        self._gone_on_with: Dict[Tuple[Tp, int], int] = {}

    def arrange(self, work: Work) -> Work:
        """Queue ``work``; what has waited long enough is due, whoever owns it now."""
        now, intervals = time.monotonic(), self._ownership.intervals
        self._backlog.extend((now, intervals.get(item[1], -1), item) for item in work)
        due: Work = []
        while self._backlog and self._backlog[0][0] + BACKLOG_S <= now:
            entry = self._backlog.popleft()
            _, interval, item = entry
            if intervals.get(item[1]) == interval:
                due.append(item)
            elif self._gone_on_with.setdefault((item[1], interval), 0) < STALE_RECORDS:
                self._gone_on_with[item[1], interval] += 1
                self._stale.append(entry)
        while self._stale and self._stale[0][0] + STALE_AFTER_S <= now:
            _, _, item = self._stale.popleft()
            if item[1] not in intervals:  # it may have come back to this member: then it is in the backlog again
                due.append(item)
        return due


BUGS = {
    "": Correct,
    "seek-back": SeekBack,
    "out-of-order": OutOfOrder,
    "stale-backlog": StaleBacklog,
    **COMMIT_BUGS,
    **PROGRESS_BUGS,
}
