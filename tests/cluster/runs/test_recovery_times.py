"""The times of recovery in findings are those of the planted bug, within a second."""

from __future__ import annotations

from dataclasses import replace

import pytest

from cluster.contract import History
from cluster.planted import BUGS
from fencepost.checkers import Recovers
from fencepost.clock import NS
from fencepost_member.planted_bugs.clients import LOADS_S

pytestmark = [pytest.mark.cluster, pytest.mark.spark]


@pytest.mark.parametrize("protocol", ["eager", "cooperative", "consumer"])
def test_a_member_that_loads_its_state_makes_recoveries_so_much_longer(chaos, protocol):
    planted = BUGS["slow-start-after-a-fault"].scenario(protocol)
    workload = replace(planted.workload, rate_hz=200)  # so what waited is read at once
    promises = (Recovers(first_record_within_s=6, lag_normal_within_s=6),)
    run = chaos.run(replace(planted, workload=workload, promises=promises, min_records=5_000))
    history = History.of(run.folder, protocol=protocol)
    (check,) = (check for check in run.verdict.checks if check.check == "recovers")
    assert {finding.kind for finding in check.findings} == {"slow-recovery", "slow-catch-up"}
    for finding in check.findings:
        for example in finding.examples:
            tp = (example["topic"], example["partition"])
            assigned = (held.end_ns for held in history.held if held.tp == tp and held.begin_ns < example["to_ns"])
            assert abs(example["to_ns"] - max(assigned) - LOADS_S * NS) <= NS, (finding.kind, example)
