"""The ordinary consumer: poll, process each record in order, commit. Producers write keyed records at a steady rate."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

from fencepost.errors import ScenarioError
from fencepost.interfaces import Promise
from fencepost.model import Inventory, serialization
from fencepost.workloads._common import (
    Load,
    alien_loop,
    at_least_once,
    check_deadline,
    check_known,
    check_options,
    loop_options,
    overload,
    unable,
)
from fencepost_member.adapters import AdapterFeature
from fencepost_member.config import ASYNCHRONOUS, AUTOMATIC, BACKPRESSURE, COMMIT_POLICIES
from fencepost_member.planted_bugs import NAMES as PLANTED_BUGS
from fencepost_member.planted_bugs import NEEDS as PLANTED_NEEDS

DEADLINES = COMMIT_POLICIES[:2]  # the policies that allow a deadline
PROGRAMS_COMMIT = ("after-processing", "auto-delivered")  # the policies of programs with their own loop


@dataclass(frozen=True)
class PollLoop(Load):
    """One thread per member polls, processes and commits.

    See ``Load`` for the records that producers write.

    Attributes:
        commit: ``after-processing`` (at-least-once), ``after-batch`` (likewise, once for all records of a poll),
            ``asynchronous`` (likewise, without waiting for the answer; the next commit follows the answer),
            ``before-processing`` (at-most-once), ``auto`` (the client itself commits processed records;
            at-least-once) or ``auto-delivered`` (the client itself commits polled records, its default; when a member
            dies, records may be lost or processed again, so neither is promised).
        commit_every_ms: the interval at which ``after-processing``, ``asynchronous`` and the automatic policies commit;
            0: after each record (``asynchronous``: each answer), which the automatic ones cannot.
        handler_ms: the duration of a record's handler.
        handler: the function that handles records, ``module:function``, imported by members from the current directory:
            ``function(key: bytes | None, value: bytes | None)``; the record is processed when it returns, and an
            exception ends the member. Empty: a handler that waits for ``handler_ms`` and does nothing else.
        batch: records that one poll may return; 1: polls return single records.
        backpressure: ``pause`` (after each poll with records it pauses its partitions, keeps polling to stay in the
            group, and resumes) or ``resume`` (after each poll it resumes partitions that were never paused, which
            should have no effect); empty: neither.
        pause_ms: the shortest time that ``pause`` pauses; it ends with a poll, which may take 100 ms.
        slow_partition: the handler takes ``slow_ms`` more for records of this partition (of each topic); the load may
            be more than it can handle. -1: no partition.
        slow_ms: see ``slow_partition``.
        deadline_ms: the time limit of the built-in handler. If a record takes longer, the member releases all its
            partitions before ``max.poll.interval.ms`` is over: it commits the processed records, drops those in
            flight, unsubscribes, and subscribes again. 0: no limit.
        planted_bug: a bug of members, for tests and demonstrations, described by one of the modules of
            ``fencepost_member.planted_bugs``. Empty: none.
        planted_in: the members that have the planted bug; empty: all.
    """

    commit: str = "after-processing"
    batch: int = 500
    handler_ms: float = 0
    commit_every_ms: float = 200
    planted_bug: str = ""
    planted_in: tuple[int, ...] = ()
    handler: str = ""
    backpressure: str = ""
    pause_ms: float = 100
    slow_partition: int = -1
    slow_ms: float = 0
    deadline_ms: float = 0

    def __post_init__(self) -> None:
        serialization.validate_fields(self)
        check_known("commit policy", self.commit, COMMIT_POLICIES)
        check_known("planted bug", self.planted_bug, ("", *PLANTED_BUGS))
        check_known("backpressure", self.backpressure, ("", *BACKPRESSURE))
        if self.planted_bug == "out-of-order" and self.batch < 2:
            raise ScenarioError("planted bug 'out-of-order' needs batch > 1: a single record has no order")
        if self.planted_bug == "late-retry" and self.commit != ASYNCHRONOUS:
            raise ScenarioError(f"planted bug 'late-retry' needs commit {ASYNCHRONOUS!r}: it retries such a commit")
        check_options(self)
        if self.commit in AUTOMATIC and not self.commit_every_ms:
            raise ScenarioError(
                f"commit policy {self.commit!r} needs commit_every_ms above 0: a client commits by time"
            )
        self._check_deadline()
        if self.handler and self.planted_bug:
            raise ScenarioError(f"planted bug {self.planted_bug!r} needs the built-in handler: leave handler empty")

    def _check_deadline(self) -> None:
        if not self.deadline_ms:
            return
        if self.commit not in DEADLINES:
            raise ScenarioError(
                f"deadline_ms needs one of the commit policies {', '.join(DEADLINES)}: others commit early"
            )
        check_deadline(self.deadline_ms, self.handler_ms + self.slow_ms, self.handler)

    def inventory_problem(self, inventory: Inventory) -> str:
        """See ``ChecksInventory``. Also returns a problem if members could not keep up: unread records would
        then not be the fault of the group."""
        missing = next(filter(None, map(inventory.lacks_member, self.planted_in)), "")
        return alien_loop(inventory) or missing or self._unable(inventory) or self._overload(inventory)

    def _unable(self, inventory: Inventory) -> str:
        everybody = range(len(inventory.clients))
        bug, pausing = PLANTED_NEEDS.get(self.planted_bug, ()), (AdapterFeature.PAUSES,) if self.backpressure else ()
        leaving = (AdapterFeature.RESUBSCRIBE,) if self.deadline_ms else ()
        deferring = (AdapterFeature.ASYNC_COMMIT,) if self.commit == ASYNCHRONOUS else ()
        for what, needs, members in (
            (f"planted bug {self.planted_bug!r}", bug, self.planted_in or everybody),
            (f"backpressure {self.backpressure!r}", pausing, everybody),
            ("deadline_ms", leaving, everybody),
            (f"commit policy {self.commit!r}", deferring, everybody),
        ):
            if sentence := unable(inventory, members, needs, what):
                return sentence
        alien = next((client for client in inventory.clients if client.library.lines), None)
        options = (self.handler, self.handler_ms, self.slow_ms, self.backpressure, self.deadline_ms)
        asked = any(options) or self.commit not in PROGRAMS_COMMIT
        if alien and asked:
            return f"{alien} has a loop of its own: only the commit policies {', '.join(PROGRAMS_COMMIT)}, no handler"
        if self.deadline_ms and any(inventory.static):
            return "deadline_ms does not work with static members: the group keeps the partitions that they release"
        if alien and len(inventory.topics) > 1:
            return f"{alien} reads one topic, and the scenario has {len(inventory.topics)}"
        return ""

    def _overload(self, inventory: Inventory) -> str:
        able = min(inventory.members, sum(inventory.topics.values()))
        each_ms = self.handler_ms + (self.pause_ms / self.batch if self.backpressure == "pause" else 0)
        return overload(self.rate_hz, each_ms, able, f"{able} members")

    def member_config(self, member: int) -> dict[str, Any]:
        """The options of ``fencepost_member``'s loop."""
        return loop_options(self, member)

    def promises(self) -> Collection[Promise]:
        """At-least-once, in order by key, one owner at a time, commits of processed records, and progress.

        ``before-processing`` promises at-most-once and no order: a member that was evicted with committed records in
        flight finishes them after the new owner has continued.
        """
        from fencepost.checkers import Commits, Delivery, Ownership, Progress

        always = (Ownership(of="assignment"), Progress(within_s=30))
        if self.commit == "auto-delivered":
            return (*always, Commits(order="before-processing"))
        if self.commit == "before-processing":
            return (Delivery("at-most-once"), *always, Commits(order="before-processing"))
        return at_least_once(by_key=True)
