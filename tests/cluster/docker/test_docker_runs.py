"""Whole runs in containers, and that nothing of them is ever left."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from cluster.docker_base import left, left_of, ryuk_image
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
from fencepost.processes.owner import ProcessOwner, sweep
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
# A harness of its own: says how far it is, then waits to be killed or, at the end of its input, ends.
HARNESS = """
import signal, sys, threading
from pathlib import Path
from testcontainers.core.labels import SESSION_ID
from fencepost.clusters.docker import host as docker_host
from fencepost.interfaces import ClusterSpec
from fencepost.processes.owner import ProcessOwner, sweep

with ProcessOwner.open(Path(sys.argv[1])) as owner:
    print(SESSION_ID, owner.token, owner.directory, owner._watcher.pid, flush=True)
    cluster = docker_host.start(ClusterSpec(brokers=1, slots=1), owner)
    cluster.brokers[1].signal(signal.SIGSTOP)
    for thread in threading.enumerate():
        if thread.name == "ryuk":
            thread.join()
    print("serving", flush=True)
    sys.stdin.read()
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


@pytest.fixture(scope="module")
def ryuk(engine: Any) -> dict[str, str]:
    """Settings with which a harness has Ryuk, which soon removes what a dead one left."""
    return {"RYUK_CONTAINER_IMAGE": ryuk_image(), "RYUK_RECONNECTION_TIMEOUT": "1s"}


@pytest.fixture(params=[True, False], ids=["ryuk", "alone"])
def settings(request: pytest.FixtureRequest) -> dict[str, str]:
    """Settings of a harness with Ryuk, and of one without."""
    without = {"TESTCONTAINERS_RYUK_DISABLED": "true"}
    return dict(request.getfixturevalue("ryuk")) if request.param else without


class Harness:
    """One that runs, with what it said of itself."""

    def __init__(self, home: Path, settings: dict[str, str], engine: Any) -> None:
        self._engine = engine
        self.process = subprocess.Popen(
            [sys.executable, "-c", HARNESS, str(home)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, **settings},
        )
        self.session, self.token, directory, reaper = self.line().split()
        self.directory, self.reaper = Path(directory), int(reaper)

    def line(self) -> str:
        assert self.process.stdout is not None
        return self.process.stdout.readline().strip()

    def containers(self) -> list[str]:
        return left_of(self._engine, self.token)

    def ryuk(self) -> list[Any]:
        """Its Ryuk, if it runs."""
        named = {"name": f"testcontainers-ryuk-{self.session}"}
        return list(self._engine.api.containers(all=True, filters=named))

    def await_nothing(self) -> None:
        left = lambda: [*self.containers(), *self.ryuk()]  # noqa: E731
        eventually(lambda: not left(), LONG_S, "its containers to go", state=lambda: str(left()))


@pytest.fixture
def harness(tmp_path: Path, settings: dict[str, str], engine: Any) -> Iterator[Harness]:
    started = Harness(tmp_path, settings, engine)
    with started.process:
        yield started
        started.process.kill()
    sweep(tmp_path)


@pytest.mark.parametrize("when", ["starting", "serving", "ended"])
def test_no_container_outlives_a_harness(harness: Harness, settings: dict[str, str], when: str) -> None:
    if when != "starting":  # and a broker is frozen
        assert harness.line() == "serving"
        assert bool(harness.ryuk()) == ("RYUK_CONTAINER_IMAGE" in settings)
    eventually(harness.containers, LONG_S, "the first of its containers")
    if when == "ended":
        harness.process.communicate()
        assert harness.process.returncode == 0
        assert not [*harness.containers(), *harness.ryuk()]
    harness.process.kill()
    harness.await_nothing()
    eventually(lambda: not harness.directory.exists(), LONG_S, "its files to go")


@pytest.mark.parametrize("settings", [True], ids=["ryuk"], indirect=True)
def test_ryuk_removes_containers_and_no_evidence_where_the_reaper_died_too(harness: Harness) -> None:
    assert harness.line() == "serving"
    os.kill(harness.reaper, signal.SIGKILL)
    harness.process.kill()
    harness.await_nothing()
    (log,) = harness.directory.glob("cluster-*/broker-1/broker-1.log")
    assert "Kafka Server started" in log.read_text()
    assert sweep(harness.directory.parent) == [harness.directory]


@pytest.mark.parametrize("number", range(6))
def test_a_run_killed_at_any_moment_leaves_no_container(
    tmp_path: Path, engine: Any, ryuk: dict[str, str], number: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in (ryuk if number % 2 else {}).items():
        monkeypatch.setenv(name, value)
    *_, tokens = kill_a_run(SMALL, number, "docker", tmp_path)
    left = lambda: [thing for token in tokens for thing in left_of(engine, token)]  # noqa: E731
    eventually(lambda: not left(), LONG_S, "its containers to go", state=lambda: str(left()))


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
