"""Committed offsets that expire while a group is down. Kafka keeps them for a minute at least: by night."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from cluster.plans import topic
from fencepost import Group, Scenario, at, runner
from fencepost.checkers.judge import judge
from fencepost.checkers.spark.detector import find_here
from fencepost.faults import Kill
from fencepost.model import Validity, Verdict
from fencepost.targets import all_members
from fencepost.workloads import PollLoop

pytestmark = [pytest.mark.cluster]

SESSION = {"session.timeout.ms": 6000, "heartbeat.interval.ms": 500}
EXPIRED = "committed offset expired"
DOWN = Scenario(
    name="offsets expire while nobody reads",
    topics=[topic("orders", 2)],
    brokers=1,
    group=Group(members=2, config=SESSION),
    workload=PollLoop(rate_hz=200, keys=20),
    schedule=[at(4, Kill(), all_members(), heal_after=75)],
    broker_config={"offsets.retention.minutes": 1, "offsets.retention.check.interval.ms": 1000},
    chaos_s=150,
)


def findings(verdict: Verdict) -> set[tuple[str, str, str, str]]:
    """Kind, severity, cause and excuse of each example."""
    return {
        (f.kind, str(f.severity), e.get("cause", ""), e.get("excuse", ""))
        for check in verdict.checks
        for f in check.findings
        for e in f.examples
    }


def performed(scenario: Scenario, folder: Path) -> Verdict:
    return judge(runner.run(scenario, plan=scenario.plan(1), runs=folder), find_here)


@pytest.mark.parametrize("protocol", ["eager", "consumer"])
def test_what_is_done_again_is_permitted_and_caused_by_the_expiry(protocol: str, tmp_path: Path) -> None:
    verdict = performed(replace(DOWN, group=replace(DOWN.group, protocol=protocol)), tmp_path)
    assert verdict.validity is Validity.VALID, [check.reason for check in verdict.checks]
    found = findings(verdict)
    assert ("redelivery", "permitted", "", EXPIRED) in found
    assert {kind for kind, *_ in found} == {"redelivery"}


def test_who_begins_at_the_end_loses_what_came_meanwhile(tmp_path: Path) -> None:
    latest = replace(DOWN.group, config={**SESSION, "auto.offset.reset": "latest"})
    verdict = performed(replace(DOWN, group=latest), tmp_path)
    assert verdict.validity is Validity.INVALID
    violations = {found[:3] for found in findings(verdict) if found[1] == "violation"}
    assert violations == {("unseen", "violation", "expired")}


def test_offsets_that_are_kept_are_no_reason(tmp_path: Path) -> None:
    kept = replace(DOWN, schedule=[at(4, Kill(), all_members(), heal_after=20)])
    verdict = performed(kept, tmp_path)
    assert verdict.validity is Validity.VALID, [check.reason for check in verdict.checks]
    assert not [found for found in findings(verdict) if EXPIRED in found]
