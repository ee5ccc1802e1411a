"""Asynchronous processing: the thread that polls hands records to worker threads, and commits what they finished."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

from fencepost.interfaces import Promise
from fencepost.model import Inventory, serialization
from fencepost.workloads._common import (
    Load,
    alien_loop,
    at_least_once,
    check_known,
    check_options,
    loop_options,
    overload,
    unable,
)
from fencepost_member.config import ASYNCHRONOUS, LANES
from fencepost_member.planted import POOLS

NEEDS = ("Pauses",)  # of the adapter: a partition that has enough in hand is paused
DELAYS = "Delays"  # likewise: it polls on while a revocation is put off


@dataclass(frozen=True)
class WorkerPool(Load):
    """One thread per member polls and commits, ``workers`` others process.

    What is committed of a partition is where everything below is finished. The revoked callback waits for the records
    that are begun, and those before them, and drops the others; see ``fencepost_member.pool``.
    See ``Load`` for what producers write.

    Attributes:
        workers: threads of each member that process.
        lanes: what is processed in order, one record at a time: ``partition``, or each ``key`` of it.
        in_hand: records of one partition above which a member pauses it; a poll may bring ``batch`` more.
        wait_ms: how long the revoked callback and a clean end wait for records that are begun, at most; less than
            ``max.poll.interval.ms``. What takes longer goes on, and is done again by the next owner.
        delay_revoke: they wait no longer there: the member polls on meanwhile, so that partitions that stay get new
            records, and completes the revocation in a later poll (KIP-983); it commits asynchronously. The member
            stays in the group then even if its thread that polls stands still. Not with the protocol ``eager``, where
            no partition stays.
        handler_ms: how long a record's handler takes.
        slow_partition: it takes ``slow_ms`` more for records of this partition (of each topic), which may be more than
            it keeps up with; -1: of none.
        slow_ms: see there.
        handler: a function of yours, see ``PollLoop``; several threads call it at a time.
        batch: records that one poll may return.
        commit_every_ms: how often it commits; 0: whenever it polled.
        planted_bug: makes members wrong on purpose, as ``fencepost_member.planted.pools`` describes. Empty: correct.
        planted_in: the members that have the planted bug; empty: all.
    """

    workers: int = 8
    lanes: str = "partition"
    in_hand: int = 1000
    wait_ms: float = 10_000
    delay_revoke: bool = False
    handler_ms: float = 0
    slow_partition: int = -1
    slow_ms: float = 0
    handler: str = ""
    batch: int = 500
    commit_every_ms: float = 200
    planted_bug: str = ""
    planted_in: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        serialization.settle(self)
        check_known("lanes", self.lanes, LANES)
        check_known("planted bug", self.planted_bug, ("", *POOLS))
        check_options(self)

    def lacking(self, inventory: Inventory) -> str:
        """See ``Names``. Members that cannot do the work are lacking too."""
        lanes = sum(inventory.topics.values()) if self.lanes == "partition" else self.keys
        able = min(inventory.members * self.workers, lanes)
        return (
            alien_loop(inventory)
            or next(filter(None, map(inventory.lacks_member, self.planted_in)), "")
            or unable(inventory, range(len(inventory.clients)), NEEDS, "a pool of workers")
            or (self._delay(inventory) if self.delay_revoke else "")
            or overload(self.rate_hz, self.handler_ms, able, f"{able} workers that find records")
        )

    def _delay(self, inventory: Inventory) -> str:
        if inventory.protocol == "eager":
            return "delay_revoke is of no use with the protocol eager, where every partition is revoked"
        return unable(inventory, range(len(inventory.clients)), [DELAYS], "to delay a revocation")

    def member_config(self, member: int) -> dict[str, Any]:
        """The options of ``fencepost_member``'s loop."""
        # A commit that is waited for waits behind a request to join, as long as others take for theirs.
        return {**loop_options(self, member), **({"commit": ASYNCHRONOUS} if self.delay_revoke else {})}

    def promises(self) -> Collection[Promise]:
        """At-least-once, in order by key, one owner at a time, commits of what is done, and progress."""
        return at_least_once(by_key=True)
