"""Programs that commit what they read in transactions of their own producers, some of which they abort."""

from __future__ import annotations

from pathlib import Path

import pytest

from cluster.user_programs import broken, group, performed
from fencepost import Scenario, Topic, at
from fencepost.faults import Bounce
from fencepost.model import Validity, Verdict
from fencepost.targets import one_member
from fencepost.workloads import OwnProgram
from fencepost_member.recording.events import read

pytestmark = pytest.mark.cluster

CONFLUENT = """
import os, signal, sys, threading
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition

stop = threading.Event()
signal.signal(signal.SIGTERM, lambda *_: stop.set())
WHERE = {"bootstrap.servers": "kafka.shop.internal:9092"}
consumer = Consumer({**WHERE, "group.id": "shop", "auto.offset.reset": "earliest", "enable.auto.commit": False})
producer = Producer({**WHERE, "transactional.id": os.urandom(4).hex()})
producer.init_transactions()
consumer.subscribe(["orders"])
count = 0
while not stop.is_set():
    messages = [m for m in consumer.consume(50, 0.2) if m.error() is None]
    if not messages:
        continue
    count += 1
    last, first = {}, {}
    for m in messages:
        first.setdefault(m.partition(), m.offset())
        last[m.partition()] = m.offset() + 1 + AHEAD
    producer.begin_transaction()
    try:
        producer.send_offsets_to_transaction(
            [TopicPartition("orders", p, at) for p, at in last.items()], consumer.consumer_group_metadata()
        )
        if count % 5:
            producer.commit_transaction()
            continue
    except KafkaException as error:
        print("a transaction failed:", error, file=sys.stderr)
    producer.abort_transaction()
    for p, at in first.items():
        consumer.seek(TopicPartition("orders", p, at))
consumer.close()
"""
KAFKA_PYTHON = """
import os, signal, sys
from kafka import KafkaConsumer, KafkaProducer, TopicPartition
from kafka.errors import KafkaError
from kafka.structs import OffsetAndMetadata

signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
WHERE = {"bootstrap_servers": "kafka.shop.internal:9092"}
consumer = KafkaConsumer("orders", group_id="shop", auto_offset_reset="earliest", enable_auto_commit=False, **WHERE)
consumer.partitions_for_topic("orders")  # or it joins once more as it hears of them, and may forget that it did
producer = KafkaProducer(transactional_id=os.urandom(4).hex(), **WHERE)
producer.init_transactions()
count = 0
try:
    while True:
        found = consumer.poll(timeout_ms=200, max_records=50)
        if not found:
            continue
        count += 1
        producer.begin_transaction()
        try:
            here = {tp: OffsetAndMetadata(r[-1].offset + 1 + AHEAD, "", -1) for tp, r in found.items()}
            producer.send_offsets_to_transaction(here, "shop")
            if count % 5:
                producer.commit_transaction()
                continue
        except KafkaError as error:
            print("a transaction failed:", error, file=sys.stderr)
        producer.abort_transaction()
        for tp, records in found.items():
            consumer.seek(tp, records[0].offset)
finally:
    consumer.close()
"""
AIOKAFKA = """
import asyncio, os, signal, sys
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer

WHERE = {"bootstrap_servers": "kafka.shop.internal:9092"}

class Undo(Exception):
    pass

async def main():
    consumer = AIOKafkaConsumer(
        "orders", group_id="shop", auto_offset_reset="earliest", enable_auto_commit=False, **WHERE
    )
    producer = AIOKafkaProducer(transactional_id=os.urandom(4).hex(), **WHERE)
    stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    await producer.start()
    await consumer.start()
    count = 0
    while not stop.is_set():
        found = await consumer.getmany(timeout_ms=200, max_records=50)
        if not found:
            continue
        count += 1
        try:
            async with producer.transaction():
                here = {tp: records[-1].offset + 1 + AHEAD for tp, records in found.items()}
                await producer.send_offsets_to_transaction(here, "shop")
                if not count % 5:
                    raise Undo
        except Undo:
            for tp, records in found.items():
                consumer.seek(tp, records[0].offset)
    await producer.stop()
    await consumer.stop()

asyncio.run(main())
"""
PROGRAMS = {"confluent-kafka": CONFLUENT, "kafka-python": KAFKA_PYTHON, "aiokafka": AIOKAFKA}


# The others send no generation with their offsets (KIP-447): of two members, one that has lost a partition takes the
# group back, which is rightly a commit-regression.
FENCED = ("confluent-kafka",)


def judged(folder: Path, client: str, ahead: int = 0) -> tuple[Path, Verdict]:
    (folder / "program.py").write_text(f"AHEAD = {ahead}\n{PROGRAMS[client]}", encoding="utf-8")
    asked = Scenario(
        f"transactions of a program on {client}",
        [Topic("orders", partitions=4)],
        group(client, members=2 if client in FENCED else 1),
        OwnProgram("commit", rate_hz=200),
        schedule=[] if ahead else [at(4, Bounce(), one_member(), heal_after=1)],
        chaos_s=10,
        drain_s=10 if ahead else 60,
        min_records=500,
    )
    return performed(asked, folder)


@pytest.mark.parametrize("client", PROGRAMS)
def test_a_program_that_commits_in_transactions_is_valid(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, client: str
) -> None:
    monkeypatch.chdir(tmp_path)
    run, verdict = judged(tmp_path, client)
    assert not broken(verdict)
    assert verdict.validity is Validity.VALID, [(c.check, c.validity, c.reason) for c in verdict.checks]
    events = [e for path in (run / "history" / "events").glob("member-*.jsonl") for e in read(path).events]
    ends = {e.get("outcome") for e in events if e["kind"] == "commit" and e["detail"]["mode"] == "transaction"}
    assert {"ok", "fail"} <= ends


@pytest.mark.parametrize("client", PROGRAMS)
def test_one_that_sends_offsets_of_what_it_has_not_got_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, client: str
) -> None:
    monkeypatch.chdir(tmp_path)
    assert broken(judged(tmp_path, client, ahead=5)[1]) & {"commit-ahead", "unseen"}
