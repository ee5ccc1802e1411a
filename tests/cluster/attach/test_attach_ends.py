"""What an attached cluster is refused for, and that nothing is left in it of a run that is interrupted."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

from cluster.attach.test_attach import SCENARIO, address, foreign, there, unchanged  # noqa: F401 (fixtures)
from cluster.worlds import LONG_S
from fencepost import runner
from fencepost.clock import eventually
from fencepost.clusters.attach.backend import Attachment
from fencepost.clusters.managed_cluster import ManagedCluster
from fencepost.errors import ClusterError, PlanError, WaitTimeout
from fencepost.faults import Pause
from fencepost.model.topic import Topic
from fencepost.scenario.scenario import Group
from fencepost.schedule.entries import at
from fencepost.targets import brokers

pytestmark = pytest.mark.cluster


@pytest.mark.usefixtures("unchanged")
def test_a_fault_that_needs_power_over_the_cluster_is_refused_before_anything_is_made(
    cluster: ManagedCluster, tmp_path: Path
) -> None:
    frozen = replace(SCENARIO, schedule=[at(1, Pause(), brokers((1,)), heal_after=1)])
    with pytest.raises(PlanError, match="needs broker-signal, but the back-end 'attach:127"):
        runner.run(frozen, plan=frozen.plan(1), runs=tmp_path, backend=Attachment.of(address(cluster)))
    assert not list(tmp_path.iterdir())


def test_an_address_where_nobody_answers_is_said_within_seconds(tmp_path: Path) -> None:
    began_s = time.monotonic()
    with pytest.raises(ClusterError, match=r"no Kafka broker answered at 127\.0\.0\.1:9 within 5 s"):
        runner.run(SCENARIO, plan=SCENARIO.plan(1), runs=tmp_path, backend=Attachment.of("attach:127.0.0.1:9"))
    assert time.monotonic() - began_s < 30


@pytest.mark.usefixtures("unchanged")
def test_a_topic_that_the_brokers_refuse_ends_the_run_and_leaves_nothing(
    cluster: ManagedCluster, tmp_path: Path
) -> None:
    wide = replace(SCENARIO, brokers=9, topics=[Topic("orders"), Topic("refunds", replication_factor=9)])
    with pytest.raises(ClusterError, match="refunds was refused: InvalidReplicationFactorError"):
        runner.run(wide, plan=wide.plan(1), runs=tmp_path, backend=Attachment.of(address(cluster)))


@pytest.mark.usefixtures("unchanged")
def test_times_that_the_brokers_decide_otherwise_are_refused(cluster: ManagedCluster, tmp_path: Path) -> None:
    other = replace(SCENARIO, group=Group(protocol="consumer", config={"session.timeout.ms": 7000}))
    with pytest.raises(ClusterError, match=r"brokers decide session\.timeout\.ms: theirs is 6000"):
        runner.run(other, plan=other.plan(1), runs=tmp_path, backend=Attachment.of(address(cluster)))


def heeds_interrupts() -> None:
    """What a shell starts in the background ignores them, and so do its children."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


@pytest.mark.usefixtures("unchanged")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_nothing_is_left_when_the_harness_is_interrupted(
    cluster: ManagedCluster, tmp_path: Path, number: signal.Signals
) -> None:
    scenario = tmp_path / "guest.json"
    scenario.write_text(json.dumps(replace(SCENARIO, min_records=10**9).to_json()))
    before = there(cluster)
    command = [sys.executable, "-m", "fencepost", "run", str(scenario), "--seed", "3", "--no-check"]
    with (tmp_path / "said").open("w") as said:
        harness = subprocess.Popen(
            [*command, "--cluster", address(cluster), "--runs", str(tmp_path / "runs")],
            stdout=said,
            stderr=subprocess.STDOUT,
            preexec_fn=heeds_interrupts,
        )
    try:
        eventually(
            lambda: "phase chaos" in (tmp_path / "said").read_text() or harness.poll() is not None,
            LONG_S * 2,
            "the run to get to its faults",
            state=(tmp_path / "said").read_text,
        )
        assert there(cluster) != before, (tmp_path / "said").read_text()
        harness.send_signal(number)
        code = harness.wait(LONG_S * 2)
    finally:
        harness.kill()
    assert code == (130 if number == signal.SIGINT else -number), (tmp_path / "said").read_text()
    if number == signal.SIGKILL:  # nobody waits for what is removed then
        # What is removed while it is looked at has no end that anybody tells.
        gone = (KeyError, WaitTimeout)
        eventually(lambda: there(cluster) == before, LONG_S * 2, "everything to be removed", forgive=gone)
