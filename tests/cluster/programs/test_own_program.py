"""The history that an instrumented program leaves is what really happened to it, as it tells that itself."""

from __future__ import annotations

import json
import signal
import sys
from pathlib import Path
from typing import Any

import pytest

from cluster.clients.test_group import LONG_S, Run, run  # noqa: F401 (a fixture)
from fencepost import runner
from fencepost.checkers.judge import judge
from fencepost.checkers.spark.detector import find_here
from fencepost.clock import eventually
from fencepost.clusters.attach.backend import Attachment
from fencepost.clusters.managed_cluster import ManagedCluster
from fencepost.evidence import audit
from fencepost.group import running_group as groups
from fencepost.history import LOG_COLUMNS
from fencepost.model import TopicPartition, Validity
from fencepost.model.run_names import RunNames
from fencepost.scenario import scenario
from fencepost.workloads import OwnProgram
from fencepost_member.recording.events import read
from fencepost_member.recording.segments import DELIVERED, PRODUCED

pytestmark = pytest.mark.cluster

SESSION_MS = 6000
PREFIX = "orders-"  # what topics begin with here, as on a cluster of others, and not in the program
# It commits in every way there is, and after its partitions were lost it tries once more what it had in hand. Only
# once: librdkafka 2.16 takes each refusal for one of the member that just joined, and joins again as another one.
PROGRAM = """
import itertools, json, signal, sys, threading
from confluent_kafka import Consumer, KafkaException, TopicPartition

stop, last = threading.Event(), None
signal.signal(signal.SIGTERM, lambda *_: stop.set())
told = open(sys.argv[1], "w", buffering=1)

def tell(what, **more):
    print(json.dumps({"what": what, **more}), file=told)

def places(partitions):
    return sorted([p.partition, p.offset] for p in partitions)

def commit(how, **options):
    try:
        answer = consumer.commit(**options)
    except KafkaException as error:
        tell("commit", how=how, error=error.args[0].name())
        return
    if answer is not None:
        tell("commit", how=how, error="", places=places(answer))

def answered(error, partitions):
    tell("commit", how="async", error=error.name() if error else "", places=places(partitions))

def assigned(consumer, partitions):
    tell("assigned", partitions=[p.partition for p in partitions])

def revoked(consumer, partitions):
    tell("revoked", partitions=[p.partition for p in partitions])

def lost(consumer, partitions):
    global last
    tell("lost", partitions=[p.partition for p in partitions])
    commit("sync", message=last, asynchronous=False)
    last = None

consumer = Consumer({
    "bootstrap.servers": "kafka.shop.internal:9092",
    "group.id": "shop",
    "auto.offset.reset": "earliest",
    "enable.auto.commit": False,
    "partition.assignment.strategy": "cooperative-sticky",
    "on_commit": answered,
})
consumer.subscribe([sys.argv[2]], on_assign=assigned, on_revoke=revoked, on_lost=lost)
ways = itertools.cycle(range(5))
while not stop.is_set():
    for message in consumer.consume(20, 0.1):
        if message.error() is None:
            last = message
            order = json.loads(message.value())
            place = [message.partition(), message.offset()]
            tell("record", place=place, key=order["customer"], seq=order["number"])
    if last is None:
        continue
    way, here = next(ways), TopicPartition(last.topic(), last.partition(), last.offset() + 1)
    if way == 0:
        commit("sync", message=last, asynchronous=False)
    elif way == 1:
        commit("sync", offsets=[here], asynchronous=False)
    elif way == 2:
        commit("async", offsets=[here])
    elif way == 3:
        commit("async")
    else:
        commit("sync", asynchronous=False)
consumer.close()
tell("closed")
"""


