"""Programs that pause partitions at their clients: who never resumes one is named, and who does keeps its promises."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from cluster.user_programs import broken, group, performed
from fencepost import Scenario, Topic
from fencepost.checkers import Progress
from fencepost.history import EventKind
from fencepost.model import Validity
from fencepost.workloads import OwnProgram

pytestmark = pytest.mark.cluster

CONFLUENT = """
import confluent_kafka as ck

consumer = ck.Consumer({"bootstrap.servers": "kafka.shop.internal:9092", "group.id": "shop", **SETTINGS})
consumer.subscribe(["orders"])
read = lambda: [m for m in consumer.consume(20, 0.1) if not m.error()]
pause, resume = consumer.pause, consumer.resume
place = lambda record: ck.TopicPartition(record.topic(), record.partition())
"""
KAFKA_PYTHON = """
from kafka import KafkaConsumer, TopicPartition

consumer = KafkaConsumer("orders", bootstrap_servers="kafka.shop.internal:9092", group_id="shop", **KEYWORDS)
read = lambda: [record for some in consumer.poll(100, 20).values() for record in some]
pause, resume = (lambda tps: consumer.pause(*tps)), (lambda tps: consumer.resume(*tps))
place = lambda record: TopicPartition(record.topic, record.partition)
"""
LOOP = """
signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
try:
    count = 0
    while True:
        records = read()
        count += len(records)
        if records:
            consumer.commit()
        if records and count >= 100:
            pause([place(records[-1])])
            if not FOREVER:
                if POLLS and read():
                    consumer.commit()
                resume([place(records[-1])])
            count = -10**9 if FOREVER else 0
finally:
    consumer.close()
"""
AIOKAFKA = """
import asyncio
from aiokafka import AIOKafkaConsumer

async def main():
    consumer = AIOKafkaConsumer("orders", bootstrap_servers="kafka.shop.internal:9092", group_id="shop", **KEYWORDS)
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, asyncio.current_task().cancel)
    try:
        await consumer.start()
        count = 0
        while True:
            found = await consumer.getmany(timeout_ms=100, max_records=20)
            count += sum(map(len, found.values()))
            if found:
                await consumer.commit()
            if found and count >= 100:
                consumer.pause(*found)
                if not FOREVER:
                    if await consumer.getmany(timeout_ms=100, max_records=20):
                        await consumer.commit()
                    consumer.resume(*found)
                count = -10**9 if FOREVER else 0
    except asyncio.CancelledError:
        pass
    finally:
        await consumer.stop()

asyncio.run(main())
"""
BEGIN = """
import signal, sys

KEYWORDS = {"auto_offset_reset": "earliest", "enable_auto_commit": False}
SETTINGS = {name.replace("_", "."): value for name, value in KEYWORDS.items()}
"""
# kafka-python 3.0.12 keeps what it had fetched of a paused partition, and if it got on with another one meanwhile, it
# never delivers any of that, nor fetches more, when the partition is resumed: this very test found it so.
POLLS = {"confluent-kafka": True, "kafka-python": False, "aiokafka": True}  # between pausing and resuming
PROGRAMS = {"confluent-kafka": CONFLUENT + LOOP, "kafka-python": KAFKA_PYTHON + LOOP, "aiokafka": AIOKAFKA}


@pytest.mark.parametrize("forever", [False, True], ids=["resumes", "forever"])
@pytest.mark.parametrize("client", PROGRAMS)
def test_who_never_resumes_what_it_paused_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, client: str, forever: bool
) -> None:
    monkeypatch.chdir(tmp_path)
    program = f"FOREVER, POLLS = {forever}, {POLLS[client]}\n{BEGIN}{PROGRAMS[client]}"
    (tmp_path / "program.py").write_text(program, encoding="utf-8")
    asked = Scenario(
        f"pauses on {client}",
        [Topic("orders", partitions=2)],
        group(client, members=1),
        OwnProgram(rate_hz=300),
        promises=[Progress(within_s=5)],
        min_records=100,
        drain_s=15,
    )
    run, verdict = performed(asked, tmp_path)
    paused = [e for e in pq.read_table(run / "history" / "events.parquet").to_pylist() if e["kind"] == EventKind.PAUSED]
    assert paused
    if not forever:
        assert len(paused) > 1
        assert all(event["end_ns"] > event["begin_ns"] for event in paused[:-1])  # the last one may meet the end
        assert verdict.validity is Validity.VALID, [(c.check, c.validity, c.reason) for c in verdict.checks]
        return
    assert broken(verdict) == {"stuck-partition", "unconsumed"}
    [stuck] = [f for check in verdict.checks for f in check.findings if f.kind == "stuck-partition"]
    assert "owned it and had itself paused it" in stuck.examples[0]["sentence"], json.dumps(stuck.examples)
