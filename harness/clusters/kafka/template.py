"""Files that are created once per machine so that a cluster starts in seconds: a class archive and a formatted log
directory.

The class archive contains Kafka's classes as a running node had loaded them; it belongs to one Java, one set of jars
and one set of flags. The formatted directory contains the output of ``StorageTool format``, so that a cluster's start
copies a file instead of running a JVM per node.
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
import shutil
import signal
import tempfile
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from fencepost.clusters import addresses, cache
from fencepost.clusters.cache import ProgressCallback, quiet
from fencepost.clusters.kafka import server_properties
from fencepost.clusters.kafka.jvm import FLAGS, JvmNode, KafkaJvm
from fencepost.clusters.kafka.provision import Java, kafka_version
from fencepost.errors import ClusterError, ProvisionError, WaitTimeout
from fencepost.interfaces import ClusterSpec
from fencepost.processes.owner import ProcessOwner, wait_ended

ARCHIVE = "kafka.jsa"
CHECKPOINT = "bootstrap.checkpoint"
STEP_S = 120.0


@dataclass(frozen=True)
class Template:
    """The two files."""

    archive: Path
    checkpoint: Path


def template(owner: ProcessOwner, java: Java, jars: Sequence[Path], progress: ProgressCallback = quiet) -> Template:
    """The template for this Java and these jars, created when it is not cached (some seconds).

    Raises:
        ProvisionError: the node that creates it failed; shows the end of its log.
    """
    home = cache.install(_name(java, jars), lambda into: _make(owner, java, jars, into, progress))
    return Template(home / ARCHIVE, home / CHECKPOINT)


def new_id() -> str:
    """A random cluster or directory id in Kafka's notation.

    As Kafka's own (``Uuid.randomUuid``) it does not begin with a dash, which its tools would read as an option.
    """
    found = "-"
    while found.startswith("-"):
        found = base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
    return found


def _name(java: Java, jars: Sequence[Path]) -> str:
    # The JVM refuses an archive when a jar's size or time changed, so they are part of the name.
    stats = [(str(jar), jar.stat().st_size, jar.stat().st_mtime_ns) for jar in jars]
    key = hashlib.sha256(json.dumps([java.description, FLAGS, stats]).encode()).hexdigest()[:12]
    return f"template-{kafka_version(jars)}-java{java.major}-{key}"


def _make(owner: ProcessOwner, java: Java, jars: Sequence[Path], into: Path, progress: ProgressCallback) -> None:
    progress("creating the class archive and the formatted template (some seconds, once)")
    spec = ClusterSpec(brokers=1, slots=1)
    place = addresses.reserve(spec)
    home = Path(tempfile.mkdtemp(prefix="template-", dir=owner.directory))
    try:
        jvm = KafkaJvm(java.path, tuple(jars))
        (home / "server.properties").write_text(server_properties.render(standalone(spec, place, home / "data")))
        _format(owner, jvm, home)
        flags = [f"-XX:ArchiveClassesAtExit={into / ARCHIVE}"]
        node = JvmNode("template", home, jvm.node(home, flags=flags), partial(owner.spawn, keep_open=(place.lock,)))
        node.start()
        node.signal(signal.SIGTERM)
        node.wait_ended(STEP_S)
        if not (into / ARCHIVE).exists():
            raise ProvisionError(f"Java wrote no class archive. The end of its log: {node.last_lines()}")
        shutil.copy(home / "data" / CHECKPOINT, into / CHECKPOINT)
    except (ClusterError, WaitTimeout) as error:
        raise ProvisionError(f"the template of a Kafka node could not be created. {error}") from error
    finally:
        os.close(place.lock)
        shutil.rmtree(home, ignore_errors=True)


def _format(owner: ProcessOwner, jvm: KafkaJvm, home: Path) -> None:
    log = home / "format.log"
    tool = jvm.command("kafka.tools.StorageTool", "format", "-t", new_id(), "-c", home / "server.properties")
    code = wait_ended(owner.spawn(tool, log=log), STEP_S)
    if code:
        raise ProvisionError(f"StorageTool ended with exit code {code}: {log.read_text()[-500:]}")


def standalone(spec: ClusterSpec, place: addresses.Addresses, data: Path) -> dict[str, object]:
    """The settings of a node that is both controller and broker, so that the archive has the classes of both."""
    voter = place.controller  # not a port of the broker: a node needs a separate port for each listener
    both = server_properties.broker_properties(spec, 1, place.listeners(1, spec), voter, str(data))
    return {
        **both,
        "process.roles": "broker,controller",
        "controller.quorum.voters": f"1@{voter}",
        "listeners": f"{both['listeners']},{server_properties.controller(1)}://{voter}",
    }
