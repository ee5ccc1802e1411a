"""What workloads have in common whose members write: into a topic of their own, or into those that they read."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Any, ClassVar

from fencepost.model import Inventory, serialization
from fencepost.model.settings import check_topic
from fencepost.workloads._common import (
    Load,
    alien_loop,
    check_known,
    check_options,
    loop_options,
    overload,
    unable,
)
from fencepost_member.config import TRANSACTION

NEEDS = ("Outputs", "Seeks")  # of the adapter: what is aborted is read again


@dataclass(frozen=True)
class Writing(Load):
    """One thread per member polls; what it writes is judged.

    Attributes:
        commit: ``transaction`` (what is written for a poll and its offsets are one transaction; the group has a stable
            ``transactional.id`` for each member), ``after-batch`` or ``after-processing`` (first it is written,
            then offsets are committed, without transactions: a member that dies in between writes again).
        transaction_timeout_ms: after so long the brokers abort a transaction that nobody ends; a member that stands
            still for longer with one open is fenced, and ends.
        handler: what handles records, ``module:function``, imported by members from the current directory:
            ``function(key: bytes | None, value: bytes | None)``. Empty: none.
        handler_ms: how long a record's handler takes.
        batch: records that one poll may return.
        commit_every_ms: how often ``after-processing`` commits; 0: after each record.
        planted_bug: makes members wrong on purpose, as ``fencepost_member.planted`` describes. Empty: correct.
        planted_in: the members that have the planted bug; empty: all.
        policies, bugs: those that there are.
    """

    commit: str = TRANSACTION
    transaction_timeout_ms: float = 30_000
    handler: str = ""
    handler_ms: float = 0
    batch: int = 100
    commit_every_ms: float = 200
    planted_bug: str = ""
    planted_in: tuple[int, ...] = ()
    rate_hz: float = field(default=500, kw_only=True)
    policies: ClassVar[Collection[str]] = ()
    bugs: ClassVar[Collection[str]] = ()

    def __post_init__(self) -> None:
        serialization.settle(self)
        check_known("commit policy", self.commit, self.policies)
        check_known("planted bug", self.planted_bug, ("", *self.bugs))
        check_options(self)

    @property
    def each_ms(self) -> float:
        """How long a member is busy with a record."""
        return self.handler_ms

    def lacking(self, inventory: Inventory) -> str:
        """See ``Names``. Members that cannot do the work are lacking too."""
        able = min(inventory.members, sum(inventory.topics.values()))
        return (
            alien_loop(inventory)
            or next(filter(None, map(inventory.lacks_member, self.planted_in)), "")
            or unable(inventory, range(len(inventory.clients)), NEEDS, "writing into a topic")
            or overload(self.rate_hz, self.each_ms, able, f"{able} members")
        )

    def member_config(self, member: int) -> dict[str, Any]:
        """The options of ``fencepost_member``'s loop."""
        return loop_options(self, member)


@dataclass(frozen=True)
class WritingElsewhere(Writing):
    """It writes into a topic of its own, which is made beside the scenario's.

    Attributes:
        into: the topic.
    """

    into: str = "written"

    def __post_init__(self) -> None:
        super().__post_init__()
        check_topic(self.into)
