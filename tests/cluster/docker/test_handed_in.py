"""Clusters that are handed in: a ``KafkaContainer`` of testcontainers, a container by its name, a Compose project."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from testcontainers.community.kafka import KafkaContainer

from cluster.attach.test_attach import SCENARIO as GUEST
from cluster.docker.conftest import attached
from cluster.worlds import LONG_S
from fencepost import Scenario, at, past_session, runner
from fencepost.checkers.spark.session import Spark
from fencepost.clock import eventually
from fencepost.clusters.admin import ObserverAdmin
from fencepost.clusters.admin.cleaning import discover
from fencepost.clusters.attach import handed_in
from fencepost.clusters.attach.cleanup import CLEAN_S
from fencepost.clusters.attach.containers import ContainerEvidence
from fencepost.clusters.attach.request_logs import LEVEL, LOCK, LOGGER
from fencepost.clusters.cache import quiet
from fencepost.clusters.docker import published
from fencepost.clusters.docker.published import LOOPBACK
from fencepost.clusters.selection import backend
from fencepost.errors import ClusterError, NotShown, PlanError, ScenarioError, WaitTimeout
from fencepost.faults import BlackHole, Kill, Pause
from fencepost.judging import judge
from fencepost.model import Validity, Verdict
from fencepost.model.endpoint import Endpoint
from fencepost.network import redirects
from fencepost.processes.owner import ProcessOwner
from fencepost.targets import brokers, member
from fencepost.workloads import Transform

pytestmark = [pytest.mark.docker, pytest.mark.spark]

SCENARIO = replace(
    GUEST,
    name="handed in",
    schedule=[
        at(1, Pause(), member(1), heal_after=past_session(1.5), expect="fenced"),
        at(2, Kill(), member(0), heal_after=1),
        at(14, BlackHole(), member(2), heal_after=past_session(1.5), expect="fenced"),  # when all others are back
    ],
)


def valid(run: Path, spark: Spark) -> Verdict:
    """The verdict of a run, which must be valid, and in which all faults happened."""
    verdict = judge(run, spark)
    assert verdict.validity is Validity.VALID, [(check.check, check.reason) for check in verdict.checks]
    assert [fault["took_effect"] for fault in verdict.faults] == [True] * len(verdict.faults)
    return verdict


def is_free(container: str) -> bool:
    """Whether no run, nor its clean-up, holds the container's request log."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as probe, suppress(OSError):
        probe.bind(LOCK.format(container))
        return True
    return False


def levels(address: Endpoint) -> dict[int, str]:
    """The level of the request log of each broker."""
    found = discover(address, {}).brokers
    admin = ObserverAdmin(found)
    try:
        return {broker: admin.log_level(broker, LOGGER) for broker in found}
    finally:
        admin.close()


@pytest.mark.skipif(bool(redirects.missing_reason()), reason=redirects.missing_reason())
def test_a_correct_group_is_valid_on_a_container_of_testcontainers(
    kafka: KafkaContainer, chaos_spark: Spark, tmp_path: Path
) -> None:
    name = handed_in.name_of(kafka)
    assert name == f"container:{kafka.get_wrapped_container().name}"
    before = levels(handed_in.attachment(name).address)
    run = runner.run(SCENARIO, plan=SCENARIO.plan(1), runs=tmp_path, backend=backend(name))
    assert valid(run, chaos_spark).unjudged == {}
    assert levels(handed_in.attachment(name).address) == before
    assert set(before.values()) != {LEVEL}
    assert "Stabilized group" in (run / "logs/broker-1.log").read_text()


def test_a_container_is_found_by_its_name(kafka: KafkaContainer) -> None:
    name = f"container:{kafka.get_wrapped_container().name}"
    found = handed_in.attachment(name)
    assert str(found) == name
    assert found.address.port == kafka.get_exposed_port(kafka.port)


