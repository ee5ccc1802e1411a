"""The Docker back-end on a real engine: faults of containers. ``test_docker_runs`` has whole runs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import psutil
import pytest
from fault_table import Cell, unfilled

from cluster.conftest import consuming
from cluster.worlds import (
    BROKER,
    LONG_S,
    MEMBER,
    ON_CLUSTER,
    Inject,
    World,
    bounded,
    ends_and_begins_anew,
    node,
    nothing_to_see,
    shown,
    with_rules,
)
from fencepost.clock import eventually
from fencepost.clusters.docker import host
from fencepost.clusters.docker.processes import ContainerProcess
from fencepost.clusters.docker.removal import OWNER
from fencepost.clusters.managed_cluster import ManagedCluster
from fencepost.errors import WaitTimeout
from fencepost.faults import (
    BlackHole,
    Bounce,
    ChangeProtocol,
    DropPackets,
    Kill,
    LoseConnects,
    LosePackets,
    PartitionBrokers,
    Pause,
)
from fencepost.group.event_tail import last_poll_ns
from fencepost.interfaces import ClusterSpec, Fault, Target
from fencepost.processes.owner import ProcessOwner

pytestmark = [
    *ON_CLUSTER,
    pytest.mark.docker,
    pytest.mark.usefixtures("base"),
    pytest.mark.timeout(600),  # images are built, which is no fixture's own doing
]
STATIC, MORE = True, ("refunds",)  # see ``world_of_module``
BOTH_KINDS = pytest.mark.parametrize("target", [MEMBER, BROKER], ids=["member", "broker"])
CONNECT = "import socket, sys; socket.create_connection((sys.argv[1], int(sys.argv[2])), 2)"


@pytest.fixture(scope="module")
def backend() -> str:
    return "docker"


@pytest.fixture(scope="module")
def session_owner(base: None) -> Iterator[ProcessOwner]:
    with ProcessOwner.open() as owner:
        yield owner


@pytest.fixture(scope="module")
def session_cluster(session_owner: ProcessOwner) -> Iterator[ManagedCluster]:
    """In place of the one of processes: all that is made of it is in containers, too."""
    running = host.start(ClusterSpec(slots=4), session_owner)
    yield running
    running.stop()


def polled_ns(world: World) -> int:
    """When the member last polled, by what it wrote through the mount."""
    member = world.members[1]
    return last_poll_ns(member._home.history / "segments", member.actor)


@BOTH_KINDS
def test_a_paused_container_is_frozen_and_runs_on_in_the_same_life(
    world: World, inject: Inject, target: Target
) -> None:
    pid = node(world, target).pid
    injection = inject(Pause(), world, target)
    proven = injection.proven()
    assert proven.took_effect, proven.what
    assert psutil.Process(pid).status() != psutil.STATUS_STOPPED  # no signal did it
    if target is MEMBER:
        stood = polled_ns(world)
        with pytest.raises(WaitTimeout):
            eventually(lambda: polled_ns(world) > stood, 2, "a frozen member to poll")
    else:
        leaderless = lambda: 3 not in world.cluster.admin.leaders("__consumer_offsets").values()  # noqa: E731
        eventually(leaderless, LONG_S, "the others to lead what the frozen broker led")
    injection.undo()
    healed = injection.healed()
    assert healed.took_effect, healed.what
    assert node(world, target).pid == pid
    if target is MEMBER:
        eventually(lambda: polled_ns(world) > stood, LONG_S, "the member to poll again")


@pytest.mark.parametrize(("fault", "codes"), [(Kill(), {-9}), (Bounce(), {0, 143})], ids=["kill", "bounce"])
@BOTH_KINDS
def test_a_killed_or_bounced_container_ends_its_way_and_another_takes_its_place(
    world: World, inject: Inject, target: Target, fault: Fault, codes: set[int]
) -> None:
    ends_and_begins_anew(inject, world, target, fault, codes)


@pytest.mark.parametrize("fault", [Pause(), Kill(), Bounce()], ids=["pause", "kill", "bounce"])
def test_a_fault_that_the_engine_does_not_perform_is_not_proven(world: World, inject: Inject, fault: Fault) -> None:
    with nothing_to_see() as patched:
        patched.setattr(ContainerProcess, "send_signal", lambda self, number: None)
        assert not inject(fault, world, MEMBER).proven().took_effect


def test_members_in_containers_change_their_protocol(
    session_cluster: ManagedCluster,
    session_owner: ProcessOwner,
    tmp_path: Path,
    inject: Inject,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    bounded(monkeypatch, LONG_S)
    with consuming(session_cluster, session_owner, tmp_path, "migrated", "eager", backend="docker") as world:
        injection = inject(ChangeProtocol(), world, MEMBER)
        proven = injection.proven()
        assert proven.took_effect, proven.what
        assert "uses the protocol consumer" in proven.what
        injection.undo()
        assert injection.healed().took_effect


@pytest.mark.parametrize("cell", unfilled("docker"), ids=str)
def test_every_fault_is_proven_and_healed_in_containers(world: World, inject: Inject, cell: Cell) -> None:
    shown(cell, world, inject)


def test_a_hole_is_not_proven_where_the_sockets_of_the_proxies_cannot_be_seen(world: World, inject: Inject) -> None:
    with nothing_to_see() as patched:
        patched.setattr(ManagedCluster, "sockets", lambda self: "")
        injection = inject(BlackHole(direction="to"), world, MEMBER)
        assert not injection.proven().took_effect


def test_a_member_finds_its_proxies_and_no_broker_behind_them(
    world: World, engine: Any, session_owner: ProcessOwner
) -> None:
    assert reaches(engine, session_owner, world.cluster.links.endpoint(1, 1))
    assert not reaches(engine, session_owner, world.cluster.links.upstream(1, 1))


def reaches(engine: Any, owner: ProcessOwner, endpoint: tuple[str, int]) -> bool:
    """Whether who tries it in the members' network gets a connection: in the container of one that no fault hits."""
    found = engine.containers.list(filters={"label": f"{OWNER}={owner.token}"})
    members = [c for c in found if "fencepost_member" in c.attrs["Args"]]
    (inside,) = [c for c in members if any("member-0." in part for part in c.attrs["Args"])]
    host, port = endpoint
    return bool(inside.exec_run(["python3", "-c", CONNECT, host, str(port)]).exit_code == 0)


