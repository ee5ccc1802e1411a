"""What a step was meant to reach, and did by its own doing, on tables written here: each edge, to the nanosecond."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from fencepost.checkers.expectations import SETTLING_NS, reached
from fencepost.checkers.tables import Tables
from fencepost.checkers.tables.rows import Interval, Life, MemberRemoval, PerformedStep, Rebalance, Window

SESSION = {"scenario": {"group": {"config": {"session.timeout.ms": "2"}}}}
SETTLED_NS = 200 + 2_000_000 + SETTLING_NS
STEP = PerformedStep(1, "pause", members=("a.1",), heals=True, begun_ns=100, undone_ns=180, healed_ns=200)
MOVE = PerformedStep(2, "move", begun_ns=100)
BEFORE = PerformedStep(0, "pause", members=("b.1",), heals=True, begun_ns=50, healed_ns=120)
AFTER = PerformedStep(3, "pause", members=("b.1",), begun_ns=300)


def reaches(step: PerformedStep, expect: str, *others: PerformedStep, **tables: Any) -> bool:
    step = replace(step, expect=expect)
    return reached(Tables(Path(), SESSION, steps=(*others, step), **tables), step)


@pytest.mark.parametrize("expect", ["rebalanced", "coordinator_moved", "fenced"])
@pytest.mark.parametrize(
    ("at_ns", "blur_ns", "counts"),
    [
        (99, 0, False),
        (100, 0, True),
        (101, 2, False),
        (102, 2, True),
        (SETTLED_NS - 1, 0, True),
        (SETTLED_NS, 0, False),
        (SETTLED_NS - 2, 2, False),
        (SETTLED_NS - 3, 2, True),
    ],
)
def test_an_effect_counts_that_certainly_began_after_the_step_and_before_it_had_settled(
    expect: str, at_ns: int, blur_ns: int, counts: bool
) -> None:
    rounds = (Rebalance(0, 1, 5, 6), Rebalance(0, 2, at_ns, at_ns, uncertainty_ns=blur_ns))
    gone, own = MemberRemoval("id", "a.1", 0, at_ns, blur_ns), Interval(3, "a.1", 0, 1, "id", 50, 51)
    tables = {
        "rebalanced": {"rounds": rounds},
        "coordinator_moved": {"terms": ((1, 5, 0), (2, at_ns, blur_ns))},
        "fenced": {"gone": (gone,), "intervals": (own,)},
    }[expect]
    step = replace(STEP, members=()) if expect == "coordinator_moved" else STEP
    assert reaches(step, expect, **tables) == counts
    assert not reaches(replace(step, begun_ns=0), expect, **tables), "it never began"
    assert not reaches(step, "what nobody knows", **tables)


def round_at(at_ns: int) -> dict[str, Any]:
    return {"rounds": (Rebalance(0, 1, at_ns, at_ns),)}


@pytest.mark.parametrize(("at_ns", "counts"), [(99, False), (100, True), (100 + 2_000_000 + SETTLING_NS, False)])
def test_what_does_not_heal_settles_from_its_begin_on(at_ns: int, counts: bool) -> None:
    assert reaches(replace(MOVE, healed_ns=500), "rebalanced", **round_at(at_ns)) == counts
    assert reaches(replace(STEP, healed_ns=0), "rebalanced", **round_at(SETTLED_NS + 10**12)), "it is still in effect"


@pytest.mark.parametrize(("at_ns", "counts"), [(299, True), (300, False)])
def test_an_effect_counts_before_another_step_begins_and_before_members_leave(at_ns: int, counts: bool) -> None:
    assert reaches(STEP, "rebalanced", AFTER, **round_at(at_ns)) == counts
    assert reaches(STEP, "rebalanced", replace(AFTER, begun_ns=100), **round_at(at_ns)), "another one at once"
    leaving = {"phases": {"drain": Window(250, 400)}, "lives": {"b.1": Life("b.1", asked_ns=300)}}
    assert reaches(STEP, "rebalanced", **leaving, **round_at(at_ns)) == counts
    terms = ((1, 5, 0), (2, at_ns, 0))
    assert reaches(MOVE, "coordinator_moved", AFTER, terms=terms), "one that hits a member moves none"
    assert reaches(MOVE, "coordinator_moved", replace(AFTER, members=()), terms=terms) == counts


@pytest.mark.parametrize(("at_ns", "counts"), [(110, False), (120, False), (121, True)])
def test_in_time_that_it_shares_with_an_earlier_step_a_group_has_rebalanced_when_a_member_of_its_own_is_gone(
    at_ns: int, counts: bool
) -> None:
    assert reaches(STEP, "rebalanced", BEFORE, **round_at(at_ns)) == counts
    assert reaches(STEP, "rebalanced", replace(BEFORE, begun_ns=100), **round_at(at_ns)), "not an earlier one"
    assert reaches(STEP, "rebalanced", replace(BEFORE, begun_ns=0), **round_at(at_ns)), "it never began"
    assert reaches(replace(STEP, members=()), "rebalanced", BEFORE, **round_at(at_ns)), "it hits nobody"
    for name, is_own in (("a.1", True), ("b.1", counts)):
        gone = (MemberRemoval("id", name, 0, 110, 0),)
        assert reaches(STEP, "rebalanced", BEFORE, gone=gone, **round_at(at_ns)) == is_own


@pytest.mark.parametrize(
    ("terms", "moved"),
    [
        ([(2, 150, 0)], False),
        ([(1, 99, 0), (1, 150, 0)], False),
        ([(1, 99, 0), (2, 150, 0)], True),
        ([(1, 100, 0), (2, 150, 0)], False),
        ([(1, 100, 1), (2, 150, 0)], True),
        ([(3, 20, 0), (1, 30, 0), (2, 150, 0)], False),
    ],
)
def test_a_coordinator_moved_that_goes_on_in_a_later_term(terms: Sequence[tuple[int, int, int]], moved: bool) -> None:
    assert reaches(MOVE, "coordinator_moved", terms=tuple(terms)) == moved


def lost(at_ns: int, how: str = "lost", name: str = "a.1") -> Interval:
    return Interval(3, name, 0, 1, "id", 50, 51, at_ns, at_ns + 1, how)


@pytest.mark.parametrize(
    ("own", "gone_ns", "fenced"),
    [
        (lost(150), None, True),
        (lost(150, "revoked"), None, False),
        (lost(99), None, False),
        (lost(150, name="b.1"), None, False),
        (None, 180, True),
        (None, 181, False),
        (lost(190, "revoked"), 181, True),
        (lost(190, "revoked"), 191, False),
        (Interval(3, "a.1", 0, 1, "new", 185, 186), 185, True),
        (Interval(3, "a.1", 0, 1, "new", 184, 185), 185, False),
    ],
)
def test_a_member_is_fenced_that_lost_a_partition_or_was_gone_while_it_was_hit_or_owned_one_or_came_back(
    own: Interval | None, gone_ns: int | None, fenced: bool
) -> None:
    tables: dict[str, Any] = {
        "intervals": (own,) if own else (),
        "gone": (MemberRemoval("id", "a.1", 0, gone_ns, 0),) if gone_ns else (),
    }
    assert reaches(STEP, "fenced", **tables) == fenced
    assert not reaches(replace(STEP, members=("a.1", "c.1")), "fenced", **tables), "each of them has to be"
    assert not reaches(replace(STEP, members=()), "fenced", **tables)


@pytest.mark.parametrize(("assigned_ns", "back"), [(182, False), (183, True), (187, True)])
def test_a_member_came_back_that_was_assigned_a_partition_after_it_may_have_been_gone(
    assigned_ns: int, back: bool
) -> None:
    own = Interval(3, "a.1", 0, 1, "new", assigned_ns, assigned_ns + 1)
    assert reaches(STEP, "fenced", intervals=(own,), gone=(MemberRemoval("id", "a.1", 0, 185, 2),)) == back


@pytest.mark.parametrize(
    ("rival", "counts"),
    [
        (AFTER, True),
        (replace(AFTER, members=("a.1",)), False),
        (replace(AFTER, members=()), False),
        (replace(AFTER, members=(), begun_ns=200), True),
        (replace(AFTER, members=(), begun_ns=201), False),
        (replace(AFTER, members=("a.1",), begun_ns=150), False),
    ],
)
def test_a_member_may_be_gone_by_a_later_step_that_hits_it_or_nobody_once_the_own_one_is_over(
    rival: PerformedStep, counts: bool
) -> None:
    assert reaches(STEP, "fenced", rival, intervals=(lost(320),)) == counts
