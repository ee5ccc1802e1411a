"""A member bounced to an assignor that the others do not have is refused by the coordinator; nobody is accused."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from cluster.conftest import consuming
from cluster.plans import topic
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
    requests_by,
)
from fencepost import Group, Scenario, Topic, at
from fencepost.clock import eventually
from fencepost.clusters.managed_cluster import ManagedCluster
from fencepost.errors import PlanError, ScenarioError
from fencepost.faults import ChangeAssignor, ChangeProtocol, Kill
from fencepost.faults.change_assignor import REFUSED
from fencepost.history import EventKind
from fencepost.interfaces import Target
from fencepost.model.settings import STRATEGY
from fencepost.processes.owner import ProcessOwner
from fencepost.targets import member, one_member
from fencepost.workloads import PollLoop
from fencepost_member.recording.events import read

pytestmark = ON_CLUSTER


def owned(world: World, number: int) -> int:
    world.view()
    return len(world.members[number].owned)


def whole(world: World) -> None:
    eventually(lambda: owned(world, 0) and owned(world, 1), LONG_S, "both members to own partitions")


def test_the_member_is_refused_and_the_other_one_goes_on_alone_until_it_is_healed(world: World, inject: Inject) -> None:
    whole(world)
    before = world.cluster.admin.describe(world.group)
    injection = inject(ChangeAssignor(), world, MEMBER)
    proven = injection.proven()
    assert proven.took_effect, proven.what
    assert f"was refused with range: {REFUSED}" in proven.what
    eventually(lambda: owned(world, 0) == 4, LONG_S, "the other one to own everything")
    now = world.cluster.admin.describe(world.group)
    assert (now.assignor, len(now.members)) == (before.assignor, len(before.members) - 1)
    reported = [one["error"] for one in requests_by(world, 1) if one["api"] == "JOIN_GROUP"]
    assert REFUSED in reported
    injection.undo()
    injection.undo()
    healed = injection.healed()
    assert healed.took_effect, healed.what
    whole(world)


@pytest.fixture
def world_of_eager(
    cluster: ManagedCluster, session_owner: ProcessOwner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[World]:
    """A group with the range assignor, for one test."""
    bounded(monkeypatch, LONG_S)
    with consuming(cluster, session_owner, tmp_path, f"eager-{tmp_path.name}", "eager") as world:
        yield world


def test_two_bounces_of_everybody_change_the_assignor_and_two_change_it_back(
    world_of_eager: World, inject: Inject
) -> None:
    world, seen, steps = world_of_eager, [], []
    for to in (("roundrobin", "range"), ("roundrobin",)):
        for number in (0, 1):
            steps.append(inject(ChangeAssignor(to), world, Target(members=(number,))))
            proven = steps[-1].proven()
            assert proven.took_effect, proven.what
            whole(world)
            seen.append(world.cluster.admin.describe(world.group).assignor)
    for step in reversed(steps):
        step.undo()
        healed = step.healed()
        assert healed.took_effect, healed.what
        whole(world)
        seen.append(world.cluster.admin.describe(world.group).assignor)
    assert (seen[0], seen[2], seen[3], seen[4], seen[7]) == ("range", *["roundrobin"] * 3, "range")
    refused = [one for slot in (0, 1) for one in requests_by(world, slot) if one["error"] == REFUSED]
    assert not refused


def test_who_comes_back_with_the_old_assignor_is_not_refused(world: World, inject: Inject) -> None:
    whole(world)
    evidence = comes_back_unchanged(inject, world, ChangeAssignor())
    assert not evidence.took_effect
    assert "was not refused" in evidence.what or "was accepted" in evidence.what


def test_who_stays_refused_is_not_healed(world: World, inject: Inject) -> None:
    whole(world)
    stays = Instead(world.members[1], signal=lambda number: None, wait_ended=lambda within_s: 0)
    injection = inject(ChangeAssignor(), world, MEMBER)
    assert injection.proven().took_effect
    still = ChangeAssignor().inject(replace(world, members=[world.members[0], stays]), MEMBER)
    still.undo()
    with nothing_to_see():
        evidence = still.healed()
    assert not evidence.took_effect
    assert "is not in the group" in evidence.what


@pytest.mark.spark
@pytest.mark.parametrize("protocol", ["eager", "cooperative"])
def test_nobody_is_accused_when_a_member_is_refused_for_its_assignor(chaos: Any, protocol: str) -> None:
    scenario = Scenario(
        name=f"one bounce to another assignor, {protocol}",
        topics=[Topic("orders", partitions=6)],
        group=Group(members=3, protocol=protocol, config={"session.timeout.ms": 6000}),
        workload=PollLoop(rate_hz=1000, commit_every_ms=50),
        schedule=[at(1, ChangeAssignor(), one_member(), heal_after=3)],
    )
    chaos.run(scenario).must_keep_its_promises()


@pytest.mark.spark
@pytest.mark.parametrize("change", ["assignor", "protocol"])
def test_a_change_stays_with_whoever_is_killed_after_it(chaos: Any, change: str) -> None:
    """An upgrade in two bounces, and a migration."""
    upgrade = [ChangeAssignor(to, stays=True) for to in (("roundrobin", "range"), ("roundrobin",))]
    turns = [fault for fault in (upgrade if change == "assignor" else [ChangeProtocol(stays=True)]) for _ in (0, 1)]
    bounces = [at(1 + 7 * turn, fault, member(turn % 2)) for turn, fault in enumerate(turns)]
    run = chaos.run(
        Scenario(
            name=f"a change of {change} that stays",
            topics=[topic("orders", 6)],
            brokers=1,
            group=Group(members=2, protocol="eager", config={"session.timeout.ms": 6000, "heartbeat.interval.ms": 500}),
            workload=PollLoop(rate_hz=500, commit_every_ms=50),
            schedule=[*bounces, at(8 + bounces[-1].at_s, Kill(), member(0), heal_after=1)],
        )
    )
    run.must_keep_its_promises()
    reported = read(next((run.folder / "history/events").glob(f"member-0.{len(turns) // 2 + 2}.jsonl"))).events
    started = next(event["detail"] for event in reported if event["kind"] == EventKind.STARTED)
    assert (started["protocol"], started["config"].get(STRATEGY)) == (
        ("eager", "roundrobin") if change == "assignor" else ("consumer", None)
    )


@pytest.mark.core
@pytest.mark.parametrize(
    ("protocol", "to", "sentence"),
    [
        (
            "eager",
            ("sticky",),
            "found the assignor 'sticky'; known assignors are range, roundrobin, cooperative-sticky",
        ),
        ("eager", ("cooperative-sticky", "range"), "librdkafka accepts eager or cooperative assignors, not both"),
        ("eager", ("cooperative-sticky",), "no list leads a group with the protocol 'eager' to"),
    ],
)
def test_a_way_that_leads_nowhere_is_refused(protocol: str, to: tuple[str, ...], sentence: str) -> None:
    with pytest.raises((PlanError, ScenarioError), match=sentence):
        Scenario(
            "two",
            [Topic("orders")],
            Group(protocol=protocol),
            PollLoop(),
            [at(1, ChangeAssignor(to), one_member(), heal_after=1)],
        ).plan(1)


@pytest.mark.core
@pytest.mark.parametrize(
    ("group", "sentence"),
    [
        (Group(protocol="consumer"), "with the protocol 'consumer' the brokers assign: members have no assignor"),
        (Group(members=1), "the only member of a group always agrees with itself: the group needs another member"),
    ],
)
def test_a_group_that_cannot_disagree_is_refused_before_anything_starts(group: Group, sentence: str) -> None:
    asked = Scenario("one", [Topic("orders")], group, PollLoop(), [at(1, ChangeAssignor(), one_member(), heal_after=1)])
    with pytest.raises(PlanError, match=sentence):
        asked.plan(1)
