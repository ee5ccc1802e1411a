"""Members that commit wrongly on purpose, or begin where no commit sent them. See ``planted``.

``off-by-one``
    Commits the last offset that it finished instead of the next one to read.
``commit-ahead``
    Now and then commits a whole poll before it processes it. It processes everything nevertheless.
``foreign-commit``
    A few times commits the start of a partition that it never owned, as the member that it is.
``late-commit``
    A few times commits an old position of a partition that it gave up, once somebody else has come past it. A commit
    with the old generation would be refused; so it does what a queue of commits does that outlives a rebalance: it
    sends the old offset as the member that it is now, which is all that the coordinator of a classic group looks at.
``wrong-start``
    In the assigned callback begins a little before the committed offset.
``commit-beyond-end``
    A few times commits an offset of its own partition that no record has yet.
``no-final-commit``
    Commits nothing when it gives partitions up cleanly: the next owner does again what was done since the last commit.
``once-lost``
    Is right until partitions are lost. From then on it commits, of each partition that is revoked, where it began with
    it instead of where it got to: two faults are needed, one that puts it out and one that moves partitions later.
"""

from __future__ import annotations

from typing import Any, Dict, Iterable

from fencepost_member.commits import Work
from fencepost_member.correct import Correct
from fencepost_member.events import EventLog
from fencepost_member.ownership import Ownership, Tp, rows
from fencepost_member.planted.turns import ALWAYS, EVERY_S, Turns, overtaken

BACK_RECORDS = 10
BEYOND = 1_000_000  # records


class OffByOne(Correct):
    """See the module."""

    def offsets(self, offsets: Dict[Tp, int], mode: str) -> Dict[Tp, int]:
        """The last ones instead of the next ones."""
        return {tp: offset - 1 for tp, offset in offsets.items()}


class CommitAhead(Correct):
    """See the module."""

    undivided = True  # what is committed is processed

    def __init__(self, adapter: Any, events: EventLog, ownership: Ownership) -> None:
        """The first one is due after one period."""
        super().__init__(adapter, events, ownership)
        self._turns = Turns(events.folder, EVERY_S, ALWAYS)

    def arrange(self, work: Work) -> Work:
        """Commit it, if due, and then process it."""
        ends = {tp: next_offset for _, tp, next_offset in work if tp in self._ownership.intervals}
        if ends and self._turns.due:
            self._turns.taken()
            self._commits.commit(ends, "sync")
        return work


class _Intruder(Correct):
    """Commits what is not its own a few times; ``_target`` says what."""

    def __init__(self, adapter: Any, events: EventLog, ownership: Ownership) -> None:
        """The first one is due after one period."""
        super().__init__(adapter, events, ownership)
        self._turns = Turns(events.folder, EVERY_S)

    def arrange(self, work: Work) -> Work:
        """Process it as it should be, and commit something else beside it."""
        target = self._target(work) if work and self._turns.due else {}
        if target:
            self._turns.taken()
            self._commits.commit(target, "sync")
        return work

    def _target(self, work: Work) -> Dict[Tp, int]:
        raise NotImplementedError


class ForeignCommit(_Intruder):
    """See the module."""

    def _target(self, work: Work) -> Dict[Tp, int]:
        mine = self._ownership.ever
        topics = {topic for topic, _ in mine}
        others = [tp for tp in self._adapter.partitions(topics) if tp not in mine]
        return {others[self._turns.left % len(others)]: 0} if others else {}


class CommitBeyondEnd(_Intruder):
    """See the module."""

    def _target(self, work: Work) -> Dict[Tp, int]:
        return {tp: end + BEYOND for _, tp, end in work[-1:] if tp in self._ownership.intervals}


class LateCommit(_Intruder):
    """See the module."""

    def __init__(self, adapter: Any, events: EventLog, ownership: Ownership) -> None:
        """Nothing was given up."""
        super().__init__(adapter, events, ownership)
        self._reached: Dict[Tp, int] = {}

    def arrange(self, work: Work) -> Work:
        """Remember how far each partition got."""
        self._reached.update((tp, next_offset) for _, tp, next_offset in work)
        return super().arrange(work)

    def _target(self, work: Work) -> Dict[Tp, int]:
        gone = {tp: offset for tp, offset in self._reached.items() if tp not in self._ownership.intervals}
        late = min(overtaken(self._adapter, gone), default=None)
        return {late: gone[late]} if late else {}


class NoFinalCommit(Correct):
    """See the module."""

    def offsets(self, offsets: Dict[Tp, int], mode: str) -> Dict[Tp, int]:
        """Nothing, when it is the last that can be said of these partitions."""
        return {} if mode == "on-revoke" else offsets


class OnceLost(Correct):
    """See the module."""

    def __init__(self, adapter: Any, events: EventLog, ownership: Ownership) -> None:
        """Nothing was lost."""
        super().__init__(adapter, events, ownership)
        self._began: Dict[Tp, int] = {}
        self._lost = False

    def assigned(self, partitions: Iterable[Tp]) -> None:
        """Remember where it begins."""
        self._began.update((tp, max(0, offset)) for tp, offset in self._adapter.committed(list(partitions)).items())

    def lost(self) -> None:
        """Remember that."""
        self._lost = True

    def offsets(self, offsets: Dict[Tp, int], mode: str) -> Dict[Tp, int]:
        """Where it began, when it is the last that can be said of these partitions."""
        return {tp: self._began[tp] for tp in offsets} if self._lost and mode == "on-revoke" else offsets


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
    "commit-beyond-end": CommitBeyondEnd,
    "no-final-commit": NoFinalCommit,
    "once-lost": OnceLost,
}
