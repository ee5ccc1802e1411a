"""A swarm that is killed at any moment leaves nothing but its folder, which is never taken for that of a whole run."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from cluster.killing import LASTS_S, kill_a_run
from cluster.runs.test_no_false_alarm import VARIANTS
from cluster.runs.test_no_false_alarm import scenario as drawn
from fencepost.checkers.spark.session import Spark
from fencepost.judging import judge
from fencepost.model import Validity
from fencepost.model.settings import PROTOCOLS
from fencepost.workloads import PollLoop

pytestmark = [pytest.mark.cluster, pytest.mark.spark]


@pytest.mark.usefixtures("packets_work")
@pytest.mark.parametrize("number", range(20))
def test_a_run_killed_at_any_moment_leaves_its_folder_alone(tmp_path: Path, chaos_spark: Spark, number: int) -> None:
    asked = drawn(PROTOCOLS[number % len(PROTOCOLS)], VARIANTS[0], packets=True)
    endless = int(300 * LASTS_S)  # it is not over before it is killed
    scenario = replace(asked, workload=PollLoop(rate_hz=300), min_records=endless)
    after_s, folders, _ = kill_a_run(scenario, number, "local", tmp_path)
    for folder in folders:
        verdict = judge(folder, chaos_spark)
        assert verdict.validity is Validity.UNKNOWN, (after_s, verdict)
