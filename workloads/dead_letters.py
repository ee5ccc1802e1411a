"""Dead letters: what a member cannot process goes to a topic of its own, and the group goes on."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Any, ClassVar

from fencepost import codec
from fencepost.errors import ScenarioError
from fencepost.history import EventKind
from fencepost.interfaces import Promise
from fencepost.model import Inventory
from fencepost.settings import check_topic
from fencepost.workloads._common import Load, check_known, check_options, lacking_output, loop_options, overload
from fencepost_member.config import ON_FAILURE, PARK, TRANSACTION
from fencepost_member.planted import LETTERS, PARKINGS

COMMITS = ("after-processing", "after-batch", TRANSACTION)


@dataclass(frozen=True)
class DeadLetters(Load):
    """One thread per member polls, tries each record several times, and writes what still fails to the topic ``into``.

    The topic is made beside the scenario's; what it holds in the end is compared with the records that cannot be
    processed. See ``Load`` for what producers write.

    Attributes:
        on_failure: ``park``, or ``stop``: what cannot be processed ends the member, and whoever comes after it.
        into: the topic.
        attempts: how often a record is tried.
        retry_ms: between two attempts; the member's other records wait.
        keep_order: what comes after a record that was parked, under its key, is parked behind it, whoever has the
            partition by then; without transactions only.
        poison_every: of so many records of each producer the last one cannot be processed; 0: of none. With a
            ``handler`` it is 0: what it raises for decides.
        handler: what processes records, ``module:function``, imported by members from the current directory:
            ``function(key: bytes | None, value: bytes | None)``; what it raises is a failed attempt.
        commit: ``after-processing``, ``after-batch`` (a member that dies between a dead letter and its commit leaves a
            second one to its successor) or ``transaction`` (dead letters and offsets of a poll are one transaction).
        transaction_timeout_ms: after so long the brokers abort a transaction that nobody ends.
        handler_ms: how long a record's handler takes.
        batch: records that one poll may return.
        commit_every_ms: how often ``after-processing`` commits; 0: after each record.
        planted_bug: makes members wrong on purpose, as ``fencepost_member.planted.parking`` describes. Empty: correct.
        planted_in: the members that have the planted bug; empty: all.
    """

    on_failure: str = PARK
    into: str = "dead-letters"
    attempts: int = 3
    retry_ms: float = 0
    keep_order: bool = False
    poison_every: int = 50
    handler: str = ""
    commit: str = COMMITS[0]
    transaction_timeout_ms: float = 30_000
    handler_ms: float = 0
    batch: int = 100
    commit_every_ms: float = 200
    planted_bug: str = ""
    planted_in: tuple[int, ...] = ()
    rate_hz: float = field(default=500, kw_only=True)
    holds: ClassVar[EventKind] = EventKind.DEAD_LETTER

    def __post_init__(self) -> None:
        codec.settle(self)
        check_known("what is done on failure", self.on_failure, ON_FAILURE)
        check_known("commit policy", self.commit, COMMITS)
        check_known("planted bug", self.planted_bug, ("", *PARKINGS, *LETTERS))
        check_options(self)
        check_topic(self.into)
        if self.poison_every and (self.handler or self.payload):
            raise ScenarioError("poison_every is about values of ours: with a handler or payload of yours it must be 0")
        if self.keep_order and self.commit == TRANSACTION:
            raise ScenarioError(
                "keep_order goes without transactions: a member could not see what an open one has parked"
            )
        for what, of_output in (("planted bug", self.planted_bug), ("commit policy", self.commit)):
            if self.on_failure != PARK and of_output in (*PARKINGS, *LETTERS, TRANSACTION):
                raise ScenarioError(f"{what} {of_output!r} is one of members that park")

    def lacking(self, inventory: Inventory) -> str:
        """See ``Names``. Members that cannot do the work are lacking too."""
        able = min(inventory.members, sum(inventory.topics.values()))
        tries_ms = self.retry_ms * (self.attempts - 1) / self.poison_every if self.poison_every else 0
        return lacking_output(self, inventory) or overload(
            self.rate_hz, self.handler_ms + tries_ms, able, f"{able} members"
        )

    def member_config(self, member: int) -> dict[str, Any]:
        """The options of ``fencepost_member``'s loop."""
        return {**loop_options(self, member), **({} if self.on_failure == PARK else {"into": ""})}

    def promises(self) -> Collection[Promise]:
        """At-least-once, and what cannot be processed has a dead letter; with transactions none has two.

        Who stops on failure keeps none of that for long; how it fails is seen best by these promises.
        """
        from fencepost.checkers import Commits, Delivery, Order, Ownership, Parked, Progress

        guarantee = "exactly-once" if self.commit == TRANSACTION else "at-least-once"
        return (
            Delivery("at-least-once"),
            Order(by="key"),
            Ownership(of="assignment"),
            Progress(within_s=30),
            Commits(),
            *((Parked(guarantee, in_order=self.keep_order),) if self.on_failure == PARK else ()),
        )
