"""A swarm is drawn from the seed, in phases, and leaves standing what the cluster and the group need; others say so."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fencepost.console.terminal import show_plan
from fencepost.errors import PlanError
from fencepost.faults import (
    BlackHole,
    Bounce,
    DropPackets,
    Kill,
    Latency,
    MoveCoordinator,
    PartitionBrokers,
    Pause,
    ScaleIn,
    ScaleOut,
    Stall,
)
from fencepost.model import serialization
from fencepost.model.topic import Topic
from fencepost.scenario.scenario import Group, Scenario
from fencepost.schedule.entries import at, every, past_session
from fencepost.schedule.fault_tolerance import BACK_S, conflicts, lost_guarantees
from fencepost.schedule.plan import Step
from fencepost.schedule.planning import Entry
from fencepost.schedule.swarm import ABILITIES, swarm
from fencepost.targets import all_members, brokers, coordinator, idle, leader_of, member, members, one_member
from fencepost.workloads import PollLoop

SCENARIO = Scenario(
    name="swarm",
    topics=[Topic("orders", partitions=6)],
    group=Group(members=3, config={"session.timeout.ms": 6000}),
    workload=PollLoop(),
    chaos_s=90,
)


GROUP = SCENARIO.group
SPARE = replace(GROUP, spare=1)


def scenario(*schedule: Entry, **changes: Any) -> Scenario:
    return replace(SCENARIO, schedule=schedule, **changes)


def drawn(*schedule: Entry, seed: int = 1, **changes: Any) -> tuple[Step, ...]:
    return scenario(*schedule, **changes).plan(seed).steps


def losses(*schedule: Entry, **changes: Any) -> list[str]:
    asked = scenario(*schedule, **changes)
    return [str(loss) for loss in lost_guarantees(asked.plan(1).steps, asked.inventory())]


def names(steps: Any) -> set[str]:
    return {type(step.fault).__name__ for step in steps}


def most_down(steps: Any, hits: str, everyone: int) -> int:
    """By another count than the one that is tested: at each moment, every selector that names nobody hits one more."""
    falls = [s for s in steps if s.target and s.target.hits == hits and isinstance(s.fault, Kill | Bounce | Pause)]
    most = 0
    for moment in (step.at_s for step in falls):
        beside = [s.target for s in falls if s.at_s <= moment <= s.end_s]
        named = {n for t in beside for n in getattr(t, "ids", getattr(t, "indices", ()))}
        open_ones = sum(not hasattr(t, "ids") and not hasattr(t, "indices") for t in beside)
        most = max(most, min(everyone, len(named) + open_ones))
    return most


@given(
    seed=st.integers(),
    intensity=st.integers(2, 60),
    shape=st.sampled_from([(1, 1), (2, 3), (3, 3), (4, 5)]),
    replicas=st.sampled_from([1, 2, 3]),
)
def test_never_more_is_down_than_can_be_spared(seed: int, intensity: int, shape: Any, replicas: int) -> None:
    group, cluster = shape
    asked = scenario(
        swarm(intensity, until_s=80),
        group=Group(members=group, config={"session.timeout.ms": 6000}),
        brokers=cluster,
        topics=[Topic("orders", replication_factor=min(replicas, cluster))],
    )
    plan = asked.plan(seed)
    assert plan == asked.checked(plan) == asked.plan(seed)
    assert most_down(plan.steps, "brokers", cluster) <= (1 if replicas == 3 <= cluster else 0)
    assert most_down(plan.steps, "members", group) < group
    assert not lost_guarantees(plan.steps, asked.inventory())


@given(seed=st.integers(), begin_s=st.sampled_from([0, 5]))
def test_steps_are_in_phases_with_quiet_between_them(seed: int, begin_s: float) -> None:
    steps = drawn(swarm(30, at_s=begin_s, until_s=begin_s + 80, phase_s=20, quiet_s=10), seed=seed)
    phases = [(begin_s + n * 30, begin_s + n * 30 + 20) for n in range(3)]
    assert all(any(b <= s.at_s and s.end_s <= e for b, e in phases) for s in steps)


@given(seed=st.integers(), survivable=st.booleans())
def test_no_step_is_in_the_way_of_another(seed: int, survivable: bool) -> None:
    steps = drawn(swarm(40, until_s=60, survivable=survivable), seed=seed)
    assert not any(conflicts(a, b, SCENARIO.inventory()) for a in steps for b in steps if a is not b)


@given(seed=st.integers())
def test_a_step_that_is_to_be_fenced_outlasts_the_time_of_its_fault(seed: int) -> None:
    group = replace(GROUP, config={"session.timeout.ms": 6000, "max.poll.interval.ms": 8000})
    steps = drawn(swarm(12, at(0, Stall(), one_member(), expect="fenced"), until_s=60), seed=seed, group=group)
    assert {8.8 <= (step.heal_after_s or 0) <= 9 for step in steps} == {True}


def test_phases_use_some_of_the_faults_and_all_phases_together_all_of_them():
    asked = scenario(swarm(60, until_s=8 * 40), chaos_s=400)
    used = [names(s for s in asked.plan(2).steps if n * 40 <= s.at_s < n * 40 + 40) for n in range(8)]
    everything = {cls.__name__ for cls in serialization.registry("fault").values() if cls.needs <= ABILITIES}
    everything -= {"ScaleOut", "ScaleIn", "DuplicateInstance"}  # nobody is spare, and nobody leaves for good unasked
    everything -= {"ChangeSubscription"}  # there is one topic
    assert all(kinds < everything for kinds in used)
    assert set().union(*used) == everything
    assert everything.isdisjoint(
        {"DeleteRecords", "DropPackets", "ReassignCoordinator", "RecreateTopic", "ResetOffsets"}
    )
    assert any(one != other for one, other in pairwise(used))


def test_subscriptions_change_where_there_are_topics_to_choose_from():
    two, group = [Topic("orders"), Topic("payments")], replace(SPARE, static=True)
    used = names(s for seed in range(8) for s in drawn(swarm(60, until_s=30), seed=seed, topics=two, group=group))
    assert "ChangeSubscription" in used
    assert "DuplicateInstance" not in used  # the idle member may be somebody else's by then


def test_members_are_started_where_there_are_spare_ones_and_none_leaves_for_good_unasked():
    asked = swarm(60, until_s=40, phase_s=8, quiet_s=2)
    used = [names(drawn(asked, seed=1, group=group)) for group in (SPARE, GROUP)]
    assert "ScaleOut" in used[0] - used[1]
    assert not any("ScaleIn" in kinds for kinds in used)
    parts = [at(0, ScaleIn()), at(0, ScaleOut())]
    steps = drawn(swarm(60, *parts, until_s=80), seed=2, group=SPARE)
    assert {(type(s.fault).__name__, s.target, s.heal_after_s) for s in steps} == {
        ("ScaleIn", one_member(), None),
        ("ScaleOut", idle(), None),
    }
    assert sum(isinstance(s.fault, ScaleIn) for s in steps) == 2  # one of three is left


def test_what_parts_leave_out_is_drawn_and_what_they_say_stays():
    parts = [at(0, Pause()), at(0, Kill(), member(1), heal_after=past_session(1.5)), at(0, MoveCoordinator())]
    steps = [s for seed in range(24) for s in drawn(swarm(30, *parts, until_s=60), seed=seed)]
    pauses, kills = ([s for s in steps if isinstance(s.fault, kind)] for kind in (Pause, Kill))
    assert {(s.target, s.heal_after_s) for s in kills} == {(member(1), 9.0)}
    assert {s.target for s in pauses} >= {one_member(), coordinator(), brokers((1,)), brokers((2,)), brokers((3,))}
    assert min(s.heal_after_s or 0 for s in pauses) < 3
    assert max(s.heal_after_s or 0 for s in pauses) > 6


def test_a_step_that_is_to_be_fenced_lasts_long_enough():
    parts = [at(0, Pause(), one_member(), expect="fenced")]
    assert all((s.heal_after_s or 0) > 6 for seed in range(5) for s in drawn(swarm(20, *parts, until_s=60), seed=seed))


def test_as_many_steps_are_drawn_as_are_due_where_they_fit_in():
    assert len(drawn(swarm(20, at(0, MoveCoordinator()), until_s=9))) == 3
    assert len(drawn(swarm(1, at(0, MoveCoordinator()), until_s=900, phase_s=10, quiet_s=0), chaos_s=900)) == 15


def test_more_than_can_be_survived_comes_only_when_it_is_asked_for():
    asked = swarm(60, at(0, Pause()), at(0, Bounce()), until_s=60, survivable=False)
    steps = [drawn(asked, seed=seed) for seed in range(20)]
    assert any(most_down(each, "brokers", 3) > 1 for each in steps)
    assert any(most_down(each, "members", 3) == 3 for each in steps)


WRITES = r"that every partition accepts writes (min.insync.replicas) is not guaranteed"
NOBODY = "that one member is left to process is not guaranteed"


@pytest.mark.parametrize(
    ("schedule", "reported"),
    [
        ([at(5, Kill(), brokers((1,)), heal_after=2)], []),
        ([at(5, Kill(), brokers((1, 2)), heal_after=2)], [f"{WRITES}: up to 2 brokers are down at a time, from 5 s"]),
        ([at(5, Kill(), brokers((1,)), heal_after=2), at(7 + BACK_S, Kill(), brokers((2,)))], []),
        ([at(5, Kill(), brokers((1,)), heal_after=2), at(6, Pause(), coordinator())], [f"{WRITES}: up to 2 brokers"]),
        ([at(5, Kill(), brokers((1,)), heal_after=2), at(6, Pause(), leader_of("orders-0"))], [f"{WRITES}: up to 2"]),
        ([at(5, Kill(), brokers((1,)), heal_after=2), at(6, BlackHole(), brokers((2, 3)))], []),
        ([at(5, PartitionBrokers(controller=True), brokers((1,)), heal_after=2)], []),
        ([at(5, PartitionBrokers(controller=True), brokers((1, 2)), heal_after=2)], [f"{WRITES}: up to 2 brokers"]),
        ([at(5, PartitionBrokers(), brokers((1,)), heal_after=2)], [f"{WRITES}: up to 2 brokers"]),
        ([at(5, PartitionBrokers(), coordinator(), heal_after=2)], [f"{WRITES}: up to 2 brokers"]),
        (
            [at(5, PartitionBrokers(controller=True), brokers((1,)), heal_after=2), at(6, Kill(), brokers((2,)))],
            [f"{WRITES}: up to 2 brokers"],
        ),
        ([at(5, DropPackets(), brokers((1, 2)), heal_after=2)], []),
        ([at(5, Pause(), all_members())], [f"{NOBODY}: up to 3 members are down at a time, from 5 s, and 2 can be"]),
        ([at(5, Pause(), members((0, 1)))], []),
        ([at(5, Pause(), members((0, 1))), at(6, Kill(), one_member())], [f"{NOBODY}: up to 3 members"]),
        ([at(5, Pause(), member(1)), at(6, Kill(), members((1, 2)))], []),
        ([at(5, ScaleIn(), members((0, 1))), at(6, MoveCoordinator())], []),
        ([at(5, ScaleIn(), members((0, 1))), at(80, Pause(), one_member())], [f"{NOBODY}: up to 3 members are down"]),
    ],
)
def test_a_plan_says_which_guarantee_it_gives_up(schedule: list[Entry], reported: list[str]) -> None:
    found = losses(*schedule)
    assert len(found) == len(reported)
    assert all(sentence.startswith(begin) for sentence, begin in zip(found, reported, strict=True))


@pytest.mark.parametrize(
    ("changes", "spare"),
    [
        ({}, 1),
        ({"brokers": 5, "topics": [Topic("orders", replication_factor=5)]}, 1),  # of the group's commits
        ({"broker_config": {"min.insync.replicas": 1}}, 2),
        ({"broker_config": {"min.insync.replicas": 3}}, 0),
        ({"topics": [Topic("orders", config={"min.insync.replicas": "3"})]}, 0),
        ({"topics": [Topic("orders", replication_factor=1)]}, 0),
        ({"topics": [Topic("orders", config={"min.insync.replicas": "many"})]}, 0),
        ({"brokers": 1, "topics": [Topic("orders", replication_factor=1)]}, 0),
    ],
)
def test_brokers_can_be_spared_beyond_those_that_must_be_in_sync(changes: dict[str, Any], spare: int) -> None:
    assert scenario(**changes).inventory().spare_brokers == spare


def test_the_printed_plan_says_it(capsys):
    asked = scenario(at(5, Pause(), brokers((1, 2)), heal_after=2))
    show_plan(asked.plan(1), asked.inventory())
    assert capsys.readouterr().out.splitlines() == [
        "  at   5.0 s  pause on brokers for 2 s",
        f"  {WRITES}: up to 2 brokers are down at a time, from 5 s, and 1 can be spared",
    ]


@pytest.mark.parametrize(
    ("one", "other", "meets"),
    [
        (at(5, Pause(), member(1)), at(6, Kill(), member(1)), True),
        (at(5, Pause(), member(1)), at(6, Kill(), member(2)), False),
        (at(5, Pause(), member(1)), at(10 + BACK_S, Kill(), member(1)), False),
        (at(5, Pause(), member(1)), at(6, Kill(), one_member()), False),
        (at(5, Pause(), one_member()), at(6, Kill(), member(1)), True),
        (at(5, Pause(), coordinator()), at(6, Kill(), brokers((1,))), True),
        (at(5, Pause(), brokers((2,))), at(6, BlackHole(), brokers((1,))), False),
        (at(5, BlackHole(), brokers((1,))), at(6, Latency(), one_member()), True),
        (at(5, Pause(), brokers((1,))), at(6, Latency(), one_member()), True),
        (at(5, BlackHole(), brokers((1,))), at(6, Kill(), one_member()), False),
        (at(5, Bounce(), brokers((1,))), at(6, Kill(), one_member()), False),
        (at(5, Pause(), coordinator()), at(6, MoveCoordinator()), False),
        (at(5, ScaleIn(), member(1)), at(80, Kill(), member(1)), True),
        (at(5, ScaleIn(), member(1)), at(80, Kill(), one_member()), False),
        (at(5, Pause(), member(1)), at(6, ScaleOut(), idle()), False),
        (at(5, Latency(), brokers((1,))), at(6, ScaleOut(), idle()), False),
    ],
)
def test_what_is_in_the_way_of_what(one: Entry, other: Entry, meets: bool) -> None:
    first, second = drawn(one, other, group=SPARE)
    assert conflicts(first, second, SCENARIO.inventory()) is meets
    assert conflicts(second, first, SCENARIO.inventory()) is meets


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: swarm(0, until_s=60), "an intensity and a phase_s above 0"),
        (lambda: swarm(1, until_s=60, phase_s=0), "an intensity and a phase_s above 0"),
        (lambda: swarm(1, until_s=60, quiet_s=-1), "a quiet_s of 0 or more"),
        (lambda: swarm(1, at_s=60, until_s=60), "found a swarm from 60 s until 60 s; use"),
        (lambda: swarm(1, at_s=-1, until_s=60), "use a beginning of 0 or more"),
        (lambda: swarm(1, at(5, MoveCoordinator()), until_s=60), "draws the times of its parts"),
        (lambda: swarm(1, every(5, MoveCoordinator(), until_s=9), until_s=60), "draws the times of its parts"),
        (lambda: swarm(1e6, until_s=60), "has more than 10000 of them"),
        (lambda: drawn(swarm(1, until_s=10)), "has no step: none is due, or none of its parts fits"),
        (lambda: drawn(swarm(9, at(0, Pause(), one_member(), heal_after=50), until_s=40)), "none of its parts fits"),
        (lambda: drawn(swarm(9, at(0, Pause(), all_members()), until_s=40)), "none of its parts fits"),
    ],
)
def test_nonsense_is_refused_with_a_sentence(make: Any, sentence: str) -> None:
    with pytest.raises(PlanError, match=sentence):
        make()
