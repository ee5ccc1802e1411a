"""Members that commit wrongly on purpose, or begin where no commit sent them. See ``planted``, which names them.

``off-by-one``
    Commits the last offset that it finished instead of the next one to read.
``commit-ahead``
    Now and then commits a whole poll before it processes it. It processes everything nevertheless.
``foreign-commit``
    A few times commits the start of a partition that it never owned, as the member that it is.
``late-commit``
    A few times commits an old position of a partition that it gave up, once somebody else is at work on it. A commit
    with the old generation would be refused; so it does what a queue of commits does that outlives a rebalance: it
    sends the old offset as the member that it is now, which is all that the coordinator of a classic group looks at.
``wrong-start``
    In the assigned callback begins a little before the committed offset.
"""

from __future__ import annotations

import time
from typing import Any, Dict, Iterable, List, Tuple

from fencepost_member.commits import Commits
from fencepost_member.events import EventLog
from fencepost_member.ownership import Ownership, Tp, rows

Work = List[Tuple[int, Tp, int]]

EVERY_S = 1.0
TIMES = 3  # wrong commits of a member's life, so that the group recovers from them
LATE_S = 2.0  # how long after a partition was given up it is committed: the new owner is at work then
BACK_RECORDS = 10


class Correct:
    """What a correct member does: every record at once, in the order of the poll; it commits what it finished."""

    undivided = False

    def __init__(self, adapter: Any, events: EventLog, ownership: Ownership) -> None:
        """``adapter`` satisfies ``Adapter``, ``Seeks`` and ``Starts``."""
        self._adapter, self._events, self._ownership = adapter, events, ownership
        self._commits = Commits(adapter, events)

    def arrange(self, work: Work) -> Work:
        """What to process now, in which order, after a poll returned ``work``."""
        return work

    def offsets(self, offsets: Dict[Tp, int]) -> Dict[Tp, int]:
        """What to commit where the policy says ``offsets``."""
        return offsets

    def assigned(self, partitions: Iterable[Tp]) -> None:
        """In the assigned callback, before the client takes the partitions."""


class OffByOne(Correct):
    """See the module."""

    def offsets(self, offsets: Dict[Tp, int]) -> Dict[Tp, int]:
        """The last ones instead of the next ones."""
        return {tp: offset - 1 for tp, offset in offsets.items()}


class CommitAhead(Correct):
    """See the module."""

    undivided = True  # what is committed is processed

    def __init__(self, adapter: Any, events: EventLog, ownership: Ownership) -> None:
        """The first one is due after one period."""
        super().__init__(adapter, events, ownership)
        self._due_s = time.monotonic() + EVERY_S

    def arrange(self, work: Work) -> Work:
        """Commit it, if due, and then process it."""
        ends = {tp: next_offset for _, tp, next_offset in work if tp in self._ownership.intervals}
        if ends and time.monotonic() >= self._due_s:
            self._due_s = time.monotonic() + EVERY_S
            self._commits.commit(ends, "sync")
        return work


class _Intruder(Correct):
    """Commits what is not its own a few times; ``_target`` says what."""

    def __init__(self, adapter: Any, events: EventLog, ownership: Ownership) -> None:
        """The first one is due after one period."""
        super().__init__(adapter, events, ownership)
        self._due_s, self._left = time.monotonic() + EVERY_S, TIMES

    def arrange(self, work: Work) -> Work:
        """Process it as it should be, and commit something else beside it."""
        now = time.monotonic()
        if work and self._left and now >= self._due_s:
            target = self._target(now)
            if target:
                self._due_s = now + EVERY_S
                self._left -= 1
                self._commits.commit(target, "sync")
        return work

    def _target(self, now_s: float) -> Dict[Tp, int]:
        raise NotImplementedError


class ForeignCommit(_Intruder):
    """See the module."""

    def _target(self, now_s: float) -> Dict[Tp, int]:
        mine = self._ownership.ever
        topics = {topic for topic, _ in mine}
        others = [tp for tp in self._adapter.partitions(topics) if tp not in mine]
        return {others[self._left % len(others)]: 0} if others else {}


class LateCommit(_Intruder):
    """See the module."""

    def __init__(self, adapter: Any, events: EventLog, ownership: Ownership) -> None:
        """Nothing was given up."""
        super().__init__(adapter, events, ownership)
        self._reached: Dict[Tp, int] = {}
        self._gone_s: Dict[Tp, float] = {}

    def arrange(self, work: Work) -> Work:
        """Remember how far each partition got, and when it was gone."""
        for _, tp, next_offset in work:
            self._reached[tp] = next_offset
        for tp in self._reached:
            if tp in self._ownership.intervals:
                self._gone_s.pop(tp, None)
            else:
                self._gone_s.setdefault(tp, time.monotonic())
        return super().arrange(work)

    def _target(self, now_s: float) -> Dict[Tp, int]:
        late = sorted(tp for tp, gone_s in self._gone_s.items() if gone_s + LATE_S <= now_s)
        return {late[0]: self._reached[late[0]]} if late else {}


class WrongStart(Correct):
    """See the module."""

    def assigned(self, partitions: Iterable[Tp]) -> None:
        """Begin before the committed offset, where there is one."""
        starts = {
            tp: offset - BACK_RECORDS
            for tp, offset in self._adapter.committed(list(partitions)).items()
            if offset >= BACK_RECORDS
        }
        if starts:
            self._events.note("seek", partitions=rows(starts))
            self._adapter.start_at(starts)


BUGS = {
    "off-by-one": OffByOne,
    "commit-ahead": CommitAhead,
    "foreign-commit": ForeignCommit,
    "late-commit": LateCommit,
    "wrong-start": WrongStart,
}
