"""Programs that leave commits to their client, as every client does by default: kept where the client commits what a
program is done with, and named where it commits what the program has in hand."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from cluster.plans import topic
from cluster.user_programs import broken, group, performed
from fencepost import Scenario, at, past_session
from fencepost.faults import Bounce, Kill, Pause
from fencepost.model import Severity, Validity, Verdict
from fencepost.targets import member, one_member
from fencepost.workloads import OwnProgram
from fencepost_member.recording.events import read

pytestmark = pytest.mark.cluster

CONFLUENT = """
import json, signal, threading
from confluent_kafka import Consumer

stop = threading.Event()
signal.signal(signal.SIGTERM, lambda *_: stop.set())
consumer = Consumer({
    "bootstrap.servers": "kafka.shop.internal:9092", "group.id": "shop", "auto.offset.reset": "earliest",
    "auto.commit.interval.ms": 100, **SETTINGS,
})
consumer.subscribe(["orders"])
while not stop.is_set():
    message = consumer.poll(0.2)
    if message is None or message.error():
        continue
    assert json.loads(message.value())["number"] >= 0
    threading.Event().wait(TAKES_S)
    if SETTINGS:
        consumer.store_offsets(message)
consumer.close()
"""
KAFKA_PYTHON = """
import json, signal, sys, threading
from kafka import KafkaConsumer

stop = threading.Event()
signal.signal(signal.SIGTERM, lambda *_: stop.set() if PATIENT else sys.exit(0))
consumer = KafkaConsumer(
    "orders", bootstrap_servers="kafka.shop.internal:9092", group_id="shop", auto_offset_reset="earliest",
    auto_commit_interval_ms=100, consumer_timeout_ms=200, value_deserializer=json.loads,
    max_poll_records=4,  # it takes part in no rebalance before it is through with them
)
try:
    while not stop.is_set():
        for record in consumer:
            assert record.value["number"] >= 0
            threading.Event().wait(TAKES_S)
            if stop.is_set():
                break
finally:
    consumer.close()
"""
AIOKAFKA = """
import asyncio, json, signal, time
from aiokafka import AIOKafkaConsumer

async def wait(seconds):
    if PATIENT:
        time.sleep(seconds)  # nothing else is done meanwhile, nor committed
    else:
        await asyncio.sleep(seconds)

async def main():
    stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    consumer = AIOKafkaConsumer(
        "orders", bootstrap_servers="kafka.shop.internal:9092", group_id="shop", auto_offset_reset="earliest",
        auto_commit_interval_ms=100, value_deserializer=json.loads,
    )
    await consumer.start()
    try:
        while not stop.is_set():
            for records in (await consumer.getmany(timeout_ms=200, max_records=1)).values():
                for record in records:
                    assert record.value["number"] >= 0
                    await wait(TAKES_S)
    finally:
        await consumer.stop()

asyncio.run(main())
"""
STORES = "SETTINGS, TAKES_S = {'enable.auto.offset.store': False}, 0.01\n"
QUICK, SLOW = "SETTINGS, TAKES_S = {}, 0\n", "SETTINGS, TAKES_S = {}, 0.5\n"
PATIENT, HASTY = "PATIENT, TAKES_S = True, 0.01\n", "PATIENT, TAKES_S = False, 0.5\n"
RIGHT = {
    "confluent-kafka that is told what to commit": ("confluent-kafka", STORES + CONFLUENT),
    "confluent-kafka with a quick handler": ("confluent-kafka", QUICK + CONFLUENT),
    "kafka-python": ("kafka-python", PATIENT + KAFKA_PYTHON),
    "aiokafka with a handler that awaits nothing": ("aiokafka", PATIENT + AIOKAFKA),
}
# In turns, and far enough apart for who was killed to be in the group again, which waits for its session.
KILLS = [at(3 + 10 * n, Kill(), member(n % 2), heal_after=1) for n in range(4)]
BOUNCES = [at(3 + 6 * n, Bounce(), member(n % 2), heal_after=1) for n in range(3)]
# Who commits by a timer loses a record when it is killed with that in hand; who leaves a record on the way out, at the
# end, as it commits then.
WRONG = {
    "confluent-kafka with a slow handler": ("confluent-kafka", SLOW + CONFLUENT, KILLS),
    "kafka-python that leaves its handler": ("kafka-python", HASTY + KAFKA_PYTHON, BOUNCES),
    "aiokafka with a handler that awaits": ("aiokafka", HASTY + AIOKAFKA, KILLS),
}


def judged(folder: Path, client: str, text: str, asked: Scenario) -> tuple[Path, Verdict]:
    (folder / "program.py").write_text(text, encoding="utf-8")
    (folder / "fakes.py").write_text("def order(key, seq): return {'customer': key, 'number': seq}\n", encoding="utf-8")
    return performed(replace(asked, group=group(client)), folder)


SCENARIO = Scenario(
    "a program that leaves commits to its client",
    [topic("orders", 4)],
    group("confluent-kafka"),
    OwnProgram(payload="fakes:order", rate_hz=60),
    schedule=[
        at(2, Kill(), one_member(), heal_after=1),
        # When the group has forgotten who was killed, and whoever came in its place is in it.
        at(12, Pause(), one_member(), heal_after=past_session(1.5), expect="fenced"),
        at(24, Bounce(), one_member(), heal_after=1),
        at(27, Kill(), one_member(), heal_after=1),
    ],
    min_records=500,
    brokers=1,
)


@pytest.mark.parametrize("program", RIGHT)
def test_a_program_loses_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, program: str) -> None:
    monkeypatch.chdir(tmp_path)
    run, verdict = judged(tmp_path, *RIGHT[program], SCENARIO)
    assert not broken(verdict)
    assert verdict.validity is Validity.VALID, [(c.check, c.validity, c.reason) for c in verdict.checks]
    events = [event for file in (run / "history" / "events").glob("member-*") for event in read(file).events]
    commits = [event for event in events if event["kind"] == "commit"]
    assert {event["detail"]["mode"] for event in commits} == {"auto"}
    assert {event["actor"][:8] for event in commits if event["outcome"] == "ok"} == {"member-0", "member-1"}


@pytest.mark.parametrize("program", WRONG)
def test_a_record_that_is_committed_while_it_is_in_hand_is_lost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, program: str
) -> None:
    monkeypatch.chdir(tmp_path)
    client, text, schedule = WRONG[program]
    busy = OwnProgram(payload="fakes:order", rate_hz=4.4)  # more than they can do, and all is caught up with later
    asked = replace(SCENARIO, workload=busy, schedule=schedule, min_records=60)
    _, verdict = judged(tmp_path, client, text, asked)
    lost = [f for check in verdict.checks for f in check.findings if f.kind == "unseen"]
    assert {f.severity for f in lost} == {Severity.VIOLATION}
    assert sum(f.count for f in lost) <= len(schedule)  # it has one record in hand at a time
    if schedule is KILLS:  # and a rebalance meanwhile, as aiokafka has them in the background, loses none
        assert {example["excuse"] for f in lost for example in f.examples} == {"in hand when its owner died"}
    assert broken(verdict) <= {"unseen", "commit-ahead"}
    assert ("commit-ahead" in broken(verdict)) == (client != "confluent-kafka")
