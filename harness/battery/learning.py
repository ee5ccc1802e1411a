"""Learns a program by starting it: what it subscribes to, with which client and settings, and how fast it is."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import psutil

from fencepost.battery.program import Program
from fencepost.battery.request import BatteryRequest
from fencepost.battery.scenario import build
from fencepost.battery.speed import Speed
from fencepost.clock import NS, eventually, now_ns
from fencepost.clusters.backends import Backend
from fencepost.errors import MemberError, WaitTimeout
from fencepost.group import programs
from fencepost.group import running_group as groups
from fencepost.group.member_handle import MemberHandle
from fencepost.interfaces import Cluster
from fencepost.processes.concurrency import run_permit
from fencepost.processes.owner import ProcessOwner
from fencepost.runner import preflight
from fencepost.scenario.run_topics import RunTopics
from fencepost.scenario.scenario import Group
from fencepost_member.recording.events import EventLog

Show = Callable[[str], None]
SUBSCRIBED_S = 30.0
OTHERS_S = 1.0  # further consumers of a program subscribe within this time
WORKS_S = 60.0
MEASURED_S = 4.0
OFFERED_HZ = 3000.0
UNKNOWN = Program("confluent-kafka", "", "eager", ("learning",))
NO_PAYLOAD = (
    "The records are meaningless bytes: give a function that makes the values that the program expects, or a file of "
    "sample messages, with --payload"
)
WHAT_THEN = (
    "Does the program need a service that is not there (a database, a registry), a file, or an environment variable? "
    "Start it by hand in this folder, and compare"
)


def learn(request: BatteryRequest, backend: Backend, folder: Path, show: Show) -> tuple[Program, Speed]:
    """Start one member of the program on a cluster of its own: once to see what it is, and once to measure it.

    Args:
        folder: gets the logs and events of both.

    Raises:
        MemberError: the program did not subscribe, ended, or processed nothing; has its last lines.
        ScenarioError, ProvisionError, ClusterError, WaitTimeout: there is no cluster.
    """
    asked = build(request, request.program() or UNKNOWN, "learning")
    preflight.check([(asked, asked.drawn(0))], backend, folder, show)
    with run_permit("learning a program", report=show), ExitStack() as stack:
        owner = stack.enter_context(ProcessOwner.open())
        cluster = backend.start(asked, asked.drawn(0), owner, show)
        stack.callback(cluster.stop)
        show(f"starting {' '.join(request.command)}")
        program = request.program() or _look(request, cluster, _home(owner, folder / "first-start"))
        show(f"it reads {', '.join(program.topics)} with {program.client} {program.version}")
        speed = _measure(request, program, cluster, backend.prefix, _home(owner, folder / "calibration"), show)
    return program, speed


def _home(owner: ProcessOwner, folder: Path) -> groups.RunPaths:
    history, logs = folder / "history", folder / "logs"
    for part in (history / "events", history / "segments", logs):
        part.mkdir(parents=True, exist_ok=True)
    return groups.RunPaths(owner, EventLog(history / "events" / "harness.jsonl", "harness"), history, logs)


def _look(request: BatteryRequest, cluster: Cluster, home: groups.RunPaths) -> Program:
    config: dict[str, Any] = {
        "group": "fencepost-learning",
        "topics": {},
        "protocol": "eager",
        "client_config": dict(cluster.access),
        "bootstrap": cluster.bootstrap(0),
        "client": "confluent-kafka",
        "loop": {"processed": request.processed},
        "learning": True,
    }
    asked = Group(command=request.command, image=request.image)
    interpreter = programs.interpreter(cluster.interpreter(0), request.command, asked.environments[0])
    member = MemberHandle(home, 0, 0, config, interpreter)
    member.launch()
    assert member.life is not None
    life = member.life
    try:

        def subscribed() -> bool:
            life.live.refresh()
            if life.live.started is None and life.exit_code is not None:
                raise MemberError(
                    f"the program ended with exit code {life.exit_code} before it subscribed to any topic; "
                    f"{life.log_end()}\n{WHAT_THEN}"
                )
            return life.live.started is not None

        try:
            eventually(subscribed, SUBSCRIBED_S, "the program to subscribe to its topics")
        except WaitTimeout as late:
            raise MemberError(
                f"the program runs, but did not subscribe to any topic within {SUBSCRIBED_S:g} s; {life.log_end()}\n"
                f"{programs.NO_START} {WHAT_THEN}"
            ) from late
        seen_ns = now_ns()
        eventually(lambda: now_ns() > seen_ns + OTHERS_S * NS, 2 * OTHERS_S, "other consumers of the program")
        started = life.live.started
        assert started is not None
        events = member.reported("subscribed")
    finally:
        member.signal(9)
        member.wait_ended(10)
    return request.learned(started, [event["detail"] for event in events])


def _measure(
    request: BatteryRequest, program: Program, cluster: Cluster, prefix: str, home: groups.RunPaths, show: Show
) -> Speed:
    asked = build(request, program, "calibration", rate_hz=OFFERED_HZ, members=1)
    names = asked.names(0, prefix)
    topics = RunTopics(asked, names)
    topics.create(cluster.admin, len(cluster.brokers))
    group = groups.make(home, cluster, asked.group, asked.workload, names=names, topics=topics.by_name, seed=0)
    try:
        group.start()

        hint = WHAT_THEN if request.payload else NO_PAYLOAD

        def works() -> bool:
            group.refresh()
            try:
                group.must_live()
            except MemberError as error:
                raise MemberError(f"the program does not process records: {error}\n{hint}") from error
            return _progress(group).processed > 0

        eventually(works, WORKS_S, "the program to process a record", state=group.describe, hint=hint)
        began, began_ns, busy_s = _progress(group), now_ns(), _cpu_s(group.members[0].pid)
        eventually(lambda: now_ns() > began_ns + MEASURED_S * NS, 2 * MEASURED_S, "the speed to be measured")
        ended, lasted_s = _progress(group), (now_ns() - began_ns) / NS
        busy = (_cpu_s(group.members[0].pid) - busy_s) / lasted_s
    finally:
        group.kill()
    speed = Speed(
        (ended.processed - began.processed) / lasted_s, busy, (ended.acknowledged - began.acknowledged) / lasted_s
    )
    show(f"one member processed {speed.per_s:,.0f} records a second")
    return speed


def _progress(group: groups.RunningGroup) -> groups.RecordCounts:
    if group.outside:
        group.outside.refresh()
    return group.progress()


def _cpu_s(pid: int | None) -> float:
    """The CPU seconds of a process and its children; 0 if it is gone."""
    try:
        every = [psutil.Process(pid), *psutil.Process(pid).children(recursive=True)]
        return float(sum(sum(one.cpu_times()[:2]) for one in every))
    except psutil.Error:
        return 0.0
