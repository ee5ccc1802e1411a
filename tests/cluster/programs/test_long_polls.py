"""Programs that wait inside of one poll for as long as no records come: they have not stopped to poll."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from cluster.plans import topic
from cluster.programs.test_lines import PROGRAM as TOLD
from cluster.user_programs import broken, performed
from fencepost import Group, Scenario
from fencepost.checkers import Progress
from fencepost.model import Validity
from fencepost.model.clients import LINES
from fencepost.workloads import OwnProgram

pytestmark = pytest.mark.cluster

# It takes its time for each record, so that there is a while in which another member has none.
PROGRAM = """
import threading
from confluent_kafka import Consumer

consumer = Consumer({"bootstrap.servers": "kafka.shop.internal:9092", "group.id": "shop", "enable.auto.commit": False,
                     "auto.offset.reset": "earliest"})
consumer.subscribe(["orders"])
while True:
    for message in [WAITS]:
        if message is not None and message.error() is None:
            threading.Event().wait(0.01)
            consumer.commit(message, asynchronous=False)
"""
SHORT, LONG, SIGNAL = "consumer.consume(100, 0.1)", "consumer.consume(1, 300)", "signal.signal(signal.SIGTERM"
assert TOLD.count(SHORT) == TOLD.count(SIGNAL) == 1
SLOW = TOLD.replace(SHORT, f"({LONG}, time.sleep(0.01))[0]").replace(SIGNAL, f"() and {SIGNAL}")
PROGRAMS = {
    "poll": PROGRAM.replace("WAITS", "consumer.poll()"),
    "consume": PROGRAM.replace("WAITS", f"*{LONG}"),
    "lines": SLOW,
}
OF_LINES = ("{bootstrap}", "{group}", "{topics}", "{client_id}", "none")


@pytest.mark.parametrize("way", PROGRAMS)
def test_who_waits_in_one_poll_while_others_work_keeps_its_promises(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "program.py").write_text(PROGRAMS[way], encoding="utf-8")
    reported = way == "lines"
    asked = Scenario(
        f"polls that wait, {way}",
        [topic("orders", 2)],
        Group(
            command=[sys.executable, "program.py", *(OF_LINES if reported else ())],
            client=LINES if reported else "confluent-kafka",
            protocol="cooperative" if reported else "eager",
            members=2,
            config={"session.timeout.ms": 6000, "heartbeat.interval.ms": 500},
        ),
        OwnProgram("told" if reported else "next-poll", rate_hz=150, keys=1),  # of one partition
        promises=[Progress(within_s=5)],
        brokers=1,
        min_records=600,
        drain_s=90,
    )
    _, verdict = performed(asked, tmp_path)
    assert not broken(verdict)
    assert verdict.validity is Validity.VALID, [(c.check, c.validity, c.reason) for c in verdict.checks]
