"""The small tables of one run as they were recorded, and what the scenario says of it. Pure: ``loading`` fills them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fencepost.checkers.tables.effects import Effect
from fencepost.checkers.tables.paused import Paused
from fencepost.checkers.tables.requests import Heartbeat, Join, Request
from fencepost.checkers.tables.rows import (
    Accepted,
    Act,
    Commit,
    Damage,
    Doubled,
    Given,
    Gone,
    Interval,
    Led,
    Life,
    Partition,
    Round,
    Step,
    Stray,
    Window,
)
from fencepost.checkers.tables.seeks import Seek
from fencepost.clients import BLACK_BOX

BY_EFFECT = "effect"  # see the workload ``own_program``
HEARTBEAT_MS, SESSION_MS = "3000", "45000"  # Kafka's defaults


@dataclass(frozen=True)
class Recorded:
    """The small tables of one run. Rows are ordered by time (commits of the broker: by the offsets log).

    Attributes:
        scenario: ``scenario.json`` as it is; ``asked`` is the scenario proper.
        origin_ns: the run's start; sentences count seconds from here.
        overtaken: commits of transactions that were in force at no time, see ``settled``.
        phases: the window of each phase by name; an end of 0 means that it never ended.
        broken_off: the phase in which the run was interrupted; empty when it went through.
        unguarded: writers whose client was not told to be idempotent.
        copies: of records that were re-queued, by whom each was written.
        protocols: those by which members took part, as they told: of a group that is migrated there are several.
        uncommitted: by incarnation the excuse for who is given what was aborted; see ``isolation``.
    """

    run: Path
    scenario: Mapping[str, Any] = field(default_factory=dict)
    plan: Mapping[str, Any] = field(default_factory=dict)
    origin_ns: int = 0
    partitions: Mapping[int, Partition] = field(default_factory=dict)
    lives: Mapping[str, Life] = field(default_factory=dict)
    intervals: tuple[Interval, ...] = ()
    commits: tuple[Commit, ...] = ()
    accepted: tuple[Accepted, ...] = ()
    overtaken: tuple[Accepted, ...] = ()
    given: tuple[Given, ...] = ()
    gone: tuple[Gone, ...] = ()
    doubled: tuple[Doubled, ...] = ()
    strays: tuple[Stray, ...] = ()
    rounds: tuple[Round, ...] = ()
    steps: tuple[Step, ...] = ()
    seeks: tuple[Seek, ...] = ()
    paused: tuple[Paused, ...] = ()
    acts: tuple[Act, ...] = ()
    stalls: tuple[Window, ...] = ()
    phases: Mapping[str, Window] = field(default_factory=dict)
    broken_off: str = ""
    terms: tuple[tuple[int, int, int], ...] = ()
    leaders: tuple[Led, ...] = ()
    unguarded: frozenset[int] = frozenset()
    protocols: frozenset[str] = frozenset()
    uncommitted: Mapping[str, str] = field(default_factory=dict)
    asked_commits: tuple[Request, ...] = ()
    fetched: tuple[Request, ...] = ()
    heartbeats: tuple[Heartbeat, ...] = ()
    joins: tuple[Join, ...] = ()
    effects: tuple[Effect, ...] = ()
    dead_letters: tuple[Effect, ...] = ()
    copies: tuple[Effect, ...] = ()
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
    def black_box(self) -> bool:
        """Whether the members told nothing: what is known of them, brokers saw."""
        return (self.asked.get("group") or {}).get("client") == BLACK_BOX

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
        """Whether a member without a committed offset starts at the end."""
        return self.setting("auto.offset.reset", "earliest") in ("latest", "largest", "end")

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
        clients, told = (int(float(ms or 0) * 1_000_000) for ms in both)
        return clients, told
