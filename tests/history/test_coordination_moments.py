"""On which side of a definition a moment is, for the rules about owners and progress: tables of a story of
``test_coordination``, of which one row is changed by a nanosecond, or is there or not."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from fencepost.checkers import group_rules
from fencepost.checkers.detections import Detection
from fencepost.checkers.tables import Tables, load
from fencepost.checkers.tables.requests import LATE_NS, Heartbeat
from fencepost.checkers.tables.rows import (
    FOREVER,
    NS,
    AssignmentChange,
    Commit,
    DoubleAssignment,
    Interval,
    LeaderChange,
    Life,
    MemberRemoval,
    PerformedStep,
    Rebalance,
    Window,
)
from fencepost.history import NAME_TAKEN
from fencepost.model.impact import Impact
from history.builder import ns
from history.test_coordination import CASES, A, B

C, BLUR_NS = "member-2.1", 1_000
REST = Window(ns(35), ns(40))  # of given_and_never_told
ASSIGNMENT = "assignment-mismatch"


def story(folder: Path, name: str) -> Tables:
    (case,) = (case for case in CASES if case.tell.__name__ == name)
    return load(case.build(folder, "wrong", "consumer"))


def shown(tables: Tables, kind: str) -> list[Detection]:
    return [s for rule, kinds in group_rules.RULES.items() if kind in kinds for s in rule(tables) if s.kind == kind]


@pytest.fixture(scope="module")
def at_rest(tmp_path_factory: pytest.TempPathFactory) -> Tables:
    return story(tmp_path_factory.mktemp("runs"), "given_and_never_told")


def given(at_ns: int) -> dict[str, Any]:
    return {"given": (AssignmentChange(3, 99, at_ns, BLUR_NS, "b", B),)}


def gone(at_ns: int) -> dict[str, Any]:
    return {"gone": (MemberRemoval("c", C, 99, at_ns, BLUR_NS),)}


def round_(begin_ns: int, end_ns: int) -> dict[str, Any]:
    return {"rounds": (Rebalance(1, 2, begin_ns, end_ns, (A, B), "", BLUR_NS),)}


def interval(begin_ns: int, end_ns: int, given_up: tuple[int, int] = (0, 0), how: str = "") -> dict[str, Any]:
    return {"intervals": (Interval(3, B, 0, 2, "b", begin_ns, end_ns, *given_up, how),)}


def commit(begin_ns: int, end_ns: int) -> dict[str, Any]:
    return {"commits": (Commit(0, 3, A, "a", 2, begin_ns, end_ns, "ok"),)}


@pytest.mark.parametrize(
    ("row", "at_rest_then"),
    [
        *((make(REST.begin_ns - BLUR_NS - gap), gap > 0) for make in (given, gone) for gap in (0, 1)),
        *((make(REST.end_ns + BLUR_NS + gap), gap > 0) for make in (given, gone) for gap in (0, 1)),
        *((round_(ns(30), REST.begin_ns - BLUR_NS - gap), gap > 0) for gap in (0, 1)),
        *((round_(REST.end_ns + BLUR_NS + gap, ns(41)), gap > 0) for gap in (0, 1)),
        (interval(ns(30), 0), False),  # the assigned callback never returned
        (interval(ns(30), 0, Window(ns(31), ns(32)), "died"), True),
        (interval(ns(30), ns(31), Window(REST.end_ns, ns(41)), "revoked"), False),
        (interval(ns(30), ns(31), Window(REST.end_ns + 1, ns(41)), "revoked"), True),
        (commit(ns(30), REST.end_ns), True),
        (commit(ns(30), REST.end_ns + 1), False),
        (commit(REST.end_ns + 1, 0), True),
        ({"lives": {C: Life(C, started_ns=ns(1), ended_ns=ns(30), how="killed", last_sign_ns=ns(29))}}, True),
        ({"lives": {C: Life(C, started_ns=ns(1), ended_ns=REST.begin_ns, how="killed", last_sign_ns=ns(29))}}, False),
    ],
)
def test_a_group_rests_when_nothing_meets_the_time(at_rest: Tables, row: dict[str, Any], at_rest_then: bool) -> None:
    """A row more, just beside that time or just in it."""
    more = {
        name: {**at_rest.lives, **rows} if name == "lives" else (*getattr(at_rest, name), *rows)
        for name, rows in row.items()
    }
    assert bool(shown(replace(at_rest, **more), ASSIGNMENT)) == at_rest_then


@pytest.mark.parametrize(
    ("workload", "begin_ns", "end_ns", "is_well"),
    [
        ({}, REST.begin_ns, ns(38), True),
        ({}, REST.begin_ns - 1, ns(38), False),
        ({}, ns(38), REST.end_ns - NS, True),
        ({}, ns(38), REST.end_ns - NS + 1, False),
        ({"batch": 1000}, ns(38), REST.end_ns - NS, True),
        ({"handler_ms": 1000}, ns(38), REST.end_ns - NS, True),
        ({"batch": 10, "handler_ms": 100}, ns(37), REST.end_ns - 2 * NS, True),
        ({"batch": 10, "handler_ms": 100}, ns(37), REST.end_ns - 2 * NS + 1, False),
        ({"batch": 10, "handler_ms": 100}, REST.begin_ns - NS, ns(37), True),
        ({"batch": 10, "handler_ms": 100}, REST.begin_ns - NS - 1, ns(37), False),
    ],
)
def test_a_heartbeat_shows_that_all_is_well(
    at_rest: Tables, workload: dict[str, Any], begin_ns: int, end_ns: int, is_well: bool
) -> None:
    """It was certainly served in that time, and early enough for the program to hear of what it told."""
    beat = Heartbeat(A, 2, begin_ns + LATE_NS, end_ns, 0)
    scenario = {**at_rest.scenario, "scenario": {**at_rest.asked, "workload": workload}}
    assert bool(shown(replace(at_rest, heartbeats=(beat,), scenario=scenario), ASSIGNMENT)) == is_well


def test_with_a_slow_program_a_group_must_rest_for_longer(at_rest: Tables) -> None:
    slow = {**at_rest.scenario, "scenario": {**at_rest.asked, "workload": {"batch": 10, "handler_ms": 100}}}
    beat = (Heartbeat(A, 2, ns(37), ns(37.1), 0),)
    late = AssignmentChange(3, 99, REST.begin_ns - NS // 2, 0, "b", B)
    assert shown(replace(at_rest, heartbeats=beat, scenario=slow), ASSIGNMENT)
    assert not shown(replace(at_rest, heartbeats=beat, scenario=slow, given=(*at_rest.given, late)), ASSIGNMENT)


def test_only_the_last_owner_is_asked_and_whoever_has_it_is_named(at_rest: Tables) -> None:
    before = AssignmentChange(1, -1, ns(5), 0, "b", B)
    beats = tuple(Heartbeat(name, 2, ns(37), ns(37.1), 0) for name in (A, B))
    open_ = Interval(1, C, 0, 2, "c", ns(6), ns(7))
    tables = replace(at_rest, given=(before, *at_rest.given), heartbeats=beats)
    assert [s.members for s in shown(tables, ASSIGNMENT)] == [(A,)]
    assert [s.members for s in shown(replace(tables, intervals=(*tables.intervals, open_)), ASSIGNMENT)] == [(A, C)]


def test_without_a_round_nobody_is_known_to_be_well(at_rest: Tables) -> None:
    assert not shown(replace(at_rest, rounds=()), ASSIGNMENT)


def test_a_generation_again_is_no_regression(at_rest: Tables) -> None:
    def rounds(*generations: int) -> Tables:
        return replace(at_rest, rounds=tuple(Rebalance(1, g, ns(n), ns(n)) for n, g in enumerate(generations)))

    assert not shown(rounds(3, 3), "generation-regression")
    assert shown(rounds(3, 2), "generation-regression")


def test_what_the_coordinator_wrote_is_told_with_its_place_and_times(at_rest: Tables) -> None:
    """A generation is the group's, and of no partition; nothing of this has an offset."""
    rounds = (Rebalance(1, 6, ns(3), ns(4), (B,)), Rebalance(1, 5, ns(5), ns(6), (A, C)))
    tables = replace(at_rest, doubled=(DoubleAssignment(2, ns(7), (B, A)),), rounds=rounds)
    assert shown(tables, "coordinator-overlap") == [
        Detection("coordinator-overlap", 2, (B, A), "", "", -1, ns(7), ns(7))
    ]
    assert shown(tables, "generation-regression") == [
        Detection("generation-regression", -1, (A, C), "", "", -1, ns(5), ns(6))
    ]


