"""A group that works is migrated to the consumer protocol and back (KIP-848): its coordinator converts it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from cluster.conftest import consuming
from cluster.worlds import (
    LONG_S,
    MEMBER,
    ON_CLUSTER,
    Inject,
    Instead,
    World,
    bounded,
    comes_back_unchanged,
    nothing_to_see,
)
from fencepost import Group, MemberSpec, Scenario, Topic, at
from fencepost.clock import eventually
from fencepost.clusters.managed_cluster import ManagedCluster
from fencepost.errors import PlanError, ScenarioError
from fencepost.faults import ChangeProtocol
from fencepost.interfaces import Target
from fencepost.processes.owner import ProcessOwner
from fencepost.targets import member
from fencepost.witnesses.base import Observation
from fencepost.workloads import OwnProgram, PollLoop

pytestmark = ON_CLUSTER


@pytest.fixture
def world(
    cluster: ManagedCluster, session_owner: ProcessOwner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[World]:
    """A group with the range assignor, for one test."""
    bounded(monkeypatch, LONG_S)
    with consuming(cluster, session_owner, tmp_path, f"migrated-{tmp_path.name}", "eager") as world:
        yield world


def kinds(world: World) -> tuple[str, list[str]]:
    group = world.cluster.admin.describe(world.group)
    return group.protocol, sorted(one.protocol for one in group.members.values())


def test_the_coordinator_converts_the_group_with_the_first_member_and_back_without_the_last_one(
    world: World, inject: Inject
) -> None:
    seen, steps = [kinds(world)], []
    for number in (0, 1):
        steps.append(inject(ChangeProtocol(), world, Target(members=(number,))))
        proven = steps[-1].proven()
        assert proven.took_effect, proven.what
        assert f"member-{number} uses the protocol consumer, in a group that is consumer" in proven.what
        seen.append(kinds(world))
    for step in reversed(steps):
        step.undo()
        healed = step.healed()
        assert healed.took_effect, healed.what
        seen.append(kinds(world))
    mixed = ("consumer", ["classic", "consumer"])
    assert seen[:4] == [("classic", ["classic"] * 2), mixed, ("consumer", ["consumer"] * 2), mixed]
    back = lambda: kinds(world) == ("classic", ["classic"] * 2)  # noqa: E731
    eventually(back, LONG_S, "the group to be classic", state=lambda: str(kinds(world)))


def test_who_comes_back_with_the_same_protocol_has_not_changed_it(world: World, inject: Inject) -> None:
    evidence = comes_back_unchanged(inject, world, ChangeProtocol())
    assert not evidence.took_effect
    assert "runs with" in evidence.what


def test_a_change_that_the_coordinator_does_not_know_is_none(
    world: World, inject: Inject, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The member tells its protocol, which counts only once the coordinator has it so."""
    monkeypatch.setattr("fencepost.faults._bounced.Bounced.in_group", lambda one, terms: Observation("", "told"))
    still = Instead(world.members[1], signal=lambda number: None, wait_ended=lambda within_s: 0)
    monkeypatch.setattr("fencepost.faults._bounced.ended", lambda lives, codes: Observation("", "ended"))
    injection = inject(ChangeProtocol(), replace(world, members=[world.members[0], still]), MEMBER)
    with nothing_to_see():
        evidence = injection.proven()
    assert not evidence.took_effect
    assert "member-1 uses the protocol classic, not consumer" in evidence.what


@pytest.mark.spark
@pytest.mark.parametrize("protocol", ["eager", "consumer"])
def test_nobody_is_accused_while_a_group_is_migrated_and_back(chaos: Any, protocol: str) -> None:
    """Three members, one after the other; each goes back as long after it came."""
    to = "consumer" if protocol == "eager" else "eager"
    scenario = Scenario(
        name=f"migration from {protocol} to {to}",
        topics=[Topic("orders", partitions=6)],
        group=Group(members=3, protocol=protocol, config={"session.timeout.ms": 6000}),
        workload=PollLoop(rate_hz=1000, commit_every_ms=50),
        schedule=[at(1 + 3 * number, ChangeProtocol(to), member(number), heal_after=12) for number in range(3)],
    )
    chaos.run(scenario).must_keep_its_promises()


def asked(group: Group, to: str, kafka: str) -> Scenario:
    workload = OwnProgram() if group.command else PollLoop()
    steps = [at(1, ChangeProtocol(to), member(0), heal_after=1)]
    return Scenario("one", [Topic("orders")], group, workload, steps, kafka=kafka)


@pytest.mark.core
@pytest.mark.parametrize(
    ("group", "to", "kafka", "sentence"),
    [
        (Group(protocol="eager"), "consumers", "", "found to='consumers'; protocols are eager, cooperative, consumer"),
        (
            Group(protocol="consumer"),
            "consumer",
            "",
            "a group with the protocol 'consumer' cannot change to .*: it",
        ),
        (Group(protocol="eager"), "cooperative", "", "cannot change to 'cooperative': both are classic"),
        (Group(protocol="cooperative"), "consumer", "", "do not convert a group whose assignor adds data of its own"),
        (Group(protocol="eager"), "consumer", "3.9.1", "Kafka 3.9.1 has only a preview of the protocol 'consumer'"),
        (
            Group([MemberSpec(1), MemberSpec(1, "aiokafka")], protocol="eager"),
            *("consumer", "", "client aiokafka does not support the protocol 'consumer'"),
        ),
        (Group(command=["python"], protocol="eager"), "consumer", "", "the members run a program of the user's"),
    ],
)
def test_a_way_that_leads_nowhere_is_refused_before_anything_starts(
    group: Group, to: str, kafka: str, sentence: str
) -> None:
    with pytest.raises((PlanError, ScenarioError), match=sentence):
        asked(group, to, kafka).plan(1)
