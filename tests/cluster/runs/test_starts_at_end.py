"""Members that begin at the end of the log without a committed offset (auto.offset.reset=latest): what they lose."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from cluster.plans import topic
from fencepost import Group, Scenario, at, runner
from fencepost.checkers.judge import judge
from fencepost.checkers.spark.detector import find_here
from fencepost.faults import AddPartitions, Kill
from fencepost.model import Severity, Validity
from fencepost.targets import all_members
from fencepost.workloads import PollLoop

pytestmark = [pytest.mark.cluster]

GROUP = Group(members=2, config={"session.timeout.ms": 6000, "topic.metadata.refresh.interval.ms": 4000})
# Producers begin to write to the idle partition while all members are down.
IDLE = Scenario(
    name="an idle partition receives its first records while all members are down",
    topics=[topic("orders", 2)],
    brokers=1,
    group=GROUP,
    workload=PollLoop(rate_hz=200, keys=20, idle_partition_s=17),
    schedule=[at(2, Kill(), all_members(), heal_after=18)],
    chaos_s=60,
)
# Producers find an added partition sooner than members do.
ADDED = replace(
    IDLE,
    name="producers write to an added partition at once",
    workload=PollLoop(rate_hz=200, keys=20, added_partitions=True),
    schedule=[at(1, AddPartitions())],
    after_faults_s=8,
)


@pytest.mark.parametrize("scenario", [IDLE, ADDED], ids=["idle partition", "added partition"])
@pytest.mark.parametrize("policy", ["latest", pytest.param("earliest", marks=pytest.mark.slow)])
def test_records_are_lost_only_by_members_that_begin_at_the_end(
    scenario: Scenario, policy: str, tmp_path: Path
) -> None:
    group = replace(GROUP, config={**GROUP.config, "auto.offset.reset": policy})
    asked = replace(scenario, group=group)
    verdict = judge(runner.run(asked, plan=asked.plan(1), runs=tmp_path), find_here)
    if policy == "earliest":
        assert verdict.validity is Validity.VALID, [check.reason for check in verdict.checks]
        return
    violations = [f for check in verdict.checks for f in check.findings if f.severity is Severity.VIOLATION]
    assert {(f.kind, f.reason) for f in violations} == {("unseen", "latest")}
    examples = [example for finding in violations for example in finding.examples]
    assert {example["partition"] for example in examples} == {2 if scenario is ADDED else 1}
    assert examples[0]["offset"] == 0
    assert "so a member began at the end of the log" in examples[0]["sentence"]
