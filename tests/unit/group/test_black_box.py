"""Members that tell nothing: how they are asked for, what is refused, and what is known of their processes."""

from __future__ import annotations

import re
import signal
import socket
import subprocess
import sys
import xml.etree.ElementTree as ET
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import report_runs as runs
from rich.console import Console

from fencepost import Group, Scenario, Topic, at, when
from fencepost.checkers import Outside
from fencepost.cli.listing import Kind, rows
from fencepost.clock import eventually
from fencepost.console.progress_display import members
from fencepost.errors import MemberError, PlanError, ScenarioError
from fencepost.faults import ChangeSubscription, DuplicateInstance, Kill, Pause, RemoveMember, ScaleOut, Stall
from fencepost.group import running_group as groups
from fencepost.group.coordinator_view import CoordinatorView as View
from fencepost.group.coordinator_view import connected
from fencepost.group.incarnation import Incarnation, RunPaths
from fencepost.group.member_handle import MemberHandle
from fencepost.group.programs import interpreter
from fencepost.history import EventKind
from fencepost.interfaces.group_description import GroupDescription, GroupMember
from fencepost.interfaces.group_snapshot import GroupSnapshot, MemberStatus
from fencepost.interfaces.process import Environment, Interpreter
from fencepost.model import TopicPartition
from fencepost.model.clients import BLACK_BOX, LINES, Client
from fencepost.processes.owner import ProcessOwner
from fencepost.reports import html, junit, text, verdict_summary
from fencepost.runner.phases import RunProgress
from fencepost.schedule.entries import until
from fencepost.schedule.protocol_states import commit_in_flight, fenced, joining, lasting
from fencepost.targets import idle, member, one_member, owner_of
from fencepost.workloads import OwnProgram, PollLoop
from fencepost_member.recording.events import EventLog, read

WITHIN_S = 20.0
GROUP = Group(command=["./consumer", "{bootstrap}"], client=BLACK_BOX, members=3, spare=1, static=True)
SCENARIO = Scenario("silent", [Topic("orders")], GROUP, OwnProgram("unknown"))
PROGRAM = """
import os, signal, sys, threading
if sys.argv[1] == "ends":
    sys.exit(3)
codes = {"cleanly": 0, "as-a-jvm": 143, "badly": 1}
if sys.argv[1] in codes:
    signal.signal(signal.SIGTERM, lambda *_: os._exit(codes[sys.argv[1]]))
if sys.argv[1] == "stubborn":
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
print("ready", os.environ["FENCEPOST_GROUP"], os.environ["FENCEPOST_BOOTSTRAP"], sys.argv[2], flush=True)
threading.Event().wait()
"""
CONFIG: dict[str, Any] = {
    "member": 0,
    "slot": 0,
    "group": "g",
    "topics": {"orders": {"0": 0}},
    "bootstrap": "127.0.0.1:9092",
    "client": BLACK_BOX,
    "protocol": "eager",
    "client_config": {},
    "instance_id": None,
    "loop": {},
}


# What is asked.


def test_it_promises_what_brokers_see() -> None:
    assert SCENARIO.judged_by() == (Outside(within_s=30),)
    assert Scenario.from_json(SCENARIO.to_json()) == replace(SCENARIO, promises=SCENARIO.judged_by())
    (described,) = [about for name, about in rows(Kind.CLIENTS) if name == BLACK_BOX]
    assert "reports nothing; brokers' records are judged" in described


@pytest.mark.parametrize(
    ("options", "workload", "sentence"),
    [
        (
            {"command": []},
            OwnProgram("unknown"),
            "the client black-box is a program of yours: set the group's command",
        ),
        ({}, OwnProgram(), "black boxes, which do not report what they do: use processed='unknown'"),
        ({}, OwnProgram("told"), "do not report what they do: use processed='unknown'"),
        ({}, PollLoop(), "use the workload own_program"),
        ({"client": LINES}, OwnProgram("unknown"), "processed='unknown' needs the client black-box"),
        ({"client": "black-box==1.0"}, OwnProgram("unknown"), "must not set python or the client's release"),
    ],
)
def test_what_cannot_be_is_refused(options: dict[str, Any], workload: Any, sentence: str) -> None:
    with pytest.raises(ScenarioError, match=re.escape(sentence)):
        replace(SCENARIO, group=replace(GROUP, **options), workload=workload)


