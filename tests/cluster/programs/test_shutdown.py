"""Programs that are asked to end: one that does not is named with the line in which it hangs."""

from __future__ import annotations

from pathlib import Path

import pytest

from cluster.user_programs import broken, group, performed
from fencepost import Scenario, Topic, at
from fencepost.faults import ScaleIn
from fencepost.model import Validity
from fencepost.targets import one_member
from fencepost.workloads import OwnProgram

pytestmark = pytest.mark.cluster

# The worker ends only when something more is in its queue, and the program waits for it.
PROGRAM = """
import queue, signal, threading
import confluent_kafka as ck

stopping, work = threading.Event(), queue.Queue()
signal.signal(signal.SIGTERM, lambda *_: stopping.set())

def works():
    while not stopping.is_set() or HANGS:
        try:
            work.get(timeout=None if HANGS else 0.1)
        except queue.Empty:
            pass

def finish(worker):
    worker.join()

worker = threading.Thread(target=works)
worker.start()
consumer = ck.Consumer({
    "bootstrap.servers": "kafka.shop.internal:9092", "group.id": "shop", "auto.offset.reset": "earliest",
    "enable.auto.commit": False,
})
consumer.subscribe(["orders"])
while not stopping.is_set():
    if [message for message in consumer.consume(20, 0.1) if not message.error()]:
        consumer.commit(asynchronous=False)
if CLOSES_FIRST:
    consumer.close()
finish(worker)
if not CLOSES_FIRST:
    consumer.close()
"""


@pytest.mark.parametrize("way", ["ends", "hangs", "hangs after close"])
def test_a_program_that_does_not_end_is_named_with_its_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    monkeypatch.chdir(tmp_path)
    program = f"HANGS, CLOSES_FIRST = {way != 'ends'}, {way == 'hangs after close'}\n{PROGRAM}"
    (tmp_path / "program.py").write_text(program, encoding="utf-8")
    asked = Scenario(
        "a member leaves",
        [Topic("orders", partitions=4)],
        group("confluent-kafka"),
        OwnProgram(rate_hz=300),
        schedule=[at(1, ScaleIn(), one_member())],
        min_records=100,
    )
    run, verdict = performed(asked, tmp_path)
    if way == "ends":
        assert verdict.validity is Validity.VALID, [(c.check, c.validity, c.reason) for c in verdict.checks]
        return
    assert verdict.validity is Validity.INVALID
    assert broken(verdict) == {"hung-shutdown"}
    (hung,) = [f for check in verdict.checks for f in check.findings if f.kind == "hung-shutdown"]
    assert hung.count == 2  # the one that leaves, and the other one at the end of the run
    line = next(n for n, text in enumerate(program.splitlines(), 1) if "worker.join()" in text)
    (sentence, *_) = (example["sentence"] for example in hung.examples)
    assert f"later in program.py, line {line}, in finish" in sentence
    assert ("after its client was closed" in sentence) is (way == "hangs after close")
    assert "in works" in next((run / "logs").glob("member-*.log")).read_text()
