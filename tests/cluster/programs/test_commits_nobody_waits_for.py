"""Programs that commit what their client has stored, and go on: what the client makes of that is what is judged."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from cluster.plans import topic
from cluster.user_programs import broken, group, performed
from fencepost import Scenario, at
from fencepost.faults import Kill
from fencepost.model import Validity, Verdict
from fencepost.targets import member
from fencepost.workloads import OwnProgram
from fencepost_member.recording.events import read

pytestmark = pytest.mark.cluster

# It commits after each record, also where nothing is new, in turns on a thread of its own; whatever comes before the
# client gets to it, is committed as well.
PROGRAM = """
import signal, threading
from confluent_kafka import Consumer, KafkaException

stop, due = threading.Event(), threading.Semaphore(0)
signal.signal(signal.SIGTERM, lambda *_: stop.set())

def answered(error, partitions):
    if error and "_NO_OFFSET" not in error.name():
        print("commit failed:", error, flush=True)

consumer = Consumer({
    "bootstrap.servers": "kafka.shop.internal:9092", "group.id": "shop", "auto.offset.reset": "earliest",
    "enable.auto.commit": False, "enable.auto.offset.store": STORES, "on_commit": answered,
})

def commits():
    while not stop.is_set():
        if due.acquire(timeout=0.1):
            consumer.commit(asynchronous=True)

consumer.subscribe(["orders"])
threading.Thread(target=commits).start()
for turn in iter(int, 1):
    if stop.is_set():
        break
    message = consumer.poll(0.5)
    if message is None or message.error():
        continue
    threading.Event().wait(TAKES_S)
    if not STORES:
        consumer.store_offsets(message)
    if message.offset() % 2:
        due.release()
    else:
        consumer.commit(asynchronous=True)
    if message.offset() % 50 == 3:
        consumer.commit(asynchronous=True)  # nothing is new
        try:
            consumer.commit(asynchronous=False)
        except KafkaException as error:
            answered(error.args[0], [])
stop.set()
consumer.close()
"""
SCENARIO = Scenario(
    "a program that does not wait for its commits",
    [topic("orders", 4)],
    replace(group("confluent-kafka"), config={"session.timeout.ms": 6000, "heartbeat.interval.ms": 1000}),
    OwnProgram(payload="fakes:order", rate_hz=120),
    schedule=[at(2 + 8 * n, Kill(), member(n % 2), heal_after=1) for n in range(2)],
    min_records=500,
    brokers=1,
)


def judged(folder: Path, settings: str) -> tuple[Path, Verdict]:
    (folder / "program.py").write_text(settings + PROGRAM, encoding="utf-8")
    (folder / "fakes.py").write_text("def order(key, seq): return {'customer': key, 'number': seq}\n", encoding="utf-8")
    return performed(SCENARIO, folder)


def test_a_program_that_stores_what_it_is_done_with_is_right(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    run, verdict = judged(tmp_path, "STORES, TAKES_S = False, 0.004\n")
    assert not broken(verdict)
    assert verdict.validity is Validity.VALID, [(c.check, c.validity, c.reason) for c in verdict.checks]
    files = (run / "history" / "events").glob("member-*")
    commits = [e for file in files for e in read(file).events if e["kind"] == "commit" and e["end_ns"]]
    assert {e["detail"]["mode"] for e in commits} == {"sync", "async"}
    assert any(e["partitions"] != e["detail"]["asked"] for e in commits if e["outcome"] == "ok")


def test_a_program_whose_client_stores_what_it_hands_out_commits_ahead(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    _, verdict = judged(tmp_path, "STORES, TAKES_S = True, 0.02\n")
    assert {"commit-ahead"} <= broken(verdict) <= {"commit-ahead", "unseen"}
