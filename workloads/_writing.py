"""Shared by workloads whose members write: to a separate topic, or to the topics that they read."""

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
from fencepost_member.adapters import AdapterFeature
from fencepost_member.config import TRANSACTION

NEEDS = (AdapterFeature.OUTPUTS, AdapterFeature.SEEKS)  # after an abort the records are read again


@dataclass(frozen=True)
class Writing(Load):
    """One thread per member polls and writes; the checks judge its output.

    Attributes:
        commit: ``transaction`` (the output of a poll and its offsets are one transaction; the group has a stable
            ``transactional.id`` for each member), ``after-batch`` or ``after-processing`` (the member writes its
            output first and then commits the offsets, without transactions: if it dies in between, the next owner
            writes the output again).
        transaction_timeout_ms: the time after which brokers abort an open transaction; a member that is stopped for
            longer during a transaction is fenced, and ends.
        handler: the function that handles records, ``module:function``, imported by members from the current directory:
            ``function(key: bytes | None, value: bytes | None)``. Empty: none.
        handler_ms: the duration of a record's handler.
        batch: records that one poll may return.
        commit_every_ms: the interval at which ``after-processing`` commits; 0: after each record.
        planted_bug: a bug of members, described in ``fencepost_member.planted_bugs``. Empty: none.
        planted_in: the members that have the planted bug; empty: all.
        policies, bugs: the valid values of ``commit`` and ``planted_bug``.
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
        serialization.validate_fields(self)
        check_known("commit policy", self.commit, self.policies)
        check_known("planted bug", self.planted_bug, ("", *self.bugs))
        check_options(self)

    @property
    def each_ms(self) -> float:
        """The time that a member is busy with a record, in ms."""
        return self.handler_ms

    def inventory_problem(self, inventory: Inventory) -> str:
        """See ``ChecksInventory``. Also returns a problem if members could not keep up."""
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
    """Members write into a separate topic, which is created in addition to the scenario's.

    Attributes:
        into: the name of that topic.
    """

    into: str = "written"

    def __post_init__(self) -> None:
        super().__post_init__()
        check_topic(self.into)
