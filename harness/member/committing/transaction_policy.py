"""The commit policy ``transaction``: the results of a poll's records and their offsets are one transaction.

Either both are committed or neither is (KIP-98), and the coordinator refuses the offsets of a member that is no longer
in the group's generation (KIP-447). If a transaction is not committed, its results are aborted, and the member seeks
back to the first of its records in each partition that it still owns.
"""

from __future__ import annotations

from typing import Any, Dict, Iterable

from fencepost_member.committing.commits import Committer, Work
from fencepost_member.committing.seeking import seek
from fencepost_member.config import TRANSACTION, LoopConfig
from fencepost_member.ownership import AssignmentNumbers, Tp


class InTransaction:
    """See the module. Callbacks run inside polls, and so between transactions."""

    batch_atomic = True

    def __init__(self, loop: LoopConfig, adapter: Any, commits: Committer, ownership: AssignmentNumbers) -> None:
        """``adapter`` satisfies ``Seeks``; ``commits`` belongs to an output with transactions."""
        self._adapter, self._commits, self._owned = adapter, commits, ownership.intervals
        self._first: Dict[Tp, int] = {}  # first offset of the transaction, by partition
        self._next: Dict[Tp, int] = {}  # next offset after the transaction, by partition

    def admit(self, work: Work) -> bool:
        """See ``Policy``."""
        for _, tp, next_offset in work:
            self._first.setdefault(tp, next_offset - 1)
        return True

    def finished(self, tp: Tp, next_offset: int) -> None:
        """See ``Policy``."""
        self._next[tp] = next_offset

    def between(self) -> None:
        """See ``Policy``: end the transaction."""
        if not self._next:
            return
        errors = self._commits.commit(dict(self._next), TRANSACTION)
        for tp in [tp for tp in errors if errors[tp] and tp in self._owned]:
            seek(self._adapter, self._commits.events, tp, self._first[tp])
        self._first.clear()
        self._next.clear()

    def revoking(self, partitions: Iterable[Tp], lost: bool) -> None:
        """Nothing to do: no transaction is open."""

    def leave(self) -> None:
        """Nothing to do: no transaction is open."""
