"""Who has no rights over the packets of this machine loses those of a network of one's own, in a user namespace."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from cluster.worlds import LONG_S
from fencepost import Group, Scenario, Topic, at
from fencepost.clusters import doctor
from fencepost.faults import BlackHole, LosePackets
from fencepost.processes.concurrency import run_permit
from fencepost.targets import one_member
from fencepost.workloads import PollLoop

pytestmark = [pytest.mark.cluster, pytest.mark.spark]

SCENARIO = Scenario(
    name="in a network of its own",
    topics=[Topic("orders", partitions=6)],
    group=Group(members=3),
    workload=PollLoop(rate_hz=500),
    schedule=[
        at(1, BlackHole(), one_member(), heal_after=1),
        at(3, LosePackets(), one_member(), heal_after=1),
    ],
    network="packets",
)


def test_a_run_loses_packets_without_root(tmp_path: Path) -> None:
    if not doctor.alone():
        pytest.skip("this system makes no user and network namespace in which packets can be lost")
    asked = tmp_path / "scenario.json"
    asked.write_text(json.dumps(SCENARIO.to_json()))
    argv = [*doctor.ALONE, sys.executable, "-m", "fencepost", "run", asked, "--seed", "1", "--cluster", "local"]
    with run_permit("a run in a network of its own"):  # who is started by it shares its place
        ended = subprocess.run(argv, cwd=tmp_path, capture_output=True, text=True, timeout=4 * LONG_S, check=False)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    [folder] = (tmp_path / "runs").iterdir()
    faults = json.loads((folder / "verdict.json").read_text())["faults"]
    assert [fault["fault"] for fault in faults] == ["drop_packets", "lose_packets"]
    assert all(fault["took_effect"] and fault["heal_evidence"] for fault in faults)
