"""Dead letters: what a member cannot process goes to a topic of its own, and the group goes on."""

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
from fencepost_member.planted import LETTERS, PARKINGS


@dataclass(frozen=True)
class DeadLetters(WritingElsewhere):
    """One thread per member polls, tries each record several times, and writes what still fails to the topic ``into``.

    What the topic holds in the end is compared with the records that cannot be processed. See ``Load`` for what
    producers write, and ``Writing`` for the other options.

    Attributes:
        handler: what processes records; what it raises is a failed attempt.
        on_failure: ``park``, or ``stop``: what cannot be processed ends the member, and whoever comes after it.
        attempts: how often a record is tried.
        retry_ms: between two attempts; the member's other records wait.
        deadline_ms: a handler of ours gets no longer for a record, which is parked then, without another attempt; 0: it
            takes as long as it takes. So that the member keeps its partitions, all records of a poll should be parked
            within ``max.poll.interval.ms``.
        keep_order: what comes after a record that was parked, under its key, is parked behind it, whoever has the
            partition by then; without transactions only.
        retried_after_ms: a retry program (ours) reads ``into``, takes so long after it was written for each letter, and
            is done with it. It says so in the topic ``retried``. With ``keep_order`` that is a redirect topic: a key of
            which nothing waits there is processed by members again. 0: letters stay, and keys stay parked.
        poison_every: of so many records of each producer the last one cannot be processed; 0: of none. With a
            ``handler`` it is 0: what it raises for decides.
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
        check_known("what is done on failure", self.on_failure, (STOP, PARK))
        if self.poison_every and (self.handler or self.payload):
            raise ScenarioError("poison_every is about values of ours: with a handler or payload of yours it must be 0")
        if self.keep_order and self.commit == TRANSACTION:
            raise ScenarioError(
                "keep_order goes without transactions: a member could not see what an open one has parked"
            )
        if self.planted_bug == "first-retried" and not self.redirect:
            raise ScenarioError(
                "the planted bug 'first-retried' is about what is retried: it needs keep_order and retried_after_ms"
            )
        check_deadline(self.deadline_ms, self.handler_ms, self.handler)
        if self.deadline_ms and self.on_failure != PARK:
            raise ScenarioError("deadline_ms is one of members that park")
        for what, of_output in (("planted bug", self.planted_bug), ("commit policy", self.commit)):
            if self.on_failure != PARK and of_output in (*self.bugs, TRANSACTION):
                raise ScenarioError(f"{what} {of_output!r} is one of members that park")

    @property
    def retried(self) -> str:
        """See ``Retried``."""
        return f"{self.into}-{'redirect' if self.keep_order else 'retried'}" if self.retried_after_ms else ""

    @property
    def redirect(self) -> str:
        """That topic, where members write and read it, too; empty: what is retried is nothing to them."""
        return self.retried if self.keep_order else ""

    def lacking(self, inventory: Inventory) -> str:
        """See ``Writing``. Keys that are never free again are lacking too: of few keys one whose records wait always
        has one more."""
        while_one_waits = (
            self.rate_hz / (self.keys * len(inventory.topics)) * self.retried_after_ms / 1000
        )  # of its key
        if self.keep_order and self.poison_every and while_one_waits > math.log1p(self.poison_every):
            return (
                f"nearly all keys would be parked, as {self.keys} keys have {self.rate_hz:g} records/s, each of which "
                f"parks its key for {self.retried_after_ms:g} ms: use more keys, or lower rate_hz or retried_after_ms"
            )
        return super().lacking(inventory)

    @property
    def each_ms(self) -> float:
        """See ``Writing``: with what is waited between attempts, on average."""
        tries_ms = self.retry_ms * (self.attempts - 1) / self.poison_every if self.poison_every else 0
        return self.handler_ms + tries_ms

    def member_config(self, member: int) -> dict[str, Any]:
        """See ``Writing``. Who stops on failure writes nothing."""
        return {**super().member_config(member), **({} if self.on_failure == PARK else {"into": ""})}

    def promises(self) -> Collection[Promise]:
        """At-least-once, and what cannot be processed has a dead letter; with transactions none has two.

        Who stops on failure keeps none of that for long; how it fails is seen best by these promises.
        """
        from fencepost.checkers import Parked

        guarantee = "exactly-once" if self.commit == TRANSACTION else "at-least-once"
        parked = (Parked(guarantee, in_order=self.keep_order),) if self.on_failure == PARK else ()
        return at_least_once(*parked, by_key=True)
