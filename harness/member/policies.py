"""The commit policies: when a member tells the group that records are done with.

``after-processing``
    At-least-once. The next offsets of finished records are committed synchronously every ``commit_every_ms``, in the
    revoked callback, and before leaving; with 0 after each record.
``after-batch``
    Likewise, but when all records of a poll are processed, and not before.
``asynchronous``
    As ``after-processing``, but the member goes on meanwhile, and hears of the answer in a later poll. In order: a
    commit is not begun before the last one is answered, so none of these overtakes another. What is given up, and the
    last of all, is committed synchronously, behind one that is unanswered.
``before-processing``
    At-most-once. What a poll returned is committed before the first of its records is begun. A commit that nobody
    answered is repeated (it is idempotent), and so is one that came too late for its generation; when it is refused
    for good, the poll's records are dropped, for somebody else will get them.
``auto``
    The client commits by itself what is stored; it is stored after processing, as the client's makers recommend. A
    client that stores nothing commits what its polls returned, so a poll's records are finished once begun.
``auto-delivered``
    The client commits by itself what its polls returned, processed or not, as librdkafka does unless told otherwise: a
    member that dies may lose records, and may repeat others.

Only partitions that the member owns are ever committed, and inside one assignment interval a commit never goes back.
"""

from __future__ import annotations

import threading
import time
from functools import partial
from typing import Any, Callable, Dict, Iterable, Protocol

from fencepost_member import outcomes
from fencepost_member.commits import Commits, Errors, Offsets, Work
from fencepost_member.config import ASYNCHRONOUS, TRANSACTION, LoopConfig
from fencepost_member.ownership import Ownership, Tp
from fencepost_member.transactional import InTransaction

RETRY_EVERY_S = 0.05
RETRY_WITHIN_S = 30.0


class Policy(Protocol):
    """When to commit what. ``undivided``: a poll's records are finished once begun, also at a clean end."""

    undivided: bool

    def admit(self, work: Work) -> bool:
        """Whether the records of a poll may be processed."""

    def finished(self, tp: Tp, next_offset: int) -> None:
        """A record was processed."""

    def between(self) -> None:
        """Between two records (between two polls, for what is undivided): commit what is due."""

    def giving_up(self, partitions: Iterable[Tp], lost: bool) -> None:
        """In the callback, before the client lets go of the partitions; ``lost``: they are no longer ours."""

    def leave(self) -> None:
        """Before the client is closed."""


class AfterProcessing:
    """See the module."""

    undivided = False

    def __init__(self, loop: LoopConfig, adapter: Any, commits: Commits, ownership: Ownership) -> None:
        """The first commit is due one period from now."""
        self._commits, self._owned = commits, ownership.intervals
        self._every_s = loop.commit_every_ms / 1000
        self._due_s = time.monotonic() + self._every_s
        self._pending: Dict[Tp, int] = {}
        self._reached: Dict[Tp, int] = {}

    def admit(self, work: Work) -> bool:
        """See ``Policy``."""
        return True

    def finished(self, tp: Tp, next_offset: int) -> None:
        """See ``Policy``. What the member does not own is not its to commit."""
        if tp in self._owned and next_offset > self._reached.get(tp, -1):
            self._reached[tp] = self._pending[tp] = next_offset

    def between(self) -> None:
        """See ``Policy``."""
        if time.monotonic() >= self._due_s:
            self._commit(self._pending, "sync")
            self._due_s = time.monotonic() + self._every_s

    def giving_up(self, partitions: Iterable[Tp], lost: bool) -> None:
        """See ``Policy``."""
        if not lost:
            self._commit({tp: self._pending[tp] for tp in partitions if tp in self._pending}, "on-revoke")
        for tp in partitions:
            self._pending.pop(tp, None)
            self._reached.pop(tp, None)

    def leave(self) -> None:
        """See ``Policy``."""
        self._commit(self._pending, "on-close")

    def _commit(self, offsets: Dict[Tp, int], mode: str) -> None:
        if not offsets:
            return
        errors = self._commits.commit(dict(offsets), mode)
        for tp in [tp for tp, error in errors.items() if not error]:
            self._pending.pop(tp, None)


