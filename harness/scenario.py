"""Scenarios: what a run is asked to do, as frozen values, to and from TOML and JSON.

A scenario names topics, a group, a workload, a schedule of faults and the promises that the group is judged by.
Building one from plain values is strict: an unknown option is an error that lists the known ones.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from fencepost import codec, schedule, targets
from fencepost.errors import ScenarioError
from fencepost.interfaces import ClusterSpec, Promise, Workload
from fencepost.schedule import Entry, PastSession, Plan, make_plan

PROTOCOLS = ("eager", "cooperative", "consumer")


@dataclass(frozen=True)
class Topic:
    """One topic of the workload. ``config`` holds Kafka's topic settings."""

    name: str
    partitions: int = 12
    replication_factor: int = 3
    config: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.partitions < 1 or self.replication_factor < 1:
            raise ScenarioError(f"topic {self.name!r} needs at least one partition and one replica")


@dataclass(frozen=True)
class Group:
    """The consumer group under test.

    Attributes:
        client: the library that its members use.
        members: how many.
        protocol: ``eager`` and ``cooperative`` are the classic protocol with such an assignor, ``consumer`` is KIP-848.
        config: client settings. ``session.timeout.ms`` and ``heartbeat.interval.ms`` hold for every protocol (for
            ``consumer`` they become the brokers' group settings); heartbeats are at most a quarter of the session
            time-out unless set.
        static: members carry a ``group.instance.id``.
        name: ``group.id``; by default made from the seed, so that the coordinator differs from run to run.
    """

    members: int = 3
    client: str = "confluent-kafka"
    protocol: str = "cooperative"
    config: Mapping[str, Any] = field(default_factory=dict)
    static: bool = False
    name: str = ""

    def __post_init__(self) -> None:
        if self.protocol not in PROTOCOLS:
            raise ScenarioError(f"protocol {self.protocol!r} is unknown; known are {', '.join(PROTOCOLS)}")
        if self.members < 1:
            raise ScenarioError("a group needs at least one member")
        if self.client != "confluent-kafka":
            raise ScenarioError(f"client {self.client!r} is unknown; known is confluent-kafka")

    @property
    def session_timeout_ms(self) -> int:
        """Kafka's default is 45,000."""
        return int(self.config.get("session.timeout.ms", 45_000))

    @property
    def heartbeat_interval_ms(self) -> int:
        """Kafka's default is 3,000."""
        return int(self.config.get("heartbeat.interval.ms", min(3_000, self.session_timeout_ms // 4)))

    def client_config(self) -> dict[str, Any]:
        """The settings for the client, times of the group protocol included where they are the client's to choose."""
        own = {"session.timeout.ms": self.session_timeout_ms, "heartbeat.interval.ms": self.heartbeat_interval_ms}
        if self.protocol == "consumer":
            return {k: v for k, v in self.config.items() if k not in own}
        return {**self.config, **own}


@dataclass(frozen=True)
class Scenario:
    """Everything a run is asked to do.

    Attributes:
        promises: what the group is judged by; empty: what its workload may be expected to keep.
        chaos_s: ceiling of the chaos phase, which ends earlier when all steps are healed and ``min_records`` were
            processed.
        brokers, broker_config: size and Kafka settings of the cluster.
    """

    name: str
    topics: tuple[Topic, ...]
    group: Group
    workload: Workload
    schedule: tuple[Entry, ...] = ()
    promises: tuple[Promise, ...] = ()
    brokers: int = 3
    broker_config: Mapping[str, Any] = field(default_factory=dict)
    chaos_s: float = 120.0
    min_records: int = 1000

    def __post_init__(self) -> None:
        for name in ("topics", "schedule", "promises"):
            object.__setattr__(self, name, tuple(getattr(self, name)))
        if not self.name.strip():
            raise ScenarioError("a scenario needs a name")
        if not self.topics:
            raise ScenarioError(f"scenario {self.name!r} needs at least one topic")
        if len({t.name for t in self.topics}) < len(self.topics):
            raise ScenarioError(f"scenario {self.name!r} names a topic twice")
        for topic in self.topics:
            if topic.replication_factor > self.brokers:
                wanted = topic.replication_factor
                raise ScenarioError(
                    f"topic {topic.name!r} wants {wanted} replicas, but there are {self.brokers} brokers"
                )

    def judged_by(self) -> tuple[Promise, ...]:
        """The promises of the scenario, or else the workload's."""
        return self.promises or tuple(self.workload.promises())

    def group_name(self, seed: int) -> str:
        """``group.id``: the group's own name, or one made from the scenario's name and the seed."""
        return self.group.name or f"{re.sub('[^A-Za-z0-9]+', '-', self.name).strip('-') or 'group'}-{seed}"

    def plan(self, seed: int) -> Plan:
        """The schedule with every draw made from ``seed``. Raises PlanError where it cannot do what it says."""
        return make_plan(self.schedule, seed, self.group.session_timeout_ms / 1000)

    def cluster_spec(self) -> ClusterSpec:
        """The cluster that this scenario needs: slots and protocol times are computed from the group."""
        session, heartbeat = self.group.session_timeout_ms, self.group.heartbeat_interval_ms
        times = {
            "group.min.session.timeout.ms": min(1_000, session),
            "group.consumer.min.session.timeout.ms": min(1_000, session),
            "group.consumer.session.timeout.ms": session,
            "group.consumer.max.session.timeout.ms": max(60_000, session),
            "group.consumer.min.heartbeat.interval.ms": min(200, heartbeat),
            "group.consumer.heartbeat.interval.ms": heartbeat,
            "group.consumer.max.heartbeat.interval.ms": max(15_000, heartbeat),
        }
        return ClusterSpec(self.brokers, max(2, self.group.members), broker_config={**times, **self.broker_config})

    def to_json(self) -> dict[str, Any]:
        """Plain values, as ``scenario.json`` stores them; ``from_json`` gives an equal scenario."""
        plain = {f.name: getattr(self, f.name) for f in fields(self)}
        return {
            **plain,
            "broker_config": dict(self.broker_config),
            "topics": [{**vars(t), "config": dict(t.config)} for t in self.topics],
            "group": {**vars(self.group), "config": dict(self.group.config)},
            "workload": codec.encode(self.workload),
            "schedule": [_entry_to_json(e) for e in self.schedule],
            "promises": [codec.encode(p) for p in self.judged_by()],
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Scenario:
        """The inverse of ``to_json``, and the reader of TOML scenarios. Raises ScenarioError."""
        unknown = sorted(set(data) - {f.name for f in fields(cls)})
        if unknown:
            raise ScenarioError(
                f"a scenario has no part {unknown[0]!r}; it has {', '.join(f.name for f in fields(cls))}"
            )
        parts = dict(data)
        parts["topics"] = tuple(codec.build(Topic, t, "a topic") for t in parts.get("topics", ()))
        parts["group"] = codec.build(Group, parts.get("group", {}), "the group")
        parts["workload"] = codec.decode("workload", parts.get("workload", "poll_loop"))
        parts["schedule"] = tuple(_entry_from_json(e) for e in parts.get("schedule", ()))
        parts["promises"] = tuple(codec.decode("promise", p) for p in parts.get("promises", ()))
        scenario: Scenario = codec.build(cls, parts, "the scenario")
        return scenario


def _entry_to_json(entry: Entry) -> dict[str, Any]:
    data = {k: v for k, v in vars(entry).items() if v is not None}
    data["fault"] = codec.encode(entry.fault)
    if entry.target is not None:
        data["target"] = codec.encode(entry.target)
    if isinstance(entry.heal_after, PastSession):
        data["heal_after"] = {"past_session": entry.heal_after.factor}
    return data


def _entry_from_json(data: Mapping[str, Any]) -> Entry:
    """``at_s`` (or ``at``), or ``every_s`` (or ``every``) with ``until_s``; fault and target by name or as tables."""
    parts = {{"at": "at_s", "every": "every_s"}.get(k, k): v for k, v in data.items()}
    if "fault" not in parts:
        raise ScenarioError(f"a step of the schedule needs a fault: {dict(data)!r}")
    if "every_s" in parts:
        parts.setdefault("at_s", parts["every_s"])
    parts["fault"] = codec.decode("fault", parts["fault"])
    if "target" in parts:
        parts["target"] = _selector(parts["target"])
    heal = parts.get("heal_after")
    if isinstance(heal, Mapping):
        if set(heal) != {"past_session"}:
            raise ScenarioError(f"heal_after is seconds or {{ past_session = 1.5 }}, but {dict(heal)!r} came")
        parts["heal_after"] = schedule.past_session(heal["past_session"])
    entry: Entry = codec.build(Entry, parts, "a step of the schedule")
    return entry


def _selector(data: str | Mapping[str, Any]) -> Any:
    options = {"type": data} if isinstance(data, str) else dict(data)
    name = codec.snake(codec.camel(str(options.pop("type", ""))))
    if name not in targets.__all__:
        raise ScenarioError(f"there is no target {name!r}; known are {', '.join(targets.__all__)}")
    return codec.build(getattr(targets, name), options, f"target {name}")
