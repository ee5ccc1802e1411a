"""Asynchronous processing: the polling thread passes records to worker threads, and commits the finished ones."""

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
from fencepost_member.adapters import AdapterFeature
from fencepost_member.config import ASYNCHRONOUS, LANES
from fencepost_member.planted_bugs import POOLS

NEEDS = (AdapterFeature.PAUSES,)  # a partition with enough unfinished records is paused


@dataclass(frozen=True)
class WorkerPool(Load):
    """One thread per member polls and commits, and ``workers`` others process records.

    A partition is committed up to its first unfinished record. The revoked callback waits for records that workers
    process and for all before them, and drops the others; see ``fencepost_member.processing.pool``.
    See ``Load`` for the records that producers write.

    Attributes:
        workers: the number of threads of each member that process records.
        lanes: the unit that is processed in order, one record at a time: ``partition``, or each ``key`` in a partition.
        in_hand: the number of unfinished records of a partition above which a member pauses it; a poll may return
            ``batch`` more.
        wait_ms: the longest time that the revoked callback and a clean end wait for records that workers process; less
            than ``max.poll.interval.ms``. A record that takes longer continues, and the next owner processes it again.
        delay_revoke: the callback does not wait: the member keeps polling, so that it receives new records of its
            remaining partitions, and completes the revocation in a later poll (KIP-983); it commits asynchronously.
            Then the member stays in the group even if its polling thread is stuck. Not with the protocol ``eager``,
            which revokes every partition.
        handler_ms: the duration of a record's handler.
        slow_partition: the handler takes ``slow_ms`` more for records of this partition (of each topic); the load may
            be more than it can handle. -1: no partition.
        slow_ms: see ``slow_partition``.
        handler: a user's function, see ``PollLoop``; several threads call it at the same time.
        batch: records that one poll may return.
        commit_every_ms: the interval at which a member commits; 0: after each poll.
        planted_bug: a bug of members, described in ``fencepost_member.planted_bugs.pools``. Empty: none.
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
        serialization.validate_fields(self)
        check_known("lanes", self.lanes, LANES)
        check_known("planted bug", self.planted_bug, ("", *POOLS))
        check_options(self)

    def inventory_problem(self, inventory: Inventory) -> str:
        """See ``ChecksInventory``. Also returns a problem if members could not keep up."""
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
            return "delay_revoke has no effect with the protocol eager, which revokes every partition"
        return unable(
            inventory, range(len(inventory.clients)), [AdapterFeature.DELAY_REVOCATION], "to delay a revocation"
        )

    def member_config(self, member: int) -> dict[str, Any]:
        """The options of ``fencepost_member``'s loop."""
        # A synchronous commit would wait behind a JoinGroup request, for as long as other members take to join.
        return {**loop_options(self, member), **({"commit": ASYNCHRONOUS} if self.delay_revoke else {})}

    def promises(self) -> Collection[Promise]:
        """At-least-once, in order by key, one owner at a time, commits of processed records, and progress."""
        return at_least_once(by_key=True)