class Asynchronous(AfterProcessing):
    """See the module. What was refused is still pending, and the next commit is of what is newest then."""

    def __init__(self, loop: LoopConfig, adapter: Any, commits: Commits, ownership: Ownership) -> None:
        """Nothing is unanswered."""
        super().__init__(loop, adapter, commits, ownership)
        self._unanswered = False

    def between(self) -> None:
        """See ``Policy``."""
        if self._pending and not self._unanswered and time.monotonic() >= self._due_s:
            self._unanswered = True
            self._due_s = time.monotonic() + self._every_s
            self._commits.begin(dict(self._pending), "async", self._answered)

    def _answered(self, offsets: Offsets, errors: Errors) -> None:
        self._unanswered = False
        for tp, offset in offsets.items():
            if not errors[tp] and self._pending.get(tp) == offset:
                del self._pending[tp]


class AfterBatch(AfterProcessing):
    """See the module."""

    undivided = True

    def __init__(self, loop: LoopConfig, adapter: Any, commits: Commits, ownership: Ownership) -> None:
        """Due after each poll."""
        super().__init__(loop, adapter, commits, ownership)
        self._every_s = self._due_s = 0.0


class BeforeProcessing:
    """See the module."""

    undivided = True  # all of it is committed: to drop the rest would lose it without need

    def __init__(self, loop: LoopConfig, adapter: Any, commits: Commits, ownership: Ownership) -> None:
        """Nothing is pending, ever."""
        self._commits, self._owned = commits, ownership.intervals
        self._pause = threading.Event()

    def admit(self, work: Work) -> bool:
        """Commit the whole poll; False: it was not accepted, nobody of this process may touch its records."""
        offsets: Dict[Tp, int] = {}
        for _, tp, next_offset in work:
            if tp in self._owned:
                offsets[tp] = next_offset
        give_up_s = time.monotonic() + RETRY_WITHIN_S
        while offsets:
            errors = {e for e in self._commits.commit(offsets, "sync").values() if e}
            if not errors:
                return True
            if not all(outcomes.rule(e).retriable for e in errors) or time.monotonic() >= give_up_s:
                return False
            self._pause.wait(RETRY_EVERY_S)
        return not work

    def finished(self, tp: Tp, next_offset: int) -> None:
        """Committed long ago."""

    def between(self) -> None:
        """Nothing is due."""

    def giving_up(self, partitions: Iterable[Tp], lost: bool) -> None:
        """Committed long ago."""

    def leave(self) -> None:
        """Committed long ago."""


class Automatic(AfterProcessing):
    """See the module. The client commits in its own thread, and when partitions are given up."""

    def __init__(
        self, loop: LoopConfig, adapter: Any, commits: Commits, ownership: Ownership, stores: bool = True
    ) -> None:
        """Stores as soon as it is asked, unless the client does."""
        super().__init__(loop, adapter, commits, ownership)
        self._store = getattr(adapter, "store", None) if stores else None
        self.undivided = self._store is None
        self._every_s = self._due_s = 0.0

    def _commit(self, offsets: Dict[Tp, int], mode: str) -> None:
        if offsets:
            if self._store:
                self._store(dict(offsets))
            for tp in list(offsets):
                self._pending.pop(tp, None)


POLICIES: Dict[str, Callable[[LoopConfig, Any, Commits, Ownership], Policy]] = {
    "after-processing": AfterProcessing,
    "after-batch": AfterBatch,
    ASYNCHRONOUS: Asynchronous,
    "before-processing": BeforeProcessing,
    "auto": Automatic,
    "auto-delivered": partial(Automatic, stores=False),
    TRANSACTION: InTransaction,
}
