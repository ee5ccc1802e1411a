"""What a member does with one record, on whichever thread, and the plain way to do it with all of a poll: in turn."""

from __future__ import annotations

import math
import threading
from typing import Any, Callable, Iterable, List, Optional, Protocol

from fencepost_member.adapters import Record
from fencepost_member.commits import Work
from fencepost_member.config import LoopConfig
from fencepost_member.events import EventLog
from fencepost_member.ownership import Tp, rows
from fencepost_member.policies import Policy
from fencepost_member.process import Stall
from fencepost_member.recorder import MemberLane
from fencepost_member.treatment import Content, OverdueError, Treatment

Handler = Optional[Callable[[], object]]


class Handling:
    """Handles single records; any thread may call it.

    Attributes:
        reads: whether the contents of records matter.
    """

    def __init__(
        self, loop: LoopConfig, lane: MemberLane, events: EventLog, stall: Stall, treat: Optional[Treatment] = None
    ) -> None:
        """``treat`` is what becomes of contents."""
        self._treat = treat
        self._begin, self._events, self._stall = lane.begin, events, stall
        self.reads = treat is not None
        self._slow, self._slow_s = loop.slow_partition, loop.slow_ms / 1000
        self._most_s = loop.deadline_ms / 1000 or math.inf
        self._never = threading.Event()  # slow handlers wait on it

    def __call__(self, index: int, tp: Tp, next_offset: int, content: Content, handle: Handler) -> bool:
        """Begin the record and handle it; whoever calls ends it: as done, or where this is False as parked.

        Raises what the user's handler raises, and OverdueError when the record is to be given up.
        """
        self._begin(index)
        if self._stall.asked and not self._in_time(tp, next_offset - 1):
            return self._overdue(tp, next_offset - 1, content)
        if handle:
            handle()
        if tp[1] == self._slow:
            self._never.wait(self._slow_s)
        return self._treat is None or self._treat(tp, next_offset - 1, content)

    def taking(self, partitions: List[Tp]) -> None:
        """See ``Treatment``."""
        if self._treat is not None:
            self._treat.taking(partitions)

    def _in_time(self, tp: Tp, offset: int) -> bool:
        """A slow handler, while a fault asks for it; the client's own threads go on. False: past the deadline."""
        event = self._events.begin("stall", partitions=rows({tp: offset}))
        in_time = self._stall.wait(self._most_s)
        self._events.end(event)
        return in_time

    def _overdue(self, tp: Tp, offset: int, content: Content) -> bool:
        if self._treat is None:
            raise OverdueError
        return self._treat.overdue(tp, offset, content)


NOTHING: Content = (None, None, None)


class Way(Protocol):
    """A way to process what polls return. Only the thread that polls calls it."""

    def process(self, work: Work, records: List[Record]) -> int:
        """What a poll returned, maybe nothing; how many records were finished since the last time."""

    def may_give_up(self, partitions: Iterable[Tp]) -> bool:
        """Begin no more records of these; whether nothing that was begun of them has to be waited for."""

    def giving_up(self, partitions: Iterable[Tp], lost: bool) -> int:
        """In the callback, before the policy commits; likewise."""

    def finish(self) -> int:
        """At a clean end, before the policy's last commit; likewise."""

    def close(self) -> None:
        """On every path: its threads end, but for one that does not come back from a handler."""


class InTurn:
    """The thread that polls handles each record before it polls again, so that it holds none back. See ``Way``.

    With a record that is overdue it drops what the poll returned behind it, and relinquishes all partitions: whoever
    gets them gets these records again.
    """

    def __init__(
        self,
        handling: Handling,
        lane: MemberLane,
        policy: Policy,
        handler: Callable[[], Handler],
        stop: Any,
        divided: bool,
        relinquish: Callable[[], None] = lambda: None,
    ) -> None:
        """``handler`` gives what handles the records of the next poll; with ``divided`` a clean end drops the rest.
        ``relinquish`` gives up all partitions, where there is a deadline."""
        self._handling, self._lane, self._policy = handling, lane, policy
        self._handler, self._stop, self._divided, self._relinquish = handler, stop, divided, relinquish

    def process(self, work: Work, records: List[Record]) -> int:
        """See ``Way``."""
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
            if self._divided:
                if self._stop.is_set():
                    break
                self._policy.between()
        return count

    def may_give_up(self, partitions: Iterable[Tp]) -> bool:
        """See ``Way``: nothing is in hand."""
        return True

    def giving_up(self, partitions: Iterable[Tp], lost: bool) -> int:
        """See ``Way``: nothing is in hand."""
        return 0

    def finish(self) -> int:
        """See ``Way``."""
        return 0

    def close(self) -> None:
        """See ``Way``."""
