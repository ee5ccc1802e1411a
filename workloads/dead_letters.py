"""Dead letters: a record that a member cannot process goes to a separate topic, and the group continues."""

from __future__ import annotations

import math
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any, ClassVar

from fencepost.errors import ScenarioError
from fencepost.history import EventKind
from fencepost.interfaces import Promise
from fencepost.model import Inventory
from fencepost.workloads._common import at_least_once, check_deadline, check_known
from fencepost.workloads._writing import WritingElsewhere
from fencepost_member.config import PARK, STOP, TRANSACTION
from fencepost_member.planted_bugs import LETTERS, PARKINGS


@dataclass(frozen=True)
class DeadLetters(WritingElsewhere):
    """One thread per member polls, tries each record several times, and writes a failed one to ``into``.

    After the run the harness compares the topic with the records that cannot be processed. See ``Load`` for the records
    that producers write, and ``Writing`` for the other options.

    Attributes:
        handler: the function that processes records; an exception is a failed attempt.
        on_failure: ``park``, or ``stop``: a record that cannot be processed ends the member, and each later owner.
        attempts: the number of attempts to process a record.
        retry_ms: the wait between two attempts; the member's other records wait, too.
        deadline_ms: the time limit of the built-in handler; a record that exceeds it is parked without another attempt;
            0: no limit. For the member to keep its partitions, all records of a poll should be parked within
            ``max.poll.interval.ms``.
        keep_order: later records of a parked record's key are parked behind it, also by later owners of the partition;
            without transactions only.
        retried_after_ms: the harness's retry program reads ``into`` and completes each letter that many milliseconds
            after it was written, and records that in the topic ``retried``. With ``keep_order`` that is a redirect
            topic: members process a key again when none of its letters waits there. 0: letters stay, and keys stay
            parked.
        poison_every: every n-th record of each producer cannot be processed; 0: none. With a ``handler`` it must be 0:
            the handler's exceptions decide.
    """

    commit: str = "after-processing"
    into: str = "dead-letters"
    on_failure: str = PARK
    attempts: int = 3
    retry_ms: float = 0
    deadline_ms: float = 0
    keep_order: bool = False
    retried_after_ms: float = 0
    poison_every: int = 50
    policies: ClassVar[Collection[str]] = ("after-processing", "after-batch", TRANSACTION)
    bugs: ClassVar[Collection[str]] = (*PARKINGS, *LETTERS)
    holds: ClassVar[EventKind] = EventKind.DEAD_LETTER

    def __post_init__(self) -> None:
        super().__post_init__()
        check_known("on_failure", self.on_failure, (STOP, PARK))
        if self.poison_every and (self.handler or self.payload):
            raise ScenarioError(
                "poison_every works with generated values only: with your own handler or payload it must be 0"
            )
        if self.keep_order and self.commit == TRANSACTION:
            raise ScenarioError(
                "keep_order does not work with transactions: a member cannot see records that an open one has parked"
            )
        if self.planted_bug == "first-retried" and not self.redirect:
            raise ScenarioError(
                "the planted bug 'first-retried' is about retries: it needs keep_order and retried_after_ms"
            )
        check_deadline(self.deadline_ms, self.handler_ms, self.handler)
        if self.deadline_ms and self.on_failure != PARK:
            raise ScenarioError("deadline_ms needs on_failure 'park': only members that park have a deadline")
        for what, of_output in (("planted bug", self.planted_bug), ("commit policy", self.commit)):
            if self.on_failure != PARK and of_output in (*self.bugs, TRANSACTION):
                raise ScenarioError(f"{what} {of_output!r} needs on_failure 'park'")

    @property
    def retried(self) -> str:
        """See ``HasRetryService``."""
        return f"{self.into}-{'redirect' if self.keep_order else 'retried'}" if self.retried_after_ms else ""

    @property
    def redirect(self) -> str:
        """The topic ``retried`` if members write and read it, too; empty: members ignore retries."""
        return self.retried if self.keep_order else ""

    def inventory_problem(self, inventory: Inventory) -> str:
        """See ``Writing``. Also returns a problem if keys would stay parked forever: with few keys, another record of a
        key arrives while its letter waits."""
        while_one_waits = (
            self.rate_hz / (self.keys * len(inventory.topics)) * self.retried_after_ms / 1000
        )  # records of its key
        if self.keep_order and self.poison_every and while_one_waits > math.log1p(self.poison_every):
            return (
                f"nearly all keys would be parked, as {self.keys} keys have {self.rate_hz:g} records/s, each of which "
                f"parks its key for {self.retried_after_ms:g} ms: use more keys, or lower rate_hz or retried_after_ms"
            )
        return super().inventory_problem(inventory)

    @property
    def each_ms(self) -> float:
        """See ``Writing``; includes the average wait between attempts."""
        tries_ms = self.retry_ms * (self.attempts - 1) / self.poison_every if self.poison_every else 0
        return self.handler_ms + tries_ms

    def member_config(self, member: int) -> dict[str, Any]:
        """See ``Writing``. A member that stops on failure writes nothing."""
        return {**super().member_config(member), **({} if self.on_failure == PARK else {"into": ""})}

    def promises(self) -> Collection[Promise]:
        """At-least-once, and each record that cannot be processed has a dead letter; with transactions exactly one.

        Members that stop on failure soon break these promises, and the findings show how.
        """
        from fencepost.checkers import Parked

        guarantee = "exactly-once" if self.commit == TRANSACTION else "at-least-once"
        parked = (Parked(guarantee, in_order=self.keep_order),) if self.on_failure == PARK else ()
        return at_least_once(*parked, by_key=True)
