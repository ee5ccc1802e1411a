"""Selectors choose from the view and the drawn number alone."""

from __future__ import annotations

import pytest

from fencepost.errors import ScenarioError
from fencepost.interfaces import Target
from fencepost.model import MemberView, TopicPartition, View
from fencepost.targets import all_members, coordinator, leader_of, member, one_member, owner_of

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
    group="g",
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


def test_owner_and_leader_of_a_partition():
    assert owner_of("orders-3").resolve(VIEW, 0) == Target(members=(3,))
    assert owner_of("orders-4").resolve(VIEW, 0) is None
    assert leader_of("orders-3").resolve(VIEW, 0) == Target(brokers=(2,))
    assert leader_of("orders-4").resolve(VIEW, 0) is None


def test_the_coordinator_is_a_broker_while_there_is_one():
    assert coordinator().resolve(VIEW, 0) == Target(brokers=(3,))
    nobody = View(VIEW.members, VIEW.brokers, VIEW.leaders, -1, "g")
    assert coordinator().resolve(nobody, 0) is None


def test_a_partition_that_is_not_written_like_one_is_refused_at_once():
    with pytest.raises(ScenarioError, match="written like orders-3"):
        owner_of("orders")