def test_a_mismatch_is_told_from_when_the_partition_was_given_to_the_end(at_rest: Tables) -> None:
    assert shown(at_rest, ASSIGNMENT) == [Detection(ASSIGNMENT, 1, (A,), "", "", -1, ns(20), ns(40))]


# Two processes with one static id: from when on the older one may not go on.


def instances(*lives: tuple[str, str, int, int], beats: Sequence[tuple[str, int, int]]) -> Tables:
    """Lives (incarnation, id, start, end) and heartbeats (incarnation, received, answered)."""
    rows = {name: Life(name, instance_id=id_, started_ns=start, ended_ns=end) for name, id_, start, end in lives}
    heard = [Heartbeat(name, 1, begin_ns + LATE_NS, end_ns, 0) for name, begin_ns, end_ns in beats]
    return Tables(Path(), lives=rows, heartbeats=tuple(sorted(heard, key=lambda h: h.begin_ns)))


@pytest.mark.parametrize(
    ("since_ns", "received_ns", "ended_ns", "twice"),
    [
        (ns(4), ns(4) + 1, 0, True),
        (ns(4), ns(4), 0, False),
        (ns(4), ns(5), ns(4) + 1, True),
        (ns(4), ns(5), ns(4), False),  # what it had sent before arrives late
        (ns(4), ns(2), 0, False),
    ],
)
def test_the_older_of_two_goes_on_when_it_is_heard_after_the_newer_was_taken_in(
    since_ns: int, received_ns: int, ended_ns: int, twice: bool
) -> None:
    tables = instances(
        (A, "one", ns(1), ended_ns),
        (B, "one", ns(2), 0),
        beats=[(A, received_ns, ns(9)), (B, ns(3), since_ns)],
    )
    found = [Detection("duplicate-instance", -1, (A, B), "", "", -1, since_ns, ns(9))]
    assert shown(tables, "duplicate-instance") == found * twice


