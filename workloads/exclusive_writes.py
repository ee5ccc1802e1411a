"""Partition exclusivity: each record has an effect in a store outside Kafka, and a fence should protect the store."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from fencepost.errors import ScenarioError
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
)
from fencepost_member.config import FENCES, SUPERVISOR


@dataclass(frozen=True)
class ExclusiveWrites(Load):
    """One thread per member polls, processes each record, writes its effect to a store, and commits.

    Kafka assigns a partition to one member at a time, but a paused member does not learn of a change: when it
    resumes, it writes the records in flight at the same time as the next owner. The store is one SQLite file in the
    run's history, or a separate schema for each run in a PostgreSQL database.

    See ``Load`` for the records that producers write, and ``fencepost_member.processing.store`` for leases and fences.

    Attributes:
        fence: ``token`` (the store refuses a member whose lease has a newer holder), ``lease`` (the same lock without a
            token: unsafe after a long pause), ``supervisor`` (no lock: the supervisor kills and restarts a
            member that does not poll in time, as the health checks of an orchestrator do) or ``none``.
        lease_ms: the time for which a member holds a partition's lease without renewing it.
        overdue_ms: the supervisor kills a member that many milliseconds after its last poll. It must be well below the
            group's session time-out and ``max.poll.interval.ms``, or another member processes its partitions first.
        store: the PostgreSQL database, ``postgresql://user@host/database``, where psycopg is installed; the password is
            read from PGPASSWORD and ``~/.pgpass``. Empty: SQLite.
        handler_ms: the duration of a record's processing, which is within the lease.
        batch: records that one poll may return.
        commit_every_ms: the interval at which a member commits; 0: after each record.
    """

    fence: str = "token"
    lease_ms: float = 2000
    overdue_ms: float = 2000
    store: str = ""
    handler_ms: float = 10
    batch: int = 50
    commit_every_ms: float = 200
    rate_hz: float = field(default=100, kw_only=True)

    def __post_init__(self) -> None:
        serialization.validate_fields(self)
        check_known("fence", self.fence, FENCES)
        check_options(self)
        _check_store(self.store)
        if self.lease_ms <= 2 * self.handler_ms:
            raise ScenarioError(f"lease_ms is {self.lease_ms:g}, it must be more than twice handler_ms")
        busy_ms = self.batch * self.handler_ms
        if 0 < self.killed_after_ms <= busy_ms:
            raise ScenarioError(f"overdue_ms is {self.overdue_ms:g}, and a poll's records alone take {busy_ms:g} ms")

    @property
    def killed_after_ms(self) -> float:
        """See ``interfaces.process.Supervised``."""
        return self.overdue_ms if self.fence == SUPERVISOR else 0

    def inventory_problem(self, inventory: Inventory) -> str:
        """See ``ChecksInventory``. Also returns a problem if members could not keep up."""
        if alien := next((client for client in inventory.clients if client.library.lines), None):
            return f"{alien} has a loop of its own, which writes to no store"
        able = min(inventory.members, sum(inventory.topics.values()))
        return alien_loop(inventory) or overload(self.rate_hz, self.handler_ms, able, f"{able} members")

    def member_config(self, member: int) -> dict[str, Any]:
        """The options of ``fencepost_member``'s loop."""
        return loop_options(self, member)

    def promises(self) -> Collection[Promise]:
        """At-least-once, and each record has one effect, which no member wrote after its lease had expired."""
        from fencepost.checkers import Effects

        return at_least_once(Effects())


def _check_store(store: str) -> None:
    place = urlsplit(store)
    if store and place.scheme not in ("postgresql", "postgres"):
        raise ScenarioError(f"store is {store!r}; it must be postgresql://user@host/database, or empty: a SQLite file")
    if place.password or "password=" in place.query:
        raise ScenarioError("store contains a password, which the run folder would show: set PGPASSWORD instead")
