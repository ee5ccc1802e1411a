"""What an attached cluster is refused for, and that nothing is left in it of a run that is interrupted."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import confluent_kafka as ck
import pytest

from cluster.attach.test_attach import SCENARIO, address, foreign, there, unchanged  # noqa: F401 (fixtures)
from cluster.worlds import LONG_S
from fencepost import runner
from fencepost.cli.commands import main
from fencepost.clock import eventually
from fencepost.clusters.admin.cleaning import discover
from fencepost.clusters.attach import leftovers
from fencepost.clusters.attach.allow_list import FILE
from fencepost.clusters.attach.backend import Attachment
from fencepost.clusters.cache import quiet
from fencepost.clusters.managed_cluster import ManagedCluster
from fencepost.clusters.selection import backend
from fencepost.errors import ClusterError, PlanError, WaitTimeout
from fencepost.faults import Pause
from fencepost.model.topic import Topic
from fencepost.processes.owner import ProcessOwner
from fencepost.repeat import batch
from fencepost.repeat.batch import RunOptions
from fencepost.scenario.scenario import Group
from fencepost.schedule.entries import at
from fencepost.targets import brokers

pytestmark = pytest.mark.cluster

HEALED_S = 30  # after the harness has died, although the sessions of its members last longer


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


def listed(folder: Path, *lines: str) -> Path:
    """A team's list of clusters in a folder."""
    (folder / FILE).write_text("\n".join([*lines, ""]), encoding="utf-8")
    return folder


@pytest.mark.usefixtures("unchanged")
def test_a_cluster_that_is_not_in_the_teams_list_is_refused_before_anything_is_made(
    cluster: ManagedCluster, tmp_path: Path
) -> None:
    listing = listed(tmp_path, "[clusters]", '"AAAAAAAAAAAAAAAAAAAAAA" = "staging"')
    found = discover(Attachment.of(address(cluster)).address, {})
    with pytest.raises(PlanError, match=rf"has the id {found.cluster_id}, but .* allows A{{22}} \(staging\)"):
        runner.run(
            SCENARIO, plan=SCENARIO.plan(1), runs=tmp_path / "runs", backend=backend(address(cluster), folder=listing)
        )


@pytest.mark.usefixtures("unchanged")
def test_a_dry_run_shows_names_of_the_teams_prefix_and_creates_nothing(
    cluster: ManagedCluster, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found = discover(Attachment.of(address(cluster)).address, {})
    listing = listed(tmp_path, 'prefix = "shop.chaos-"', "[clusters]", f'"{found.cluster_id}" = "staging"')
    where = RunOptions(tmp_path / "runs", backend(address(cluster), folder=listing), "local[1]")
    batch.dry_run([(SCENARIO, SCENARIO.plan(1))], where)
    shown = capsys.readouterr().out
    assert re.search(r"create the topics shop\.chaos-[0-9a-f]{8}-orders \(6 partitions", shown)
    assert "at   3.0 s  kill on member for 1 s" in shown
    assert f"checked: the cluster has the id {found.cluster_id} (staging), and the brokers 1 at 127" in shown
    assert not (tmp_path / "runs").exists()


@pytest.mark.core
@pytest.mark.usefixtures("unchanged")
def test_names_of_a_run_have_the_teams_prefix(cluster: ManagedCluster, tmp_path: Path) -> None:
    found = discover(Attachment.of(address(cluster)).address, {})
    listing = listed(tmp_path, 'prefix = "shop.chaos-"', "[clusters]", f'"{found.cluster_id}" = ""')
    attachment, before = backend(address(cluster), folder=listing), there(cluster)["topics"]
    with ProcessOwner.open() as owner:
        attached = attachment.start(SCENARIO, SCENARIO.plan(1), owner, quiet)
        try:
            attached.admin.create_topics([Topic(f"{attachment.prefix}orders", 1)])
            (made,) = there(cluster)["topics"].keys() - before.keys()
        finally:
            attached.stop()
    assert re.fullmatch(r"shop\.chaos-[0-9a-f]{8}-orders", made)


@pytest.mark.usefixtures("unchanged")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_nothing_is_left_when_the_harness_is_interrupted(
    cluster: ManagedCluster, tmp_path: Path, number: signal.Signals
) -> None:
    scenario = tmp_path / "guest.json"
    patient = Group(members=3, config={"session.timeout.ms": 2 * HEALED_S * 1000})
    scenario.write_text(json.dumps(replace(SCENARIO, group=patient, min_records=10**9).to_json()))
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
        # A topic or group may disappear while the snapshot is taken.
        gone = (KeyError, WaitTimeout, ck.KafkaException)
        eventually(lambda: there(cluster) == before, HEALED_S, "everything to be removed", forgive=gone)


@pytest.mark.usefixtures("unchanged")
def test_what_a_lost_machine_left_is_listed_and_removed_once_it_is_not_in_use(
    cluster: ManagedCluster, capsys: pytest.CaptureFixture[str]
) -> None:
    lost = Attachment.of(address(cluster))
    topic, group = f"{lost.prefix}orders", f"{lost.prefix}a-guest-3"
    cluster.admin.create_topics([Topic(topic, partitions=2)])
    config = {"bootstrap.servers": cluster.bootstrap(), "group.id": group, "enable.auto.commit": False}
    member = ck.Consumer(config)
    member.subscribe([topic])

    def joined() -> bool:
        member.poll(0.1)
        return bool(member.assignment())

    eventually(joined, LONG_S, "the member to be assigned partitions")
    command = ["clean", "--cluster", address(cluster)]
    with pytest.raises(PlanError, match=f"{lost.prefix} is in use: its group has members"):
        leftovers.remove(lost, [lost.prefix])
    member.commit(offsets=[ck.TopicPartition(topic, 0, 0)], asynchronous=False)
    member.close()
    assert performed(command) == 0
    assert f"{lost.prefix}  1 topic, 1 group with 0 members" in capsys.readouterr().out
    assert performed([*command, "fencepost-11111111-"]) == 2, "no run of this prefix left anything"
    assert performed([*command, lost.prefix]) == 0
    assert f"removed: {lost.prefix}" in capsys.readouterr().out


def performed(command: list[str]) -> int:
    """The exit code of a command."""
    with pytest.raises(SystemExit) as ended:
        main(command)
    return int(ended.value.code or 0)
