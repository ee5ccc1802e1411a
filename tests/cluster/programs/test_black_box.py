"""Members that tell nothing: Kafka's console consumer, and a program of ours, right and wrong, judged from outside."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import pytest

from cluster.plans import topic
from cluster.user_programs import broken, performed
from fencepost import Group, Scenario, Topic, at, past_session
from fencepost.checkers import Delivery, Outside, Rebalances
from fencepost.clusters.kafka import provision
from fencepost.clusters.kafka.jvm import KafkaJvm
from fencepost.faults import Bounce, Kill, MoveCoordinator, Pause
from fencepost.model import Validity, Verdict
from fencepost.model.settings import PROTOCOLS
from fencepost.targets import member
from fencepost.workloads import OwnProgram
from fencepost_member.recording.events import read

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(400)]

SESSION = {"session.timeout.ms": 6000}
# A consumer as one would write it in any language: it knows nothing of who starts it, and prints nothing.
PROGRAM = """
import os, signal, sys, threading
from confluent_kafka import Consumer, KafkaException, TopicPartition

bootstrap, group, topic, protocol, bug, name = sys.argv[1:]
stop = threading.Event()
signal.signal(signal.SIGTERM, lambda *_: stop.set())
settings = {"bootstrap.servers": bootstrap, "group.id": group, "enable.auto.commit": False,
            "auto.offset.reset": "earliest"}
strategies = {"eager": "range", "cooperative": "cooperative-sticky"}
if protocol == "consumer":
    settings["group.protocol"] = "consumer"
else:
    settings.update({"session.timeout.ms": 6000, "heartbeat.interval.ms": 500,
                     "partition.assignment.strategy": strategies[protocol]})
if name:
    settings["group.instance.id"] = name
if bug == "changes":  # when it is started anew, it no longer has what the others agreed on
    settings["partition.assignment.strategy"] = "roundrobin" if os.path.exists(name) else "range,roundrobin"
    open(name, "w").close()
consumer, count, done, forgotten = Consumer(settings), 0, {}, False  # done: and not committed yet

def assigned(consumer, partitions):
    if forgotten:
        consumer.pause(partitions)

def given_up(consumer, partitions):
    for p in partitions if bug != "remembers" else ():  # it goes on to commit what it gave up long ago
        done.pop((p.topic, p.partition), None)

consumer.subscribe([topic], on_assign=assigned, on_revoke=given_up, on_lost=given_up)
while not stop.is_set():
    for message in consumer.consume(100, 0.1):
        if message.error() is None:
            done[message.topic(), message.partition()] = message.offset() + 1
            count += 1
    if bug == "forgets" and not forgotten and count > 300:
        forgotten = True
        consumer.pause(consumer.assignment())
    if bug == "dies" and count > 500 and not os.path.exists("dead"):
        open("dead", "x").close()
        os._exit(1)
    if done:
        try:
            consumer.commit(offsets=[TopicPartition(*tp, offset) for tp, offset in done.items()], asynchronous=False)
            if bug != "remembers":
                done.clear()
        except KafkaException:
            pass
