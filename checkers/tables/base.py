"""The small tables of one run as they were recorded, and the settings of its scenario. Pure: ``loading`` fills them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fencepost.checkers.promises.delivery import SOUGHT
from fencepost.checkers.tables.effects import Effect
from fencepost.checkers.tables.paused import PausedInterval
from fencepost.checkers.tables.processing_rules import Inferred
from fencepost.checkers.tables.requests import Heartbeat, Join, Request
from fencepost.checkers.tables.resets import AT_THE_END
from fencepost.checkers.tables.retention import OFFSETS_KEPT_NS
from fencepost.checkers.tables.rows import (
    AssignmentChange,
    Commit,
    CoordinatorChange,
    Damage,
    DeclaredAction,
    DoubleAssignment,
    Interval,
    LeaderChange,
    Life,
    MemberRemoval,
    OffsetCommit,
    Partition,
    PerformedStep,
    Rebalance,
    UnmatchedRevocation,
    Window,
)
from fencepost.checkers.tables.seeks import Seek
from fencepost.model.clients import BLACK_BOX
from fencepost.model.settings import FULL, RESET

OWN_PROGRAM, BY_EFFECT = "own_program", "effect"  # the type of a workload, and a value of its option ``processed``
HEARTBEAT_MS, SESSION_MS = "3000", "45000"  # Kafka's defaults


@dataclass(frozen=True)
class BaseTables:
    """The small tables of one run. Rows are in the order of time (accepted commits: in the order of the offsets log).

    Attributes:
        scenario: the content of ``scenario.json``; ``asked`` is the scenario in it.
        origin_ns: the run's start; sentences count seconds from here.
        accepted: commits that came into force.
        overtaken: commits of transactions that never came into force, see ``transactions``.
        given: changes of the owner of a partition.
        gone: removals of member ids from the group.
        phases: the window of each phase by name; an end of 0 means that it never ended.
        broken_off: the phase in which the run was interrupted; empty: the run was completed.
        seats: the group's coordinators, one after the other.
        loads: the times in which another broker may have become the coordinator.
        unguarded: writers whose client is not configured as idempotent.
        copies: the copies of re-queued records, each with its writer.
        inferred: the inferences of the rules of processing about deliveries, in the order in which they apply.
        protocols: the group protocols that members reported; there are several if the group was migrated.
        uncommitted: the excuse for received aborted records by incarnation; see ``aborted_visibility``.
        resets: the reset policies that members reported; empty: the scenario's setting counts.
        compacted: the partitions whose logs are compacted -> how long their tombstones stay, in ns.
        first_written: the offset of the first record of some partitions that was certainly the group's, see
            ``starts_at_end``; only if a member without a committed offset may start at the end.
        offsets_kept_ns: how long brokers keep the committed offset of a partition that no member owns.
        not_shown: the files that are missing because the cluster does not show what they would contain; empty if the
            full evidence is demanded: then they are damage.
    """

    run: Path
    scenario: Mapping[str, Any] = field(default_factory=dict)
    plan: Mapping[str, Any] = field(default_factory=dict)
    origin_ns: int = 0
    partitions: Mapping[int, Partition] = field(default_factory=dict)
    lives: Mapping[str, Life] = field(default_factory=dict)
    intervals: tuple[Interval, ...] = ()
    commits: tuple[Commit, ...] = ()
    accepted: tuple[OffsetCommit, ...] = ()
    overtaken: tuple[OffsetCommit, ...] = ()
    given: tuple[AssignmentChange, ...] = ()
    gone: tuple[MemberRemoval, ...] = ()
    doubled: tuple[DoubleAssignment, ...] = ()
    strays: tuple[UnmatchedRevocation, ...] = ()
    rounds: tuple[Rebalance, ...] = ()
    steps: tuple[PerformedStep, ...] = ()
    seeks: tuple[Seek, ...] = ()
    paused: tuple[PausedInterval, ...] = ()
    acts: tuple[DeclaredAction, ...] = ()
    stalls: tuple[Window, ...] = ()
    phases: Mapping[str, Window] = field(default_factory=dict)
    broken_off: str = ""
    terms: tuple[tuple[int, int, int], ...] = ()
    leaders: tuple[LeaderChange, ...] = ()
    seats: tuple[CoordinatorChange, ...] = ()
    loads: tuple[Window, ...] = ()
    unguarded: frozenset[int] = frozenset()
    protocols: frozenset[str] = frozenset()
    uncommitted: Mapping[str, str] = field(default_factory=dict)
    resets: frozenset[str] = frozenset()
    compacted: Mapping[int, int] = field(default_factory=dict)
    first_written: Mapping[int, int] = field(default_factory=dict)
    offsets_kept_ns: int = OFFSETS_KEPT_NS
    asked_commits: tuple[Request, ...] = ()
    fetched: tuple[Request, ...] = ()
    heartbeats: tuple[Heartbeat, ...] = ()
    joins: tuple[Join, ...] = ()
    effects: tuple[Effect, ...] = ()
    dead_letters: tuple[Effect, ...] = ()
    copies: tuple[Effect, ...] = ()
    inferred: tuple[Inferred, ...] = ()
    damage: tuple[Damage, ...] = ()
    not_shown: tuple[Damage, ...] = ()

    @property
    def asked(self) -> Mapping[str, Any]:
        """The scenario in ``scenario.json``; empty if there is none."""
        value = self.scenario.get("scenario")
        return value if isinstance(value, Mapping) else {}

    def promised(self, name: str) -> list[Mapping[str, Any]]:
        """The scenario's promises of type ``name``, as they are stored."""
        promises = (p for p in self.asked.get("promises") or () if isinstance(p, Mapping))
        return [p for p in promises if p.get("type") == name]

    @property
    def demands_full_evidence(self) -> bool:
        """Whether a promise is kept only if the cluster shows everything that brokers record (see
        ``Scenario.evidence``). Of black boxes nothing else is known, so there it always is.
        """
        return self.asked.get("evidence") == FULL or self.black_box

    def not_idempotent(self, writer: int) -> str:
        """The excuse for a client that writes a record twice or late; empty if it is configured as idempotent."""
        return "producer not idempotent" if writer in self.unguarded else ""

    def setting(self, name: str, default: str) -> str:
        """A setting of the group's clients."""
        config = (self.asked.get("group") or {}).get("config") or {}
        return str(config.get(name, default))

    @property
    def effects_in_order(self) -> bool:
        """Whether effects were listed in the order in which they were written, with the keys of their records."""
        return bool((self.asked.get("workload") or {}).get("effects_in_order"))

    @property
    def poison_every(self) -> int:
        """The last one of every so many records of a writer is impossible to process, by the workload; 0: none is."""
        every = (self.asked.get("workload") or {}).get("poison_every")
        return max(0, every) if isinstance(every, int) else 0

    @property
    def sought(self) -> str:
        """The excuse for the consequences of a moved position; empty unless members run the user's own program.

        That program may move its position. Fencepost's own loops do so only after an aborted transaction."""
        return SOUGHT if self.own_program else ""

    @property
    def black_box(self) -> bool:
        """Whether members report nothing, so that all facts about them are from the brokers."""
        return (self.asked.get("group") or {}).get("client") == BLACK_BOX

    @property
    def own_program(self) -> bool:
        """Whether members run a program of the user's; an instrument, or the program itself, reports its events."""
        return (self.asked.get("workload") or {}).get("type") == OWN_PROGRAM and not self.black_box

    @property
    def processed(self) -> str:
        """The rule by which a record of a user's program counts as processed; empty: the workload names none."""
        return str((self.asked.get("workload") or {}).get("processed") or "")

    @property
    def by_effect(self) -> bool:
        """Whether a record counts as processed if it has an effect."""
        return self.processed == BY_EFFECT

    @property
    def protocol(self) -> str:
        """The group's protocol: eager, cooperative or consumer; empty if it is unknown, or changed during the run."""
        if len(self.protocols) > 1:
            return ""
        return str((self.asked.get("group") or {}).get("protocol") or "")

    @property
    def resets_to_end(self) -> bool:
        """Whether a member without a committed offset may start at the end."""
        return not {*AT_THE_END}.isdisjoint(self.resets or {self.setting(RESET, "earliest")})

    @property
    def heartbeat_ns(self) -> int:
        """The heartbeat interval: the longer one of the clients' setting and the brokers' for the consumer protocol."""
        return max(self._times_ns("heartbeat.interval.ms", HEARTBEAT_MS))

    @property
    def session_ns(self) -> int:
        """The session time-out: the shorter one of the clients' setting and the brokers' for the consumer protocol."""
        return min(filter(None, self._times_ns("session.timeout.ms", SESSION_MS)))

    def _times_ns(self, name: str, default: str) -> tuple[int, int]:
        """The clients' setting, and the brokers' setting for the consumer protocol (0: not set), in ns."""
        brokers = (self.scenario.get("cluster") or {}).get("broker_config") or {}
        both = self.setting(name, default), brokers.get(f"group.consumer.{name}")
        clients, reported = (int(float(ms or 0) * 1_000_000) for ms in both)
        return clients, reported
