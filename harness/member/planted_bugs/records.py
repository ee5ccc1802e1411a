"""Planted bugs: members that process records wrongly. See ``planted_bugs``.

``seek-back``
    Every second, seeks one of its partitions back by a few records inside one assignment interval. Its committed
    offsets never go back, and it processes every record.
``out-of-order``
    Processes the records of every poll in reverse order. It finishes and commits whole polls only, so nothing is lost.
    It needs ``batch`` > 1, and few enough keys for two records of one key in a poll.
``stale-backlog``
    Keeps records in a queue for ``BACKLOG_S`` before it processes them. It also processes records of revoked
    partitions once the new owner has committed past them, but never commits these.
``seek-loop``
    Seeks back to one record ``LOOP_TIMES`` times, as if it could not be processed; then it continues.
``hung-handler``
    Once processes a record for longer than ``max.poll.interval.ms``, so that the group evicts the member, and then
    processes the other records of the poll.
"""

from __future__ import annotations

import time
from collections import deque
from functools import partial
from typing import Any, Callable, Deque, Dict, Optional, Tuple

from fencepost_member.behaviour import Behaviour
from fencepost_member.committing.commits import Work
from fencepost_member.ownership import AssignmentNumbers, Tp
from fencepost_member.planted_bugs.bug_trigger import ALWAYS, EVERY_S, BugTrigger, overtaken
from fencepost_member.recording.events import EventLog

SEEK_RECORDS = 10
LOOP_TIMES = 12
BACKLOG_S = 0.3  # how long a record waits in the queue
SEVERAL = 5
HUNG_S = 6.0  # the group's max.poll.interval.ms must be well below this


class SeekBack(Behaviour):
    """The bug ``seek-back``, see the module."""

    def __init__(self, adapter: Any, events: EventLog, ownership: AssignmentNumbers) -> None:
        """The first seek is due after one period."""
        super().__init__(adapter, events, ownership)
        self._turns = BugTrigger(events.folder, EVERY_S, ALWAYS)
        self._seen: Dict[Tuple[Tp, int], Tuple[int, int]] = {}  # (first, next) offset of an interval
        self._turn = 0

    def arrange(self, work: Work) -> Work:
        """Seek back, if due; the polled records are processed correctly."""
        intervals = self._ownership.intervals
        for _, tp, next_offset in work:
            if tp in intervals:
                first, _ = self._seen.get((tp, intervals[tp]), (next_offset - 1, 0))
                # In a topic that was recreated, offsets start at 0 again.
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
            self._turns.fired()
            self.seek(*candidates[self._turn % len(candidates)])
            self._turn += 1


class OutOfOrder(Behaviour):
    """The bug ``out-of-order``, see the module."""

    batch_atomic = True

    def arrange(self, work: Work) -> Work:
        """Reverse the order."""
        return work[::-1]


class StaleBacklog(Behaviour):
    """The bug ``stale-backlog``, see the module."""

    def __init__(self, adapter: Any, events: EventLog, ownership: AssignmentNumbers) -> None:
        """The backlog is empty."""
        super().__init__(adapter, events, ownership)
        self._backlog: Deque[Tuple[float, int, Tuple[int, Tp, int]]] = deque()
        self._stale: Dict[Tp, Work] = {}
        self._asks_s = 0.0

    def arrange(self, work: Work) -> Work:
        """Queue ``work``; return records that have waited long enough, and stale ones that were overtaken."""
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
        """The stale records past which the new owner has committed. Partitions that this member owns again are
        dropped."""
        self._stale = {tp: work for tp, work in self._stale.items() if tp not in self._ownership.intervals}
        if not self._stale or now_s < self._asks_s:
            return []
        self._asks_s = now_s + BACKLOG_S
        passed = overtaken(self._adapter, {tp: work[-1][2] for tp, work in self._stale.items()})
        return [item for tp in passed for item in self._stale.pop(tp)]


class SeekLoop(Behaviour):
    """The bug ``seek-loop``, see the module."""

    def __init__(self, adapter: Any, events: EventLog, ownership: AssignmentNumbers) -> None:
        """The record is chosen after one period."""
        super().__init__(adapter, events, ownership)
        self._begins, self._again = BugTrigger(events.folder, EVERY_S, 1), LOOP_TIMES
        self._record: Tuple[Tp, int] = (("", 0), 0)

    def arrange(self, work: Work) -> Work:
        """Whenever the record was delivered, seek to it, so that the next poll delivers it again."""
        if work and self._begins.due:
            self._begins.fired()
            self._record = (work[-1][1], work[-1][2])
        tp, next_offset = self._record
        if self._again and tp in self._ownership.intervals and any(item[1:] == self._record for item in work):
            self._again -= 1
            self.seek(tp, next_offset - 1)
        return work


class HungHandler(Behaviour):
    """The bug ``hung-handler``, see the module."""

    batch_atomic = True

    def __init__(self, adapter: Any, events: EventLog, ownership: AssignmentNumbers) -> None:
        """The bug is due two periods after the warm-up."""
        super().__init__(adapter, events, ownership)
        self._turns = BugTrigger(events.folder, 2 * EVERY_S, 1)
        self._several = False

    def arrange(self, work: Work) -> Work:
        """The bug needs a poll of several records, so that some are left after the hang."""
        self._several = len(work) >= SEVERAL
        return work

    def handler(self, handler_s: float) -> Optional[Callable[[], object]]:
        """Once, a handler that hangs."""
        usual = super().handler(handler_s)
        return partial(self._hang, usual) if self._several and self._turns.due else usual

    def _hang(self, usual: Optional[Callable[[], object]]) -> None:
        if self._turns.due:
            self._turns.fired()
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