CONFTEST = """
import pytest

@pytest.fixture(scope="session")
def chaos_cluster():
    return "{}"
"""
TEST = """
import pytest
from fencepost import Group, Scenario, Topic
from fencepost.workloads import PollLoop

@pytest.mark.chaos
def test_it(chaos):
    group = Group(members=1, config={"session.timeout.ms": 6000})
    run = chaos.run(Scenario("short", [Topic("orders")], group, PollLoop(rate_hz=200), min_records=200))
    run.must_keep_its_promises()
    print((run.folder / "scenario.json").read_text())
"""


def test_a_test_is_performed_on_the_cluster_that_a_fixture_returns(
    kafka: KafkaContainer, pytester: pytest.Pytester
) -> None:
    pytester.makeconftest(CONFTEST.format(kafka.get_bootstrap_server()))
    pytester.makepyfile(TEST)
    result = pytester.runpytest_subprocess("--chaos", "-s", "-p", "no:cacheprovider")
    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines([f'*"attach:{kafka.get_bootstrap_server()}"*'])


def test_brokers_are_disturbed_only_with_permission_and_if_they_come_back(kafka: KafkaContainer) -> None:
    guest = handed_in.attachment(handed_in.name_of(kafka))
    wrapped = kafka.get_wrapped_container().name
    paused, killed = (
        replace(SCENARIO, schedule=[at(1, fault, brokers((1,)), heal_after=3)]) for fault in (Pause(), Kill())
    )
    with pytest.raises(PlanError, match=r"disturbs brokers of container:.*: set may_disrupt_brokers = true in the sc"):
        guest.permit(paused, paused.plan(1))
    guest.permit(replace(paused, may_disrupt_brokers=True), paused.plan(1))
    with ProcessOwner.open() as owner:
        with pytest.raises(PlanError, match=rf"ends brokers, but {wrapped} would have another port after a start"):
            guest.start(killed, killed.plan(1), owner, quiet)
        elsewhere = replace(
            guest, published=[replace(port, endpoint=Endpoint(LOOPBACK, 1)) for port in guest.published]
        )
        with pytest.raises(PlanError, match=r"the containers of broker 1 at \S+ were not handed in"):
            elsewhere.start(paused, paused.plan(1), owner, quiet)


def test_a_killed_harness_leaves_no_paused_broker_and_no_changed_log_level(
    engine: Any, kafka: KafkaContainer, tmp_path: Path
) -> None:
    container, address = kafka.get_wrapped_container(), handed_in.attachment(handed_in.name_of(kafka)).address
    before = levels(address)
    paused = replace(SCENARIO, may_disrupt_brokers=True, schedule=[at(1, Pause(), brokers((1,)), heal_after=90)])
    scenario, output = tmp_path / "paused.json", tmp_path / "output"
    scenario.write_text(json.dumps(paused.to_json()))
    command = [sys.executable, "-m", "fencepost", "run", str(scenario), "--seed", "3", "--no-check"]
    with output.open("w") as file:
        harness = subprocess.Popen(
            [*command, "--cluster", f"container:{container.name}", "--runs", str(tmp_path / "runs")],
            stdout=file,
            stderr=subprocess.STDOUT,
        )

    def is_paused() -> bool:
        assert harness.poll() is None, output.read_text()
        return bool(engine.api.inspect_container(container.id)["State"]["Paused"])

    try:
        eventually(is_paused, LONG_S * 2, "the broker to be paused", state=output.read_text, every_s=0.2)
    finally:
        harness.kill()
        harness.wait(LONG_S)
    # Until it runs again, nothing answers.
    eventually(
        lambda: levels(address) == before,
        LONG_S * 2,
        "the broker to run again, and its log level to be put back",
        forgive=(ClusterError, WaitTimeout),
    )
    eventually(lambda: is_free(str(container.id)), CLEAN_S, "the run's clean-up to end", every_s=0.2)


