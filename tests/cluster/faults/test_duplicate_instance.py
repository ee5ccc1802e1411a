"""Two processes under one ``group.instance.id``, in a real static group: who goes on is measured, and that nothing is
proven where the name is not shared.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from cluster.plans import topic
from cluster.worlds import LONG_S, MEMBER, ON_CLUSTER, Inject, Instead, World, nothing_to_see
from fencepost.clock import eventually
from fencepost.errors import FencepostError, PlanError
from fencepost.faults import DuplicateInstance
from fencepost.interfaces import Target
from fencepost.model.clients import MemberSpec
from fencepost.model.topic import Topic
from fencepost.scenario.scenario import Group, Scenario
from fencepost.schedule.entries import at
from fencepost.targets import member, one_member
from fencepost.workloads import PollLoop

pytestmark = ON_CLUSTER

STATIC = True  # see ``world_of_module``
REFUSED = {"cooperative": "FENCED_INSTANCE_ID", "consumer": "UNRELEASED_INSTANCE_ID"}


def owns(world: World, member: int) -> bool:
    world.members[member].reported("assigned")
    return bool(world.members[member].owned)


@pytest.mark.parametrize("asleep", [False, True], ids=["awake", "asleep"])
def test_the_former_one_is_fenced_and_the_newcomer_goes_on_until_it_is_healed(
    world: World, inject: Inject, asleep: bool
) -> None:
    eventually(lambda: owns(world, 1), LONG_S, "the member to own partitions")
    pid, owned = world.members[1].pid, world.members[1].owned
    injection = inject(DuplicateInstance(asleep), world, MEMBER)
    proven = injection.proven()
    assert proven.took_effect, proven.what
    assert proven.data["member-1"]["refused"] == {"member-1": "FENCED_INSTANCE_ID"}
    assert world.members[1].pid is None
    assert world.members[1].wait_ended(LONG_S) == 3  # its client gave up for good
    eventually(lambda: owns(world, 2), LONG_S, "the newcomer to own partitions")
    assert world.members[2].owned == owned
    injection.undo()
    healed = injection.healed()
    assert healed.took_effect, healed.what
    assert world.members[2].pid is None
    assert world.members[1].pid not in (None, pid)
    eventually(lambda: owns(world, 1), LONG_S, "the member to own partitions again")


def test_a_newcomer_with_a_name_of_its_own_is_no_duplicate(world: World, inject: Inject) -> None:
    honest = Instead(world.members[2], launch=lambda **changes: world.members[2].launch())
    others = replace(world, members=[*world.members[:2], honest, world.members[3]])
    injection = inject(DuplicateInstance(), others, MEMBER)
    eventually(lambda: owns(world, 2), LONG_S, "the newcomer to own partitions")
    with nothing_to_see():
        evidence = injection.proven()
    assert not evidence.took_effect
    assert "expected one of member-1 and member-2 to be refused and gone, found: none is gone" in evidence.what


def test_a_member_that_just_died_was_not_refused(world: World, inject: Inject) -> None:
    injection = inject(DuplicateInstance(), replace(world, members=[*map(never_launched, world.members)]), MEMBER)
    world.members[1].signal(9)
    eventually(lambda: world.members[1].pid is None, LONG_S, "the member to die")
    with nothing_to_see():
        evidence = injection.proven()
    assert not evidence.took_effect
    assert "without an error" in evidence.what


def never_launched(member: object) -> Instead:
    return Instead(member, launch=lambda **changes: None, wait_ended=lambda within_s: 0)


def test_a_newcomer_that_stays_is_not_healed(world: World, inject: Inject) -> None:
    stays = Instead(world.members[2], signal=lambda number: None, wait_ended=lambda within_s: 0)
    away = Instead(world.members[1], start=lambda: None)  # a new life of it would get the name back
    members = [world.members[0], away, stays, world.members[3]]
    injection = inject(DuplicateInstance(), replace(world, members=members), MEMBER)
    assert injection.proven().took_effect
    newcomer = world.members[2]
    injection.undo()
    with nothing_to_see():
        evidence = injection.healed()
    newcomer.signal(9)
    newcomer.wait_ended(LONG_S)
    world.members[1].start()
    assert not evidence.took_effect
    assert "member-2 still runs" in evidence.what


def test_without_an_idle_member_there_is_nobody_to_share_the_name(world: World) -> None:
    few = replace(world, members=world.members[:2])
    with pytest.raises(FencepostError, match="there are too few idle members to share the name of member-1"):
        DuplicateInstance().inject(few, Target(members=(1,)))


def test_a_dynamic_member_among_static_ones_has_no_name_to_share(world: World) -> None:
    nameless = Instead(world.members[1], reported=lambda kind: [{"detail": {"instance_id": None}}])
    others = replace(world, members=[world.members[0], nameless, *world.members[2:]])
    with pytest.raises(FencepostError, match=r"member-1 has no group\.instance\.id that a second process"):
        DuplicateInstance().inject(others, Target(members=(1,)))


@pytest.mark.spark
@pytest.mark.parametrize("protocol", tuple(REFUSED))
def test_nobody_is_accused_when_two_share_a_name(chaos: Any, protocol: str) -> None:
    scenario = Scenario(
        name=f"two share a name, {protocol}",
        topics=[topic("orders", 6)],
        brokers=1,
        group=Group(members=3, spare=1, protocol=protocol, static=True, config={"session.timeout.ms": 6000}),
        workload=PollLoop(rate_hz=1000, batch=100),
        schedule=[
            at(1, DuplicateInstance(), member(0), heal_after=2),
            at(10, DuplicateInstance(asleep=True), member(1), heal_after=2),
        ],
    )
    run = chaos.run(scenario)
    run.must_keep_its_promises()
    assert all(f"was refused: {REFUSED[protocol]}" in fault["evidence"] for fault in run.verdict.faults)


@pytest.mark.core
@pytest.mark.parametrize(
    ("group", "sentence"),
    [
        (Group(members=3, spare=1), "members have no group.instance.id: make the group static"),
        (Group([MemberSpec(3, static=False)], static=True), "members have no group.instance.id: make the group static"),
        (Group(members=3, static=True), "a second process needs a spare member: raise the group's spare"),
    ],
)
def test_a_group_that_cannot_is_refused_before_anything_starts(group: Group, sentence: str) -> None:
    asked = Scenario("dup", [Topic("orders")], group, PollLoop(), [at(1, DuplicateInstance(), one_member())])
    with pytest.raises(PlanError, match=sentence):
        asked.plan(1)
