"""Programs on clients that are written in Python: their history is what happened, and the verdict names their bugs."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from cluster.user_programs import broken, group, performed
from fencepost import Scenario, Topic, at, past_session
from fencepost.faults import Bounce, Pause
from fencepost.model import Severity, Validity, Verdict
from fencepost.model.clients import MemberSpec
from fencepost.targets import one_member
from fencepost.workloads import OwnProgram

pytestmark = pytest.mark.cluster

KAFKA_PYTHON = """
import json, signal, sys
from kafka import KafkaConsumer, TopicPartition
from kafka.errors import KafkaError
from kafka.structs import OffsetAndMetadata

signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
consumer = KafkaConsumer(
    "orders", bootstrap_servers="kafka.shop.internal:9092", group_id="shop", auto_offset_reset="earliest",
    enable_auto_commit=False, value_deserializer=json.loads, consumer_timeout_ms=1000,
)

def commit(record, ahead):
    here = {TopicPartition(record.topic, record.partition):
            OffsetAndMetadata(*(record.offset + 1 + ahead, "", -1)[:len(OffsetAndMetadata._fields)])}
    try:
        consumer.commit(here)
    except KafkaError as error:
        print("commit failed:", error, file=sys.stderr)

try:
    while True:
        last = {}
        for record in consumer:  # until none came for a second
            assert record.value["number"] >= 0
            last[record.partition] = record
            if record.offset % 20 == 0:
                commit(record, AHEAD)
        for partition in {tp.partition for tp in consumer.assignment()} & last.keys():
            commit(last[partition], 0)
finally:
    consumer.close()
"""
AIOKAFKA = """
import asyncio, json, signal, sys
from aiokafka import AIOKafkaConsumer, ConsumerRebalanceListener, TopicPartition
from aiokafka.errors import KafkaError

done = {}

class Commit(ConsumerRebalanceListener):
    async def on_partitions_revoked(self, revoked):
        await commit()

    def on_partitions_assigned(self, assigned):
        done.clear()

async def commit():
    try:
        await consumer.commit(done)
    except KafkaError as error:
        print("commit failed:", error, file=sys.stderr)

async def main():
    global consumer
    consumer = AIOKafkaConsumer(
        bootstrap_servers="kafka.shop.internal:9092", group_id="shop", auto_offset_reset="earliest",
        enable_auto_commit=False, value_deserializer=json.loads,
    )
    consumer.subscribe(["orders"], listener=Commit())
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, asyncio.current_task().cancel)
    try:
        await consumer.start()
        async for record in consumer:
            assert record.value["number"] >= 0
            done[TopicPartition(record.topic, record.partition)] = record.offset + 1
            found = await consumer.getmany(timeout_ms=100, max_records=20)
            for tp, records in found.items():
                done[tp] = records[-1].offset + 1 + AHEAD
            await commit()
    except asyncio.CancelledError:
        pass
    finally:
        await consumer.stop()

asyncio.run(main())
"""
PROGRAMS = {"kafka-python": KAFKA_PYTHON, "aiokafka": AIOKAFKA}
AHEAD = 5  # a wrong program commits so many records that it has not got yet


def judged(folder: Path, client: str, ahead: int, **load: Any) -> Verdict:
    """What is said of a run of the program, in which a member is a zombie and one is deployed; ``load``: what
    producers are told besides."""
    (folder / "program.py").write_text(f"AHEAD = {ahead}\n{PROGRAMS[client]}", encoding="utf-8")
    (folder / "fakes.py").write_text("def order(key, seq): return {'customer': key, 'number': seq}\n", encoding="utf-8")
    asked = Scenario(
        f"a program on {client}",
        [Topic("orders", partitions=4)],
        group(client),
        OwnProgram(payload="fakes:order", rate_hz=300, **load),
        schedule=[
            at(2, Pause(), one_member(), heal_after=past_session(1.5)),
            at(14, Bounce(), one_member(), heal_after=1),
        ],
        min_records=1000,
    )
    return performed(asked, folder)[1]


@pytest.mark.parametrize("client", PROGRAMS)
def test_a_program_keeps_its_promises(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, client: str) -> None:
    monkeypatch.chdir(tmp_path)
    verdict = judged(tmp_path, client, ahead=0)
    assert not broken(verdict)
    assert verdict.validity is Validity.VALID, [(c.check, c.validity, c.reason) for c in verdict.checks]
    assert min(c.facts_judged for c in verdict.checks) > 0


@pytest.mark.parametrize("client", PROGRAMS)
def test_a_program_that_commits_what_it_has_not_got_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, client: str
) -> None:
    monkeypatch.chdir(tmp_path)
    assert broken(judged(tmp_path, client, ahead=AHEAD)) & {"commit-ahead", "unseen"}


@pytest.mark.parametrize("client", PROGRAMS)
def test_a_program_that_reads_what_is_aborted_is_not_accused_of_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, client: str
) -> None:
    """It never asked for anything else: that is what its client does by default."""
    monkeypatch.chdir(tmp_path)
    verdict = judged(tmp_path, client, ahead=0, transaction_records=60, abort_every=4)
    assert verdict.validity is Validity.VALID, [(c.check, c.validity, c.reason) for c in verdict.checks]
    found = [f for check in verdict.checks for f in check.findings if f.kind == "aborted-read"]
    assert {f.severity for f in found} == {Severity.PERMITTED}
    assert sum(f.count for f in found) > 50


def test_two_releases_of_a_program_side_by_side_and_only_the_wrong_one_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The new release is another file, and wrong by its environment; both need a variable."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "fakes.py").write_text(
        "def order(key, seq): return {'customer': key, 'number': seq}\n", encoding="utf-8"
    )
    for name in ("program.py", "new.py"):
        (tmp_path / name).write_text(f'import os\nAHEAD = int(os.environ["AHEAD"])\n{KAFKA_PYTHON}', encoding="utf-8")
    old = MemberSpec(1, env={"AHEAD": "0"})
    new = MemberSpec(1, command=(sys.executable, "new.py"), env={"AHEAD": f"{AHEAD}"}, config={"fetch.min.bytes": 2})
    asked = Scenario(
        "two releases",
        [Topic("orders", partitions=4, replication_factor=1)],
        replace(group("kafka-python"), members=[old, new]),
        OwnProgram(payload="fakes:order", rate_hz=300),
        brokers=1,
        min_records=1000,
    )
    verdict = performed(asked, tmp_path)[1]
    ahead_of = [
        example["members"]
        for check in verdict.checks
        for finding in check.findings
        if finding.kind == "commit-ahead"
        for example in finding.examples
    ]
    assert ahead_of
    assert {member for members in ahead_of for member in members} == {"member-1.1"}
