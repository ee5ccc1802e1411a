"""Handles single records, on any thread; and the simplest way to process a poll: one record after the other."""

from __future__ import annotations

import math
import threading
from typing import Any, Callable, Iterable, List, Optional, Protocol

from fencepost_member.adapters import Record
from fencepost_member.committing.commits import Work
from fencepost_member.committing.policies import Policy
from fencepost_member.config import LoopConfig
from fencepost_member.ownership import Tp, rows
from fencepost_member.process import StallSwitch
from fencepost_member.processing.dispositions import Content, Disposition, OverdueError
from fencepost_member.recording.events import EventLog
from fencepost_member.recording.recorder import MemberLane

Handler = Optional[Callable[[], object]]


class RecordHandler:
    """Handles single records; any thread may call it.

    Attributes:
        reads: whether it needs the contents of records.
    """

    def __init__(
        self,
        loop: LoopConfig,
        lane: MemberLane,
        events: EventLog,
        stall: StallSwitch,
        treat: Optional[Disposition] = None,
    ) -> None:
        """``treat`` processes the contents of records; None: they are ignored."""
        self._treat = treat
        self._begin, self._events, self._stall = lane.begin, events, stall
        self.reads = treat is not None
        self._slow, self._slow_s = loop.slow_partition, loop.slow_ms / 1000
        self._most_s = loop.deadline_ms / 1000 or math.inf
        self._never = threading.Event()  # slow handlers wait on it

    def __call__(self, index: int, tp: Tp, next_offset: int, content: Content, handle: Handler) -> bool:
        """Begin the record and handle it. The caller ends the record: as done, or as parked if the result is False.

        Raises the user's handler's exception, and OverdueError when the deadline passed and the record is neither
        parked nor re-queued.
        """
        self._begin(index)
        if self._stall.asked and not self._in_time(tp, next_offset - 1):
            return self._overdue(tp, next_offset - 1, content)
        if handle:
            handle()
        if tp[1] == self._slow:
            self._never.wait(self._slow_s)
        return self._treat is None or self._treat(tp, next_offset - 1, content)

    def assigning(self, partitions: List[Tp]) -> None:
        """See ``Disposition``."""
        if self._treat is not None:
            self._treat.assigning(partitions)

    def _in_time(self, tp: Tp, offset: int) -> bool:
        """Stall while a fault asks for it; the client's own threads continue. False: the deadline passed."""
        event = self._events.begin("stall", partitions=rows({tp: offset}))
        in_time = self._stall.wait(self._most_s)
        self._events.end(event)
        return in_time

    def _overdue(self, tp: Tp, offset: int, content: Content) -> bool:
        if self._treat is None:
            raise OverdueError
        return self._treat.overdue(tp, offset, content)


NOTHING: Content = (None, None, None)


class ProcessingStrategy(Protocol):
    """A way to process the records of polls. Only the polling thread calls it.

    Methods that return an int return the number of records that were finished since the last call.
    """

    def process(self, work: Work, records: List[Record]) -> int:
        """Process the records of a poll (maybe none)."""

    def may_revoke(self, partitions: Iterable[Tp]) -> bool:
        """Begin no more records of these partitions. True: they can be revoked now, without waiting for a record."""

    def revoking(self, partitions: Iterable[Tp], lost: bool) -> int:
        """Called in the revoked or lost callback, before the policy commits."""

    def finish(self) -> int:
        """Called at a clean end, before the policy's last commit."""

    def close(self) -> None:
        """Called at every end: stop the threads, except one that hangs in a handler."""


class Sequential:
    """The polling thread handles all records of a poll before the next poll, so none is in flight then. See
    ``ProcessingStrategy``.

    If a record is past its deadline, it drops the rest of the poll and releases all partitions: their next owner
    receives these records again.
    """

    def __init__(
        self,
        handling: RecordHandler,
        lane: MemberLane,
        policy: Policy,
        handler: Callable[[], Handler],
        stop: Any,
        may_drop_rest: bool,
        relinquish: Callable[[], None] = lambda: None,
    ) -> None:
        """``handler`` returns the handler for the records of the next poll. ``may_drop_rest``: the policy may commit
        between two records, and a clean end drops the rest of the poll. ``relinquish`` releases all partitions, if
        there is a deadline."""
        self._handling, self._lane, self._policy = handling, lane, policy
        self._handler, self._stop = handler, stop
        self._may_drop_rest, self._relinquish = may_drop_rest, relinquish

    def process(self, work: Work, records: List[Record]) -> int:
        """See ``ProcessingStrategy``."""
        handling, finished = self._handling, self._policy.finished
        done, parked = self._lane.done, self._lane.parked
        handle = self._handler()
        contents = {((r[0], r[1]), r[2] + 1): r[3:6] for r in records} if handling.reads else {}
        count = 0
        for index, tp, next_offset in work:
            content = contents[tp, next_offset] if contents else NOTHING
            try:
                (done if handling(index, tp, next_offset, content, handle) else parked)(index)
            except OverdueError:
                self._lane.failed(index)
                self._relinquish()
                break
            count += 1
            finished(tp, next_offset)
            if self._may_drop_rest:
                if self._stop.is_set():
                    break
                self._policy.between()
        return count

    def may_revoke(self, partitions: Iterable[Tp]) -> bool:
        """See ``ProcessingStrategy``: no record is in flight."""
        return True

    def revoking(self, partitions: Iterable[Tp], lost: bool) -> int:
        """See ``ProcessingStrategy``: no record is in flight."""
        return 0

    def finish(self) -> int:
        """See ``ProcessingStrategy``."""
        return 0

    def close(self) -> None:
        """See ``ProcessingStrategy``."""