consumer.close()
"""
COMMAND = [sys.executable, "program.py", "{bootstrap}", "{group}", "{topics}"]
SCENARIO = Scenario(
    "black boxes",
    [Topic("orders", partitions=6)],
    Group(command=["true"], client="black-box", members=3, config=SESSION),
    OwnProgram("unknown", rate_hz=300),
    schedule=[
        at(2, MoveCoordinator()),
        at(4, Pause(), member(1), heal_after=past_session(1.5), expect="fenced"),
        at(18, Kill(), member(0), heal_after=1),
    ],
    min_records=500,
)
# The group rests for 5 s before a static member goes, and after it is back.
STATIC = replace(
    SCENARIO,
    group=replace(SCENARIO.group, static=True),
    schedule=[at(8, Bounce(), member(1), heal_after=1)],
    promises=[Outside(), Rebalances(static=True)],
    min_records=5_500,
)
AWAY = replace(SCENARIO, schedule=[at(2, Pause(), member(0), heal_after=past_session(1.5))], min_records=9_000)
CALM = replace(
    SCENARIO,
    topics=[topic("orders", 6)],
    brokers=1,
    schedule=[],
    promises=[Outside(within_s=6)],
    min_records=3_000,
    drain_s=12,
)
FROZEN = replace(CALM, schedule=[at(4, Pause(), member(1), heal_after=14)], min_records=6_000, chaos_s=30)


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "program.py").write_text(PROGRAM, encoding="utf-8")
    monkeypatch.chdir(tmp_path)


def of(scenario: Scenario, bug: str = "none", protocol: str = "cooperative") -> Scenario:
    command = [*COMMAND, protocol, bug, "{instance_id}"]
    return replace(scenario, group=replace(scenario.group, command=command, protocol=protocol))


def reasons(verdict: Verdict) -> str:
    return "; ".join(f"{c.check}: {c.reason} {broken(verdict)}" for c in verdict.checks if c.validity != "valid")


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_right_program_is_valid_for_what_brokers_see(tmp_path: Path, protocol: str) -> None:
    run, verdict = performed(of(SCENARIO, protocol=protocol), tmp_path)
    assert verdict.validity is Validity.VALID, reasons(verdict)
    assert {"unseen", "commit-ahead", "stuck-member", "assignment-overlap"} <= verdict.unjudged.keys()
    assert verdict.measures["commits"] > 50
    fenced = next(fault for fault in verdict.faults if fault["expect"] == "fenced")
    assert fenced["reached"]
    ended = {e["actor"]: e["detail"] for e in read(run / "history/events/harness.jsonl").events if e["kind"] == "ended"}
    assert ended["member-0.1"]["how"] == "killed"
    assert {ended[f"member-{i}"]["how"] for i in ("0.2", "1.1", "2.1")} == {"closed"}


@pytest.mark.parametrize("protocol", ["cooperative", "consumer"])
def test_beside_a_frozen_one_the_others_go_on(tmp_path: Path, protocol: str) -> None:
    _, verdict = performed(of(FROZEN, protocol=protocol), tmp_path)
    assert verdict.validity is Validity.VALID, reasons(verdict)


@pytest.mark.core
def test_what_only_members_could_tell_is_unknown(tmp_path: Path) -> None:
    promises = [Outside(), Rebalances(), Delivery("at-least-once")]
    _, verdict = performed(replace(of(CALM), promises=promises), tmp_path)
    checks = {check.check: check for check in verdict.checks}
    assert {name: check.validity for name, check in checks.items()} == {
        "faults": Validity.VALID,
        "history": Validity.VALID,
        "outside": Validity.VALID,
        "rebalances": Validity.VALID,
        "delivery": Validity.UNKNOWN,
    }
    assert "a black box does not report which records" in checks["delivery"].reason
    assert "unseen" in checks["delivery"].reason
    assert not broken(verdict)


@pytest.mark.parametrize(
    ("scenario", "bug", "kinds", "may_follow"),
    [
        (AWAY, "remembers", {"commit-regression", "zombie-commit"}, {"unconsumed"}),
        (FROZEN, "forgets", {"collateral-stall", "stuck-partition", "unconsumed"}, set()),
        pytest.param(
            *(CALM, "dies", {"dead-member"}, {"stuck-partition", "orphaned-partition", "unconsumed"}),
            marks=pytest.mark.core,
        ),
    ],
)
def test_a_wrong_program_is_found_from_outside(
    tmp_path: Path, scenario: Scenario, bug: str, kinds: set[str], may_follow: set[str]
) -> None:
    _, verdict = performed(of(scenario, bug), tmp_path)
    assert verdict.validity is Validity.INVALID, reasons(verdict)
    assert kinds <= broken(verdict) <= kinds | may_follow, reasons(verdict)


@pytest.mark.parametrize("bug", ["none", "changes"])
def test_a_static_program_comes_back_without_a_rebalance(tmp_path: Path, bug: str) -> None:
    _, verdict = performed(of(STATIC, bug, "eager"), tmp_path)
    kinds = {"rebalance-on-static-bounce"} if bug == "changes" else set()
    assert verdict.validity is (Validity.INVALID if kinds else Validity.VALID), reasons(verdict)
    assert broken(verdict) == kinds, reasons(verdict)


def test_the_console_consumer_of_kafka_is_a_black_box(tmp_path: Path) -> None:
    jvm = KafkaJvm(provision.java().path, tuple(provision.kafka(lambda said: None)))
    words = ["--bootstrap-server", "{bootstrap}", "--group", "{group}", "--topic", "{topics}", "--from-beginning"]
    words += ["--consumer.config", "{config}"]
    command = jvm.command("org.apache.kafka.tools.consumer.ConsoleConsumer", *words, heap="128M")
    group = replace(SCENARIO.group, command=tuple(map(str, command)), protocol="eager")
    run, verdict = performed(replace(SCENARIO, group=group), tmp_path)
    assert verdict.validity is Validity.VALID, reasons(verdict)
    assert "Processed a total of" in (run / "logs" / "member-0.2.log").read_text()