def test_two_are_told_of_though_others_with_their_id_or_another_say_nothing() -> None:
    """C was never heard, and neither was the first of the other id."""
    tables = instances(
        ("member-8.1", "another", ns(0), 0),
        ("member-9.1", "another", ns(0.5), 0),
        (A, "one", ns(1), 0),
        (C, "one", ns(1.5), 0),
        (B, "one", ns(2), 0),
        beats=[(A, ns(5), ns(5)), (B, ns(3), ns(4)), ("member-9.1", ns(1), ns(1))],
    )
    assert [s.members for s in shown(tables, "duplicate-instance")] == [(A, B)]


# A partition for nobody, and rounds without end.


@pytest.fixture(scope="module")
def orphaned(tmp_path_factory: pytest.TempPathFactory) -> Tables:
    return story(tmp_path_factory.mktemp("runs"), "a_partition_for_nobody")


def drained_at(tables: Tables, end_ns: int) -> Tables:
    return replace(tables, phases={**tables.phases, "drain": Window(ns(20.1), end_ns)})


LONG_NS = 30 * NS


def told_of(tables: Tables, tp: int = 1) -> list[tuple[int, int]]:
    return [(s.from_ns, s.to_ns) for s in shown(tables, "orphaned-partition") if s.tp == tp]


def test_a_partition_is_orphaned_for_longer_than_the_bound(orphaned: Tables) -> None:
    begin_ns = orphaned.calm.begin_ns
    found = shown(drained_at(orphaned, begin_ns + LONG_NS + 1), "orphaned-partition")
    times = (begin_ns, begin_ns + LONG_NS + 1)
    assert [s for s in found if s.tp == 1] == [Detection("orphaned-partition", 1, (), "", "", -1, *times)]
    assert not told_of(drained_at(orphaned, begin_ns + LONG_NS))


@pytest.mark.parametrize(("to_ns", "long"), [(LONG_NS + 1, True), (LONG_NS, False)])
def test_what_somebody_owned_of_it_does_not_count(orphaned: Tables, to_ns: int, long: bool) -> None:
    """By its own callbacks, for a second at the start, or at the end."""
    begin_ns = orphaned.calm.begin_ns
    tables = drained_at(orphaned, begin_ns + NS + to_ns)
    for assigned_ns in (begin_ns - 1, begin_ns):
        owned = Interval(1, B, 0, 1, "b", assigned_ns, begin_ns, begin_ns, begin_ns + NS, "revoked")
        assert bool(told_of(replace(tables, intervals=(*tables.intervals, owned)))) == long
    late = Interval(1, B, 0, 1, "b", begin_ns + to_ns, begin_ns + to_ns, 0, 0, "")
    assert bool(told_of(replace(tables, intervals=(*tables.intervals, late)))) == long


