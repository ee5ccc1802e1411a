"""A run that is killed at any moment leaves nothing but its folder, which is never taken for that of a whole run."""

from __future__ import annotations

from dataclasses import replace
from datetime import date
from pathlib import Path

import pytest

from cluster.killing import LASTS_S, kill_a_run
from cluster.plans import MOVES
from fencepost.checkers.spark.session import Spark
from fencepost.faults import BlackHole, DropPackets, Pause
from fencepost.judging import judge
from fencepost.model import Validity
from fencepost.single import at
from fencepost.targets import member
from fencepost.workloads import PollLoop

pytestmark = [pytest.mark.cluster, pytest.mark.spark]

TODAY = date.today().toordinal()
NUMBERS = [TODAY, *(pytest.param(number, marks=pytest.mark.slow) for number in range(20))]


@pytest.mark.usefixtures("packets_work")
@pytest.mark.parametrize("number", NUMBERS)
def test_a_run_killed_at_any_moment_leaves_its_folder_alone(tmp_path: Path, chaos_spark: Spark, number: int) -> None:
    faults = [
        at(1, Pause(), member(0), heal_after=8),
        at(2, DropPackets(), member(1), heal_after=8),
        at(3, BlackHole(), member(2), heal_after=8),
    ]
    endless = int(300 * LASTS_S)  # it is not over before it is killed
    scenario = replace(MOVES, schedule=faults, workload=PollLoop(rate_hz=300), min_records=endless)
    after_s, folders = kill_a_run(scenario, number, "local", tmp_path)
    for folder in folders:
        verdict = judge(folder, chaos_spark)
        assert verdict.validity is Validity.UNKNOWN, (after_s, verdict)
