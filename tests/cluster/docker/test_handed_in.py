"""Clusters that are handed in: a ``KafkaContainer`` of testcontainers, a container by its name, a Compose project."""

from __future__ import annotations

import io
import shutil
import subprocess
import tarfile
import uuid
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from testcontainers.community.kafka import KafkaContainer
from testcontainers.core.config import testcontainers_config

from cluster.attach.test_attach import SCENARIO as GUEST
from cluster.docker_base import base_image
from fencepost import at, past_session, runner
from fencepost.checkers.spark.session import Spark
from fencepost.clock import eventually
from fencepost.clusters.admin.cleaning import discover
from fencepost.clusters.attach import handed_in
from fencepost.clusters.attach.backend import Attachment
from fencepost.clusters.docker import published
from fencepost.clusters.kafka import provision
from fencepost.clusters.selection import backend
from fencepost.errors import ClusterError, ScenarioError
from fencepost.faults import BlackHole, Kill, Pause
from fencepost.judging import judge
from fencepost.model import Validity
from fencepost.network import redirects
from fencepost.targets import member

pytestmark = [pytest.mark.docker, pytest.mark.spark]

IMAGE = Path(__file__).parents[1] / "kafka_image"
NAME = "fencepost-test-cp-kafka:7.9.0"  # KafkaContainer reads the version in the tag
SCENARIO = replace(
    GUEST,
    name="handed in",
    schedule=[
        at(1, Pause(), member(1), heal_after=past_session(1.5), expect="fenced"),
        at(2, Kill(), member(0), heal_after=1),
        at(14, BlackHole(), member(2), heal_after=past_session(1.5), expect="fenced"),  # when all others are back
    ],
)
BROKER = """
  broker-{number}:
    image: {image}
    ports: ["127.0.0.1:{port}:9093"]
    command: >-
      sh -c "sh /etc/confluent/docker/configure
      && kafka-storage format -t {cluster} -c /etc/kafka/kafka.properties && exec /etc/confluent/docker/launch"
    environment:
      KAFKA_NODE_ID: {number}
      KAFKA_PROCESS_ROLES: broker,controller
      KAFKA_CONTROLLER_LISTENER_NAMES: CONTROLLER
      KAFKA_CONTROLLER_QUORUM_VOTERS: 1@broker-1:9094,2@broker-2:9094,3@broker-3:9094
      KAFKA_LISTENERS: OUTSIDE://0.0.0.0:9093,INSIDE://0.0.0.0:9092,CONTROLLER://0.0.0.0:9094
      KAFKA_ADVERTISED_LISTENERS: OUTSIDE://127.0.0.1:{port},INSIDE://broker-{number}:9092
      KAFKA_LISTENER_SECURITY_PROTOCOL_MAP: OUTSIDE:PLAINTEXT,INSIDE:PLAINTEXT,CONTROLLER:PLAINTEXT
      KAFKA_INTER_BROKER_LISTENER_NAME: INSIDE
      KAFKA_OFFSETS_TOPIC_NUM_PARTITIONS: 4
"""


@pytest.fixture(scope="module")
def image(engine: Any) -> str:
    """The image, built of Kafka's jars of this machine's cache, unless the engine has it."""
    base = base_image(engine)
    label = {"fencepost.test.base": base}
    if not engine.images.list(name=NAME, filters={"label": f"fencepost.test.base={base}"}):
        with io.BytesIO() as context:
            with tarfile.open(fileobj=context, mode="w") as tar:
                for path in sorted(IMAGE.iterdir()):
                    tar.add(path, path.name)
                for jar in provision.kafka(lambda note: None):
                    tar.add(jar, f"libs/{jar.name}")
            context.seek(0)
            engine.images.build(
                fileobj=context, custom_context=True, tag=NAME, buildargs={"BASE": base}, labels=label, rm=True
            )
    return NAME


@pytest.fixture(scope="module")
def kafka(image: str) -> Iterator[KafkaContainer]:
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(testcontainers_config, "ryuk_disabled", True)  # its image is in a registry
        with KafkaContainer(image).with_kraft() as started:
            yield started


def valid(run: Path, spark: Spark) -> None:
    verdict = judge(run, spark)
    assert verdict.validity is Validity.VALID, [(check.check, check.reason) for check in verdict.checks]
    assert [fault["took_effect"] for fault in verdict.faults] == [True] * len(SCENARIO.schedule)
    assert "silent-commit-failure" in verdict.unjudged


@pytest.mark.skipif(bool(redirects.missing_reason()), reason=redirects.missing_reason())
def test_a_correct_group_is_valid_on_a_container_of_testcontainers(
    kafka: KafkaContainer, chaos_spark: Spark, tmp_path: Path
) -> None:
    name = handed_in.name_of(kafka)
    assert name == f"attach:{kafka.get_bootstrap_server()}"
    valid(runner.run(SCENARIO, plan=SCENARIO.plan(1), runs=tmp_path, backend=backend(name)), chaos_spark)


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


@pytest.fixture
def project(image: str, tmp_path: Path) -> Iterator[Path]:
    """A Compose file of three brokers, started."""
    if not (compose := shutil.which("docker-compose")):
        pytest.skip("docker-compose is missing: install it")
    file, cluster = tmp_path / "docker-compose.yml", "5L6g3nShT-eMCtK--X86sw"
    ports = [29_200 + uuid.uuid4().int % 500 * 3 + number for number in range(3)]
    brokers = (
        BROKER.format(number=number, port=port, image=image, cluster=cluster) for number, port in enumerate(ports, 1)
    )
    file.write_text(f"version: '3'\nservices:{''.join(brokers)}")
    command = [compose, "-f", str(file), "-p", f"fencepost{uuid.uuid4().hex[:8]}"]
    try:
        subprocess.run([*command, "up", "-d"], check=True, capture_output=True, text=True)
        yield file
    finally:
        subprocess.run([*command, "down", "-v", "-t", "1"], check=True, capture_output=True)


def test_a_correct_group_is_valid_on_a_compose_project(project: Path, chaos_spark: Spark, tmp_path: Path) -> None:
    found: list[Attachment] = []

    def three_brokers() -> bool:
        with suppress(ClusterError):
            found[:] = [handed_in.attachment(f"compose:{project}")]
            return len(discover(found[0].address, {})) == 3
        return False

    eventually(three_brokers, 60, "the three brokers to serve", every_s=0.5)
    (attachment,) = found
    valid(runner.run(SCENARIO, plan=SCENARIO.plan(2), runs=tmp_path / "runs", backend=attachment), chaos_spark)
