"""Consume, transform, produce: each record becomes one in another topic, in a transaction with its offset or not."""

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
from fencepost_member.config import TRANSACTION
from fencepost_member.planted import OUTPUTS

COMMITS = (TRANSACTION, "after-batch", "after-processing")


@dataclass(frozen=True)
class Transform(Load):
    """One thread per member polls, makes of each record one in the topic ``into``, and commits.

    The topic is made beside the scenario's; what it holds in the end, as somebody with ``read_committed`` sees it, are
    the effects of the records. See ``Load`` for what producers write.

    Attributes:
        commit: ``transaction`` (what the records of a poll became and their offsets are one transaction; the group has
            a stable ``transactional.id`` for each member), ``after-batch`` or ``after-processing`` (outputs are
            written, then offsets are committed, without transactions: a member that dies in between repeats outputs).
        into: the topic.
        transaction_timeout_ms: after so long the brokers abort a transaction that nobody ends; a member that stands
            still for longer with one open is fenced, and ends.
        handler: what makes the new value, ``module:function``, imported by members from the current directory:
            ``function(key: bytes | None, value: bytes | None)`` gives bytes, text, a dict that is written as JSON, or
            None for none. Empty: the value stays as it is.
        handler_ms: how long a record's handler takes.
        batch: records that one poll may return.
        commit_every_ms: how often ``after-processing`` commits; 0: after each record.
        planted_bug: makes members wrong on purpose, as ``fencepost_member.planted.outputs`` describes. Empty: correct.
        planted_in: the members that have the planted bug; empty: all.
    """

    commit: str = TRANSACTION
    into: str = "transformed"
    transaction_timeout_ms: float = 30_000
    handler: str = ""
    handler_ms: float = 0
    batch: int = 100
    commit_every_ms: float = 200
    planted_bug: str = ""
    planted_in: tuple[int, ...] = ()
    rate_hz: float = field(default=500, kw_only=True)
    holds: ClassVar[EventKind] = EventKind.EFFECT

    def __post_init__(self) -> None:
        codec.settle(self)
        check_known("commit policy", self.commit, COMMITS)
        check_known("planted bug", self.planted_bug, ("", *OUTPUTS))
        check_options(self)
        check_topic(self.into)
        if self.planted_bug and self.commit != TRANSACTION:
            raise ScenarioError(f"planted bug {self.planted_bug!r} is one of the commit policy {TRANSACTION!r}")

    def lacking(self, inventory: Inventory) -> str:
        """See ``Names``. Members that cannot do the work are lacking too."""
        able = min(inventory.members, sum(inventory.topics.values()))
        return lacking_output(self, inventory) or overload(self.rate_hz, self.handler_ms, able, f"{able} members")

    def member_config(self, member: int) -> dict[str, Any]:
        """The options of ``fencepost_member``'s loop."""
        return loop_options(self, member)

    def promises(self) -> Collection[Promise]:
        """At-least-once, and each record has an effect; with transactions no record has two."""
        from fencepost.checkers import Commits, Delivery, Effects, Ownership, Progress

        guarantee = "exactly-once" if self.commit == TRANSACTION else "at-least-once"
        return (
            Delivery("at-least-once"),
            Ownership(of="assignment"),
            Progress(within_s=30),
            Commits(),
            Effects(guarantee),
        )
