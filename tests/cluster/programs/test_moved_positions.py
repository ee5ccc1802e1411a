"""Programs that move their positions: back to what failed, to try it again, which is permitted; past what fails, which
loses it; and where it is not the program that moves them."""

from __future__ import annotations

from pathlib import Path

import pytest

from cluster.plans import topic
from cluster.user_programs import broken, group, performed
from fencepost import Scenario, at
from fencepost.checkers import Order
from fencepost.checkers.promises.delivery import SOUGHT
from fencepost.faults import Kill
from fencepost.model import Finding, Severity, Validity, Verdict
from fencepost.targets import one_member
from fencepost.workloads import OwnProgram

pytestmark = pytest.mark.cluster

CONFLUENT = """
import signal, threading
from confluent_kafka import Consumer, KafkaException, TopicPartition

stop, failed = threading.Event(), set()
signal.signal(signal.SIGTERM, lambda *_: stop.set())
consumer = Consumer({
    "bootstrap.servers": "kafka.shop.internal:9092", "group.id": "shop", "auto.offset.reset": "earliest",
    "enable.auto.commit": False,
})
consumer.subscribe(["orders"])
while not stop.is_set():
    moves, done = {}, {}
    for m in consumer.consume(20, 0.2):
        if m.error() or m.partition() in moves:
            continue
        if m.offset() % 40 == 7 and (m.partition(), m.offset()) not in failed:
            failed.add((m.partition(), m.offset()))
            end = consumer.get_watermark_offsets(TopicPartition("orders", m.partition()), timeout=5)[1]
            moves[m.partition()] = m.offset() + (SKIPS if m.offset() + SKIPS < end else 0)
        else:
            done[m.partition()] = m.offset() + 1
    for partition, offset in moves.items():
        consumer.seek(TopicPartition("orders", partition, offset))
    try:
        if done:
            consumer.commit(offsets=[TopicPartition("orders", p, o) for p, o in done.items()], asynchronous=False)
    except KafkaException as error:
        print("commit failed:", error, flush=True)
consumer.close()
"""
KAFKA_PYTHON = """
import signal, threading
from kafka import KafkaConsumer
from kafka.errors import KafkaError

stop, failed = threading.Event(), set()
signal.signal(signal.SIGTERM, lambda *_: stop.set())
consumer = KafkaConsumer(
    "orders", bootstrap_servers="kafka.shop.internal:9092", group_id="shop", auto_offset_reset="earliest",
    enable_auto_commit=False,
)
seek = consumer._subscription.seek if ITSELF else consumer.seek  # or as if the client did it
while not stop.is_set():
    for tp, records in consumer.poll(200, 20).items():
        for record in records:
            if record.offset % 40 == 7 and (record.partition, record.offset) not in failed:
                failed.add((record.partition, record.offset))
                seek(tp, record.offset)
                break
    try:
        consumer.commit()
    except KafkaError as error:
        print("commit failed:", error, flush=True)
consumer.close()
"""
FASTSTREAM = """
import asyncio
from faststream import AckPolicy, FastStream
from faststream.LIBRARY import KafkaBroker, KafkaMessage

failed = set()
broker = KafkaBroker("kafka.shop.internal:9092")

@broker.subscriber(
    "orders", group_id="shop", ack_policy=AckPolicy.NACK_ON_ERROR, auto_offset_reset="earliest", **SETTINGS
)
async def handle(body: dict, message: KafkaMessage) -> None:
    number = body["number"]
    if number % 40 == 7 and number not in failed:
        failed.add(number)
        raise ValueError(number)

asyncio.run(FastStream(broker).run())
"""
TIMES = "SETTINGS = {'session_timeout_ms': 6000, 'heartbeat_interval_ms': 1000}\n"
RIGHT = {
    "confluent-kafka": ("confluent-kafka", "SKIPS = 0\n" + CONFLUENT),
    "FastStream on aiokafka": ("aiokafka", TIMES + FASTSTREAM.replace("LIBRARY", "kafka")),
    "kafka-python": ("kafka-python", "ITSELF = False\n" + KAFKA_PYTHON),
}
# librdkafka keeps what it has stored when the program moves its position, and FastStream commits that for the next
# record of another partition.
AHEAD = "SETTINGS = {}\n" + FASTSTREAM.replace("LIBRARY", "confluent")


def judged(folder: Path, client: str, text: str) -> Verdict:
    (folder / "program.py").write_text(text, encoding="utf-8")
    (folder / "fakes.py").write_text("def order(key, seq): return {'customer': key, 'number': seq}\n", encoding="utf-8")
    workload = OwnProgram(payload="fakes:order", rate_hz=150)
    asked = Scenario(
        "a program that moves its position",
        [topic("orders", 4)],
        group(client),
        workload,
        schedule=[at(2, Kill(), one_member(), heal_after=1)],
        promises=[*workload.promises(), Order(by="key")],
        min_records=700,
        brokers=1,
    )
    return performed(asked, folder)[1]


def found(verdict: Verdict, kind: str) -> list[Finding]:
    return [finding for check in verdict.checks for finding in check.findings if finding.kind == kind]


@pytest.mark.parametrize("program", RIGHT)
def test_a_program_tries_again_what_failed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, program: str) -> None:
    monkeypatch.chdir(tmp_path)
    verdict = judged(tmp_path, *RIGHT[program])
    assert verdict.validity is Validity.VALID, [(c.check, c.validity, c.reason) for c in verdict.checks]
    again = found(verdict, "rewind")
    assert {finding.severity for finding in again} == {Severity.PERMITTED}
    assert {(e["cause"], e["excuse"]) for finding in again for e in finding.examples} == {("seek", SOUGHT)}


def test_what_failed_is_committed_before_it_is_tried_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    verdict = judged(tmp_path, "confluent-kafka", AHEAD)
    assert {"commit-ahead"} <= broken(verdict) <= {"commit-ahead", "unseen"}
    assert {finding.severity for finding in found(verdict, "rewind")} == {Severity.PERMITTED}


def test_what_a_program_goes_past_is_lost_by_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    verdict = judged(tmp_path, "confluent-kafka", "SKIPS = 30\n" + CONFLUENT)
    assert broken(verdict) == {"unseen", "commit-ahead"}
    assert {e["cause"] for finding in found(verdict, "unseen") for e in finding.examples} == {"seek"}


def test_a_return_that_the_program_did_not_ask_for_breaks_the_promise(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    verdict = judged(tmp_path, "kafka-python", "ITSELF = True\n" + KAFKA_PYTHON)
    assert "rewind" in broken(verdict)
    assert not any(e.get("cause") for finding in found(verdict, "rewind") for e in finding.examples)
