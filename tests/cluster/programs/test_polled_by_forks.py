"""Consumers made before a fork: brokers show who owns partitions that nobody reads, and the run is judged."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from cluster.plans import topic
from cluster.user_programs import broken, group, performed
from fencepost import Scenario, runner
from fencepost.checkers import Delivery, Progress
from fencepost.model import Validity, Verdict
from fencepost.workloads import OwnProgram

pytestmark = pytest.mark.cluster

# What is made, and polled, where: ``work`` is what a child does.
PROGRAM = """
import os, signal, sys, threading
from multiprocessing import get_context
from confluent_kafka import Consumer

stop = threading.Event()
signal.signal(signal.SIGTERM, lambda *_: stop.set())
mp = get_context("fork")

def connect():
    consumer = Consumer({
        "bootstrap.servers": "kafka.shop.internal:9092", "group.id": "shop", "auto.offset.reset": "earliest",
        "topic.metadata.refresh.interval.ms": 500,
    })
    consumer.subscribe(["orders"])
    return consumer

def read(consumer):
    while not stop.is_set():
        consumer.poll(0.2)
    consumer.close()

def polled_in_the_child(consumer):
    while not stop.is_set():
        consumer.poll(0.2)
    os._exit(0)

def work(consumer):
    stop.wait()
    os._exit(0)
"""
BEFORE_THE_FORK = """
consumer = connect()
child = mp.Process(target=polled_in_the_child, args=(consumer,))
child.start()
stop.wait()
child.terminate()
child.join()
"""
IN_THE_CHILD = """
child = mp.Process(target=lambda: read(connect()))
child.start()
stop.wait()
child.terminate()
child.join()
"""
IN_THE_PARENT = """
consumer = connect()
child = mp.Process(target=work, args=(consumer,))
child.start()
read(consumer)
child.terminate()
child.join()
"""
NOT_YET = """
consumer = connect()
print("waiting for the database", flush=True)
stop.wait()
consumer.close()
"""
SCENARIO = Scenario(
    name="a consumer and a fork",
    topics=[topic("orders", 4)],
    brokers=1,
    group=group("confluent-kafka"),
    workload=OwnProgram(rate_hz=200),
    promises=(Delivery("at-least-once"), Progress(within_s=5)),
    min_records=500,
    drain_s=8,
)


def judged(folder: Path, patch: pytest.MonkeyPatch, program: str, scenario: Scenario = SCENARIO) -> Verdict:
    (folder / "program.py").write_text(PROGRAM + program, encoding="utf-8")
    patch.chdir(folder)
    patch.setattr(runner, "WARM_UP_S", 12.0)
    return performed(scenario, folder)[1]


def test_who_is_polled_in_the_child_alone_leaves_its_partitions_stuck(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A member that nobody polls does not rejoin, so both must join before the first assignment.
    together = replace(SCENARIO, broker_config={"group.initial.rebalance.delay.ms": 3000})
    verdict = judged(tmp_path, monkeypatch, BEFORE_THE_FORK, together)
    assert broken(verdict) == {"stuck-partition", "unconsumed"}
    (progress,) = (check for check in verdict.checks if check.check == "progress")
    (stuck,) = (finding for finding in progress.findings if finding.kind == "stuck-partition")
    assert (stuck.count, stuck.reason) == (4, "forked")
    assert {example["members"][0] for example in stuck.examples} == {"member-0.1", "member-1.1"}


@pytest.mark.parametrize("program", [IN_THE_CHILD, IN_THE_PARENT], ids=["in the child", "in the parent"])
def test_who_polls_where_its_consumer_was_made_is_right(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, program: str
) -> None:
    verdict = judged(tmp_path, monkeypatch, program, replace(SCENARIO, drain_s=30))
    assert verdict.validity is Validity.VALID, [(c.check, c.validity, c.reason) for c in verdict.checks]


def test_who_has_not_begun_to_poll_is_accused_of_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    verdict = judged(tmp_path, monkeypatch, NOT_YET)
    assert verdict.validity is Validity.UNKNOWN
    assert not broken(verdict)
    (history,) = (check for check in verdict.checks if check.check == "history")
    assert "for the group to be stable and to consume" in history.reason
