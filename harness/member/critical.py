"""Critical sections: each record has its effect in a ``Store``, and the records of a partition that a poll returned are
done together within the lease of that partition.

A record that was applied before is only ended. What the store refuses was another member's meanwhile: the lease is
taken anew, and the record looked up once more.

So a member that lost its partition, and does not know, moves on through what it has in hand without doing anything
twice; and one that lost nothing but its lease loses no record.
"""

from __future__ import annotations

from typing import Any, Callable, List, Set

from fencepost_member.adapters import Record
from fencepost_member.commits import Work
from fencepost_member.handling import NOTHING, Handler, Handling, InTurn
from fencepost_member.ownership import Tp
from fencepost_member.policies import Policy
from fencepost_member.recorder import MemberLane
from fencepost_member.store import Store


class Critical(InTurn):
    """In turn, too."""

    def __init__(
        self,
        store: Store,
        handling: Handling,
        lane: MemberLane,
        policy: Policy,
        handler: Callable[[], Handler],
        stop: Any,
    ) -> None:
        """See ``InTurn``; a clean end drops the rest."""
        super().__init__(handling, lane, policy, handler, stop, divided=True)
        self._store = store

    def process(self, work: Work, records: List[Record]) -> int:
        """See ``Way``: partition after partition, as polls mix them. Raises TimeoutError, see ``Store``."""
        handle, count = self._handler(), 0
        inside: Set[Tp] = set()
        for index, tp, next_offset in sorted(work, key=lambda one: one[1]):  # in each of them in order
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
        """Whether the record has its effect now; False: the member was asked to stop before."""
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
        """See ``Way``."""
        self._store.close()
