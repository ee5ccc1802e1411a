"""Clusters for cluster tests: one for all of this folder, healed after every test that had it in its hands. It stops
before tests of other folders begin, as brokers that do nothing are busy, too.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import docker as library
import pytest
from fault_table import Cell, Noted

from cluster.docker_base import base_image
from cluster.worlds import LONG_S, Inject, World, bounded
from fencepost.clock import eventually, now_ns
from fencepost.clusters import local
from fencepost.clusters.docker import engine as docker_engine
from fencepost.clusters.docker.images import BASE
from fencepost.clusters.kept import restore
from fencepost.clusters.managed_cluster import ManagedCluster
from fencepost.errors import ProvisionError
from fencepost.group import running_group as groups
from fencepost.interfaces import Cluster, ClusterSpec, Fault, Injection, Target
from fencepost.model.run_names import RunNames
from fencepost.network import packets
from fencepost.processes.owner import ProcessOwner
from fencepost.scenario import scenario
from fencepost.workloads import PollLoop
from fencepost_member.recording.events import EventLog

SLOTS = 4


@pytest.fixture(scope="package")
def session_owner() -> Iterator[ProcessOwner]:
    with ProcessOwner.open() as owner:
        yield owner


@pytest.fixture(scope="package")
def session_cluster(session_owner: ProcessOwner) -> Iterator[ManagedCluster]:
    running = local.start(ClusterSpec(slots=SLOTS), session_owner)
    yield running
    running.stop()


@pytest.fixture(scope="session")
def backend() -> str:
    """What the cluster is of."""
    return "local"


@pytest.fixture
def cluster(session_cluster: ManagedCluster) -> Iterator[ManagedCluster]:
    """Three brokers and four slots, shared by all tests of the session; use topics and groups of your own."""
    yield session_cluster
    restore(session_cluster)


@contextmanager
def consuming(
    cluster: Cluster,
    owner: ProcessOwner,
    history: Path,
    name: str,
    protocol: str,
    static: bool = False,
    more: tuple[str, ...] = (),
    backend: str = "local",
) -> Iterator[World]:
    """Two members, which both own partitions, two spare ones and a producer; of ``more`` topics than the first."""
    names = (name, *more)
    cluster.admin.create_topics([scenario.Topic(topic, partitions=4) for topic in names])
    home = groups.RunPaths(owner, EventLog(history / "events" / "harness.jsonl", "harness"), history, history / "logs")
    config = {"session.timeout.ms": 6000, "heartbeat.interval.ms": 200}
    spec = scenario.Group(members=2, spare=2, static=static, protocol=protocol, config=config)
    topics = {topic: {p: 4 * number + p for p in range(4)} for number, topic in enumerate(names)}
    group = groups.make(home, cluster, spec, PollLoop(rate_hz=200), names=RunNames(name), topics=topics, seed=1)
    try:
        group.start()

        def owning() -> bool:
            group.refresh()
            return all(member.owned for member in group.members[:2])

        eventually(owning, LONG_S, "both members to own partitions")
        yield World(cluster, group.members, name, backend, more)
    finally:
        group.kill()


@pytest.fixture(scope="module")
def world_of_module(
    session_cluster: ManagedCluster,
    session_owner: ProcessOwner,
    backend: str,
    tmp_path_factory: pytest.TempPathFactory,
    request: pytest.FixtureRequest,
) -> Iterator[World]:
    """Such a group (of static members where the module says so), as long as its tests need it."""
    name = request.module.__name__.rpartition(".")[2].replace("_", "-")
    history = tmp_path_factory.mktemp("history")
    static = getattr(request.module, "STATIC", False)
    more = tuple(f"{name}-{topic}" for topic in getattr(request.module, "MORE", ()))
    with consuming(session_cluster, session_owner, history, name, "cooperative", static, more, backend) as world:
        yield world


@pytest.fixture
def world_of_consumers(cluster: ManagedCluster, session_owner: ProcessOwner, tmp_path: Path) -> Iterator[World]:
    """A group of the consumer protocol, for one test."""
    with consuming(cluster, session_owner, tmp_path, f"consumers-{tmp_path.name}", "consumer") as world:
        yield world


@pytest.fixture
def owners(monkeypatch: pytest.MonkeyPatch) -> list[ProcessOwner]:
    """Those that this process opens while the test runs: what is left of others is nothing to it."""
    opened, found = ProcessOwner.open, list[ProcessOwner]()

    def noted(*arguments: Any) -> ProcessOwner:
        found.append(opened(*arguments))
        return found[-1]

    monkeypatch.setattr(ProcessOwner, "open", noted)
    return found


@pytest.fixture(scope="session")
def lacking_packets() -> str:
    """What keeps packets from being lost on this machine."""
    return packets.missing_reason()


@pytest.fixture
def packets_work(lacking_packets: str) -> None:
    """Skips where they cannot be lost."""
    if lacking_packets:
        pytest.skip(f"packets cannot be lost here: {lacking_packets}")


@pytest.fixture
def world(cluster: ManagedCluster, world_of_module: World, monkeypatch: pytest.MonkeyPatch) -> World:
    """What faults are tried on, whole again after other tests. What there is to see may come late on a busy machine."""
    bounded(monkeypatch, LONG_S)
    if ended := [member for member in world_of_module.members[:2] if member.pid is None]:
        for member in ended:  # as a client that gave up for good
            member.start()
        eventually(world_of_module.owning, LONG_S, "both members to own partitions again")
    return world_of_module


@pytest.fixture
def inject(request: pytest.FixtureRequest) -> Iterator[Inject]:
    """Injects a fault and undoes it after the test, however that ends. What its witness sees fills the fault table."""
    with ExitStack() as undone:

        def injected(fault: Fault, world: World, target: Target) -> Injection:
            begun_ns = now_ns()
            injection = fault.inject(world, target)
            undone.callback(injection.undo)
            return Noted(injection, Cell.of(fault, target, world.backend), begun_ns, request.node)

        yield injected


@pytest.fixture(scope="module")
def engine() -> Iterator[Any]:
    """The Docker engine of this machine."""
    try:
        docker_engine.engine()
    except ProvisionError as error:
        pytest.skip(str(error))
    engine = library.from_env()
    yield engine
    engine.close()


@pytest.fixture(scope="module")
def base(engine: Any) -> Iterator[str]:
    """The base of all images, by its name."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv(BASE, base_image(engine))
        yield os.environ[BASE]
