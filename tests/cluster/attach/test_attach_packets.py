"""Faults between members and a cluster of another owner hit these members alone, although they share the brokers'
addresses with everybody else on this machine. Measured by who owns partitions, and by a bystander at these addresses.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from cluster.attach.test_attach import SCENARIO, address, guesting
from cluster.killing import rules_of
from cluster.worlds import BROKER, LONG_S, MEMBER, ON_CLUSTER, Inject, World, bounded, healed
from fencepost import runner
from fencepost.checkers.spark.session import Spark
from fencepost.clock import eventually
from fencepost.clusters.attach.backend import Attachment
from fencepost.clusters.managed_cluster import ManagedCluster
from fencepost.faults import BlackHole, DropPackets, Latency, LoseConnects, LosePackets, Refuse
from fencepost.judging import judge
from fencepost.model import Validity
from fencepost.network import redirects
from fencepost.processes.owner import ProcessOwner
from fencepost.schedule.entries import at, past_session
from fencepost.targets import brokers, member
from fencepost.witnesses.probes import Probe

pytestmark = [*ON_CLUSTER, pytest.mark.spark]
PARTITIONS = 4


@pytest.fixture(scope="module", autouse=True)
def redirects_work() -> None:
    """Skips where members cannot be led to proxies."""
    if lacking := redirects.missing_reason():
        pytest.skip(lacking)


@pytest.fixture(scope="module")
def guests(session_cluster: ManagedCluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    with guesting(session_cluster, tmp_path_factory.mktemp("guests")) as world:
        yield world


def answered(world: World, broker: int, within_s: float = LONG_S) -> bool:
    """Whether a broker answers a bystander, who connects where members do."""
    probe = Probe(world.cluster.brokers[broker].endpoint)
    try:
        return bool(eventually(probe.answered, within_s, "an answer"))
    finally:
        probe.close()


def reaches(world: World, slot: int, broker: int) -> bool:
    """Whether a process that is as the member of the slot gets a connection to a broker."""
    host, port = world.cluster.brokers[broker].endpoint
    code = f"import socket; socket.create_connection(({host!r}, {port}), 1).close()"
    argv = [sys.executable, "-S", "-c", code]
    groups = world.cluster.interpreter(slot).groups
    return subprocess.run(argv, extra_groups=groups, capture_output=True, timeout=LONG_S, check=False).returncode == 0


def shares(world: World) -> list[int]:
    """How many partitions each of the two members has."""
    return [len(member.owned) for member in world.view().members[:2]]


def test_a_member_loses_its_packets_and_nobody_else_at_the_same_addresses(
    guests: World, inject: Inject, monkeypatch: pytest.MonkeyPatch
) -> None:
    bounded(monkeypatch, LONG_S)
    injection = inject(DropPackets(), guests, MEMBER)
    proven = injection.proven()
    assert proven.took_effect, proven.what
    assert not any(reaches(guests, 1, broker) for broker in guests.cluster.brokers)
    assert all(reaches(guests, 0, broker) for broker in guests.cluster.brokers)
    assert all(answered(guests, broker) for broker in guests.cluster.brokers)
    eventually(lambda: shares(guests)[0] == PARTITIONS, LONG_S, "the other member to get all partitions")
    ours = sum(one["sent"] for one in proven.data["links"])
    assert sum(guests.cluster.packets.lost().values()) > ours, "rules met the member's packets as well"
    healed(injection)
    assert all(reaches(guests, 1, broker) for broker in guests.cluster.brokers)
    eventually(lambda: shares(guests) == [2, 2], LONG_S, "the member to be back")


def test_all_members_lose_the_packets_of_one_broker(
    guests: World, inject: Inject, monkeypatch: pytest.MonkeyPatch
) -> None:
    bounded(monkeypatch, LONG_S)
    injection = inject(LoseConnects(), guests, BROKER)
    assert injection.proven().took_effect
    assert [[reaches(guests, slot, broker) for broker in (1, 3)] for slot in (0, 1)] == [[True, False]] * 2
    assert answered(guests, 3)
    healed(injection)


@pytest.mark.parametrize("network", ["packets", ""], ids=["packets", "links"])
def test_a_correct_group_is_valid_under_faults_on_its_way_to_a_cluster_of_another_owner(
    cluster: ManagedCluster, chaos_spark: Spark, owners: list[ProcessOwner], tmp_path: Path, network: str
) -> None:
    slow, cut = (LosePackets(share=0.2), DropPackets(direction="from")) if network else (Latency(), Refuse())
    steps = [
        at(1, BlackHole(), member(1), heal_after=past_session(1.5), expect="fenced"),
        at(3, slow, member(0), heal_after=2),
        at(5, cut, brokers((2,)), heal_after=1),
    ]
    scenario = replace(SCENARIO, schedule=steps, network=network)
    run = runner.run(scenario, plan=scenario.plan(1), runs=tmp_path, backend=Attachment.of(address(cluster)))
    verdict = judge(run, chaos_spark)
    assert [fault["took_effect"] for fault in verdict.faults] == [True] * len(steps), verdict.faults
    assert verdict.validity is Validity.VALID, [(check.check, check.reason) for check in verdict.checks]
    assert owners
    assert not [rule for owner in owners for rule in rules_of(owner.token)], "what led to the proxies is gone with them"
