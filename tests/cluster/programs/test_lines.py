"""Members that tell what they do as JSON lines: Kafka's VerifiableConsumer, and a program of ours, right and wrong."""

from __future__ import annotations

import re
import sys
from dataclasses import replace
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from cluster.user_programs import broken, performed
from fencepost import Group, Scenario, Topic, at, past_session
from fencepost.checkers import Progress
from fencepost.faults import Bounce, MoveCoordinator, Pause
from fencepost.history import EventKind
from fencepost.model import Validity, Verdict
from fencepost.model.clients import MemberSpec
from fencepost.model.settings import PROTOCOLS
from fencepost.targets import member
from fencepost.workloads import OwnProgram, PollLoop
from fencepost_member.recording.events import read

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(400)]

SESSION = {"session.timeout.ms": 6000}
SCENARIO = Scenario(
    "lines",
    [Topic("orders", partitions=6)],
    Group(members=3, client="verifiable-consumer", protocol="eager", config=SESSION),
    PollLoop(rate_hz=300),
    schedule=[
        at(2, MoveCoordinator()),
        at(4, Pause(), member(1), heal_after=past_session(1.5), expect="fenced"),
        at(18, Bounce(), member(0), heal_after=1),
    ],
    min_records=500,
)
# A consumer as one would write it in any language: the client's own callbacks, and a line for what happens.
PROGRAM = """
import json, signal, sys, threading, time
from confluent_kafka import Consumer, KafkaException, TopicPartition

bootstrap, group, topic, client_id, bug = sys.argv[1:]
stop = threading.Event()
signal.signal(signal.SIGTERM, lambda *_: stop.set())

def tell(name, **more):
    print(json.dumps({"timestamp": time.time_ns() // 1_000_000, "name": name, **more}), flush=True)

def places(partitions):
    return [{"topic": p.topic, "partition": p.partition} for p in partitions]

def callback(name):
    def called(consumer, partitions):
        tell(name, partitions=places(partitions))
        for p in partitions:
            done.pop((p.topic, p.partition), None)
    return called

settings = {"bootstrap.servers": bootstrap, "group.id": group, "client.id": client_id, "enable.auto.commit": False,
            "auto.offset.reset": "earliest", "session.timeout.ms": 6000, "heartbeat.interval.ms": 500,
            "partition.assignment.strategy": "cooperative-sticky"}
done = {}
consumer = Consumer(settings)
tell("startup_complete", client="confluent-kafka", protocol="cooperative", config=settings)
print("an ordinary line of its log")
names = {"on_assign": "assigned", "on_revoke": "revoked", "on_lost": "lost"}
consumer.subscribe([topic], **{on: callback("partitions_" + name) for on, name in names.items()})
count = 0
while not stop.is_set():
    tell("poll_started")
    messages = [m for m in consumer.consume(100, 0.1) if m.error() is None]
    for m in messages:
        where = {"topic": m.topic(), "partition": m.partition(), "offset": m.offset()}
        tell("record_data", key=m.key().decode(), value=m.value().decode(), **where)
    for m in messages:
        count += 1
        if bug == "skips" and count % 50 == 0:
            continue
        tell("record_processed", topic=m.topic(), partition=m.partition(), offset=m.offset())
        if bug == "forgets" and count == 300:
            tell("record_procesed", topic=m.topic())
    for m in messages:
        done[m.topic(), m.partition()] = m.offset() + 1
    if done:
        offsets = [TopicPartition(t, p, offset) for (t, p), offset in done.items()]
        told = [{"topic": p.topic, "partition": p.partition, "offset": p.offset} for p in offsets]
        tell("commit_started", offsets=told)
        try:
            answers = consumer.commit(offsets=offsets, asynchronous=False)
            error = next((p.error.name() for p in answers if p.error), None)
        except KafkaException as failed:
            error = failed.args[0].name()
        tell("offsets_committed", offsets=told, success=error is None, error=error)
        if error is None:
            done.clear()
    if bug in ("pauses", "keeps") and messages and count >= 100:
        paused = [TopicPartition(messages[-1].topic(), messages[-1].partition())]
        consumer.pause(paused)
        tell("partitions_paused", partitions=places(paused))
        if bug == "pauses":
            stop.wait(0.2)
            consumer.resume(paused)
            tell("partitions_resumed", partitions=places(paused))
        bug, count = bug if bug == "pauses" else "", 0
consumer.close()
tell("shutdown_complete")
"""
COMMAND = [sys.executable, "program.py", "{bootstrap}", "{group}", "{topics}", "{client_id}"]


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "program.py").write_text(PROGRAM, encoding="utf-8")
    monkeypatch.chdir(tmp_path)


