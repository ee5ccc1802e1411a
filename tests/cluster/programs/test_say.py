"""A program that says itself what is processed, from a pool of threads: right, and with a loss that it alone knows."""

from __future__ import annotations

from pathlib import Path

import pytest

from cluster.plans import topic
from cluster.user_programs import broken, group, performed
from fencepost import Scenario, at
from fencepost.faults import Bounce
from fencepost.model import Validity
from fencepost.targets import member
from fencepost.workloads import OwnProgram

# Threads finish the records of a poll in any order, and what fails in one of them nobody looks at.
PROGRAM = """
import signal, threading
from concurrent.futures import ThreadPoolExecutor, wait
from confluent_kafka import Consumer, KafkaException
from fencepost_member.api import processed

stop = threading.Event()
signal.signal(signal.SIGTERM, lambda *_: stop.set())

def handle(message):
    threading.Event().wait(0.02 if message.offset() % 10 == 0 else 0.001)
    if FAILS and message.offset() % 50 == 7:
        raise ValueError(message.offset())
    processed(message)

consumer = Consumer({"bootstrap.servers": "kafka.shop.internal:9092", "group.id": "shop",
                     "auto.offset.reset": "earliest", "enable.auto.commit": False})
consumer.subscribe(["orders"])
with ThreadPoolExecutor(4) as pool:
    while not stop.is_set():
        found = [m for m in consumer.consume(50, 0.1) if m.error() is None]
        wait([pool.submit(handle, m) for m in found])
        try:
            if found:
                consumer.commit(asynchronous=False)
        except KafkaException as error:
            print("commit failed:", error, flush=True)
    consumer.close()
"""


@pytest.mark.cluster
@pytest.mark.parametrize("fails", [False, True], ids=["right", "a thread fails"])
def test_what_a_program_says_is_what_it_is_judged_by(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fails: bool
) -> None:
    (tmp_path / "program.py").write_text(f"FAILS = {fails}\n{PROGRAM}", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    asked = Scenario(
        f"a program that says what is processed, fails: {fails}",
        [topic("orders", 4)],
        group("confluent-kafka"),
        OwnProgram("told", rate_hz=300),
        brokers=1,
        schedule=[at(2, Bounce(), member(0), heal_after=1)],
        min_records=1000,
    )
    verdict = performed(asked, tmp_path)[1]
    if fails:
        assert broken(verdict) == {"commit-ahead", "unseen"}
    else:
        assert verdict.validity is Validity.VALID, [(c.check, c.validity, c.reason) for c in verdict.checks]
