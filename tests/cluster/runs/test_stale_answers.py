"""Members that request committed offsets from a coordinator while it moves: its answers are not their fault.

How often that is older than it may be is measured by ``tests/benchmarks/stale_offsets.py``.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from cluster.user_programs import broken, group, performed
from fencepost import Scenario, Topic, every
from fencepost.faults import MoveCoordinator
from fencepost.model import Severity, Validity
from fencepost.workloads import OwnProgram

pytestmark = [pytest.mark.cluster]

LOOKS_AT_ITS_LAG = """
import signal, sys
from kafka import KafkaConsumer
from kafka.errors import KafkaError

signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
consumer = KafkaConsumer(
    "orders", bootstrap_servers="kafka.shop.internal:9092", group_id="shop", auto_offset_reset="earliest",
    enable_auto_commit=False, isolation_level="read_uncommitted",
)
try:
    while True:
        found = consumer.poll(timeout_ms=20, max_records=20)
        try:
            if found:
                consumer.commit()
            for tp in consumer.assignment():
                consumer.committed(tp, timeout_ms=500)
        except KafkaError as error:
            print("not answered:", error, file=sys.stderr)
finally:
    consumer.close()
"""


def test_a_member_that_reads_its_lag_while_coordinators_move_is_not_accused_of_stale_answers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It starts nowhere by these answers. Whether a move brings a stale answer is chance: usually there are some on an
    idle machine, and none under load (``test_stale_answers`` of the histories always has one)."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "program.py").write_text(LOOKS_AT_ITS_LAG, encoding="utf-8")
    moves = [every(1.5, MoveCoordinator(), until_s=60)]
    orders = [Topic("orders", partitions=2)]
    asked = Scenario("lag", orders, group("kafka-python", 1), OwnProgram(rate_hz=50), schedule=moves, min_records=500)
    _, verdict = performed(asked, tmp_path)
    assert not broken(verdict)
    assert verdict.validity is Validity.VALID, [(c.check, c.validity, c.reason) for c in verdict.checks]
    found = [f for check in verdict.checks for f in check.findings if f.kind == "stale-offset-answer"]
    assert {f.severity for f in found} <= {Severity.NOTE}
    assert all("high watermark" in "".join(e["witnesses"]) for f in found for e in f.examples)
