"""Worker threads: the thread that polls hands records to them, and is the only one that calls the client.

Records are in *lanes*, each of which is worked on by one thread at a time, in order: a partition is one, or each key of
a partition. Lanes take turns, record by record, so a slow one keeps one worker. Of a partition that has more than
``in_hand`` records in hand nothing more is fetched until half of them are finished: it is paused at the client.

What is committed is where everything below is finished (``Ledger``), whatever is finished beyond that.

In the revoked callback records that are begun are waited for, and those before them, behind which nothing could be
committed; the others are dropped. That takes ``wait_ms`` at most, and workers go on with what is in hand of partitions
that stay. Then the policy commits. Of lost partitions nothing is waited for. A clean end is a revocation of everything.
With ``delay_revoke`` it is not the callback that waits: the member polls on until then, see ``adapters.Delays``.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from typing import Deque, Dict, Hashable, Iterable, List, NamedTuple, Optional

from fencepost_member.adapters import Record
from fencepost_member.backpressure import Paused
from fencepost_member.commits import Work
from fencepost_member.config import LoopConfig
from fencepost_member.handling import Handler, Handling
from fencepost_member.ledger import Ledger
from fencepost_member.ownership import Tp
from fencepost_member.policies import Policy
from fencepost_member.recorder import MemberLane
from fencepost_member.treatment import Content

END_WITHIN_S = 1.0  # threads that are idle end at once


class _Task(NamedTuple):
    number: int
    tp: Tp
    next_offset: int
    content: Content
    ledger: Ledger


class Pool:
    """Satisfies ``handling.Way``."""

    ledger = Ledger  # what keeps the books of a partition

    def __init__(
        self, loop: LoopConfig, lane: MemberLane, handling: Handling, policy: Policy, paused: Paused, handle: Handler
    ) -> None:
        """Starts the threads. Nothing is ``paused`` yet; ``handle`` handles each record."""
        self._loop, self._done, self._handling, self._handle = loop, lane.done, handling, handle
        self._policy, self._paused = policy, paused
        self._ledgers: Dict[Tp, Ledger] = {}
        lock = threading.Lock()
        self._ready, self._finished = threading.Condition(lock), threading.Condition(lock)
        self._tasks: Dict[Hashable, Deque[_Task]] = {}  # by lane; one that has none is not there
        self._turns: Deque[Hashable] = deque()  # lanes that nobody is at work on
        self._ended, self._count = False, 0
        self._asked_s: Optional[float] = None  # since when partitions are to be given up
        self._failure: Optional[BaseException] = None
        self._threads = [threading.Thread(target=self._work, daemon=True) for _ in range(loop.workers)]
        for thread in self._threads:
            thread.start()

    def process(self, work: Work, records: List[Record]) -> int:
        """See ``Way``. Raises what the user's handler raised."""
        by_key = self._loop.lanes == "key"
        with self._ready:
            for (index, tp, next_offset), record in zip(work, records):  # noqa: B905 - Python 3.8
                ledger = self._ledgers.setdefault(tp, self.ledger())
                ledger.take(index, next_offset)
                lane = (tp, record[3]) if by_key else tp
                if lane not in self._tasks:
                    self._tasks[lane] = deque()
                    self._turns.append(lane)
                self._tasks[lane].append(_Task(index, tp, next_offset, record[3:6], ledger))
            self._ready.notify(len(work))
            held = {tp: ledger.held for tp, ledger in self._ledgers.items()}
        self._paused.pause({tp for tp, count in held.items() if count > self._loop.in_hand} - self._paused.partitions)
        self._paused.resume({tp for tp in self._paused.partitions if held[tp] <= self._loop.in_hand // 2})
        return self._account(self._ledgers)

    def may_give_up(self, partitions: Iterable[Tp]) -> bool:
        """See ``Way``."""
        now_s = time.monotonic()
        self._asked_s = now_s if self._asked_s is None else self._asked_s
        ledgers = [self._ledgers[tp] for tp in partitions if tp in self._ledgers]
        with self._finished:
            for ledger in ledgers:
                ledger.close()
            may = now_s - self._asked_s >= self._loop.wait_ms / 1000 or not any(ledger.owes for ledger in ledgers)
        if may:
            self._asked_s = None
        return may

    def giving_up(self, partitions: Iterable[Tp], lost: bool) -> int:
        """See ``Way``."""
        gone = {tp: self._ledgers[tp] for tp in partitions if tp in self._ledgers}
        self._paused.resume(self._paused.partitions & set(gone))
        self._let_go(gone.values(), wait=not lost and not self._loop.delay_revoke)
        finished = self._account(gone)
        for tp in gone:
            del self._ledgers[tp]
        return finished

    def finish(self) -> int:
        """See ``Way``."""
        self._let_go(self._ledgers.values(), wait=True)
        return self._account(self._ledgers)

    def close(self) -> None:
        """See ``Way``."""
        with self._ready:
            self._ended = True
            self._ready.notify_all()
        until_s = time.monotonic() + END_WITHIN_S
        for thread in self._threads:
            thread.join(max(0.0, until_s - time.monotonic()))

    def _let_go(self, ledgers: Iterable[Ledger], wait: bool) -> None:
        with self._finished:
            for ledger in ledgers:
                ledger.close()
            if wait:
                self._finished.wait_for(lambda: not any(ledger.owes for ledger in ledgers), self._loop.wait_ms / 1000)
            for ledger in ledgers:
                ledger.drop()

    def _account(self, ledgers: Dict[Tp, Ledger]) -> int:
        """Tell the policy how far these partitions got."""
        with self._finished:
            reached = {tp: ledger.reached for tp, ledger in ledgers.items() if ledger.reached >= 0}
            count, self._count = self._count, 0
            failure = self._failure
        for tp, next_offset in reached.items():
            self._policy.finished(tp, next_offset)
        if failure:
            raise failure
        return count

    def _work(self) -> None:
        while True:
            with self._ready:
                self._ready.wait_for(lambda: self._ended or self._turns)
                if self._ended:
                    return
                lane = self._turns.popleft()
                task = self._tasks[lane].popleft()
                begins = task.ledger.begin(task.number)
            if begins:
                try:
                    self._handling(task.number, task.tp, task.next_offset, task.content, self._handle)
                except BaseException as error:  # whatever it is, the thread that polls raises it, which ends the member
                    self._fail(error)
                    return
            with self._ready:
                self._end(lane, task if begins else None)

    def _end(self, lane: Hashable, task: Optional[_Task]) -> None:
        """A turn of ``lane`` is over; ``task``: what was finished in it."""
        if task:
            self._done(task.number)  # with the lock: its lane counts
            task.ledger.finish(task.number)
            self._count += 1
            self._finished.notify_all()
        if self._tasks[lane]:
            self._turns.append(lane)
            self._ready.notify()
        else:
            del self._tasks[lane]

    def _fail(self, error: BaseException) -> None:
        with self._finished:
            self._failure, self._ended = error, True
            self._ready.notify_all()
