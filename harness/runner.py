"""One run, from a scenario and a seed to a sealed run folder: the only loop that performs things.

Phases: provision, warm-up, chaos, heal, drain, audit, seal. Each is bounded and recorded as an event; everything that
was started is owned by one ``Owner`` and goes away however the run ends. Nothing is judged here.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from fencepost import codec
from fencepost import group as groups
from fencepost.clock import NS, clock_pair, eventually, now_ns
from fencepost.clusters import local
from fencepost.errors import WaitTimeout
from fencepost.evidence import audit, host, metadata, offsets, requests
from fencepost.evidence.seal import seal
from fencepost.evidence.wire import group_partition
from fencepost.history import EventKind
from fencepost.injector import Injector
from fencepost.interfaces import Cluster
from fencepost.model import TopicPartition
from fencepost.processes import Owner
from fencepost.scenario import Scenario
from fencepost.schedule import Plan, check_abilities, plan_to_json
from fencepost.store import RunFolder
from fencepost.versions import versions
from fencepost.world import World
from fencepost_member.events import EventLog

BACKENDS = {"local": (local.start, local.ABILITIES)}
WARM_UP_S = 60.0
DRAIN_S = 60.0
STOP_S = 30.0


@dataclass(frozen=True)
class Progress:
    """The run at one moment, for people who watch. Counts are records.

    ``members`` holds (name, alive, owned partitions); ``faults`` holds (step, fault, target, state, evidence); ``note``
    says what is being waited for, where that may take long.
    """

    phase: str
    elapsed_s: float
    produced: int = 0
    delivered: int = 0
    processed: int = 0
    lag: int = 0
    members: tuple[tuple[str, bool, int], ...] = ()
    faults: tuple[tuple[int, str, str, str, str], ...] = ()
    note: str = ""


Observer = Callable[[Progress], None]


def run(scenario: Scenario, *, seed: int, runs: Path, observe: Observer | None = None, backend: str = "local") -> Path:
    """Perform ``scenario`` with ``seed`` and return the sealed run folder, made under ``runs``.

    Raises:
        PlanError: the plan cannot be performed on this back-end; nothing was started.
        FencepostError: a part did not start or stop as it should; the folder keeps what was recorded.
    """
    plan = scenario.plan(seed)
    start, abilities = BACKENDS[backend]
    check_abilities(plan, abilities, backend)
    folder = RunFolder.create(runs, scenario.name, seed)
    folder.write_json(
        "scenario.json",
        {
            "scenario": scenario.to_json(),
            "seed": seed,
            "backend": backend,
            "group": scenario.group_name(seed),
            "cluster": asdict(scenario.cluster_spec()),
            "versions": versions(),
            "command": shlex.join(["fencepost", "run", str(folder.path / "scenario.json"), "--seed", str(seed)]),
        },
    )
    folder.write_json("plan.json", plan_to_json(plan))
    with Owner.open() as owner:
        _Run(scenario, plan, folder, owner, observe or (lambda progress: None)).perform(start)
    return folder.path


class _Run:
    """The phases of one run, in order. Everything it starts belongs to ``owner``."""

    def __init__(self, scenario: Scenario, plan: Plan, folder: RunFolder, owner: Owner, observe: Observer) -> None:
        self._scenario, self._plan, self._folder, self._owner, self._observe = scenario, plan, folder, owner, observe
        self._events = EventLog(folder.history / "events" / "harness.jsonl", "harness")
        self._began_ns = now_ns()
        self._pairs = [clock_pair()]
        self._phase_name = ""
        self._name = scenario.group_name(plan.seed)
        every = [TopicPartition(t.name, p) for t in scenario.topics for p in range(t.partitions)]
        self._numbers = {tp: number for number, tp in enumerate(every)}
        self._topics = {
            t.name: {p: self._numbers[TopicPartition(t.name, p)] for p in range(t.partitions)} for t in scenario.topics
        }
        self._group: groups.Group | None = None
        self._injector: Injector | None = None

    def perform(self, start: Callable[..., Cluster]) -> None:
        """All phases; what is in effect when one fails is undone, and the history that is there stays."""
        try:
            with ExitStack() as stack:
                self._phases(stack, start)
        finally:
            seal(self._folder.path, self._numbers)

    def _phases(self, stack: ExitStack, start: Callable[..., Cluster]) -> None:
        with self._phase("provision"):
            witness = host.start(self._owner, self._folder.history)
            cluster = start(self._scenario.cluster_spec(), self._owner, self._say)
            stack.callback(cluster.stop)
            stack.callback(cluster.evidence.collect_logs, self._folder.logs)
            cluster.admin.create_topics(self._scenario.topics)
        group = self._group = self._make_group(cluster)
        stack.callback(group.kill)
        world = World(cluster, group, self._topics, self._name)
        injector = self._injector = Injector(self._plan, world, self._events, world.disturbed)
        with self._phase("warm-up"):
            group.start()
            self._until_warm(group)
        with injector.undone_on_exit():
            with self._phase("chaos"):
                self._chaos(group, injector)
            with self._phase("heal"):
                injector.undo_all()
        with self._phase("drain"):
            self._drain(group, cluster)
        with self._phase("audit"):
            self._audit(cluster)
        with self._phase("seal"):
            witness.stop()

    def _make_group(self, cluster: Cluster) -> groups.Group:
        """Members and producers, none started yet."""
        home = groups.Home(self._owner, self._events, self._folder.history, self._folder.logs)
        asked = self._scenario
        return groups.make(
            home, cluster, asked.group, asked.workload, name=self._name, topics=self._topics, seed=self._plan.seed
        )

    def _until_warm(self, group: groups.Group) -> None:
        """Every partition has exactly one owner, every member that can have one has, and records are processed."""
        busy = min(len(group.members), max(map(len, self._topics.values())))

        def warm() -> bool:
            owned = [len(m.owned) for m in group.members if m.owned]
            return sum(owned) == len(self._numbers) and len(owned) >= busy and group.progress().processed > 0

        self._await(warm, WARM_UP_S, "the group to be stable and to consume")

    def _chaos(self, group: groups.Group, injector: Injector) -> None:
        """Until all steps are healed and enough was processed; the ceiling ends it without complaint."""

        def over() -> bool:
            injector.do_what_is_due()
            return injector.finished and group.progress().processed >= self._scenario.min_records

        injector.begin()
        with suppress(WaitTimeout):
            self._await(over, self._scenario.chaos_s, "all steps to be healed")

    def _drain(self, group: groups.Group, cluster: Cluster) -> None:
        """Producers stop; the group gets the time to commit everything that was written, then it ends cleanly.

        A group that does not manage is no error here: the judge finds what it left.
        """
        group.stop_producers(STOP_S)
        ends = {
            TopicPartition(topic, partition): end
            for topic in self._topics
            for partition, end in cluster.admin.end_offsets(topic).items()
        }

        def caught_up() -> bool:
            committed = cluster.admin.committed(self._name)
            return all(committed.get(tp, 0) >= end for tp, end in ends.items())

        with suppress(WaitTimeout):
            self._await(caught_up, DRAIN_S, "the group to commit everything that was written")
        group.stop_members(STOP_S)

    def _audit(self, cluster: Cluster) -> None:
        """What each partition really holds, and what the brokers recorded of the group, side by side."""
        history, pairs = self._folder.history, [*self._pairs, clock_pair()]
        self._folder.write_json("history/clock.json", {"pairs": pairs})
        with ThreadPoolExecutor(max_workers=1) as beside:
            reading = beside.submit(
                audit.read, cluster.bootstrap(), self._numbers, history, cluster.admin.committed(self._name)
            )
            names = metadata.collect(cluster.evidence, pairs, self._topics, history)
            partition = group_partition(self._name, len(cluster.admin.leaders(offsets.TOPIC)))
            offsets.collect(cluster.evidence, partition, pairs, self._name, history, names)
            requests.collect(cluster.evidence, cluster.brokers, pairs, self._name, history, names)
            self._folder.write_json("history/partitions.json", {"partitions": reading.result()})

    @contextmanager
    def _phase(self, name: str) -> Iterator[None]:
        self._phase_name = name
        self._tell()
        event = self._events.begin(EventKind.PHASE, detail={"name": name})
        yield
        self._events.end(event)

    def _await(self, probe: Callable[[], bool], within_s: float, describe: str) -> None:
        """``eventually``, with the world watching."""

        def watched() -> bool:
            self._tell()
            return probe()

        eventually(watched, within_s, describe, state=lambda: str(self._progress()), every_s=0.1)

    def _say(self, note: str) -> None:
        self._observe(replace(self._progress(), note=note))

    def _tell(self) -> None:
        if self._group is not None:
            self._group.refresh()
        self._observe(self._progress())

    def _progress(self) -> Progress:
        elapsed_s, group = (now_ns() - self._began_ns) / NS, self._group
        if group is None:
            return Progress(self._phase_name, elapsed_s)
        records, states = group.progress(), self._injector.states if self._injector else []
        return Progress(
            self._phase_name,
            elapsed_s,
            records.acknowledged,
            records.delivered,
            records.processed,
            max(0, records.acknowledged - records.processed),
            tuple((m.name, m.pid is not None, len(m.owned)) for m in group.members),
            tuple(
                (s.step.step, codec.snake(type(s.step.fault).__name__), s.target, s.state, s.evidence) for s in states
            ),
        )
