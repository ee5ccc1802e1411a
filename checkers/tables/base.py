"""The small tables of one run as they were recorded, and what the scenario says of it. Pure: ``loading`` fills them."""

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
    Rebalance,
    Step,
    UnmatchedRevocation,
    Window,
)
from fencepost.checkers.tables.seeks import Seek
from fencepost.model.clients import BLACK_BOX
from fencepost.model.settings import RESET

OWN_PROGRAM, BY_EFFECT = "own_program", "effect"  # see that workload
HEARTBEAT_MS, SESSION_MS = "3000", "45000"  # Kafka's defaults


@dataclass(frozen=True)
class BaseTables:
    """The small tables of one run. Rows are ordered by time (commits of the broker: by the offsets log).

    Attributes:
        scenario: ``scenario.json`` as it is; ``asked`` is the scenario proper.
        origin_ns: the run's start; sentences count seconds from here.
        overtaken: commits of transactions that were in force at no time, see ``transactions``.
        phases: the window of each phase by name; an end of 0 means that it never ended.
        broken_off: the phase in which the run was interrupted; empty when it went through.
        seats: who was the group's coordinator, one after the other.
        loads: when another broker may have become it.
        unguarded: writers whose client was not told to be idempotent.
        copies: of records that were re-queued, by whom each was written.
        inferred: what the rule of processing makes of deliveries, in the order in which it is applied.
        protocols: those by which members took part, as they told: of a group that is migrated there are several.
        uncommitted: by incarnation the excuse for who is given what was aborted; see ``isolation``.
        resets: where members begin that find no committed offset, as they told; nothing: as the scenario asks.
        compacted: the partitions whose logs are compacted, and for how long their tombstones stay, in ns.
        offsets_kept_ns: for how long committed offsets are kept that nobody who is in the group may need.
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
    steps: tuple[Step, ...] = ()
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

    @property
    def asked(self) -> Mapping[str, Any]:
        """The scenario proper."""
        value = self.scenario.get("scenario")
        return value if isinstance(value, Mapping) else {}

    def promised(self, name: str) -> list[Mapping[str, Any]]:
        """What the scenario promises under a name, as it is stored."""
        promises = (p for p in self.asked.get("promises") or () if isinstance(p, Mapping))
        return [p for p in promises if p.get("type") == name]

    def not_idempotent(self, writer: int) -> str:
        """The excuse for a client that writes a record twice or late; empty when it was told to be idempotent."""
        return "producer not idempotent" if writer in self.unguarded else ""

    def setting(self, name: str, default: str) -> str:
        """A setting of the group's clients."""
        config = (self.asked.get("group") or {}).get("config") or {}
        return str(config.get(name, default))

    @property
    def poison_every(self) -> int:
        """Of so many records of a writer the last one was made impossible to process by the workload; 0: of none."""
        every = (self.asked.get("workload") or {}).get("poison_every")
        return max(0, every) if isinstance(every, int) else 0

    @property
    def sought(self) -> str:
        """The excuse for what comes of it where a program moved its position: it may, if it is the user's own. Our own
        loops, of which the scenario says what they do, never do so but after an aborted transaction."""
        return SOUGHT if self.own_program else ""

    @property
    def black_box(self) -> bool:
        """Whether the members told nothing: what is known of them, brokers saw."""
        return (self.asked.get("group") or {}).get("client") == BLACK_BOX

    @property
    def own_program(self) -> bool:
        """Whether members are a program of the user's, of which an instrument, or the program itself, tells."""
        return (self.asked.get("workload") or {}).get("type") == OWN_PROGRAM and not self.black_box

    @property
    def by_effect(self) -> bool:
        """Whether records are processed when their effects are there."""
        return (self.asked.get("workload") or {}).get("processed") == BY_EFFECT

    @property
    def protocol(self) -> str:
        """The group's protocol: eager, cooperative or consumer; empty when it is not known, or changed meanwhile."""
        if len(self.protocols) > 1:
            return ""
        return str((self.asked.get("group") or {}).get("protocol") or "")

    @property
    def resets_to_end(self) -> bool:
        """Whether a member without a committed offset may start at the end."""
        return not {*AT_THE_END}.isdisjoint(self.resets or {self.setting(RESET, "earliest")})

    @property
    def heartbeat_ns(self) -> int:
        """The heartbeat interval of the group's clients; of the consumer protocol's too, which the brokers decide."""
        return max(self._times_ns("heartbeat.interval.ms", HEARTBEAT_MS))

    @property
    def session_ns(self) -> int:
        """Likewise the session time-out, the shorter one."""
        return min(filter(None, self._times_ns("session.timeout.ms", SESSION_MS)))

    def _times_ns(self, name: str, default: str) -> tuple[int, int]:
        """As clients have it, and as brokers do; 0: these were not told."""
        brokers = (self.scenario.get("cluster") or {}).get("broker_config") or {}
        both = self.setting(name, default), brokers.get(f"group.consumer.{name}")
        clients, reported = (int(float(ms or 0) * 1_000_000) for ms in both)
        return clients, reported
