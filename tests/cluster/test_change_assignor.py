"""A member bounced to an assignor that the others do not have is refused by the coordinator; nobody is accused."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from cluster.worlds import LONG_S, MEMBER, Inject, Instead, World, nothing_to_see, requests_by
from fencepost import Group, Scenario, Topic, at
from fencepost.clock import eventually
from fencepost.errors import PlanError
from fencepost.faults import ChangeAssignor
from fencepost.targets import one_member
from fencepost.workloads import PollLoop

pytestmark = [
    pytest.mark.cluster,
    # kafka-python leaves the sockets of refused connections to the garbage collector.
    pytest.mark.filterwarnings("ignore:.*unclosed <socket:pytest.PytestUnraisableExceptionWarning"),
]


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
    assert "refused: INCONSISTENT_GROUP_PROTOCOL" in proven.what
    eventually(lambda: owned(world, 0) == 4, LONG_S, "the other one to own everything")
    now = world.cluster.admin.describe(world.group)
    assert (now.assignor, len(now.members)) == (before.assignor, len(before.members) - 1)
    told = [one["error"] for one in requests_by(world, 1) if one["api"] == "JOIN_GROUP"]
    assert "INCONSISTENT_GROUP_PROTOCOL" in told
    injection.undo()
    injection.undo()
    healed = injection.healed()
    assert healed.took_effect, healed.what
    whole(world)


def test_who_comes_back_with_the_old_assignor_is_not_refused(world: World, inject: Inject) -> None:
    whole(world)
    honest = Instead(world.members[1], launch=lambda **changes: world.members[1].launch())
    injection = inject(ChangeAssignor(), replace(world, members=[world.members[0], honest]), MEMBER)
    with nothing_to_see() as patched:
        patched.setattr("fencepost.faults.change_assignor.STOP_S", LONG_S)
        evidence = injection.proven()
    assert not evidence.took_effect
    assert "was not refused" in evidence.what or "was taken in" in evidence.what


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


@pytest.mark.parametrize(
    ("group", "sentence"),
    [
        (Group(protocol="consumer"), "with the protocol 'consumer' the brokers assign: members have no assignor"),
        (Group(members=1), "a member that is alone agrees with itself: the group needs another one"),
    ],
)
def test_a_group_that_cannot_disagree_is_refused_before_anything_starts(group: Group, sentence: str) -> None:
    asked = Scenario("one", [Topic("orders")], group, PollLoop(), [at(1, ChangeAssignor(), one_member(), heal_after=1)])
    with pytest.raises(PlanError, match=sentence):
        asked.plan(1)
