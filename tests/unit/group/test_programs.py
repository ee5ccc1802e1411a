"""A program and its scribe as real processes: how they are started, and what is known when either of them ends."""

from __future__ import annotations

import signal
import sys
from pathlib import Path
from typing import Any

import psutil
import pytest

from fencepost.clock import eventually
from fencepost.errors import MemberError, PlanError, ScenarioError
from fencepost.faults import Stall
from fencepost.group import programs
from fencepost.group.incarnation import Incarnation, RunPaths
from fencepost.interfaces.process import Environment, Interpreter
from fencepost.model.clients import LINES, VERIFIABLE, Client, MemberSpec
from fencepost.model.topic import Topic
from fencepost.processes.owner import ProcessOwner
from fencepost.scenario.scenario import Group, Scenario
from fencepost.schedule.entries import at
from fencepost.targets import one_member
from fencepost.workloads import ExclusiveWrites, OwnProgram, PollLoop, Transform
from fencepost_member.recording.events import EventLog, read

WITHIN_S = 20.0
PROGRAM = """
import json, os, signal, subprocess, sys, threading, time
def tell(name, **more):
    print(json.dumps({"name": name, "timestamp": time.time_ns() // 1_000_000, **more}), flush=True)
def stop(*_):
    if "says-so" in sys.argv:
        tell("shutdown_complete")
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    os._exit(143)  # as a JVM does
signal.signal(signal.SIGTERM, stop)
if "child" in sys.argv:
    subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
print("ordinary", os.environ["FENCEPOST_TOPICS"], *sys.argv[1:], flush=True)
tell("startup_complete")
tell("client_error", error="NETWORK_EXCEPTION")
threading.Event().wait()
"""
CONFIG: dict[str, Any] = {
    "member": 0,
    "slot": 0,
    "group": "g",
    "topics": {"orders": {"0": 0}, "bills": {"0": 1}},
    "bootstrap": "127.0.0.1:9092",
    "client": LINES,
    "protocol": "eager",
    "client_config": {"session.timeout.ms": 6000, "allow.auto.create.topics": False},
    "instance_id": None,
    "loop": {},
}


class Case:
    def __init__(self, folder: Path, owner: ProcessOwner, *words: str) -> None:
        (folder / "program.py").write_text(PROGRAM, encoding="utf-8")
        self.folder = folder
        home = RunPaths(owner, EventLog(folder / "history/events/harness.jsonl", "harness"), folder / "history", folder)
        command = (sys.executable, str(folder / "program.py"), "{group}", "{config}", "{instance_id}", *words)
        self.life = Incarnation(home, "member-0.1", "", CONFIG, Interpreter(command=command, lines=True))
        self.life.wait_started()

    def events(self, kind: str) -> list[dict[str, Any]]:
        paths = (self.folder / "history" / "events").glob("*.jsonl")
        return [e for path in paths for e in read(path).events if e["kind"] == kind and e["actor"] == "member-0.1"]


@pytest.fixture
def case(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> Any:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(programs, "READ_ON_S", 0.3)
    with ProcessOwner.open(tmp_path) as owner:
        yield lambda *words: Case(tmp_path, owner, *words)


def scribe_of(case: Case) -> psutil.Process:
    own = psutil.Process().children()
    return next(child for child in own if "fencepost_member.json_lines" in child.cmdline() and child.is_running())


@pytest.mark.parametrize(
    ("words", "number", "how", "code"),
    [
        (("says-so",), signal.SIGTERM, "closed", 143),
        ((), signal.SIGTERM, "killed", 143),
        ((), signal.SIGKILL, "killed", -9),
    ],
)
def test_all_that_a_program_printed_is_recorded(
    case: Any, words: tuple[str, ...], number: int, how: str, code: int
) -> None:
    one = case(*words)
    one.life.signal(number)
    assert one.life.wait_ended(WITHIN_S) == code
    assert [e["detail"]["how"] for e in one.events("ended")] == [how]
    assert [e["error"] for e in one.events("error")] == ["NETWORK_EXCEPTION"]
    assert one.events("unrecorded") == []
    file = next(one.folder.glob("fencepost-*/config/member-0.1.properties"))
    assert f"ordinary bills,orders g {file}" in one.life.log.read_text()
    assert file.read_text().splitlines() == [
        "session.timeout.ms=6000",
        "allow.auto.create.topics=false",
        "bootstrap.servers=127.0.0.1:9092",
        "group.id=g",
        "client.id=member-0.1",
    ]


def test_a_scribe_that_ended_early_is_told(case: Any) -> None:
    one = case()
    scribe_of(one).kill()
    one.life.signal(signal.SIGKILL)
    one.life.wait_ended(WITHIN_S)
    assert [e["detail"]["text"] for e in one.events("unrecorded")] == ["its scribe ended with exit code -9"]


def test_a_child_that_keeps_the_output_holds_nobody_up_and_is_told(case: Any) -> None:
    one = case("child")
    scribe = scribe_of(one)
    one.life.signal(signal.SIGKILL)
    one.life.wait_ended(WITHIN_S)
    assert [e["detail"]["text"] for e in one.events("unrecorded")] == [
        "a child of the program still has its output open"
    ]
    eventually(lambda: scribe.status() == psutil.STATUS_ZOMBIE, WITHIN_S, "the scribe to end")


@pytest.mark.parametrize(
    ("protocol", "more", "reported"),
    [
        (
            "eager",
            {},
            ["--assignment-strategy org.apache.kafka.clients.consumer.RangeAssignor", "--session-timeout 6000"],
        ),
        ("cooperative", {}, ["consumer.CooperativeStickyAssignor"]),
        ("consumer", {}, ["--group-protocol consumer"]),
        ("eager", {"instance_id": "i-1"}, ["--group-instance-id {instance_id}"]),
        ("eager", {"loop": {"commit": "auto-delivered"}}, ["--enable-autocommit"]),
    ],
)
def test_verifiable_consumer_is_told_as_it_wants_it(protocol: str, more: dict[str, Any], reported: list[str]) -> None:
    argv = " ".join(programs._verifiable({**CONFIG, "client": VERIFIABLE, "protocol": protocol, **more}))
    assert all(part in argv for part in reported)
    assert ("--session-timeout" in argv) == (protocol != "consumer")
    assert ("--enable-autocommit" in argv) == ("loop" in more)


def test_verifiable_consumer_has_no_access_by_librdkafkas_names() -> None:
    with pytest.raises(MemberError, match=r"has no setting sasl.username of librdkafka's"):
        programs._verifiable({**CONFIG, "client_config": {"sasl.username": "x"}})


def test_with_the_consumer_protocol_times_are_the_brokers() -> None:
    assert "session.timeout.ms" not in programs._properties({**CONFIG, "actor": "a", "protocol": "consumer"})


def test_a_member_of_the_loop_is_left_as_it_is() -> None:
    ours = Interpreter("python3.9")
    assert programs.interpreter(ours, (), Environment(Client("confluent-kafka"))) is ours
    assert not programs.interpreter(ours, ("x",), Environment(Client("confluent-kafka"))).lines
    assert programs.interpreter(ours, ("x",), Environment(Client(LINES))).lines


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"client": LINES}, "the client json-lines is a program of yours: set the group's command"),
        ({"image": "shop:1"}, "the group's image is for its command: set the command, or leave the image out"),
        ({"client": VERIFIABLE, "image": "shop:1"}, "the group's image is for its command"),
        ({"client": VERIFIABLE, "command": ["x"]}, "is itself a program: leave the group's command out"),
        (
            {"client": "aiokafka==0.13.0", "command": ["x"]},
            "a group with a command must not set python or the client's",
        ),
        ({"client": VERIFIABLE, "python": "3.9"}, "runs on Java: leave the group's python out"),
        ({"client": "verifiable-consumer==3.9.1", "protocol": "consumer"}, "cannot be in a group with protocol"),
        ({"client": VERIFIABLE, "config": {"linger.ms": 3}}, "verifiable-consumer has no setting linger.ms"),
    ],
)
def test_a_group_that_cannot_be_is_refused(options: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ScenarioError, match=sentence):
        Group(**options)


