"""Performs one run: from a scenario and a plan to a sealed run folder.

Phases: provision, warm-up, chaos, heal, drain, audit, seal. Each has a time limit and is recorded as an event. One
``ProcessOwner`` owns everything that the run starts and stops it however the run ends. Nothing is judged here. Once the
cluster serves, an error ends the phase in which it happens, not the run: the history of such a run is judged, too.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from dataclasses import asdict
from pathlib import Path

from fencepost.clock import NS, clock_pair, now_ns
from fencepost.clusters.backends import Backend, local
from fencepost.clusters.capabilities import network, with_packet_faults
from fencepost.errors import FencepostError, WaitTimeout
from fencepost.evidence import audit, effects, host_monitor, output_topics
from fencepost.evidence.brokers import broker_logs, broker_settings
from fencepost.evidence.brokers.broker_clocks import LeaderClocks
from fencepost.evidence.program_effects import ProgramEffects
from fencepost.evidence.sealing.seal import seal
from fencepost.group import retry_service, store_database
from fencepost.group import running_group as groups
from fencepost.group.coordinator_view import CoordinatorView
from fencepost.history import HARNESS, LACKING, SETTINGS
from fencepost.history.run_folder import RunFolder
from fencepost.interfaces import Cluster
from fencepost.processes.concurrency import run_permit
from fencepost.processes.owner import ProcessOwner
from fencepost.runner import preflight
from fencepost.runner.drain import drain
from fencepost.runner.fault_context import LiveFaultContext
from fencepost.runner.injector import Injector
from fencepost.runner.phases import Observer, Phases, RunProgress
from fencepost.runner.versions import versions
from fencepost.scenario.run_topics import RunTopics
from fencepost.scenario.scenario import Scenario
from fencepost.schedule.plan import Plan, plan_to_json
from fencepost_member.recording.events import EventLog

__all__ = ["Observer", "RunProgress", "run"]

WARM_UP_S = 60.0
WARM_UP_HINT = "Look at the members' logs. Check that the settings of the group and its topics let members join"
NEVER_WORKED = "the group owned all partitions but received no record"
WARM_UP_HINT_OUTSIDE = f"{WARM_UP_HINT}. Members that report nothing are seen only by their commits: do they commit?"


def run(
    scenario: Scenario,
    *,
    plan: Plan,
    runs: Path,
    observe: Observer | None = None,
    backend: Backend | None = None,
) -> Path:
    """Perform ``plan`` with the group, topics and workload of ``scenario``; return the sealed run folder.

    The folder is made below ``runs``.
    ``backend`` provides the cluster; None: a cluster of processes on this machine.

    Waits until this machine permits one more concurrent run (``concurrency``). Once the cluster serves, a group that
    never works or a part that fails raises no error: the history records the phase and the reason.

    Raises:
        ScenarioError, ProvisionError: see ``preflight.check``; only its trials of clients were started.
        FencepostError: the cluster could not be provided; the folder keeps what was recorded.
        WaitTimeout: too many other runs were in progress all the time; nothing was started.
    """
    backend = backend or local()
    report = _to(observe) if observe else logging.getLogger(__name__).warning
    preflight.check([(scenario, plan)], backend, runs, report)
    plan = with_packet_faults(plan, scenario.network, backend.abilities)
    with run_permit(f"{scenario.name}, seed {plan.seed}", report=report):
        folder = _make_folder(scenario, plan, runs, backend)
        with ProcessOwner.open() as owner:
            _Run(scenario, plan, folder, owner, observe or (lambda progress: None), backend).perform()
    return folder.path


def _to(observe: Observer) -> Callable[[str], None]:
    return lambda note: observe(RunProgress("turn", 0.0, note=note))


def _make_folder(scenario: Scenario, plan: Plan, runs: Path, backend: Backend) -> RunFolder:
    """A new run folder with the scenario and the plan: names without the prefix of the run, and no credentials."""
    folder, seed = RunFolder.create(runs, scenario.name, plan.seed), plan.seed
    folder.write_json(
        "scenario.json",
        {
            "scenario": scenario.to_json(),
            "seed": seed,
            "backend": str(backend),
            "backend_why": backend.why,
            "group": scenario.names(seed, backend.prefix).group,
            "cluster": {} if backend.prefix else asdict(scenario.cluster_spec()),
            "network": network(backend.abilities, scenario.network),
            "versions": versions(),
        },
    )
    folder.write_json("plan.json", plan_to_json(plan))
    return folder


class _Run:
    """The phases of one run, in order. Everything it starts belongs to ``owner``."""

    def __init__(
        self,
        scenario: Scenario,
        plan: Plan,
        folder: RunFolder,
        owner: ProcessOwner,
        observe: Observer,
        backend: Backend,
    ) -> None:
        self._scenario, self._plan, self._folder, self._owner, self._backend = scenario, plan, folder, owner, backend
        self._events = EventLog(folder.history / "events" / f"{HARNESS}.jsonl", HARNESS)
        self._phases, self._pairs = Phases(self._events, observe), [clock_pair()]
        self._names = scenario.names(plan.seed, backend.prefix)
        self._topics = RunTopics(scenario, self._names)

    def perform(self) -> None:
        """Perform all phases. If one fails, faults in effect are undone and the history so far is sealed."""
        try:
            with ExitStack() as stack:
                self._all_phases(stack)
        finally:
            seal(self._folder.path, self._topics.numbers)

    def _all_phases(self, stack: ExitStack) -> None:
        with self._phases.phase("provision"):
            witness = host_monitor.start(self._owner, self._folder.history)
            stack.callback(witness.stop)
            stack.enter_context(store_database.of(self._scenario.workload, self._folder.history))
            cluster = self._backend.start(self._scenario, self._plan, self._owner, self._phases.show)
            stack.callback(cluster.stop)
            stack.callback(cluster.evidence.collect_logs, self._folder.logs)
            self._topics.create(cluster.admin, len(cluster.brokers))
            stack.enter_context(retry_service.of(self._scenario.workload, cluster, self._names, self._events))
            self._effects = ProgramEffects(
                self._scenario.workload, cluster, self._owner, self._folder.logs, self._names
            )
        group = self._phases.group = self._make_group(cluster)
        stack.callback(group.kill)
        with self._phases.report_errors():
            self._under_chaos(group, cluster)
        group.kill()
        with self._phases.report_errors(), self._phases.phase("audit"):
            self._audit(cluster)
        with self._phases.report_errors(), self._phases.phase("seal"):
            witness.stop()

    def _under_chaos(self, group: groups.RunningGroup, cluster: Cluster) -> None:
        """The phases in which the group runs."""
        world = LiveFaultContext(cluster, group, self._topics.by_name, self._names)
        injector = Injector(self._plan, world, self._events, world.disturbed, world.signs)
        self._phases.states = injector.states
        with self._phases.phase("warm-up"):
            group.start()
            works = self._until_warm(group, cluster)
        with injector.undone_on_exit():
            with self._phases.phase("chaos"):
                self._chaos(group, injector) if works else injector.skip_all(NEVER_WORKED)
            with self._phases.phase("heal"):
                injector.undo_all()
        with self._phases.phase("drain"):
            self._drain(group, cluster)

    def _make_group(self, cluster: Cluster) -> groups.RunningGroup:
        """The members and producers, not started yet."""
        home = groups.RunPaths(self._owner, self._events, self._folder.history, self._folder.logs)
        return groups.make(
            home,
            cluster,
            self._scenario.group,
            self._scenario.workload,
            names=self._names,
            topics=self._topics.by_name,
            seed=self._plan.seed,
        )

    def _until_warm(self, group: groups.RunningGroup, cluster: Cluster) -> bool:
        """Wait until each partition has one owner, each consumer that can have a partition has one, and records are
        processed; return whether the group works.

        If nothing was delivered in time, the coordinator decides. A group that owns all partitions there and commits
        receives records that no member records: it works. A group whose members poll and that commits nothing does not
        progress: it is judged for that, without faults. Members that only forked processes poll need not own any
        partition, because the next rebalance waits for the owners, which never learn of it.

        Raises:
            MemberError: a process ended before any fault, or another process consumes.
            WaitTimeout: the group did not form, is slow, or has not started to consume.
        """
        most = max(map(len, self._topics.by_name.values()))

        def whole(owned: Sequence[int]) -> bool:
            return sum(owned) == len(self._topics.numbers) and len(owned) >= min(group.consumers, most)

        def warm() -> bool:
            group.must_live()
            return whole(group.shares()) and group.progress().processed > 0

        hint = WARM_UP_HINT_OUTSIDE if group.outside else WARM_UP_HINT
        try:
            self._phases.wait(warm, WARM_UP_S, "the group to be stable and to consume", group.describe, hint)
        except WaitTimeout:
            seen = CoordinatorView(cluster.admin, self._names.group)
            if group.outside or group.progress().delivered:
                raise
            with suppress(FencepostError):  # without an answer no shares are known
                seen.refresh()
            here = whole(seen.shares) or (group.polled_by_forks and seen.members >= group.consumers)
            if not here or not (seen.committed or group.polls_in_vain):
                raise
            self._phases.show(f"nothing was delivered within {WARM_UP_S:g} s: {seen}")
            return seen.committed > 0
        group.must_consume()
        return True

    def _chaos(self, group: groups.RunningGroup, injector: Injector) -> None:
        """Continue until all steps are healed, promises have had their time after that, and ``min_records`` are
        processed, at most ``chaos_s``."""
        finished_ns, after_ns = 0, round(self._scenario.load_after_faults_s * NS)

        def over() -> bool:
            nonlocal finished_ns
            injector.do_what_is_due()
            if injector.finished and group.outside:
                group.outside.refresh()
            if injector.finished and not finished_ns:
                finished_ns = now_ns()
            rested = injector.finished and now_ns() >= finished_ns + after_ns
            return rested and group.progress().processed >= self._scenario.min_records

        injector.begin()
        self._phases.wait_or_give_up(over, self._scenario.chaos_s, "all steps to be healed")

    def _drain(self, group: groups.RunningGroup, cluster: Cluster) -> None:
        """See ``drain``."""
        drain(self._scenario, group, cluster, self._topics, self._names.group, self._phases, self._effects)

    def _audit(self, cluster: Cluster) -> None:
        """Read what each partition holds, and at the same time collect what the brokers recorded of the group."""
        self._topics.number_what_was_added(cluster.admin)
        numbers, history, pairs = self._topics.numbers, self._folder.history, [*self._pairs, clock_pair()]
        effects.of_store(history, self._events)
        readings = cluster.evidence.clocks()
        clocks = LeaderClocks(readings) if readings else None
        for sentence in clocks.sentences(pairs[-1]).values() if clocks else ():
            self._phases.show(sentence)
        output_topics.collect(self._scenario.workload, self._topics, cluster, pairs, self._events, clocks is not None)
        self._folder.write_json("history/clock.json", {"pairs": pairs, **(readings.to_json() if readings else {})})
        coordinator = cluster.admin.coordinator(self._names.group)
        self._folder.write_json(SETTINGS, broker_settings.read(cluster.admin, self._topics.by_name, coordinator))
        with ThreadPoolExecutor(max_workers=1) as executor:
            committed = cluster.admin.committed(self._names.group)
            reading = executor.submit(audit.read, cluster.bootstrap(), numbers, history, committed, cluster.access)
            if missing := broker_logs.collect(cluster, pairs, clocks, self._names.group, self._topics.by_name, history):
                self._folder.write_json(LACKING, missing)
            self._effects.collect(history, entries := reading.result(), self._events)
            self._folder.write_json("history/partitions.json", {"partitions": entries})
