"""Topics that brokers compact while a group is down: what was replaced is nobody's loss, and what is lost still is."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from cluster.plans import topic
from fencepost import Group, Scenario, at, runner
from fencepost.checkers.counts import Bounds
from fencepost.checkers.judge import judge
from fencepost.checkers.spark.detector import find_here
from fencepost.checkers.tables import load
from fencepost.faults import DeleteRecords, Kill
from fencepost.model import Validity
from fencepost.targets import all_members
from fencepost.workloads import PollLoop

pytestmark = pytest.mark.cluster

# Segments end after a second, and are cleaned soon after that.
SOON = {"segment.ms": 1000, "max.compaction.lag.ms": 1000, "min.cleanable.dirty.ratio": 0.01}
DOWN = Scenario(
    name="compacted while nobody reads",
    topics=[replace(topic("orders", 2), config={"cleanup.policy": "compact", **SOON})],
    brokers=1,
    group=Group(members=2, config={"session.timeout.ms": 6000, "heartbeat.interval.ms": 500}),
    workload=PollLoop(rate_hz=400, keys=20, transaction_records=10, abort_every=3),
    schedule=[at(3, Kill(), all_members(), heal_after=7)],
    broker_config={"log.cleaner.backoff.ms": 200},
    min_records=1000,
)
DELETED = replace(
    DOWN,
    name="compacted and deleted while nobody reads",
    topics=[replace(topic("orders", 2), config={"cleanup.policy": "compact,delete", **SOON})],
    workload=PollLoop(rate_hz=400, keys=20),
    schedule=[at(3, Kill(), all_members(), heal_after=7), at(6, DeleteRecords(keep=500))],
    min_records=300,  # what was deleted was not judged
)


@pytest.mark.parametrize("scenario", [DOWN, DELETED], ids=["compact", "compact-delete"])
def test_what_was_replaced_is_nobodys_loss_and_the_latest_of_a_key_is(scenario: Scenario, tmp_path: Path) -> None:
    run = runner.run(scenario, plan=scenario.plan(1), runs=tmp_path)
    verdict = judge(run, find_here)
    assert verdict.validity is Validity.VALID, [check.reason for check in verdict.checks]
    _, facts = find_here(run, load(run), Bounds())
    assert facts.visible < facts.acknowledged / 2, "brokers had nothing to compact"
    assert any(load(run).log_start(tp) for tp in (0, 1)) is (scenario is DELETED)
    lost = without_the_last_record(run, tmp_path / "doctored")
    kinds = {anomaly.kind for anomaly in find_here(lost, load(lost), Bounds())[0] if not anomaly.excuse}
    assert {"lost-write", "delivered-then-lost"} == kinds & {"lost-write", "delivered-then-lost", "phantom"}


def without_the_last_record(run: Path, copy: Path) -> Path:
    """The same evidence, but for the last record of the first partition, which is the latest of its key."""
    shutil.copytree(run, copy)
    (path,) = (copy / "history" / "log").glob("*.parquet")
    log = pq.read_table(path)
    last = pc.max(log.filter(pc.equal(log["tp"], 0))["offset"])
    gone = pc.and_(pc.equal(log["tp"], 0), pc.equal(log["offset"], last))
    pq.write_table(log.filter(pc.invert(gone)), path, row_group_size=1 << 20)
    return copy
