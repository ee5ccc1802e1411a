"""Kafka in containers that others started: a ``KafkaContainer`` of testcontainers, and a Compose project."""

from __future__ import annotations

import hashlib
import io
import shutil
import subprocess
import tarfile
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
from testcontainers.community.kafka import KafkaContainer
from testcontainers.core.config import testcontainers_config

from cluster.docker_base import base_image
from cluster.worlds import LONG_S
from fencepost.clock import eventually
from fencepost.clusters.admin.cleaning import discover
from fencepost.clusters.attach import handed_in
from fencepost.clusters.attach.backend import Attachment
from fencepost.clusters.kafka import provision
from fencepost.errors import ClusterError

IMAGE = Path(__file__).parents[1] / "kafka_image"
NAME = "fencepost-test-cp-kafka:7.9.0"  # KafkaContainer reads the version in the tag
BROKER = """
  broker-{number}:
    image: {image}
    ports: ["127.0.0.1:{port}:9093"]
    command: >-
      sh -c "sh /etc/confluent/docker/configure
      && kafka-storage format --ignore-formatted -t {cluster} -c /etc/kafka/kafka.properties
      && exec /etc/confluent/docker/launch"
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
      KAFKA_GROUP_MIN_SESSION_TIMEOUT_MS: 1000
"""


@pytest.fixture(scope="module")
def image(engine: Any) -> str:
    """The image, built of Kafka's jars of this machine's cache, unless the engine has it."""
    base, files = base_image(engine), sorted(IMAGE.iterdir())
    made_of = hashlib.sha256(b"".join([base.encode(), *(path.read_bytes() for path in files)])).hexdigest()
    label = {"fencepost.test.made-of": made_of}
    if not engine.images.list(name=NAME, filters={"label": f"fencepost.test.made-of={made_of}"}):
        with io.BytesIO() as context:
            with tarfile.open(fileobj=context, mode="w") as tar:
                for path in files:
                    tar.add(path, path.name)
                for jar in provision.kafka(lambda note: None):
                    tar.add(jar, f"libs/{jar.name}")
            context.seek(0)
            engine.images.build(
                fileobj=context, custom_context=True, tag=NAME, buildargs={"BASE": base}, labels=label, rm=True
            )
    return NAME


@contextmanager
def container(image: str, **settings: str) -> Iterator[KafkaContainer]:
    """A started ``KafkaContainer`` with some environment variables."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(testcontainers_config, "ryuk_disabled", True)  # its image is in a registry
        started = KafkaContainer(image).with_kraft()
        for name, value in settings.items():
            started.with_env(name, value)
        try:
            yield started.start(timeout=LONG_S * 2)
        finally:
            started.stop()


@pytest.fixture(scope="module")
def kafka(image: str) -> Iterator[KafkaContainer]:
    """As it is without settings of one's own."""
    with container(image) as started:
        yield started


@pytest.fixture(scope="module")
def project(image: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A Compose file of three brokers, started."""
    if not (compose := shutil.which("docker-compose")):
        pytest.skip("docker-compose is missing: install it")
    file, cluster = tmp_path_factory.mktemp("project") / "docker-compose.yml", "5L6g3nShT-eMCtK--X86sw"
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


def attached(project: Path) -> Attachment:
    """The attachment to the three brokers of a Compose project, once they serve."""
    found: list[Attachment] = []

    def three_brokers() -> bool:
        with suppress(ClusterError):
            found[:] = [handed_in.attachment(f"compose:{project}")]
            return len(discover(found[0].address, {}).brokers) == 3
        return False

    eventually(three_brokers, 60, "the three brokers to serve", every_s=0.5)
    return found[0]
