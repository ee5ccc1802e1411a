"""What a program never takes out of a poll is not processed, whatever it commits: lists of three clients."""

from __future__ import annotations

from pathlib import Path

import pytest

from cluster.plans import topic
from cluster.user_programs import broken, group, judged, performed
from fencepost import Scenario
from fencepost.model import Validity
from fencepost.workloads import OwnProgram

pytestmark = pytest.mark.cluster
# Each stops at the record with a seq that 50 divides: the right one goes on with it, the other leaves the rest of the
# list, and commits past it like the right one.
CONFLUENT = """
import signal
from confluent_kafka import Consumer, KafkaException, TopicPartition

going = [True]
signal.signal(signal.SIGTERM, lambda *_: going.clear())
consumer = Consumer({"bootstrap.servers": "kafka.shop.internal:9092", "group.id": "shop",
                     "auto.offset.reset": "earliest", "enable.auto.commit": False})
consumer.subscribe(["orders"])
while going:
    found = [*consumer.consume(100, 0.2)] if TAKES_ALL else consumer.consume(100, 0.2)
    for message in found:
        if message.error() is None and message.offset() % 50 == 7 and not TAKES_ALL:
            break
    try:
        if found:
            consumer.commit(asynchronous=False)
    except KafkaException as error:
        print("commit failed:", error, flush=True)
consumer.close()
"""
KAFKA_PYTHON = """
import signal
from kafka import KafkaConsumer
from kafka.errors import KafkaError

going = [True]
signal.signal(signal.SIGTERM, lambda *_: going.clear())
consumer = KafkaConsumer("orders", bootstrap_servers="kafka.shop.internal:9092", group_id="shop",
                         auto_offset_reset="earliest", enable_auto_commit=False)
while going:
    found = consumer.poll(200)
    for records in found.values():
        for record in records:
            if record.offset % 50 == 7 and not TAKES_ALL:
                break
    try:
        if found:
            consumer.commit()
    except KafkaError as error:
        print("commit failed:", error, flush=True)
consumer.close()
"""
AIOKAFKA = """
import asyncio, signal
from aiokafka import AIOKafkaConsumer
from aiokafka.errors import KafkaError

async def main():
    stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    consumer = AIOKafkaConsumer("orders", bootstrap_servers="kafka.shop.internal:9092", group_id="shop",
                                auto_offset_reset="earliest", enable_auto_commit=False)
    await consumer.start()
    while not stop.is_set():
        found = await consumer.getmany(timeout_ms=200)
        for records in found.values():
            for record in records:
                if record.offset % 50 == 7 and not TAKES_ALL:
                    break
        try:
            if found:
                await consumer.commit()
        except KafkaError as error:
            print("commit failed:", error, flush=True)
    await consumer.stop()

asyncio.run(main())
"""


@pytest.mark.parametrize("takes_all", [True, False], ids=["right", "leaves the rest of a list"])
@pytest.mark.parametrize(
    ("client", "program"),
    [("confluent-kafka", CONFLUENT), ("kafka-python", KAFKA_PYTHON), ("aiokafka", AIOKAFKA)],
    ids=["confluent-kafka", "kafka-python", "aiokafka"],
)
def test_a_record_that_is_left_in_a_list_and_committed_is_lost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, client: str, program: str, takes_all: bool
) -> None:
    (tmp_path / "program.py").write_text(f"TAKES_ALL = {takes_all}\n{program}", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    asked = Scenario(
        f"a program that leaves records, {client}, {takes_all}",
        [topic("orders", 4)],
        group(client),
        OwnProgram("next-poll", rate_hz=300, burst_every_s=0.5),
        brokers=1,
        min_records=1000,
        drain_s=15,
    )
    run, verdict = performed(asked, tmp_path)
    if takes_all:
        assert verdict.validity is Validity.VALID, [(c.check, c.validity, c.reason) for c in verdict.checks]
    else:
        assert "unseen" in broken(verdict)
    by_commit = judged(run, "commit")
    assert by_commit.validity is Validity.VALID, "all records were committed, whatever the program took"
    assert by_commit.measures["records_processed"] >= verdict.measures["records_processed"]