def test_a_partition_that_was_made_with_the_first_assignment_is_judged_if_it_was_made_before(orphaned: Tables) -> None:
    first_ns = min(g.at_ns for g in orphaned.given)
    for made_ns, judged in ((first_ns, False), (first_ns - 1, True)):
        led = tuple(row._replace(at_ns=made_ns) for row in orphaned.leaders)
        assert bool(told_of(replace(orphaned, leaders=led))) == judged
    assert told_of(replace(orphaned, leaders=()))


def test_a_partition_that_was_made_later_hides_no_other(orphaned: Tables) -> None:
    first_ns = min(g.at_ns for g in orphaned.given)
    leaders = (*orphaned.leaders, LeaderChange(first_ns + 1, 0, 0, 1))
    assert told_of(replace(orphaned, leaders=leaders))


@pytest.mark.parametrize(("gap_ns", "long"), [(0, False), (1, True)])
def test_a_partition_is_nobodys_from_when_it_certainly_was_taken_to_when_it_may_have_been_given(
    orphaned: Tables, gap_ns: int, long: bool
) -> None:
    from_ns = orphaned.calm.begin_ns + NS
    to_ns = from_ns + LONG_NS + gap_ns
    had = AssignmentChange(1, 90, ns(2), BLUR_NS, "b", B)
    taken = AssignmentChange(1, 91, from_ns - BLUR_NS, BLUR_NS, "", "")
    again = AssignmentChange(1, 92, to_ns + BLUR_NS, BLUR_NS, "b", B)
    tables = drained_at(replace(orphaned, given=(*orphaned.given, had, taken, again)), to_ns + 2 * NS)
    assert told_of(tables) == [(from_ns, to_ns)] * long


def test_a_group_without_records_of_assignments_leaves_no_orphans(orphaned: Tables) -> None:
    assert not told_of(replace(orphaned, given=()))


@pytest.mark.parametrize("gap_ns", [0, 1])
def test_somebody_lives_all_the_time(orphaned: Tables, gap_ns: int) -> None:
    until_ns = orphaned.calm.end_ns - gap_ns
    lives = {
        A: replace(orphaned.lives[A], ended_ns=until_ns, how="killed"),
        B: replace(orphaned.lives[B], ended_ns=ns(25)),
    }
    assert bool(told_of(replace(orphaned, lives=lives))) == (gap_ns == 0)


@pytest.mark.parametrize("within", [{}, {"within_s": 30}])
def test_progress_is_promised_within_30_s_unless_told_otherwise(orphaned: Tables, within: dict[str, float]) -> None:
    promises = [{"type": "progress", **within}, {"type": "order", "within_s": 90}]
    scenario = {**orphaned.scenario, "scenario": {**orphaned.asked, "promises": promises}}
    assert told_of(replace(orphaned, scenario=scenario))
    begin_ns = orphaned.calm.begin_ns
    assert not told_of(drained_at(replace(orphaned, scenario=scenario), begin_ns + LONG_NS))


def test_of_two_promises_of_progress_the_longer_bound_counts(orphaned: Tables) -> None:
    promises = [{"type": "progress", "within_s": 10}, {"type": "progress"}]
    scenario = {**orphaned.scenario, "scenario": {**orphaned.asked, "promises": promises}}
    assert not told_of(drained_at(replace(orphaned, scenario=scenario), orphaned.calm.begin_ns + LONG_NS))


def restless(*ends_ns: int, end_ns: int = ns(61), **more: Any) -> Tables:
    """Rounds from 21 s (the end of healing) to the end of the drain, each a nanosecond in length."""
    rounds = tuple(
        Rebalance(1, n, at_ns - 1, at_ns, (A,) if at_ns == ends_ns[-1] else (B,), "", 0)
        for n, at_ns in enumerate(ends_ns)
    )
    phases = {"warm-up": Window(ns(0), ns(1)), "heal": Window(ns(20), ns(21)), "drain": Window(ns(21), end_ns)}
    lives = {A: Life(A, started_ns=ns(1)), B: Life(B, started_ns=ns(1))}
    base = Tables(Path(), rounds=rounds, phases=phases, lives=lives, steps=(PerformedStep(0, "kill"),))
    return replace(base, **more)


ENDED = Life(A, started_ns=ns(1), ended_ns=ns(61), how="killed")
EVERY_4_S = [ns(at) for at in range(21, 62, 4)]


