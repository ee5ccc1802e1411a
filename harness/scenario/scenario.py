"""Scenarios: frozen values that describe a run, converted to and from TOML and JSON.

A scenario has topics, a group, a workload, a schedule of faults, and the promises by which the group is judged.
Building one from plain values is strict: an unknown option is an error that lists the known ones.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from fencepost.errors import Complaints, PlanError, ScenarioError
from fencepost.interfaces import ChecksInventory, ClusterSpec, Promise, Workload, WritesOutput
from fencepost.interfaces.process import HasRetryService
from fencepost.model import Inventory, serialization, settings
from fencepost.model.run_names import RunNames
from fencepost.model.settings import CLEANUP, EVIDENCE, FULL, MIN_INSYNC, NETWORKS, ConfigValue
from fencepost.model.topic import Topic
from fencepost.scenario import compaction
from fencepost.scenario.group import Group
from fencepost.schedule.plan import Plan, check_plan
from fencepost.schedule.planning import Entry, Quiet, make_plan
from fencepost.schedule.serialization import entry_from_json, entry_to_json

__all__ = ["Group", "Scenario"]


@dataclass(frozen=True)
class Scenario:
    """The description of a run.

    Attributes:
        promises: the promises by which the group is judged; empty: the workload's promises.
        chaos_s: the longest duration of the chaos phase, which ends earlier when all steps are healed, load has gone on
            for ``after_faults_s``, and ``min_records`` are processed.
        after_faults_s: for how long load goes on after the last fault is healed, at least; a promise may need more.
        drain_s: how long the group may take to commit everything that was written, after all faults are healed.
        brokers, broker_config: number of brokers and their Kafka settings.
        kafka: the version of a new cluster, one of ``settings.KAFKAS``; empty: the default.
        network: how faults that both proxies and the packet filter can cause (a black hole) are caused. ``packets``: by
            the packet filter, and the run is refused where that is not possible; ``best``: by the packet filter where
            possible, else by proxies. Empty: as each fault says.
        evidence: ``full``: a promise is kept only if the cluster shows everything that its brokers record (the cluster
            of another owner does not), else it is unknown. Empty: a promise is judged by what the cluster shows, and
            the verdict lists the kinds of findings that were not judged.
        may_disrupt_brokers: whether brokers of another owner may be paused, killed and started again, if they are
            containers of this machine's engine. Brokers of a run's own cluster always may.
        about: what the scenario shows, as a sentence for the reader of its report.
    """

    name: str
    topics: tuple[Topic, ...]
    group: Group
    workload: Workload
    schedule: tuple[Entry | Quiet, ...] = ()
    promises: tuple[Promise, ...] = ()
    brokers: int = 3
    broker_config: Mapping[str, ConfigValue] = field(default_factory=dict)
    kafka: str = ""
    network: str = ""
    evidence: str = ""
    may_disrupt_brokers: bool = False
    chaos_s: float = 120.0
    after_faults_s: float = 0.0
    drain_s: float = 60.0
    min_records: int = 1000
    about: str = ""

    def __post_init__(self) -> None:
        serialization.validate_fields(self)
        complaints = Complaints()
        complaints.found += map(ScenarioError, self._wrong())
        with complaints.gather(ScenarioError):
            settings.check_kafka(self.kafka, self.group.protocol)
        with complaints.gather(ScenarioError):
            settings.check_topics([topic.name for topic in self.topics])
        complaints.refuse()

    def _wrong(self) -> Iterator[str]:
        if not self.name.strip():
            yield "a scenario needs a name"
        if self.chaos_s <= 0 or self.drain_s <= 0 or self.min_records < 0:
            yield f"scenario {self.name!r} needs chaos_s and drain_s above 0, min_records of 0 or more"
        if self.after_faults_s < 0:
            yield f"found after_faults_s={self.after_faults_s:g}, use 0 or more"
        if self.network not in NETWORKS:
            yield f"found network {self.network!r}, use one of {', '.join(filter(None, NETWORKS))}"
        if self.evidence not in EVIDENCE:
            yield f"found evidence {self.evidence!r}, use {FULL!r} or leave it out"
        for topic in self.topics:
            if topic.replication_factor > self.brokers:
                replicas = topic.replication_factor
                yield f"topic {topic.name!r} has {replicas} replicas, but there are only {self.brokers} brokers"
        if sum(serialization.name_of(promise) == "recovers" for promise in self.promises) > 1:
            yield "found two promises Recovers: give all bounds to one"
        if not self.topics:
            yield f"scenario {self.name!r} needs at least one topic"
            return
        if isinstance(self.workload, ChecksInventory) and (
            problem := self.workload.inventory_problem(self.inventory())
        ):
            yield f"the workload: {problem}"
        for name in sorted({topic.name for topic in self.topics} & {topic.name for topic in self.outputs()}):
            yield f"the workload: it cannot write to the topic {name!r}, because the group reads it; use another name"

    def outputs(self) -> tuple[Topic, ...]:
        """The other topics that the workload's members write: the one for their outputs and the one that lists retried
        records, if there are any. They have as many partitions and replicas as the largest topic that the group reads.
        They are never compacted, whatever the cluster's default, because checks look for missing records there."""
        partitions = max(topic.partitions for topic in self.topics)
        replicas = max(topic.replication_factor for topic in self.topics)
        into = self.workload.into if isinstance(self.workload, WritesOutput) else ""
        retried = self.workload.retried if isinstance(self.workload, HasRetryService) else ""
        return tuple(Topic(name, partitions, replicas, {CLEANUP: "delete"}) for name in (into, retried) if name)

    def inventory(self) -> Inventory:
        """The objects that steps of the schedule and the workload may name."""
        partitions = {topic.name: topic.partitions for topic in self.topics}
        group = self.group
        kind = (group.spare, group.statics, group.protocol, group.clients, group.runs_programs, self.kafka)
        return Inventory(group.size, self.brokers, partitions, self._spare_brokers(), *kind)

    def _spare_brokers(self) -> int:
        """The least number of replicas beyond ``min.insync.replicas``, over all topics and the group's commits."""
        least = self.broker_config.get(MIN_INSYNC, 2)
        replicas = [(topic.replication_factor, topic.config.get(MIN_INSYNC, least)) for topic in self.topics]
        return min(
            settings.spare_replicas(count, insync) for count, insync in (*replicas, (min(3, self.brokers), least))
        )

    def judged_by(self) -> tuple[Promise, ...]:
        """The promises of the scenario, or else of its workload."""
        return self.promises or tuple(self.workload.promises())

    def group_name(self, seed: int) -> str:
        """``group.id``: the group's own name, or one made from the scenario's name and the seed."""
        return self.group.name or f"{re.sub('[^A-Za-z0-9]+', '-', self.name).strip('-') or 'group'}-{seed}"

    def names(self, seed: int, prefix: str = "") -> RunNames:
        """The names of the group and the topics in a cluster, for a run with this seed."""
        return RunNames(prefix + self.group_name(seed), prefix)

    def plan(self, seed: int) -> Plan:
        """The schedule with every random choice made from ``seed``. Raises PlanError if it cannot be performed."""
        return self.checked(self.drawn(seed))

    def drawn(self, seed: int) -> Plan:
        """The same, not checked yet. Raises PlanError if an entry has no times."""
        return make_plan(self.schedule, seed, self.group.gives_up_after_s(), self.inventory())

    @property
    def load_after_faults_s(self) -> float:
        """For how many seconds the load has to go on after the last fault, for the scenario and its promises."""
        return max((self.after_faults_s, *(float(getattr(p, "after_faults_s", 0)) for p in self.judged_by())))

    def checked(self, plan: Plan) -> Plan:
        """``plan``, if it can be performed with this group, on these topics and in this time.

        Raises:
            PlanError: it cannot; lists everything that is wrong.
        """
        complaints, longest_s = Complaints(), self.chaos_s + self.drain_s
        with complaints.gather(PlanError):
            check_plan(plan, self.inventory(), self.group.gives_up_after_s(), self.chaos_s)
        over_s = max((step.end_s for step in plan.steps), default=0.0)
        if (load_s := self.load_after_faults_s) and over_s <= self.chaos_s < over_s + load_s:
            whose = "the scenario needs" if load_s == self.after_faults_s else "the promises need"
            complaints.found.append(
                PlanError(
                    f"{whose} {load_s:g} s of load after the last fault, which is over at {over_s:g} s, but the chaos "
                    f"phase ends after chaos_s = {self.chaos_s:g}: make chaos_s longer"
                )
            )
        with complaints.gather(PlanError):
            compaction.check(self.topics, self.broker_config, plan.steps, longest_s, program=self.group.runs_programs)
        complaints.refuse()
        return plan

    def cluster_spec(self) -> ClusterSpec:
        """The cluster that this scenario needs. Slots and group protocol settings are computed from the group."""
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
        slots = max(2, self.group.size + self.group.spare)
        config = {**times, **compaction.with_cleaner(self.topics, self.broker_config)}
        return ClusterSpec(self.brokers, slots, broker_config=config, kafka=self.kafka, members=self.group.environments)

    def to_json(self) -> dict[str, Any]:
        """Plain values, as ``scenario.json`` stores them; ``from_json`` returns an equal scenario."""
        plain = {f.name: getattr(self, f.name) for f in fields(self)}
        return {
            **plain,
            "broker_config": dict(self.broker_config),
            "topics": [{**vars(t), "config": dict(t.config)} for t in self.topics],
            "group": self.group.to_json(),
            "workload": serialization.encode(self.workload),
            "schedule": [entry_to_json(e) for e in self.schedule],
            "promises": [serialization.encode(p) for p in self.judged_by()],
        }

    @classmethod
    def from_json(cls, data: Any) -> Scenario:
        """The inverse of ``to_json``; also reads parsed TOML.

        Raises:
            ScenarioError: lists everything that is wrong.
        """
        parts, complaints = dict(serialization.check_type(data, Mapping[str, Any], "a scenario")), Complaints()
        lists: dict[str, Callable[[Any], Any]] = {
            "topics": lambda topic: serialization.from_mapping(Topic, topic, "a topic"),
            "schedule": entry_from_json,
            "promises": lambda promise: serialization.decode("promise", promise),
        }
        with complaints.gather(ScenarioError):
            serialization.check_options(cls, parts, "the scenario", read={*lists, "group", "workload"})
        for name, read in lists.items():
            with complaints.gather(ScenarioError):
                items = serialization.check_type(parts.get(name, ()), tuple[Any, ...], f"the scenario: {name}")
                parts[name] = complaints.each(read, items, ScenarioError)
        with complaints.gather(ScenarioError):
            parts["group"] = Group.from_json(parts.get("group", {}))
        with complaints.gather(ScenarioError):
            parts["workload"] = serialization.decode("workload", parts.get("workload", "poll_loop"))
        complaints.refuse()
        scenario: Scenario = serialization.from_mapping(cls, parts, "the scenario")
        return scenario