def reasons(verdict: Verdict) -> str:
    return "; ".join(f"{c.check}: {c.reason} {broken(verdict)}" for c in verdict.checks if c.validity != "valid")


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_verifiable_consumers_keep_their_promises(tmp_path: Path, protocol: str) -> None:
    run, verdict = performed(replace(SCENARIO, group=replace(SCENARIO.group, protocol=protocol)), tmp_path)
    assert verdict.validity is Validity.VALID, reasons(verdict)
    ended = {e["actor"]: e["detail"] for e in read(run / "history/events/harness.jsonl").events if e["kind"] == "ended"}
    assert {ended[f"member-{i}.1"]["how"] for i in range(3)} == {"closed"}  # by a signal, and in order
    (started, *_) = read(run / "history/events/member-0.1.jsonl").events
    assert (started["kind"], started["detail"]["client"]) == ("started", "verifiable-consumer")


def test_one_group_of_all_clients_keeps_its_promises(tmp_path: Path) -> None:
    # A member by kafka-python 3.0.12 that forgets a join goes on from where it was before, and is rightly accused.
    names = ("confluent-kafka", "kafka-python==2.2.9", "aiokafka", "verifiable-consumer")
    group = replace(SCENARIO.group, members=[MemberSpec(1, name) for name in names], client="confluent-kafka")
    _, verdict = performed(replace(SCENARIO, group=group), tmp_path)
    assert verdict.validity is Validity.VALID, reasons(verdict)


@pytest.mark.parametrize(
    ("bug", "validity", "kinds"),
    [
        ("none", Validity.VALID, set()),
        ("skips", Validity.INVALID, {"commit-ahead"}),
        ("forgets", Validity.UNKNOWN, set()),
    ],
)
def test_a_program_in_any_language_is_judged_by_what_it_tells(
    tmp_path: Path, bug: str, validity: Validity, kinds: set[str]
) -> None:
    group = Group(command=[*COMMAND, bug], client="json-lines", members=3, config=SESSION)
    run, verdict = performed(replace(SCENARIO, group=group, workload=OwnProgram("told", rate_hz=300)), tmp_path)
    assert verdict.validity is validity, reasons(verdict)
    assert kinds <= broken(verdict)
    assert bool(kinds) == bool(broken(verdict)), reasons(verdict)
    assert "an ordinary line of its log" in (run / "logs" / "member-0.1.log").read_text()
    if validity is Validity.UNKNOWN:
        why = 'line [0-9]+ of its output cannot be believed: name is "record_procesed"'
        (said,) = {c.reason for c in verdict.checks if c.check == "history"}
        assert re.search(rf"member-\d\.\d.*{why}", said), said


@pytest.mark.parametrize("bug", ["pauses", "keeps"])
def test_a_program_that_never_resumes_what_it_paused_is_named(tmp_path: Path, bug: str) -> None:
    asked = Scenario(
        f"told {bug}",
        [Topic("orders", partitions=2)],
        Group(command=[*COMMAND, bug], client="json-lines", members=1, config=SESSION),
        OwnProgram("told", rate_hz=300),
        promises=[Progress(within_s=5)],
        min_records=100,
        drain_s=15,
    )
    run, verdict = performed(asked, tmp_path)
    paused = [e for e in pq.read_table(run / "history" / "events.parquet").to_pylist() if e["kind"] == EventKind.PAUSED]
    if bug == "pauses":
        assert len(paused) > 1
        assert all(event["end_ns"] > event["begin_ns"] for event in paused[:-1])  # the last one may meet the end
        assert verdict.validity is Validity.VALID, reasons(verdict)
        return
    assert len(paused) == 1
    assert broken(verdict) == {"stuck-partition", "unconsumed"}
    [stuck] = [f for check in verdict.checks for f in check.findings if f.kind == "stuck-partition"]
    assert "owned it and had itself paused it" in stuck.examples[0]["sentence"]
