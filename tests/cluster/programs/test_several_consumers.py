"""A program with several consumers, as it tells itself what each was given, and one whose worker dies."""

from __future__ import annotations

import json
import os
import re
import signal
import sys
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest

from cluster.clients.test_group import LONG_S, PARTITIONS, SESSION_MS, Run, run  # noqa: F401 (a fixture)
from fencepost.clock import eventually
from fencepost.group import running_group as groups
from fencepost.model.run_names import RunNames
from fencepost.scenario import scenario
from fencepost.workloads import OwnProgram
from fencepost_member.recording.segments import DELIVERED

pytestmark = pytest.mark.cluster

HEAD = """
import json, signal, sys, threading
stop, told, one = threading.Event(), open("told", "w", buffering=1), threading.Lock()
signal.signal(signal.SIGTERM, lambda *_: stop.set())

def tell(who, record):
    with one:
        print(json.dumps([who, *record]), file=told)
"""
THREADS = """
def work(most):
    while not stop.is_set():
        live(most)

threads = [threading.Thread(target=work, args=(most,)) for most in (1 << 60, 100)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
"""
CONFLUENT = """
from confluent_kafka import Consumer, KafkaException

def live(most):
    consumer, count = Consumer({"group.id": "shop", "auto.offset.reset": "earliest", "enable.auto.commit": False}), 0
    consumer.subscribe([sys.argv[1]])
    while count < most and not stop.is_set():
        messages = [m for m in consumer.consume(20, 0.1) if m.error() is None]
        for m in messages:
            tell(consumer.memberid()[:-37], (m.partition(), m.offset()))  # its client.id, and a UUID
        count += len(messages)
        try:
            messages and consumer.commit(asynchronous=False)
        except KafkaException as error:
            print("commit failed:", error, file=sys.stderr)
    consumer.close()
"""
KAFKA_PYTHON = """
from kafka import KafkaConsumer
from kafka.errors import KafkaError

def live(most):
    consumer = KafkaConsumer(group_id="shop", auto_offset_reset="earliest", enable_auto_commit=False)
    consumer.subscribe([sys.argv[1]])
    consumer.partitions_for_topic(sys.argv[1])  # or it joins once more as it hears of them, and may forget that it did
    count = 0
    while count < most and not stop.is_set():
        records = [record for part in consumer.poll(timeout_ms=100, max_records=20).values() for record in part]
        for r in records:
            tell(consumer.config["client_id"], (r.partition, r.offset))
        count += len(records)
        try:
            records and consumer.commit()
        except KafkaError as error:
            print("commit failed:", error, file=sys.stderr)
    consumer.close()
"""
AIOKAFKA = """
import asyncio
from aiokafka import AIOKafkaConsumer
from aiokafka.errors import KafkaError

async def live(most):
    consumer = AIOKafkaConsumer(sys.argv[1], group_id="shop", auto_offset_reset="earliest", enable_auto_commit=False)
    count = 0
    await consumer.start()
    while count < most and not stop.is_set():
        found = await consumer.getmany(timeout_ms=100, max_records=20)
        records = [record for part in found.values() for record in part]
        for r in records:
            tell(consumer._client._client_id, (r.partition, r.offset))
        count += len(records)
        try:
            records and await consumer.commit()
        except KafkaError as error:
            print("commit failed:", error, file=sys.stderr)
    await consumer.stop()

async def work(most):
    while not stop.is_set():
        await live(most)

async def main():
    await asyncio.gather(*map(work, (1 << 60, 100)))

asyncio.run(main())
"""
PROGRAMS = {
    "confluent-kafka": HEAD + CONFLUENT + THREADS,
    "kafka-python": HEAD + KAFKA_PYTHON + THREADS,
    "aiokafka": HEAD + AIOKAFKA,
}


def started(run: Run, client: str, command: list[str]) -> groups.RunningGroup:  # noqa: F811
    config = {"session.timeout.ms": SESSION_MS, "heartbeat.interval.ms": 500}
    spec = scenario.Group(command=command, members=1, client=client, protocol="eager", config=config)
    workload = OwnProgram(payload="shop.fakes:order", rate_hz=300)
    run.group = groups.make(run.home, run.cluster, spec, workload, names=RunNames(run.name), topics=run.topics, seed=1)
    run.group.start()
    return run.group


def ends(run: Run) -> dict[str, Any]:  # noqa: F811
    assert run.events("unrecorded") == []
    return {e["actor"]: e["detail"]["how"] for e in run.events("ended") if e["actor"].startswith("member-")}


def shared_by_two(run: Run) -> bool:  # noqa: F811
    run.group.refresh()
    shares = run.group.shares()
    return len(shares) == 2 and sum(shares) == PARTITIONS


@pytest.mark.parametrize("client", PROGRAMS)
def test_each_consumer_of_a_process_has_its_own_history(
    run: Run,  # noqa: F811
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    client: str,
) -> None:
    (tmp_path / "program.py").write_text(PROGRAMS[client], encoding="utf-8")
    (tmp_path / "shop").symlink_to(Path(__file__).parents[2] / "examples" / "apps" / "shop")
    monkeypatch.chdir(tmp_path)
    group = started(run, client, [sys.executable, "program.py", run.topic])

    def names() -> set[str]:
        return {event["actor"] for event in run.events("started") if event["actor"].startswith("member-")}

    eventually(lambda: shared_by_two(run), LONG_S, "two consumers to share all partitions", state=group.describe)
    eventually(lambda: len(names()) > 3, LONG_S, "one of them to be made again and again", state=group.describe)
    run.stop_producers()
    run.drained()
    assert group.stop_members(LONG_S) == []
    given = defaultdict(list)
    for who, *record in map(json.loads, (tmp_path / "told").read_text().splitlines()):
        given[who].append(record)
    assert given.keys() <= names()  # the last one may have been given nothing
    for who in names():
        assert run.records(DELIVERED, actor=who)[["tp", "offset"]].tolist() == [(p, at) for p, at in given[who]]
    assert {re.fullmatch(r"member-0(b?)\.1(-\d+)?", who)[1] for who in names()} == {"", "b"}  # type: ignore[index]
    assert ends(run) == dict.fromkeys(names(), "closed")
    assert {e["actor"] for e in run.events("closed")} - {"producer-0"} == names()


def test_a_worker_that_dies_has_ended_and_who_is_forked_in_its_place_is_its_next_life(
    run: Run,  # noqa: F811
    shop_database: Path,
) -> None:
    group = started(run, "kafka-python", [sys.executable, "-m", "dispatch.workers", "--topic", run.topic])
    eventually(lambda: shared_by_two(run), LONG_S, "two workers to share all partitions", state=group.describe)
    assert sorted(re.findall(r"(\S+) owns orders-", group.describe())) == ["member-0.1", "member-0b.1"]
    pids = {e["actor"]: e["detail"]["pid"] for e in run.events("started") if e["actor"].startswith("member-")}
    assert group.members[0].pid not in pids.values()
    os.kill(pids["member-0b.1"], signal.SIGKILL)
    eventually(
        lambda: shared_by_two(run) and "member-0b.1-2" in group.members[0].consumers,
        LONG_S,
        "another worker to take part in its place",
        state=group.describe,
    )
    run.stop_producers()
    run.drained()
    assert group.stop_members(LONG_S) == []
    assert ends(run) == {"member-0.1": "closed", "member-0b.1": "crashed", "member-0b.1-2": "closed"}
