"""Schedules become plans by the seed alone, and what cannot work is refused before anything starts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import pytest

from fencepost.errors import PlanError
from fencepost.interfaces import Injection, Target, World
from fencepost.schedule import Entry, at, check_abilities, every, make_plan, past_session
from fencepost.targets import coordinator, one_member


@dataclass(frozen=True)
class Healing:
    """A fault that can be healed, aimed at members."""

    needs: ClassVar[frozenset[str]] = frozenset({"signal"})
    hits: ClassVar[frozenset[str]] = frozenset({"members"})
    heals: ClassVar[bool] = True

    def inject(self, world: World, target: Target) -> Injection:
        raise NotImplementedError


@dataclass(frozen=True)
class Moving:
    """A fault with nothing to heal that chooses its target by itself."""

    needs: ClassVar[frozenset[str]] = frozenset({"admin"})
    hits: ClassVar[frozenset[str]] = frozenset()
    heals: ClassVar[bool] = False

    def inject(self, world: World, target: Target) -> Injection:
        raise NotImplementedError


SCHEDULE = [at(5, Moving()), every(8, Healing(), one_member(), heal_after=past_session(1.5), until_s=40)]


def test_the_same_seed_gives_the_same_plan_and_another_seed_another():
    assert make_plan(SCHEDULE, 1, 6.0) == make_plan(SCHEDULE, 1, 6.0)
    assert make_plan(SCHEDULE, 1, 6.0) != make_plan(SCHEDULE, 2, 6.0)


def test_steps_are_numbered_in_the_order_of_time_and_stay_within_their_bounds():
    steps = make_plan(SCHEDULE, 7, 6.0).steps
    assert [s.step for s in steps] == list(range(6))
    assert [s.at_s for s in steps] == sorted(s.at_s for s in steps)
    repeated = [s.at_s for s in steps if isinstance(s.fault, Healing)]
    assert all(abs(at_s - 8 * (n + 1)) <= 2 for n, at_s in enumerate(repeated))
    assert all(0 <= s.pick < 1 for s in steps)


def test_past_session_is_measured_in_session_time_outs():
    assert {s.heal_after_s for s in make_plan(SCHEDULE, 1, 6.0).steps} == {None, 9.0}


def test_taking_an_entry_away_leaves_the_draws_of_the_entries_before_it():
    whole, shorter = make_plan(SCHEDULE, 3, 6.0).steps, make_plan(SCHEDULE[:1], 3, 6.0).steps
    assert [(s.at_s, s.pick) for s in shorter] == [(s.at_s, s.pick) for s in whole if isinstance(s.fault, Moving)]


@pytest.mark.parametrize(
    ("entry", "sentence"),
    [
        (at(5, Moving(), heal_after=3), "nothing to heal"),
        (at(5, Healing()), "needs a target"),
        (at(5, Healing(), coordinator()), "hits members"),
        (at(5, Moving(), one_member()), "chooses what it hits by itself"),
        (at(-1, Moving()), "before the group is warm"),
        (at(5, Healing(), one_member(), heal_after=-1), "in the past"),
        (at(5, Healing(), one_member(), heal_after=7, expect="fenced"), "session time-out of 45 s"),
        (at(5, Moving(), expect="fenced"), "lasts only 0 s"),
        (at(5, Moving(), expect="sunshine"), "known expectations"),
        (every(8, Healing(), one_member(), until_s=4), "fires never"),
        (Entry(8, Healing(), one_member(), every_s=8), "belong together"),
        (Entry(8, Healing(), one_member(), until_s=8), "belong together"),
    ],
)
def test_a_step_that_cannot_do_what_it_says_is_refused_with_the_reason(entry, sentence):
    with pytest.raises(PlanError, match=sentence):
        make_plan([entry], 1, 45.0)


def test_a_pause_past_the_session_time_out_may_expect_fencing():
    assert make_plan([at(5, Healing(), one_member(), heal_after=46, expect="fenced")], 1, 45.0).steps


def test_a_plan_that_needs_what_the_back_end_lacks_is_refused():
    plan = make_plan(SCHEDULE, 1, 6.0)
    check_abilities(plan, {"signal", "admin"}, "local")
    with pytest.raises(PlanError, match="needs signal, but the back-end 'far' offers only admin"):
        check_abilities(plan, {"admin"}, "far")