@pytest.mark.parametrize(
    "entry",
    [
        at(1, Pause(), owner_of("orders-0"), heal_after=1),
        at(1, RemoveMember(), one_member()),
        at(1, ScaleOut(), idle(1)),
        at(1, DuplicateInstance(), member(0), heal_after=1),
        when(commit_in_flight(), Pause(), heal_after=1),
        at(1, Pause(), one_member(), heal_after=until(fenced())),
    ],
    ids=lambda entry: type(entry.fault).__name__,
)
def test_what_needs_members_that_tell_is_refused(entry: Any) -> None:
    with pytest.raises(PlanError, match="the members are black boxes, which do not report what they do"):
        replace(SCENARIO, schedule=[entry]).plan(1)


@pytest.mark.parametrize("fault", [Stall(), ChangeSubscription()])
def test_what_tells_our_loop_to_do_otherwise_is_refused(fault: Any) -> None:
    with pytest.raises(PlanError, match="cannot be reconfigured"):
        replace(SCENARIO, schedule=[at(1, fault, one_member(), heal_after=1)]).plan(1)


def test_faults_of_processes_and_states_of_the_coordinator_are_not_refused() -> None:
    entries = [at(1, Pause(), one_member(), heal_after=1), at(5, Kill(), member(0), heal_after=1)]
    entries.append(when(joining(), Kill(), member(1), heal_after=1))
    assert len(replace(SCENARIO, schedule=entries).plan(1).steps) == 3


# What is known of it.


@pytest.fixture
def start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str], Incarnation]]:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "program.py").write_text(PROGRAM, encoding="utf-8")
    with ProcessOwner.open(tmp_path) as owner:
        home = RunPaths(
            owner, EventLog(tmp_path / "history/events/harness.jsonl", "harness"), tmp_path / "history", tmp_path
        )

        def begin(way: str) -> Incarnation:
            command = (sys.executable, "program.py", way, "{client_id}")
            found = interpreter(Interpreter(), command, Environment(Client(BLACK_BOX)))
            return Incarnation(home, "member-0.1", "", CONFIG, found)

        yield begin


def ended(folder: Path) -> dict[str, Any]:
    (event,) = (e for e in read(folder / "history/events/harness.jsonl").events if e["kind"] == EventKind.ENDED)
    return dict(event["detail"])


@pytest.mark.parametrize(
    ("way", "numbers", "how"),
    [
        ("cleanly", [signal.SIGTERM], "closed"),
        ("as-a-jvm", [signal.SIGTERM], "closed"),
        ("badly", [signal.SIGTERM], "closed"),
        ("by default", [signal.SIGTERM], "closed"),
        ("cleanly", [signal.SIGKILL], "killed"),
        ("stubborn", [signal.SIGTERM, signal.SIGKILL], "killed"),
        ("ends", [], "crashed"),
    ],
)
def test_of_a_process_it_is_known_how_it_ended(
    tmp_path: Path, start: Callable[[str], Incarnation], way: str, numbers: list[int], how: str
) -> None:
    life = start(way)
    if numbers:
        life.wait_started()
        ready = "ready g 127.0.0.1:9092 member-0.1"
        eventually(lambda: ready in life.log.read_text(), WITHIN_S, "the program to be ready")
    for number in numbers:
        life.signal(number)
    life.wait_ended(WITHIN_S)
    detail = ended(tmp_path)
    assert detail["how"] == how
    assert ("asked_ns" in detail) is (signal.SIGTERM in numbers)
    assert not (tmp_path / "history/events/member-0.1.jsonl").exists()


def test_who_ended_at_its_start_is_told(start: Callable[[str], Incarnation]) -> None:
    life = start("ends")
    life.wait_ended(WITHIN_S)
    with pytest.raises(MemberError, match="ended with exit code 3 at its start"):
        life.wait_started()