@pytest.mark.parametrize(
    ("workload", "topics", "sentence"),
    [
        (PollLoop(commit="before-processing"), 1, "has a loop of its own: only the commit policies after-processing"),
        (PollLoop(handler_ms=1), 1, "no handler"),
        (PollLoop(slow_partition=0, slow_ms=1), 1, "no handler"),
        (
            PollLoop(deadline_ms=1),
            1,
            "deadline_ms needs a client that can leave the group and subscribe again; verifiable-consumer cannot",
        ),
        (ExclusiveWrites(), 1, "has a loop of its own, which writes to no store"),
        (
            Transform(),
            1,
            "needs a client that can move the position inside an assignment; verifiable-consumer cannot",
        ),
        (PollLoop(), 2, "verifiable-consumer reads one topic, and the scenario has 2"),
        (OwnProgram("told"), 1, "verifiable-consumer does not report when it has processed a record"),
        (OwnProgram(), 1, "own_program needs a group with a command"),
    ],
)
def test_a_workload_that_verifiable_consumer_cannot_do_is_refused(workload: Any, topics: int, sentence: str) -> None:
    group = Group(members=[MemberSpec(1), MemberSpec(1, VERIFIABLE)])
    with pytest.raises(ScenarioError, match=sentence):
        Scenario("x", [Topic(f"t{n}") for n in range(topics)], group, workload)


def test_a_static_member_cannot_relinquish() -> None:
    with pytest.raises(ScenarioError, match="deadline_ms does not work with static members: the group keeps"):
        Scenario("x", [Topic("t")], Group(static=True), PollLoop(deadline_ms=1))
    with pytest.raises(ScenarioError, match="deadline_ms does not work with static members"):
        Scenario("x", [Topic("t")], Group([MemberSpec(2), MemberSpec(1, static=True)]), PollLoop(deadline_ms=1))
    Scenario("x", [Topic("t")], Group(), PollLoop(deadline_ms=1))


def test_faults_that_tell_our_loop_something_are_refused() -> None:
    group = Group(members=[MemberSpec(1), MemberSpec(1, VERIFIABLE)])
    with pytest.raises(PlanError, match="which cannot be reconfigured"):
        Scenario("x", [Topic("t")], group, PollLoop(), [at(1, Stall(), one_member(), heal_after=1)]).plan(1)


@pytest.mark.parametrize(
    ("client", "own", "reported"),
    [
        (VERIFIABLE, {}, ["read_committed"]),
        (VERIFIABLE, {"isolation.level": "read_uncommitted"}, ["read_uncommitted"]),
        (LINES, {}, []),
    ],
)
def test_kafkas_own_client_is_told_what_other_members_read_and_a_program_of_the_users_is_not(
    client: str, own: dict[str, str], reported: list[str]
) -> None:
    lines = programs._properties({**CONFIG, "actor": "member-0.1", "client": client, "client_config": own}).splitlines()
    assert [line.partition("=")[2] for line in lines if line.startswith("isolation.level=")] == reported
