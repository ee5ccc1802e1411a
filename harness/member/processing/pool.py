"""Worker threads: the polling thread hands records to them, and is the only one that calls the client.

Records are in *lanes*: a lane is a partition, or one key of a partition. One thread at a time processes a lane, in
order. Lanes alternate, record by record, so a slow lane occupies only one worker. A partition with more than
``in_hand`` records in flight is paused at the client until half of them are finished.

The committed offset is the one below which all records are finished (``OffsetTracker``), whatever is finished above it.

The revoked callback waits for records that are begun, and for records before them, without which the begun ones could
not be committed; it drops the others. It waits for ``wait_ms`` at most, while workers continue with other partitions.
Then the policy commits. For lost partitions it does not wait. A clean end is a revocation of all partitions. With
``delay_revoke`` the callback does not wait: the member continues to poll until the records are finished, see
``adapters.DelayRevocation``.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from typing import Deque, Dict, Hashable, Iterable, List, NamedTuple, Optional

from fencepost_member.adapters import Record
from fencepost_member.committing.commits import Work
from fencepost_member.committing.offset_tracker import OffsetTracker
from fencepost_member.committing.policies import Policy
from fencepost_member.config import LoopConfig
from fencepost_member.ownership import Tp
from fencepost_member.processing.backpressure import PausedPartitions
from fencepost_member.processing.dispositions import Content
from fencepost_member.processing.handler import Handler, RecordHandler
from fencepost_member.recording.recorder import MemberLane

END_WITHIN_S = 1.0  # timeout for all threads; idle threads end at once


class _Task(NamedTuple):
    number: int
    tp: Tp
    next_offset: int
    content: Content
    ledger: OffsetTracker


class Pool:
    """Satisfies ``processing.ProcessingStrategy``."""

    ledger = OffsetTracker  # the class that tracks the records of a partition

    def __init__(
        self,
        loop: LoopConfig,
        lane: MemberLane,
        handling: RecordHandler,
        policy: Policy,
        paused: PausedPartitions,
        handle: Handler,
    ) -> None:
        """Start the threads. Nothing is ``paused`` yet; ``handle`` handles each record."""
        self._loop, self._done, self._handling, self._handle = loop, lane.done, handling, handle
        self._policy, self._paused = policy, paused
        self._ledgers: Dict[Tp, OffsetTracker] = {}
        lock = threading.Lock()
        self._ready, self._finished = threading.Condition(lock), threading.Condition(lock)
        self._tasks: Dict[Hashable, Deque[_Task]] = {}  # by lane; a lane without tasks has no entry
        self._turns: Deque[Hashable] = deque()  # lanes with tasks on which no thread works
        self._ended, self._count = False, 0
        self._asked_s: Optional[float] = None  # when the present delayed revocation began
        self._failure: Optional[BaseException] = None
        self._threads = [threading.Thread(target=self._work, daemon=True) for _ in range(loop.workers)]
        for thread in self._threads:
            thread.start()

    def process(self, work: Work, records: List[Record]) -> int:
        """See ``ProcessingStrategy``. Raises the exception of the user's handler, if there was one."""
        by_key = self._loop.lanes == "key"
        with self._ready:
            for (index, tp, next_offset), record in zip(work, records):  # noqa: B905 - Python 3.8
                ledger = self._ledgers.setdefault(tp, self.ledger())
                ledger.delivered(index, next_offset)
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

    def may_revoke(self, partitions: Iterable[Tp]) -> bool:
        """See ``ProcessingStrategy``."""
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

    def revoking(self, partitions: Iterable[Tp], lost: bool) -> int:
        """See ``ProcessingStrategy``."""
        gone = {tp: self._ledgers[tp] for tp in partitions if tp in self._ledgers}
        self._paused.resume(self._paused.partitions & set(gone))
        self._let_go(gone.values(), wait=not lost and not self._loop.delay_revoke)
        finished = self._account(gone)
        for tp in gone:
            del self._ledgers[tp]
        return finished

    def finish(self) -> int:
        """See ``ProcessingStrategy``."""
        self._let_go(self._ledgers.values(), wait=True)
        return self._account(self._ledgers)

    def close(self) -> None:
        """See ``ProcessingStrategy``."""
        with self._ready:
            self._ended = True
            self._ready.notify_all()
        until_s = time.monotonic() + END_WITHIN_S
        for thread in self._threads:
            thread.join(max(0.0, until_s - time.monotonic()))

    def _let_go(self, ledgers: Iterable[OffsetTracker], wait: bool) -> None:
        with self._finished:
            for ledger in ledgers:
                ledger.close()
            if wait:
                self._finished.wait_for(lambda: not any(ledger.owes for ledger in ledgers), self._loop.wait_ms / 1000)
            for ledger in ledgers:
                ledger.drop()

    def _account(self, ledgers: Dict[Tp, OffsetTracker]) -> int:
        """Report the finished offsets of these partitions to the policy. Raises the exception of a worker."""
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
                except BaseException as error:  # the polling thread raises it, which ends the member
                    self._fail(error)
                    return
            with self._ready:
                self._end(lane, task if begins else None)

    def _end(self, lane: Hashable, task: Optional[_Task]) -> None:
        """A turn of ``lane`` is over; ``task``: the record that was finished in it, None if it was dropped."""
        if task:
            self._done(task.number)  # under the lock, because the recorder's lane counts without one
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