@pytest.fixture
def group(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> groups.RunningGroup:  # noqa: F811
    (tmp_path / "program.py").write_text(PROGRAM, encoding="utf-8")
    (tmp_path / "fakes.py").write_text(
        "def order(key, seq): return {'customer': key, 'number': seq}\n", encoding="utf-8"
    )
    monkeypatch.chdir(tmp_path)
    config = {"session.timeout.ms": SESSION_MS, "heartbeat.interval.ms": 500}
    members = []
    for number in range(2):  # each tells in a file of its own
        command = [sys.executable, "program.py", f"told-{number}", run.topic.removeprefix(PREFIX)]
        spec = scenario.Group(command=command, members=2, config=config)
        names = RunNames(run.name, PREFIX)
        workload = OwnProgram(payload="fakes:order", rate_hz=300)
        run.group = groups.make(run.home, run.cluster, spec, workload, names=names, topics=run.topics, seed=1)
        members.append(run.group.members[number])
    run.group.members = tuple(members)
    return run.group


def test_a_program_finds_the_topics_of_a_run_on_a_cluster_of_others(
    cluster: ManagedCluster, tmp_path: Path, shop_database: Path
) -> None:
    command = [sys.executable, "-m", "shop.consumer"]
    asked = scenario.Scenario(
        "a guest's own program",
        [scenario.Topic("orders", partitions=4)],
        scenario.Group(command=command, members=2, config={"session.timeout.ms": SESSION_MS}),
        OwnProgram(processed="commit", payload="shop.fakes:order"),
        min_records=500,
    )
    attached = Attachment.of("attach:" + cluster.bootstrap().split(",")[0])
    folder = runner.run(asked, plan=asked.plan(1), runs=tmp_path, backend=attached)
    verdict = judge(folder, find_here)
    assert {c.check: c.validity for c in verdict.checks}["delivery"] is Validity.VALID
    assert verdict.validity is not Validity.INVALID
    (started, *_) = read(folder / "history" / "events" / "member-0.1.jsonl").events
    assert started["detail"]["config"]["group.id"].startswith(attached.prefix)


def told(folder: Path, member: int, what: str) -> list[dict[str, Any]]:
    lines = [json.loads(line) for line in (folder / f"told-{member}").read_text().splitlines()]
    return [line for line in lines if line["what"] == what]


def test_the_history_of_a_program_is_what_happened_to_it(run: Run, group: groups.RunningGroup, tmp_path: Path) -> None:  # noqa: F811
    zombie = group.members[0]
    group.start()
    run.all_owned_by(0, 1)

    def commits() -> bool:
        return len([c for c in run.events("commit") if c["outcome"] == "ok"]) > 20

    eventually(commits, LONG_S, "both to commit")
    zombie.signal(signal.SIGSTOP)
    run.all_owned_by(1)
    zombie.signal(signal.SIGCONT)
    eventually(lambda: told(tmp_path, 0, "lost"), LONG_S, "the member to be told that it lost its partitions")
    run.all_owned_by(0, 1)
    run.stop_producers()
    run.drained()
    assert group.stop_members(LONG_S) == []

    for number in (0, 1):
        records_are_as_told(run, tmp_path, number)
        callbacks_are_as_told(run, tmp_path, number)
        commits_are_as_told(run, tmp_path, number)
        assert len(told(tmp_path, number, "closed")) == 1
    ended = {e["actor"]: e["detail"]["how"] for e in run.events("ended")}
    assert ended == dict.fromkeys(("member-0.1", "member-1.1", "producer-0"), "closed")
    assert {e["actor"] for e in run.events("closed")} == ended.keys()
    fenced = {
        c["how"] for c in told(tmp_path, 0, "commit") if c["error"] in ("UNKNOWN_MEMBER_ID", "ILLEGAL_GENERATION")
    }
    assert "sync" in fenced  # and the one that was under way, perhaps
    assert run.events("unrecorded") == []
    the_log_names_the_records(run, tmp_path)


def records_are_as_told(run: Run, folder: Path, number: int) -> None:  # noqa: F811
    mine = told(folder, number, "record")
    rows = run.records(DELIVERED, actor=f"member-{number}.1")
    assert [[int(r["tp"]), int(r["offset"]), int(r["key"]), int(r["seq"])] for r in rows] == [
        [*m["place"], m["key"], m["seq"]] for m in mine
    ]
    assert len(mine) > 100
    assert (rows["interval"] >= 0).all()
    assert (rows["done_ns"] > 0).all()  # it polled again after each


def callbacks_are_as_told(run: Run, folder: Path, number: int) -> None:  # noqa: F811
    for kind in ("assigned", "revoked", "lost"):
        events = sorted((e for e in run.events(kind) if e["actor"] == f"member-{number}.1"), key=lambda e: e["id"])
        assert [[p for _, p, _ in e["partitions"]] for e in events] == [
            t["partitions"] for t in told(folder, number, kind)
        ]
        assert all(e["end_ns"] > e["begin_ns"] for e in events)
        assert all(e["generation"] > 0 and e["member_id"] for e in events if kind == "assigned")


def commits_are_as_told(run: Run, folder: Path, number: int) -> None:  # noqa: F811
    events = [e for e in run.events("commit") if e["actor"] == f"member-{number}.1"]
    mine = [t for t in told(folder, number, "commit") if t["error"] != "_NO_OFFSET"]
    for how in ("sync", "async"):
        modes = ("async",) if how == "async" else ("sync", "on-revoke")
        recorded = [
            e for e in events if e["detail"]["mode"] in modes and e["end_ns"] and e["error"] != "LOCAL_NO_OFFSET"
        ]
        recorded.sort(key=lambda e: e["end_ns"])
        asked = [t for t in mine if t["how"] == how]
        assert [e["error"] or "" for e in recorded] == [t["error"] for t in asked]
        for event, one in zip(recorded, asked, strict=True):
            if "places" in one:
                assert sorted([p, o] for _, p, o in event["partitions"]) == [x for x in one["places"] if x[1] >= 0]
            assert event["outcome"] == ("fail" if one["error"] else "ok")
    assert {e["detail"]["mode"] for e in events} <= {"sync", "async", "on-revoke"}


def the_log_names_the_records(run: Run, folder: Path) -> None:  # noqa: F811
    """Who wrote a record of a foreign payload is known from its header, in the audit, too."""
    import pyarrow.parquet as pq

    numbers = {TopicPartition(run.topic, p): tp for p, tp in run.topics[run.topic].items()}
    audit.read(run.cluster.bootstrap(), numbers, folder)
    log = pq.read_table(folder / audit.FILE, columns=list(LOG_COLUMNS)).to_pylist()
    sent = run.records(PRODUCED)
    assert {(r["tp"], r["offset"], r["key"], r["writer"], r["seq"]) for r in log} == {
        tuple(int(r[name]) for name in ("tp", "offset", "key", "writer", "seq")) for r in sent
    }
