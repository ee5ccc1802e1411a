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

``seek-loop``
    Takes a record for one that cannot be done, and seeks back to it again and again; after a dozen times it goes on.
``hung-handler``
    Once works on a record for longer than ``max.poll.interval.ms``, so that the group goes on without it; and then
    goes on with what else the poll returned.

``planted_commits`` describes those that commit wrongly or begin where no commit sent them, ``planted_progress`` those
that stop getting on, ``planted_clients`` and ``planted_callbacks`` those whose client is at fault.

One planted bug is no code at all: the commit policy ``before-processing`` under an at-least-once promise.
"""

from __future__ import annotations

import time
from collections import deque
from functools import partial
from typing import Any, Callable, Deque, Dict, Optional, Tuple

from fencepost_member.commits import Work
from fencepost_member.correct import ALWAYS, EVERY_S, Correct, Turns
from fencepost_member.events import EventLog
from fencepost_member.ownership import Ownership, Tp
from fencepost_member.planted_commits import BUGS as COMMIT_BUGS
from fencepost_member.planted_progress import BUGS as PROGRESS_BUGS

SEEK_RECORDS = 10
LOOP_TIMES = 12
BACKLOG_S = 0.3  # how long a record of an owned partition waits
STALE_AFTER_S = 4.0  # how long a record of a given-up partition waits from its delivery: the new owner is at work then
STALE_RECORDS = 200  # records of one given-up partition that are gone on with, at most
HUNG_S = 6.0  # the group's max.poll.interval.ms is to be well below


class SeekBack(Correct):
    """See the module."""

    def __init__(self, adapter: Any, events: EventLog, ownership: Ownership) -> None:
        """The first seek is due after one period."""
        super().__init__(adapter, events, ownership)
        self._turns = Turns(EVERY_S, ALWAYS)
        self._seen: Dict[Tuple[Tp, int], Tuple[int, int]] = {}  # (first, next) offset of an interval
        self._turn = 0

    def arrange(self, work: Work) -> Work:
        """Now and then seek back; what was polled is processed as it should be."""
        intervals = self._ownership.intervals
        for _, tp, next_offset in work:
            if tp in intervals:
                first, reached = self._seen.get((tp, intervals[tp]), (next_offset - 1, 0))
                self._seen[tp, intervals[tp]] = (first, max(reached, next_offset))
        if self._turns.due:
            self._seek_one()
        return work

    def _seek_one(self) -> None:
        candidates = [
            (tp, reached - SEEK_RECORDS)
            for (tp, interval), (first, reached) in sorted(self._seen.items())
            if self._ownership.intervals.get(tp) == interval and reached - first >= 2 * SEEK_RECORDS
        ]
        if candidates:
            self._turns.taken()
            self.seek(*candidates[self._turn % len(candidates)])
            self._turn += 1


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


class SeekLoop(Correct):
    """See the module."""

    def __init__(self, adapter: Any, events: EventLog, ownership: Ownership) -> None:
        """The record is chosen after one period."""
        super().__init__(adapter, events, ownership)
        self._begins, self._again = Turns(EVERY_S, 1), LOOP_TIMES
        self._record: Tuple[Tp, int] = (("", 0), 0)

    def arrange(self, work: Work) -> Work:
        """Whenever the record has come, seek to it, so that it comes with the next poll."""
        if work and self._begins.due:
            self._begins.taken()
            self._record = (work[-1][1], work[-1][2])
        tp, next_offset = self._record
        if self._again and tp in self._ownership.intervals and any(item[1:] == self._record for item in work):
            self._again -= 1
            self.seek(tp, next_offset - 1)
        return work


class HungHandler(Correct):
    """See the module."""

    undivided = True

    def __init__(self, adapter: Any, events: EventLog, ownership: Ownership) -> None:
        """It is due after some periods: the group is at work then."""
        super().__init__(adapter, events, ownership)
        self._turns = Turns(2 * EVERY_S, 1)

    def handler(self, handler_s: float) -> Optional[Callable[[], object]]:
        """Once, one that takes long."""
        usual = super().handler(handler_s)
        return partial(self._hang, usual) if self._turns.due else usual

    def _hang(self, usual: Optional[Callable[[], object]]) -> None:
        if self._turns.due:
            self._turns.taken()
            self._never.wait(HUNG_S)
        elif usual:
            usual()


BUGS = {
    "seek-back": SeekBack,
    "out-of-order": OutOfOrder,
    "stale-backlog": StaleBacklog,
    "seek-loop": SeekLoop,
    "hung-handler": HungHandler,
    **COMMIT_BUGS,
    **PROGRESS_BUGS,
}
