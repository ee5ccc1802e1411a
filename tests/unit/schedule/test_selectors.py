"""Selectors choose from the view and the drawn number alone."""

from __future__ import annotations

from dataclasses import replace

import pytest

from fencepost.errors import ScenarioError
from fencepost.interfaces import Target
from fencepost.model import Inventory, MemberView, TopicPartition, View
from fencepost.targets import all_members, brokers, coordinator, idle, leader_of, member, members, one_member, owner_of

ORDERS_3 = TopicPartition("orders", 3)


def member_view(index, *, alive=True, disturbed=False, owned=()):
    return MemberView(index, index, f"member-{index}.1", alive, disturbed, frozenset(owned))


VIEW = View(
    members=(
        member_view(0),
        member_view(1, disturbed=True),
        member_view(2, alive=False),
        member_view(3, owned=[ORDERS_3]),
    ),
    brokers=(1, 2, 3),
    leaders={ORDERS_3: 2},
    coordinator=3,
)


def test_one_member_is_drawn_among_the_living_and_undisturbed():
    assert {one_member().resolve(VIEW, pick) for pick in (0.0, 0.49, 0.5, 0.99)} == {
        Target(members=(0,)),
        Target(members=(3,)),
    }


def test_all_members_are_those_that_live():
    assert all_members().resolve(VIEW, 0) == Target(members=(0, 1, 3))


def test_a_named_member_matches_only_while_it_lives():
    assert member(1).resolve(VIEW, 0) == Target(members=(1,))
    assert member(2).resolve(VIEW, 0) is None


def test_several_named_members_match_only_while_all_of_them_live():
    assert members((1, 0)).resolve(VIEW, 0) == Target(members=(1, 0))
    assert members((0, 2)).resolve(VIEW, 0) is None


def test_idle_members_have_no_process_and_no_fault_has_them():
    crowd = (*VIEW.members, member_view(4, alive=False, disturbed=True), member_view(5, alive=False))
    view = replace(VIEW, members=crowd)
    assert idle().resolve(view, 0.9) == Target(members=(2,))
    assert idle(2).resolve(view, 0) == Target(members=(2, 5))
    assert idle(3).resolve(view, 0) is None
    with pytest.raises(ScenarioError, match="found idle with count=0; use 1 or more"):
        idle(0)


def test_only_a_group_with_spare_members_has_idle_ones():
    there = Inventory(3, 3, {"orders": 1}, spare_members=2)
    assert idle(2).inventory_problem(there) == member(4).inventory_problem(there) == ""
    assert "idle(3) needs 3 spare members, the group has 2" in idle(3).inventory_problem(there)
    assert "there are 0 to 4" in member(5).inventory_problem(there)


def test_named_brokers_are_always_there():
    assert brokers((1, 3)).resolve(VIEW, 0) == Target(brokers=(1, 3))


@pytest.mark.parametrize("target", [members, brokers])
@pytest.mark.parametrize("numbers", [(), (1, 1)])
def test_several_are_different_and_at_least_one(target, numbers):
    with pytest.raises(ScenarioError, match="use one or more distinct ones"):
        target(numbers)


def test_what_is_named_must_be_there():
    there = Inventory(3, 3, {"orders": 1})
    assert members((0, 2)).inventory_problem(there) == brokers((1, 3)).inventory_problem(there) == ""
    assert "no member 3" in members((0, 3)).inventory_problem(there)
    assert "no broker 0" in brokers((1, 0)).inventory_problem(there)


def test_owner_and_leader_of_a_partition():
    assert owner_of("orders-3").resolve(VIEW, 0) == Target(members=(3,))
    assert owner_of("orders-4").resolve(VIEW, 0) is None
    assert leader_of("orders-3").resolve(VIEW, 0) == Target(brokers=(2,))
    assert leader_of("orders-4").resolve(VIEW, 0) is None


def test_the_coordinator_is_a_broker_while_there_is_one():
    assert coordinator().resolve(VIEW, 0) == Target(brokers=(3,))
    nobody = View(VIEW.members, VIEW.brokers, VIEW.leaders, -1)
    assert coordinator().resolve(nobody, 0) is None


def test_a_partition_that_is_not_written_like_one_is_refused_at_once():
    with pytest.raises(ScenarioError, match="write topic and number, as in orders-3"):
        owner_of("orders")