def blurred(tables: Tables, *, number: int) -> Tables:
    rounds = list(tables.rounds)
    rounds[number] = rounds[number]._replace(uncertainty_ns=NS)
    return replace(tables, rounds=tuple(rounds))


@pytest.mark.parametrize(
    ("tables", "never"),
    [
        (restless(*EVERY_4_S), True),
        (restless(*EVERY_4_S[:-1], end_ns=ns(62) - 1), True),
        (restless(*EVERY_4_S[:-1], end_ns=ns(62)), False),  # 5 s at the end
        (restless(ns(26) - 1, *EVERY_4_S[2:]), True),
        (restless(ns(26), *EVERY_4_S[2:]), False),  # 5 s at the start
        (blurred(restless(*EVERY_4_S), number=0), False),  # it may have been 5 s before the next
        (blurred(restless(*EVERY_4_S), number=-1), False),  # or after the one before it
        (restless(*EVERY_4_S[:-2], ns(50.9), end_ns=ns(51) + 1), True),
        (restless(*EVERY_4_S[:-2], ns(50.9), end_ns=ns(51)), False),  # 30 s
        (restless(*EVERY_4_S, lives={A: ENDED}), True),
        (restless(*EVERY_4_S, lives={A: ENDED}, gone=(MemberRemoval("a", A, 1, ns(40), 0),)), False),
        (restless(*EVERY_4_S, lives={A: Life(A, started_ns=ns(32))}), False),
        (restless(*EVERY_4_S, lives={}, gone=(MemberRemoval("a", A, 1, ns(30), 2 * NS),)), False),
        (restless(*EVERY_4_S, lives={}, gone=(MemberRemoval("a", A, 1, ns(30), NS - 1),)), True),
        (restless(*EVERY_4_S, gone=(MemberRemoval("a", A, 1, ns(40), 0),)), True),  # it lives: why is it gone?
    ],
)
def test_a_group_is_never_stable_when_no_5_s_pass_without_a_round(tables: Tables, never: bool) -> None:
    assert bool(shown(tables, "never-stable")) == never


def test_the_rounds_are_counted_and_those_of_the_last_are_named() -> None:
    assert shown(restless(*EVERY_4_S), "never-stable") == [
        Detection("never-stable", -1, (A,), "", "", -1, ns(21), ns(61), 11)
    ]


DUPLICATES: dict[str, Any] = {"impact": frozenset({Impact.DUPLICATES})}


def ending(number: int, incarnation: str, begun_ns: int) -> PerformedStep:
    """A step of a fault, whatever its name is, that ends an incarnation."""
    return PerformedStep(number, "mine", members=(incarnation,), begun_ns=begun_ns, impact=frozenset({Impact.ENDS}))


@pytest.mark.parametrize(
    ("worked_ns", "fault_ns", "dead"),
    [
        (ns(5), FOREVER, False),
        (ns(5) - 1, FOREVER, True),
        (ns(1), ns(5), False),
        (ns(1), ns(5) + 1, True),
        (0, FOREVER, False),
    ],
)
def test_a_member_dies_by_itself_after_the_warm_up_and_before_any_fault_ends_it(
    worked_ns: int, fault_ns: int, dead: bool
) -> None:
    tables = Tables(
        Path(),
        phases={"warm-up": Window(ns(0), worked_ns)},
        lives={A: Life(A, started_ns=ns(1), ended_ns=ns(5), how="crashed")},
        steps=(ending(0, A, fault_ns), ending(1, A, FOREVER)),
    )
    assert bool(shown(tables, "dead-member")) == dead
    assert not shown(replace(tables, phases={}), "dead-member")


@pytest.mark.parametrize(
    ("life", "cause", "from_ns"),
    [
        ({}, "", ns(1)),
        ({"last_sign_ns": ns(4)}, "", ns(4)),
        ({"signal": "SIGKILL"}, "SIGKILL", ns(1)),
        ({"signal": "SIGABRT", "fatal": "FENCED_INSTANCE_ID"}, "FENCED_INSTANCE_ID", ns(1)),
    ],
)
def test_a_dead_member_is_told_with_why_and_since_its_last_sign(life: dict[str, Any], cause: str, from_ns: int) -> None:
    """A fault that only stopped it for a while had not ended it."""
    tables = Tables(
        Path(),
        phases={"warm-up": Window(ns(0), ns(1))},
        lives={A: Life(A, **{"started_ns": ns(1), "ended_ns": ns(5), "how": "crashed", **life})},
        steps=(replace(ending(0, A, ns(2)), impact=frozenset({Impact.FREEZES, Impact.DELAYS})),),
    )
    assert shown(tables, "dead-member") == [Detection("dead-member", -1, (A,), cause, "", -1, from_ns, ns(5))]


