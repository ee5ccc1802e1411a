"""Critical sections: each record has its effect in a ``Store``, and a poll's records of one partition are processed
together within the lease of that partition.

A record that was applied before is only marked as processed. If the store refuses an effect, another member has had the
lease meanwhile: this member acquires the lease again and looks the record up again.

So a member that lost its partition without knowing it goes through its records in flight without a duplicate effect,
and a member that lost only its lease loses no record.
"""

from __future__ import annotations

from typing import Any, Callable, List, Set

from fencepost_member.adapters import Record
from fencepost_member.committing.commits import Work
from fencepost_member.committing.policies import Policy
from fencepost_member.ownership import Tp
from fencepost_member.processing.handler import NOTHING, Handler, RecordHandler, Sequential
from fencepost_member.processing.store import Store
from fencepost_member.recording.recorder import MemberLane


class ExclusiveProcessing(Sequential):
    """Processes one record after the other, with the effects in a store."""

    def __init__(
        self,
        store: Store,
        handling: RecordHandler,
        lane: MemberLane,
        policy: Policy,
        handler: Callable[[], Handler],
        stop: Any,
    ) -> None:
        """See ``Sequential``; a clean end drops the remaining records."""
        super().__init__(handling, lane, policy, handler, stop, may_drop_rest=True)
        self._store = store

    def process(self, work: Work, records: List[Record]) -> int:
        """See ``ProcessingStrategy``: one partition after the other, as polls mix them.

        Raises:
            TimeoutError: see ``Store``.
        """
        handle, count = self._handler(), 0
        inside: Set[Tp] = set()
        for index, tp, next_offset in sorted(work, key=lambda one: one[1]):  # stable: the order within partitions stays
            self._store.leave(inside - {tp})
            inside = {tp}
            if not self._ended(index, tp, next_offset, handle):
                break
            count += 1
            self._policy.finished(tp, next_offset)
            if self._stop.is_set():
                break
            self._policy.between()
        self._store.leave(inside)
        return count

    def _ended(self, index: int, tp: Tp, next_offset: int, handle: Handler) -> bool:
        """Give the record its effect, if it has none. False: the member was asked to stop before."""
        while self._store.enter(tp):
            if self._store.applied(tp, next_offset - 1):
                self._lane.begin(index)
            else:
                self._handling(index, tp, next_offset, NOTHING, handle)
                if not self._store.apply(tp, next_offset - 1):
                    continue
            self._lane.done(index)
            return True
        return False

    def close(self) -> None:
        """See ``ProcessingStrategy``."""
        self._store.close()
