"""One partition is slow: what becomes of the others that its member has, by how members process."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from cluster.plans import CALM, topic, under
from fencepost.checkers.tables import load
from fencepost.model import Severity
from fencepost.model.settings import PROTOCOLS
from fencepost.plugin import Chaos
from fencepost.scenario.scenario import Group
from fencepost.workloads import PollLoop, WorkerPool

pytestmark = [pytest.mark.cluster, pytest.mark.spark]

# It is written more than twice as fast as it can be done, so each poll brings more of it than the one before.
HOT, SLOW_MS, RATE_HZ = 0, 120, 120
PLAN = replace(
    CALM,
    name="a partition is hot",
    topics=[topic("orders", 6)],
    group=Group(members=2, config={"session.timeout.ms": 10_000}),
    min_records=1_600,
    drain_s=120,
)


def left(run: Path) -> Counter[int]:
    """Of each partition how many records were not done yet when producers stopped."""
    begin_ns, found = load(run).phases["drain"].begin_ns, Counter[int]()
    for path in (run / "history/delivered").glob("*.parquet"):
        found.update(row["tp"] for row in pq.read_table(path).to_pylist() if row["done_ns"] >= begin_ns)
    return found


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_pool_of_workers_goes_on_with_all_other_partitions(chaos: Chaos, protocol: str) -> None:
    workload = WorkerPool(rate_hz=RATE_HZ, slow_partition=HOT, slow_ms=SLOW_MS)
    run = chaos.run(under(protocol, replace(PLAN, workload=workload)))
    run.must_keep_its_promises()
    waiting = left(run.folder)
    assert waiting[HOT] > 2 * max(count for tp, count in waiting.items() if tp != HOT), waiting


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_who_does_a_poll_in_turn_stops_the_other_partitions_that_it_has(chaos: Chaos, protocol: str) -> None:
    """And nobody else's."""
    workload = PollLoop(rate_hz=RATE_HZ, slow_partition=HOT, slow_ms=SLOW_MS)
    run = chaos.run(under(protocol, replace(PLAN, workload=workload)))
    findings = [finding for check in run.verdict.checks for finding in check.findings]
    (found,) = (finding for finding in findings if finding.severity is Severity.VIOLATION)
    assert found.kind == "stuck-partition"
    stopped = {example["partition"]: example["members"] for example in found.examples}
    assert stopped.keys() > {HOT}
    assert [stopped[HOT]] * len(stopped) == list(stopped.values())
