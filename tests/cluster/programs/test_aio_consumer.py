"""A program on confluent-kafka's asyncio consumer: valid, and its losses are named."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from cluster.plans import topic
from cluster.user_programs import broken, group, performed
from fencepost import Scenario, at, past_session
from fencepost.faults import Bounce, Kill, Pause
from fencepost.model import Validity, Verdict
from fencepost.targets import one_member
from fencepost.workloads import OwnProgram
from fencepost_member.recording.events import read

pytestmark = pytest.mark.cluster

# Its callbacks are coroutines that use the consumer, on further threads of its pool.
PROGRAM = """
import asyncio, itertools, json, signal, sys
from confluent_kafka import KafkaException
from confluent_kafka.aio import AIOConsumer

async def revoked(consumer, partitions):
    try:
        await consumer.commit(asynchronous=False)
    except KafkaException as error:
        print("commit failed:", error, file=sys.stderr)

async def lost(consumer, partitions):
    print("lost:", [p.partition for p in partitions], file=sys.stderr)

async def assigned(consumer, partitions):
    print("assigned:", [p.partition for p in await consumer.assignment()], file=sys.stderr)

async def poll(consumer):
    try:
        message = await asyncio.wait_for(consumer.poll(5), PATIENCE_S)
    except asyncio.TimeoutError:
        return []
    return [message] if message is not None else []

async def main():
    stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    consumer = AIOConsumer({
        "bootstrap.servers": "kafka.shop.internal:9092", "group.id": "shop", "auto.offset.reset": "earliest",
        "enable.auto.commit": False, "partition.assignment.strategy": "cooperative-sticky",
    })
    await consumer.subscribe(["orders"], on_assign=assigned, on_revoke=revoked, on_lost=lost)
    turns = itertools.count()
    while not stop.is_set():
        for message in await (poll(consumer) if PATIENCE_S else consumer.consume(20, timeout=0.2)):
            if message.error() is None:
                assert json.loads(message.value())["number"] >= 0
                await asyncio.sleep(0.001)
        if next(turns) % 20 == 0:  # seldom, so that there is something to commit as it gives partitions up
            await revoked(consumer, [])
    await consumer.close()

asyncio.run(main())
"""
SCENARIO = Scenario(
    "a program on an asyncio consumer",
    [topic("orders", 4)],
    replace(group("confluent-kafka"), protocol="cooperative"),
    OwnProgram(payload="fakes:order", rate_hz=100),
    schedule=[
        at(2, Kill(), one_member(), heal_after=1),
        at(12, Pause(), one_member(), heal_after=past_session(1.5), expect="fenced"),
        at(24, Bounce(), one_member(), heal_after=1),
    ],
    min_records=500,
    brokers=1,
)


def judged(folder: Path, patience_s: float) -> tuple[Path, Verdict]:
    """With ``patience_s``, the program waits so long for one record, and gives up a poll that takes longer."""
    (folder / "program.py").write_text(f"PATIENCE_S = {patience_s}\n{PROGRAM}", encoding="utf-8")
    (folder / "fakes.py").write_text("def order(key, seq): return {'customer': key, 'number': seq}\n", encoding="utf-8")
    return performed(SCENARIO, folder)


def test_a_program_keeps_its_promises(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    run, verdict = judged(tmp_path, 0)
    assert not broken(verdict)
    assert verdict.validity is Validity.VALID, [(c.check, c.validity, c.reason) for c in verdict.checks]
    assert min(c.facts_judged for c in verdict.checks) > 0
    events = [event for file in (run / "history" / "events").glob("member-*") for event in read(file).events]
    assert {"assigned", "revoked", "lost"} <= {event["kind"] for event in events if event["end_ns"]}
    assert {"sync", "on-revoke"} == {event["detail"]["mode"] for event in events if event["kind"] == "commit"}


def test_what_a_poll_brings_that_was_given_up_is_lost(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    _, verdict = judged(tmp_path, 0.02)
    assert {"unseen", "commit-ahead"} <= broken(verdict)
