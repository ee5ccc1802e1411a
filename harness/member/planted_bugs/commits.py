"""Planted bugs: members that commit wrong offsets, or do not start at the committed offset. See ``planted_bugs``.

``off-by-one``
    Commits the last processed offset instead of the next one to read.
``commit-ahead``
    Now and then commits all records of a poll before it processes them, all of which it then processes.
``foreign-commit``
    A few times commits offset 0 of a partition that it never owned, with its own member id.
``late-commit``
    A few times commits an old offset of a partition that was revoked from it, once the new owner has committed past
    that offset. The coordinator would refuse a commit with the old generation. So this member acts like a queue of
    commits that outlives a rebalance: it sends the old offset with its present member id and generation, and the
    coordinator of a classic group checks nothing else.
``wrong-start``
    In the assigned callback, starts ``BACK_RECORDS`` before the committed offset.
``commit-beyond-end``
    A few times commits an offset of its own partition that lies ``BEYOND`` records after the last delivered one.
``no-final-commit``
    Commits nothing when partitions are revoked: the next owner processes again all records since the last commit.
``once-lost``
    Is correct until partitions are lost. From then on, when a partition is revoked, it commits the offset at which the
    assignment began instead of the offset that it reached. So it needs two faults: one that evicts the member and a
    later one that moves partitions.
"""

from __future__ import annotations

from typing import Any, Dict, Iterable

from fencepost_member.behaviour import Behaviour
from fencepost_member.committing.commits import Work
from fencepost_member.ownership import AssignmentNumbers, Tp, rows
from fencepost_member.planted_bugs.bug_trigger import ALWAYS, EVERY_S, BugTrigger, overtaken
from fencepost_member.recording.events import EventLog

BACK_RECORDS = 10
BEYOND = 1_000_000  # records


class OffByOne(Behaviour):
    """The bug ``off-by-one``, see the module."""

    def offsets(self, offsets: Dict[Tp, int], mode: str) -> Dict[Tp, int]:
        """The last processed offsets instead of the next ones."""
        return {tp: offset - 1 for tp, offset in offsets.items()}


class CommitAhead(Behaviour):
    """The bug ``commit-ahead``, see the module."""

    batch_atomic = True  # all records that it committed are processed

    def __init__(self, adapter: Any, events: EventLog, ownership: AssignmentNumbers) -> None:
        """The first one is due after one period."""
        super().__init__(adapter, events, ownership)
        self._turns = BugTrigger(events.folder, EVERY_S, ALWAYS)

    def arrange(self, work: Work) -> Work:
        """Commit the records, if due, before they are processed."""
        ends = {tp: next_offset for _, tp, next_offset in work if tp in self._ownership.intervals}
        if ends and self._turns.due:
            self._turns.fired()
            self._commits.commit(ends, "sync")
        return work


class _Intruder(Behaviour):
    """Commits a wrong offset a few times; ``_target`` returns it."""

    def __init__(self, adapter: Any, events: EventLog, ownership: AssignmentNumbers) -> None:
        """The first one is due after one period."""
        super().__init__(adapter, events, ownership)
        self._turns = BugTrigger(events.folder, EVERY_S)

    def arrange(self, work: Work) -> Work:
        """Process the records correctly, and in addition commit the target, if due."""
        target = self._target(work) if work and self._turns.due else {}
        if target:
            self._turns.fired()
            self._commits.commit(target, "sync")
        return work

    def _target(self, work: Work) -> Dict[Tp, int]:
        raise NotImplementedError


class ForeignCommit(_Intruder):
    """The bug ``foreign-commit``, see the module."""

    def _target(self, work: Work) -> Dict[Tp, int]:
        mine = self._ownership.ever
        topics = {topic for topic, _ in mine}
        others = [tp for tp in self._adapter.partitions(topics) if tp not in mine]
        return {others[self._turns.left % len(others)]: 0} if others else {}


class CommitBeyondEnd(_Intruder):
    """The bug ``commit-beyond-end``, see the module."""

    def _target(self, work: Work) -> Dict[Tp, int]:
        return {tp: end + BEYOND for _, tp, end in work[-1:] if tp in self._ownership.intervals}


class LateCommit(_Intruder):
    """The bug ``late-commit``, see the module."""

    def __init__(self, adapter: Any, events: EventLog, ownership: AssignmentNumbers) -> None:
        """No partition was revoked yet."""
        super().__init__(adapter, events, ownership)
        self._reached: Dict[Tp, int] = {}

    def arrange(self, work: Work) -> Work:
        """Remember the next offset of each partition."""
        self._reached.update((tp, next_offset) for _, tp, next_offset in work)
        return super().arrange(work)

    def _target(self, work: Work) -> Dict[Tp, int]:
        gone = {tp: offset for tp, offset in self._reached.items() if tp not in self._ownership.intervals}
        late = min(overtaken(self._adapter, gone), default=None)
        return {late: gone[late]} if late else {}


class NoFinalCommit(Behaviour):
    """The bug ``no-final-commit``, see the module."""

    def offsets(self, offsets: Dict[Tp, int], mode: str) -> Dict[Tp, int]:
        """Nothing in the revoked callback, which is the last chance to commit these partitions."""
        return {} if mode == "on-revoke" else offsets


class OnceLost(Behaviour):
    """The bug ``once-lost``, see the module."""

    def __init__(self, adapter: Any, events: EventLog, ownership: AssignmentNumbers) -> None:
        """No partition was lost yet."""
        super().__init__(adapter, events, ownership)
        self._began: Dict[Tp, int] = {}
        self._lost = False

    def assigned(self, partitions: Iterable[Tp]) -> None:
        """Remember the offset at which each partition begins."""
        self._began.update((tp, max(0, offset)) for tp, offset in self._adapter.committed(list(partitions)).items())

    def lost(self) -> None:
        """Remember that partitions were lost."""
        self._lost = True

    def offsets(self, offsets: Dict[Tp, int], mode: str) -> Dict[Tp, int]:
        """The offsets at which the assignment began, in the revoked callback after a loss."""
        return {tp: self._began[tp] for tp in offsets} if self._lost and mode == "on-revoke" else offsets


class WrongStart(Behaviour):
    """The bug ``wrong-start``, see the module."""

    def assigned(self, partitions: Iterable[Tp]) -> None:
        """Start before the committed offset, if there is one."""
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
    "commit-beyond-end": CommitBeyondEnd,
    "no-final-commit": NoFinalCommit,
    "once-lost": OnceLost,
}
