"""Whole runs in containers, and that nothing of them is ever left."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from cluster.docker_base import left, left_of
from cluster.killing import kill_a_run
from cluster.plans import MOVES
from cluster.runs.test_no_false_alarm import FIRST_SEED, VARIANTS
from cluster.runs.test_no_false_alarm import scenario as drawn
from cluster.worlds import LONG_S
from fencepost import runner
from fencepost.checkers.spark.session import Spark
from fencepost.clock import eventually
from fencepost.clusters import backends
from fencepost.faults import Bounce, Pause
from fencepost.judging import judge
from fencepost.model import Validity
from fencepost.model.settings import PROTOCOLS
from fencepost.model.topic import Topic
from fencepost.processes.owner import ProcessOwner
from fencepost.scenario.scenario import Group
from fencepost.schedule.entries import at
from fencepost.targets import brokers, member
from fencepost.workloads import PollLoop

pytestmark = [
    pytest.mark.cluster,
    pytest.mark.docker,
    pytest.mark.spark,
    pytest.mark.usefixtures("base"),
    pytest.mark.timeout(600),  # images are built, which is no fixture's own doing
]
# A harness of its own: says how far it is, then waits to be killed.
HARNESS = """
import signal, sys, threading
from pathlib import Path
from fencepost.clusters.docker import host as docker_host
from fencepost.interfaces import ClusterSpec
from fencepost.processes.owner import ProcessOwner

with ProcessOwner.open(Path(sys.argv[1])) as owner:
    print(owner.token, owner.directory, flush=True)
    cluster = docker_host.start(ClusterSpec(brokers=1, slots=1), owner)
    cluster.brokers[1].signal(signal.SIGSTOP)
    print("serving", flush=True)
    threading.Event().wait()
"""

SMALL = replace(
    MOVES,
    name="in containers",
    topics=[Topic("orders", partitions=6)],
    brokers=3,
    group=Group(members=2, config=dict(MOVES.group.config)),
    schedule=[at(1, Bounce(), member(0), heal_after=1), at(3, Pause(), brokers([2]), heal_after=4)],
    min_records=5_000,
)


def run(scenario: Any, tmp_path: Path, spark: Spark) -> Any:
    folder = runner.run(scenario, plan=scenario.plan(7), runs=tmp_path, backend=backends.docker())
    asked = json.loads((folder / "scenario.json").read_text())
    assert asked["backend"] == "docker"
    logs = {log.name for log in (folder / "logs").iterdir()}
    assert {"controller.log", "broker-1.log", "broker-1-kafka-request.log", "toxiproxy.log", "member-0.1.log"} <= logs
    return judge(folder, spark)


@pytest.mark.core
def test_a_correct_group_is_valid_and_nothing_is_left(
    tmp_path: Path, chaos_spark: Spark, engine: Any, owners: list[ProcessOwner]
) -> None:
    verdict = run(SMALL, tmp_path, chaos_spark)
    assert verdict.validity is Validity.VALID, [(c.check, c.reason) for c in verdict.checks]
    assert owners
    assert not left(engine, *owners)


def test_a_planted_bug_is_found(tmp_path: Path, chaos_spark: Spark) -> None:
    moves = [at(1, Bounce(), member(0), heal_after=1)]  # what a member is given, it rewinds
    wrong = replace(SMALL, schedule=moves, workload=PollLoop(rate_hz=1000, batch=100, keys=60, planted_bug="seek-back"))
    verdict = run(wrong, tmp_path, chaos_spark)
    assert verdict.validity is Validity.INVALID, [(c.check, c.reason) for c in verdict.checks]
    assert "rewind" in {finding.kind for check in verdict.checks for finding in check.findings}


@pytest.mark.parametrize("when", ["starting", "serving"])
def test_no_container_outlives_a_harness_that_is_killed(tmp_path: Path, engine: Any, when: str) -> None:
    argv = [sys.executable, "-c", HARNESS, str(tmp_path)]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) as harness:
        try:
            assert harness.stdout is not None
            token, directory = harness.stdout.readline().split()
            if when == "serving":  # and a broker is frozen
                assert harness.stdout.readline().strip() == "serving"
            eventually(lambda: left_of(engine, token), LONG_S, "the first of its containers")
        finally:
            harness.send_signal(signal.SIGKILL)
    eventually(
        lambda: not left_of(engine, token), LONG_S, "its containers to go", state=lambda: str(left_of(engine, token))
    )
    eventually(lambda: not Path(directory).exists(), LONG_S, "its files to go")


@pytest.mark.parametrize("number", range(5))
def test_a_run_killed_at_any_moment_leaves_no_container(tmp_path: Path, engine: Any, number: int) -> None:
    before = left_of(engine)
    kill_a_run(SMALL, number, "docker", tmp_path)
    eventually(lambda: left_of(engine) == before, LONG_S, "its containers to go", state=lambda: str(left_of(engine)))


@pytest.mark.parametrize("seed", range(FIRST_SEED, FIRST_SEED + 10))
def test_a_correct_group_is_never_accused_in_containers(
    tmp_path: Path, chaos_spark: Spark, engine: Any, owners: list[ProcessOwner], seed: int, lacking_packets: str
) -> None:
    protocol = PROTOCOLS[seed % len(PROTOCOLS)]
    asked = drawn(protocol, VARIANTS[0], packets=not lacking_packets)
    folder = runner.run(asked, plan=asked.plan(seed), runs=tmp_path, backend=backends.docker())
    verdict = judge(folder, chaos_spark)
    assert verdict.validity is Validity.VALID, verdict
    assert owners
    assert not left(engine, *owners)
