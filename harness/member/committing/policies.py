"""The commit policies: when a member commits processed records.

``after-processing``
    At-least-once. The next offsets of finished records are committed synchronously every ``commit_every_ms`` (with 0
    after each record), in the revoked callback, and before leaving the group.
``after-batch``
    Like ``after-processing``, but only when all records of a poll are processed.
``asynchronous``
    Like ``after-processing``, but the member does not wait for the answer, which arrives in a later poll. A commit
    begins only after the answer to the previous one, so commits keep their order. Commits in the revoked callback and
    before leaving are synchronous, after one that may still be unanswered.
``before-processing``
    At-most-once. The offsets of a poll are committed before its first record begins. A commit without an answer is
    repeated (commits are idempotent), and so is one that arrived too late for its generation. If it is refused
    permanently, the poll's records are dropped, because another member will receive them.
``auto``
    The client auto-commits stored offsets; they are stored after processing, as the client's authors recommend. A
    client without a store commits the offsets of its polls, so all records of a poll are finished once one is begun.
``auto-delivered``
    The client auto-commits the offsets of its polls, processed or not, as librdkafka does by default: a member that
    dies may lose some records and repeat others.

A member commits only partitions that it owns, and within one assignment interval its commits never go back.
"""

from __future__ import annotations

import threading
import time
from functools import partial
from typing import Any, Callable, Dict, Iterable, Protocol

from fencepost_member import kafka_errors
from fencepost_member.committing.commits import Committer, Errors, Offsets, Work
from fencepost_member.committing.transaction_policy import InTransaction
from fencepost_member.config import ASYNCHRONOUS, TRANSACTION, LoopConfig
from fencepost_member.ownership import AssignmentNumbers, Tp

RETRY_EVERY_S = 0.05
RETRY_WITHIN_S = 30.0


class Policy(Protocol):
    """A commit policy. ``batch_atomic``: all records of a poll are finished once one is begun, also at a clean end."""

    batch_atomic: bool

    def admit(self, work: Work) -> bool:
        """Return whether the records of a poll may be processed."""

    def finished(self, tp: Tp, next_offset: int) -> None:
        """A record was processed."""

    def between(self) -> None:
        """Called between two records (between two polls, if ``batch_atomic``): commit, if due."""

    def revoking(self, partitions: Iterable[Tp], lost: bool) -> None:
        """Called in the revoked callback, or with ``lost`` in the lost callback, before the client applies it."""

    def leave(self) -> None:
        """Called before the client is closed."""


class AfterProcessing:
    """See the module."""

    batch_atomic = False

    def __init__(self, loop: LoopConfig, adapter: Any, commits: Committer, ownership: AssignmentNumbers) -> None:
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
        """See ``Policy``. Partitions that the member does not own are not committed."""
        if tp in self._owned and next_offset > self._reached.get(tp, -1):
            self._reached[tp] = self._pending[tp] = next_offset

    def between(self) -> None:
        """See ``Policy``."""
        if time.monotonic() >= self._due_s:
            self._commit(self._pending, "sync")
            self._due_s = time.monotonic() + self._every_s

    def revoking(self, partitions: Iterable[Tp], lost: bool) -> None:
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
    """See the module. Refused offsets stay pending; the next commit sends the newest offsets at that time."""

    def __init__(self, loop: LoopConfig, adapter: Any, commits: Committer, ownership: AssignmentNumbers) -> None:
        """No commit is unanswered."""
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

    batch_atomic = True

    def __init__(self, loop: LoopConfig, adapter: Any, commits: Committer, ownership: AssignmentNumbers) -> None:
        """Due after each poll."""
        super().__init__(loop, adapter, commits, ownership)
        self._every_s = self._due_s = 0.0


class BeforeProcessing:
    """See the module."""

    batch_atomic = True  # the whole poll is committed, so dropped records would be lost

    def __init__(self, loop: LoopConfig, adapter: Any, commits: Committer, ownership: AssignmentNumbers) -> None:
        """No offset is ever pending."""
        self._commits, self._owned = commits, ownership.intervals
        self._pause = threading.Event()

    def admit(self, work: Work) -> bool:
        """Commit the whole poll; False: the commit was not accepted, and the records must not be processed."""
        offsets: Dict[Tp, int] = {}
        for _, tp, next_offset in work:
            if tp in self._owned:
                offsets[tp] = next_offset
        give_up_s = time.monotonic() + RETRY_WITHIN_S
        while offsets:
            errors = {e for e in self._commits.commit(offsets, "sync").values() if e}
            if not errors:
                return True
            if not all(kafka_errors.rule(e).retriable for e in errors) or time.monotonic() >= give_up_s:
                return False
            self._pause.wait(RETRY_EVERY_S)
        return not work

    def finished(self, tp: Tp, next_offset: int) -> None:
        """Nothing to do: the offset is committed already."""

    def between(self) -> None:
        """Nothing to do: no commit is ever due."""

    def revoking(self, partitions: Iterable[Tp], lost: bool) -> None:
        """Nothing to do: the offsets are committed already."""

    def leave(self) -> None:
        """Nothing to do: the offsets are committed already."""


class Automatic(AfterProcessing):
    """See the module. The client commits in its own thread, and when partitions are revoked."""

    def __init__(
        self, loop: LoopConfig, adapter: Any, commits: Committer, ownership: AssignmentNumbers, stores: bool = True
    ) -> None:
        """``stores``: whether this policy stores offsets (at once); otherwise the client does."""
        super().__init__(loop, adapter, commits, ownership)
        self._store = getattr(adapter, "store", None) if stores else None
        self.batch_atomic = self._store is None
        self._every_s = self._due_s = 0.0

    def _commit(self, offsets: Dict[Tp, int], mode: str) -> None:
        if offsets:
            if self._store:
                self._store(dict(offsets))
            for tp in list(offsets):
                self._pending.pop(tp, None)


POLICIES: Dict[str, Callable[[LoopConfig, Any, Committer, AssignmentNumbers], Policy]] = {
    "after-processing": AfterProcessing,
    "after-batch": AfterBatch,
    ASYNCHRONOUS: Asynchronous,
    "before-processing": BeforeProcessing,
    "auto": Automatic,
    "auto-delivered": partial(Automatic, stores=False),
    TRANSACTION: InTransaction,
}