def test_a_connection_of_a_child_is_none_of_its_parents() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        connect = f"import socket, sys; s = socket.create_connection(('127.0.0.1', {port})); sys.stdin.read()"
        parent = ["sh", "-c", f'"{sys.executable}" -c "{connect}"; true']
        for argv, itself in (([sys.executable, "-c", connect], True), (parent, False)):
            process = subprocess.Popen(argv, stdin=subprocess.PIPE)
            server.settimeout(WITHIN_S)
            peer, _ = server.accept()
            bootstrap = f"broker:1,127.0.0.1:{port}"
            assert connected(process.pid, bootstrap) is itself
            assert not connected(process.pid, "broker:1")
            peer.close()
            process.communicate(b"")
            assert not connected(process.pid, bootstrap)


def test_a_parent_whose_child_consumes_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "program.py").write_text(PROGRAM, encoding="utf-8")
    with ProcessOwner.open(tmp_path) as owner:
        home = RunPaths(owner, EventLog(tmp_path / "events.jsonl", "harness"), tmp_path / "history", tmp_path)
        runs_on = Interpreter(command=(sys.executable, "program.py", "cleanly", ""), silent=True)
        one = MemberHandle(home, 0, 0, CONFIG, runs_on)
        groups.RunningGroup(home, [one], []).must_consume()  # of others it is known by what they tell
        silent = groups.RunningGroup(home, [one], [], outside=View(Admin(), "g"))  # type: ignore[arg-type]
        silent.must_consume()  # nobody was started yet
        one.start()
        with pytest.raises(MemberError, match=r"member-0.1: process \d+ has no connection to any broker, so a child"):
            silent.must_consume()
        silent.kill()


class Admin:
    """What a coordinator would say."""

    def describe(self, group: str) -> GroupDescription:
        tps = [TopicPartition("orders", n) for n in range(3)]
        has = {"a": frozenset(tps[:2]), "b": frozenset(tps[2:]), "c": frozenset()}
        return GroupDescription(
            "classic", "range", {m: GroupMember("classic", None, owned) for m, owned in has.items()}
        )

    def committed(self, group: str) -> dict[TopicPartition, int]:
        return {TopicPartition("orders", 0): 40, TopicPartition("orders", 1): 2}


def test_the_group_is_known_by_its_coordinator() -> None:
    view = View(Admin(), "g")  # type: ignore[arg-type]
    assert (view.shares, view.committed) == ([], 0)
    assert "none of the partitions" in str(view)
    view.refresh()
    assert (view.shares, view.committed) == ([1, 2], 42)
    assert str(view) == "for the coordinator members own 1, 2 of the partitions, and 42 records are committed"


def test_nobody_can_tell_of_states_of_members() -> None:
    one = MemberStatus(0, "member-0.1", True)
    states = {silent: lasting(GroupSnapshot((one,), None, silent)) for silent in (True, False)}
    assert states[True]["commit_in_flight"] is None
    assert states[False]["commit_in_flight"] is False


def test_who_watches_is_not_told_of_what_nobody_knows() -> None:
    reported = RunProgress(
        "chaos", 1.0, members=(("member-0", True, -1), ("member-1", False, -1), ("member-2", True, 3))
    )
    assert members(reported) == "member-0 runs, member-1 is down, member-2 owns 3"


def test_the_report_lists_what_nobody_could_see(tmp_path: Path) -> None:
    why = "a black box does not report when it polls"
    reported = replace(runs.verdict("silent", runs.checks("valid")), unjudged={"stuck-member": why, "unseen": why})
    run = runs.write_run(tmp_path / "run", reported, runs.group_history())
    with (tmp_path / "terminal").open("w") as file:
        Console(width=2000, file=file).print(text.summary(run))
    assert f"not judged, because {why}: stuck-member, unseen" in (tmp_path / "terminal").read_text()
    page = html.render(run).read_text(encoding="utf-8")
    judged = page.partition('<section id="judged">')[2].partition("</section>")[0]
    assert "Kinds of findings that were not judged" in judged
    assert f"<dt>{why}</dt><dd>stuck-member, unseen</dd>" in judged
    assert verdict_summary.unjudged(reported) == [(why, ["stuck-member", "unseen"])]
    assert "Not judged: stuck-member, unseen." in page
    properties = {one.get("name"): one.get("value") for one in ET.parse(junit.render(run)).iter("property")}
    assert properties["not judged"] == f"stuck-member, unseen: {why}"