@pytest.mark.usefixtures("packets_work")
@pytest.mark.parametrize(
    "fault", [DropPackets(), DropPackets(direction="from"), LoseConnects()], ids=["drop", "drop from", "connects"]
)
def test_a_member_loses_packets_in_the_network_of_its_proxies_and_nobody_else_does(
    world: World, inject: Inject, engine: Any, session_owner: ProcessOwner, fault: Fault
) -> None:
    endpoint = world.cluster.links.endpoint
    injection = inject(fault, world, MEMBER)
    proven = injection.proven()
    assert proven.took_effect, proven.what
    assert all(one["counted"] >= one["lost"] > one["control_lost"] == 0 for one in proven.data["links"])
    assert not reaches(engine, session_owner, endpoint(1, 1))
    assert reaches(engine, session_owner, endpoint(0, 1))
    injection.undo()
    healed = injection.healed()
    assert healed.took_effect, healed.what
    assert not world.cluster.packets.lost()
    assert reaches(engine, session_owner, endpoint(1, 1))


@pytest.mark.usefixtures("packets_work")
def test_the_share_of_lost_packets_is_that_of_one_passage(world: World, inject: Inject) -> None:
    injection = inject(LosePackets(share=0.5), world, MEMBER)
    proven = injection.proven()
    assert proven.took_effect, proven.what
    injection.undo()
    assert injection.healed().took_effect


@pytest.mark.usefixtures("packets_work")
def test_packets_of_containers_are_not_proven_lost_by_other_rules(world: World, inject: Inject) -> None:
    elsewhere = world.cluster.links.endpoint(3, 1)
    other = with_rules(world, lambda loss: replace(loss, endpoint=elsewhere))
    with nothing_to_see():
        evidence = inject(DropPackets(), other, MEMBER).proven()
    assert not evidence.took_effect
    assert "slot 1 to broker 1, " in evidence.what
    assert "0 of 20 probe packets were lost" in evidence.what


@pytest.mark.usefixtures("packets_work")
def test_brokers_in_containers_are_parted_and_one_that_is_killed_takes_its_rules_along(
    world: World, inject: Inject
) -> None:
    injection = inject(PartitionBrokers(controller=True), world, BROKER)
    proven = injection.proven()
    assert proven.took_effect, proven.what
    rules = world.cluster.packets.lost()
    killed = inject(Kill(), world, BROKER)
    assert killed.proven().took_effect
    assert 0 < len(world.cluster.packets.lost()) < len(rules)
    injection.undo()
    killed.undo()  # only now its new life finds the controller
    healed = injection.healed()
    assert healed.took_effect, healed.what
    assert not world.cluster.packets.lost()