def test_a_client_that_gave_up_is_a_fault_s_that_ended_any_life_of_its_member() -> None:
    """Names of members may have dots."""
    name, before = "a.member.2", "a.member.1"
    gave_up = Life(name, started_ns=ns(1), ended_ns=ns(5), how="crashed", fatal="FENCED_INSTANCE_ID")
    tables = Tables(Path(), phases={"warm-up": Window(ns(0), ns(1))}, lives={name: gave_up})
    assert shown(tables, "dead-member")
    assert not shown(replace(tables, steps=(ending(0, before, ns(2)),)), "dead-member")
    assert shown(replace(tables, steps=(ending(0, "a.other.1", ns(2)),)), "dead-member")


@pytest.mark.parametrize(
    ("life", "step", "dead"),
    [
        ({}, {}, False),
        ({"fatal": "UNRELEASED_INSTANCE_ID"}, {}, False),
        ({"incarnation": "b.1"}, {}, False),  # the newcomer
        ({}, {"healed_ns": ns(5)}, False),
        ({}, {"healed_ns": ns(5) - 1}, True),
        ({}, {"begun_ns": ns(5) + 1}, True),
        ({}, {"begun_ns": 0}, True),
        ({}, {"impact": frozenset({Impact.FREEZES, Impact.DELAYS})}, True),
        ({}, {"members": ("c.1",)}, True),
        ({}, {"members": ("unheard.1",)}, True),
        ({"incarnation": "b.1", "instance_id": "another"}, {}, True),
        ({"instance_id": ""}, {"members": ("d.1",)}, True),
        ({"fatal": "UNKNOWN_MEMBER_ID"}, {}, True),
        ({"fatal": ""}, {}, True),
    ],
)
def test_who_was_refused_for_a_name_that_a_fault_made_two_share_did_not_die_by_itself(
    life: dict[str, Any], step: dict[str, Any], dead: bool
) -> None:
    ended = {"started_ns": ns(1), "ended_ns": ns(5), "how": "crashed", "fatal": "FENCED_INSTANCE_ID"}
    its = Life(**{"incarnation": A, "instance_id": "name", **ended, **life})
    known = {A: Life(A, instance_id="name"), "c.1": Life("c.1", instance_id="other"), "d.1": Life("d.1")}
    tables = Tables(
        Path(),
        phases={"warm-up": Window(ns(0), ns(1))},
        lives={**known, its.incarnation: its},
        steps=(
            PerformedStep(**{"step": 0, "fault": "mine", **DUPLICATES, "members": (A,), "begun_ns": ns(2), **step}),
        ),
    )
    assert bool(shown(tables, "dead-member")) == dead


@pytest.mark.parametrize(
    ("life", "step", "dead"),
    [
        ({}, {}, False),
        ({}, {"begun_ns": ns(5)}, False),
        ({}, {"begun_ns": ns(5) + 1}, True),
        ({}, {"begun_ns": 0}, True),
        ({}, {"healed_ns": ns(5)}, False),
        ({}, {"healed_ns": ns(5) - 1}, True),
        ({}, {"impact": frozenset({Impact.DELAYS})}, True),
        ({}, {"members": (C,)}, True),
        ({}, {"members": ("nobody",)}, True),
        ({"fatal": "GROUP_AUTHORIZATION_FAILED"}, {}, True),
        ({"instance_id": ""}, {}, True),
        ({"instance_id": "two"}, {}, True),
    ],
)
def test_a_member_that_is_refused_for_a_name_that_was_given_to_two_does_not_die_by_itself(
    life: dict[str, Any], step: dict[str, Any], dead: bool
) -> None:
    dying = {"started_ns": ns(1), "ended_ns": ns(5), "how": "crashed", "instance_id": "one", "fatal": NAME_TAKEN[0]}
    tables = Tables(
        Path(),
        phases={"warm-up": Window(ns(0), ns(1))},
        lives={A: Life(A, **{**dying, **life}), B: Life(B, instance_id="one"), C: Life(C, instance_id="three")},
        steps=(
            PerformedStep(0, "mine", **{**DUPLICATES, "members": (C, B), "heals": True, "begun_ns": ns(2), **step}),
        ),
    )
    assert [s.members for s in shown(tables, "dead-member")] == [(A,)] * dead
