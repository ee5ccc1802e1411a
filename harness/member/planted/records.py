"""Members that treat records wrongly on purpose. See ``planted``.

``seek-back``
    Every second, seeks one of its partitions back by a few records inside one assignment interval. It commits only
    forward and processes everything.
``out-of-order``
    Processes the records of every poll back to front. It finishes and commits whole polls only, so nothing is lost.
    It needs ``batch`` > 1, and keys few enough that a poll holds two records of one.
``stale-backlog``
    Keeps records in a queue of its own for a while before it processes them, and goes on with those of partitions
    that it gave up, once somebody else has done them, too. It never commits these.
``seek-loop``
    Takes a record for one that cannot be done, and seeks back to it again and again; after a dozen times it goes on.
``hung-handler``
    Once works on a record for longer than ``max.poll.interval.ms``, so that the group goes on without it; and then
    goes on with what else the poll returned.
"""

from __future__ import annotations

import time
from collections import deque
from functools import partial
from typing import Any, Callable, Deque, Dict, Optional, Tuple

from fencepost_member.commits import Work
from fencepost_member.correct import Correct
from fencepost_member.events import EventLog
from fencepost_member.ownership import Ownership, Tp
from fencepost_member.planted.turns import ALWAYS, EVERY_S, Turns, overtaken

SEEK_RECORDS = 10
LOOP_TIMES = 12
BACKLOG_S = 0.3  # how long a record of an owned partition waits
SEVERAL = 5
HUNG_S = 6.0  # the group's max.poll.interval.ms is to be well below


class SeekBack(Correct):
    """See the module."""

    def __init__(self, adapter: Any, events: EventLog, ownership: Ownership) -> None:
        """The first seek is due after one period."""
        super().__init__(adapter, events, ownership)
        self._turns = Turns(events.folder, EVERY_S, ALWAYS)
        self._seen: Dict[Tuple[Tp, int], Tuple[int, int]] = {}  # (first, next) offset of an interval
        self._turn = 0

    def arrange(self, work: Work) -> Work:
        """Now and then seek back; what was polled is processed as it should be."""
        intervals = self._ownership.intervals
        for _, tp, next_offset in work:
            if tp in intervals:
                first, _ = self._seen.get((tp, intervals[tp]), (next_offset - 1, 0))
                # Offsets begin again in a topic that is made again.
                self._seen[tp, intervals[tp]] = (min(first, next_offset - 1), next_offset)
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
        self._stale: Dict[Tp, Work] = {}
        self._asks_s = 0.0

    def arrange(self, work: Work) -> Work:
        """Queue ``work``; what has waited long enough is due, whoever owns it now."""
        now_s, intervals = time.monotonic(), self._ownership.intervals
        self._backlog.extend((now_s, intervals.get(item[1], -1), item) for item in work)
        due: Work = []
        while self._backlog and self._backlog[0][0] + BACKLOG_S <= now_s:
            _, interval, item = self._backlog.popleft()
            if intervals.get(item[1]) == interval:
                due.append(item)
            else:
                self._stale.setdefault(item[1], []).append(item)
        return due + self._overtaken(now_s)

    def _overtaken(self, now_s: float) -> Work:
        """Those of given-up partitions that the new owner is done with; what came back to this member is forgotten."""
        self._stale = {tp: those for tp, those in self._stale.items() if tp not in self._ownership.intervals}
        if not self._stale or now_s < self._asks_s:
            return []
        self._asks_s = now_s + BACKLOG_S
        passed = overtaken(self._adapter, {tp: those[-1][2] for tp, those in self._stale.items()})
        return [item for tp in passed for item in self._stale.pop(tp)]


class SeekLoop(Correct):
    """See the module."""

    def __init__(self, adapter: Any, events: EventLog, ownership: Ownership) -> None:
        """The record is chosen after one period."""
        super().__init__(adapter, events, ownership)
        self._begins, self._again = Turns(events.folder, EVERY_S, 1), LOOP_TIMES
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
        self._turns = Turns(events.folder, 2 * EVERY_S, 1)
        self._several = False

    def arrange(self, work: Work) -> Work:
        """A poll of few records leaves nothing to go on with."""
        self._several = len(work) >= SEVERAL
        return work

    def handler(self, handler_s: float) -> Optional[Callable[[], object]]:
        """Once, one that takes long."""
        usual = super().handler(handler_s)
        return partial(self._hang, usual) if self._several and self._turns.due else usual

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
}
