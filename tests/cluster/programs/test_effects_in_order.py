"""The order of effects in a sink: a program that works off a batch in turn, and one that begins at its end."""

from __future__ import annotations

from pathlib import Path

import pytest

from cluster.plans import topic
from cluster.user_programs import EFFECTS, broken, group, performed
from fencepost import Scenario, at
from fencepost.checkers import Effects
from fencepost.faults import Kill
from fencepost.model import Validity, Verdict
from fencepost.targets import one_member
from fencepost.workloads import OwnProgram

pytestmark = pytest.mark.cluster

PROGRAM = """
import signal
from confluent_kafka import Consumer

ends = []
signal.signal(signal.SIGTERM, lambda *_: ends.append(1))
consumer = Consumer({
    "bootstrap.servers": "kafka.shop.internal:9092", "group.id": "shop", "auto.offset.reset": "earliest",
    "enable.auto.commit": False, "partition.assignment.strategy": "range",
})
consumer.subscribe(["orders"])
with open("told", "a", buffering=1) as told:
    while not ends:
        batch = [message for message in consumer.consume(20, 0.5) if not message.error()]
        for message in ORDER(batch):
            print(message.topic(), message.partition(), message.offset(), file=told)
        if batch:
            consumer.commit(asynchronous=False)
consumer.close()
"""
SCENARIO = Scenario(
    name="effects in order",
    topics=[topic("orders", 4)],
    brokers=1,
    group=group("confluent-kafka"),
    workload=OwnProgram("effect", "fakes:told", effects_in_order=True, rate_hz=300, keys=20),
    schedule=[at(3, Kill(), one_member(), heal_after=1)],
    promises=[Effects("at-least-once", in_order=True)],
    min_records=1500,
)


def judged(folder: Path, patch: pytest.MonkeyPatch, order: str) -> Verdict:
    (folder / "program.py").write_text(f"ORDER = {order}\n{PROGRAM}", encoding="utf-8")
    (folder / "fakes.py").write_text(EFFECTS, encoding="utf-8")
    (folder / "told").touch()
    patch.chdir(folder)
    return performed(SCENARIO, folder)[1]


def test_a_program_that_works_off_a_batch_in_turn_keeps_the_order(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    verdict = judged(tmp_path, monkeypatch, "list")
    assert verdict.validity is Validity.VALID, [(c.check, c.validity, c.reason) for c in verdict.checks]


def test_a_program_that_begins_at_the_end_of_a_batch_does_not(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert broken(judged(tmp_path, monkeypatch, "reversed")) == {"effects-out-of-order"}