def test_a_request_log_is_not_shown_to_two_runs_at_once_or_if_somebody_switched_it_off(kafka: KafkaContainer) -> None:
    guest = handed_in.attachment(handed_in.name_of(kafka))
    with ProcessOwner.open() as owner:
        cluster = guest.start(SCENARIO, SCENARIO.plan(1), owner, quiet)
        try:
            assert isinstance(cluster.evidence, ContainerEvidence)
            (broker,) = cluster.brokers
            assert not list(cluster.evidence.request_log(broker))
            other = guest.for_another_run().start(SCENARIO, SCENARIO.plan(1), owner, quiet)
            try:
                with pytest.raises(NotShown, match="another run on this machine has switched it on"):
                    other.evidence.request_log(broker)
            finally:
                other.stop()
            assert not list(cluster.evidence.request_log(broker))
            cluster.admin.set_log_level(broker, LOGGER, "WARN")
            with pytest.raises(NotShown, match=rf"the level of {LOGGER} of broker {broker} was set to WARN"):
                cluster.evidence.request_log(broker)
        finally:
            cluster.stop()


def test_what_leads_to_no_cluster_is_said(engine: Any, kafka: KafkaContainer, image: str, tmp_path: Path) -> None:
    with pytest.raises(ScenarioError, match="there is no container 'nowhere'; these run: "):
        published.by_container("nowhere")
    with pytest.raises(ScenarioError, match="there is no Compose file"):
        published.by_compose(tmp_path / "compose.yml")
    (tmp_path / "compose.yml").write_text("services: {}")
    with pytest.raises(ScenarioError, match=r"no container of .*compose\.yml runs: start them with"):
        published.by_compose(tmp_path / "compose.yml")
    silent = engine.containers.run(image, ["sleep", "60"], detach=True)
    try:
        with pytest.raises(ScenarioError, match="publishes no port on this machine, so no client can reach it"):
            published.by_container(silent.name)
        silent.kill()
        silent.wait()
        with pytest.raises(ScenarioError, match="is exited: start it first"):
            published.by_container(silent.name)
    finally:
        silent.remove(force=True)


def test_a_correct_group_is_valid_on_a_compose_project(project: Path, chaos_spark: Spark, tmp_path: Path) -> None:
    attachment = attached(project)
    run = runner.run(SCENARIO, plan=SCENARIO.plan(2), runs=tmp_path / "runs", backend=attachment)
    assert valid(run, chaos_spark).unjudged == {}
    disturbed = replace(
        SCENARIO,
        name="disturbed brokers",
        may_disrupt_brokers=True,
        schedule=[
            at(1, Pause(), brokers((1,)), heal_after=3),
            at(6, Kill(), brokers((2,)), heal_after=1),
        ],
    )
    run = runner.run(disturbed, plan=disturbed.plan(3), runs=tmp_path / "runs", backend=attachment.for_another_run())
    verdict = valid(run, chaos_spark)
    assert "silent-commit-failure" in verdict.unjudged
    assert "broker 2: its output could not be followed all the time: it ended" in next(iter(verdict.unjudged.values()))


@pytest.mark.parametrize(
    ("wrong", "why"),
    [
        (
            replace(SCENARIO, group=replace(SCENARIO.group, config={"session.timeout.ms": 3000})),
            r"session\.timeout\.ms of the group is 3000, but the brokers accept 6000 to 1800000 ms",
        ),
        (
            replace(SCENARIO, workload=Transform(commit="transaction")),
            r"need __transaction_state with 3 replicas, but the cluster has 1 of them: set transaction",
        ),
    ],
    ids=["short sessions", "transactions of one broker"],
)
def test_what_the_brokers_do_not_accept_is_refused_before_anything_is_created(
    kafka: KafkaContainer, wrong: Scenario, why: str
) -> None:
    guest = handed_in.attachment(handed_in.name_of(kafka))
    with ProcessOwner.open() as owner, pytest.raises(ClusterError, match=why):
        guest.start(wrong, wrong.plan(1), owner, quiet)
