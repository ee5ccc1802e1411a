"""Shrinking proposes what is smaller, each thing once, and ends at what cannot be left out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fencepost.faults import BlackHole, Bounce, Kill, MoveCoordinator, Pause, Stall
from fencepost.model.topic import Topic
from fencepost.repeat.shrink.passes import Case, search
from fencepost.scenario.scenario import Group, Scenario
from fencepost.schedule.entries import at, past_session
from fencepost.targets import all_members, member, members, one_member
from fencepost.workloads import PollLoop

NINE = [
    at(1, MoveCoordinator()),
    at(3, Pause(), member(0), heal_after=2),
    at(6, Bounce(), member(2), heal_after=1),
    at(9, Pause(), member(1), heal_after=past_session(1.5), expect="fenced"),
    at(20, BlackHole(), one_member(), heal_after=3),
    at(25, MoveCoordinator()),
    at(28, Kill(), all_members(), heal_after=1),
    at(31, Pause(), members((0, 2)), heal_after=8),
    at(33, MoveCoordinator()),
]
SCENARIO = Scenario(
    name="nine",
    topics=[Topic("orders", partitions=12), Topic("refunds", partitions=2)],
    group=Group(members=4, config={"session.timeout.ms": 6000}),
    workload=PollLoop(),
    schedule=NINE,
    promises=PollLoop().promises(),
    min_records=10_000,
)
CASE = Case.of(SCENARIO, SCENARIO.plan(1))


def smallest(fails: Callable[[Case], bool], case: Case = CASE) -> tuple[Case, list[str]]:
    """What is left of ``case``, and what was tried."""
    proposals, tried = search(case), []
    try:
        proposal = next(proposals)
        while True:
            tried.append(proposal.what)
            proposal = proposals.send(fails(proposal.case))
    except StopIteration as over:
        return over.value, tried


def faults(case: Case) -> list[str]:
    return [type(step.fault).__name__ for step in case.plan.steps]


def picks(case: Case) -> set[float]:
    return {step.pick for step in case.plan.steps}


@given(st.sets(st.integers(0, 8)))
def test_exactly_the_steps_that_are_needed_are_left(needed: set[int]) -> None:
    wanted = {CASE.plan.steps[number].pick for number in needed}
    found, tried = smallest(lambda case: wanted <= picks(case))
    assert picks(found) == wanted
    assert len(tried) <= 110


def test_two_of_nine_steps_take_few_tries() -> None:
    wanted = {CASE.plan.steps[number].pick for number in (3, 6)}
    _, tried = smallest(lambda case: wanted <= picks(case))
    assert sum(what.startswith(("without step", "without any")) for what in tried) <= 16


def test_what_always_fails_becomes_as_small_as_can_be() -> None:
    found, _ = smallest(lambda case: True)
    assert str(found) == "0 steps, 1 member, 1 partition"
    assert found.scenario.min_records == 1


def test_what_never_fails_again_stays_as_it_was_and_nothing_is_tried_twice() -> None:
    tried: list[Case] = []
    found, _ = smallest(lambda case: bool(tried.append(case)))
    assert found == CASE
    assert all(case not in tried[n + 1 :] for n, case in enumerate(tried))


def test_each_case_can_be_performed_and_is_stored_as_what_is_done() -> None:
    def fails(case: Case) -> bool:
        assert case.scenario.checked(case.plan) == case.plan
        assert case == Case.of(Scenario.from_json(case.scenario.to_json()), case.plan)
        return len(case.plan.steps) % 2 == 0

    smallest(fails)


def test_steps_are_moved_together_and_keep_what_overlaps() -> None:
    found, _ = smallest(lambda case: len(case.plan.steps) == 9 and case.plan.steps[7].heal_after_s == 8)
    times = [step.at_s for step in found.plan.steps]
    assert times[0] == 0
    assert times[8] == times[7] + 2  # in the middle of what it was in the middle of
    assert all(later - step.end_s <= 1 for step, later in zip(found.plan.steps, times[1:], strict=False))


def test_what_is_to_outlast_a_session_still_does() -> None:
    found, _ = smallest(lambda case: "Pause" in faults(case) and any(s.expect for s in case.plan.steps))
    assert [step.heal_after_s for step in found.plan.steps] == [6.6]


def test_a_stall_that_is_to_be_fenced_still_outlasts_the_poll_interval() -> None:
    group = replace(SCENARIO.group, config={"session.timeout.ms": 6000, "max.poll.interval.ms": 8000})
    stalled = replace(SCENARIO, group=group, schedule=[at(1, Stall(), member(0), heal_after=12, expect="fenced")])
    found, _ = smallest(lambda case: "Stall" in faults(case), Case.of(stalled, stalled.plan(1)))
    assert [step.heal_after_s for step in found.plan.steps] == [8.8]


def test_targets_and_links_become_weaker() -> None:
    wanted = {CASE.plan.steps[number].pick for number in (4, 6, 7)}
    found, _ = smallest(lambda case: wanted <= picks(case))
    hole, kill, pause = found.plan.steps
    assert (hole.fault, kill.target) == (BlackHole(direction="to", peers="coordinator"), one_member())
    assert pause.target == members((0,))


@pytest.mark.parametrize(("needs", "left"), [(3, 3), (4, 4), (2, 2)])
def test_members_that_are_needed_stay(needs: int, left: int) -> None:
    found, _ = smallest(lambda case: case.scenario.group.members >= needs)
    assert found.scenario.group.members == left


def test_no_member_goes_that_a_step_names() -> None:
    found, _ = smallest(lambda case: any(step.target == member(1) for step in case.plan.steps))
    assert found.scenario.group.members == 2


def test_one_topic_is_left_of_two_and_it_is_that_which_is_needed() -> None:
    found, _ = smallest(lambda case: any(t.name == "refunds" for t in case.scenario.topics))
    assert [(topic.name, topic.partitions) for topic in found.scenario.topics] == [("refunds", 1)]


def test_a_member_that_the_workload_names_is_kept() -> None:
    """Found on a real case: fewer members than that are no scenario at all, and no reason to give up."""
    wrong = replace(SCENARIO, workload=PollLoop(planted_bug="once-lost", planted_in=(1,)), schedule=[])
    least, tried = smallest(lambda case: True, Case.of(wrong, wrong.plan(1)))
    assert least.scenario.group.size == 2
    assert "members=1" not in tried
