"""On which side of a definition a moment is, for the rules about callbacks: small tables in which one row differs, by a
nanosecond or by whether it is there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from fencepost.checkers.detections import Detection
from fencepost.checkers.tables import Tables
from fencepost.checkers.tables.rows import (
    NS,
    AssignmentChange,
    Commit,
    DeclaredAction,
    Interval,
    Life,
    MemberRemoval,
    Partition,
    Rebalance,
    UnmatchedRevocation,
    Window,
)
from fencepost.model import TopicPartition
from history.builder import ns
from history.test_coordination import A, B, C
from history.test_coordination_moments import shown

PARTITIONS = {tp: Partition(tp, TopicPartition("orders", tp)) for tp in range(4)}
LIVES = {name: Life(name, started_ns=ns(0.5)) for name in (A, B, C)}
FENCED, UNKNOWN = "FENCED_INSTANCE_ID", "UNKNOWN_MEMBER_ID"


def tables(*intervals: Interval, lives: Mapping[str, Life] = LIVES, **rows: Any) -> Tables:
    """Of lives without an end, in which nothing was but these rows."""
    by_time = tuple(sorted(intervals, key=lambda i: i.assigned_begin_ns))
    return Tables(Path(), partitions=PARTITIONS, lives=lives, intervals=by_time, **rows)


def had(
    name: str,
    assigned_ns: int,
    given_up: tuple[int, int] = (0, 0),
    how: str = "revoked",
    *,
    tp: int = 0,
    generation: int = 1,
    number: int = 0,
    returned_ns: int | None = None,
) -> Interval:
    """An interval, assigned in a nanosecond unless told; without an end, if it was not given up."""
    returned_ns = assigned_ns + 1 if returned_ns is None else returned_ns
    how = how if any(given_up) else ""
    return Interval(tp, name, number, generation, f"id-{name}", assigned_ns, returned_ns, *given_up, how)


def committed(
    begin_ns: int, end_ns: int, *, name: str = A, tp: int = 0, mode: str = "on-revoke", error: str = ""
) -> Commit:
    return Commit(tp, 3, name, f"id-{name}", 1, begin_ns, end_ns, "fail" if error else "ok", error, mode)


def told(of: Tables, kind: str) -> list[Detection]:
    return shown(of, kind)


# One partition: the former owner's revoked callback goes from 5 s on, the new owner's assigned one begins at 5.2 s.

EARLY, REVOKED_NS, ASSIGNED_NS = "early-assignment", ns(5), ns(5.2)


def handed_over(returned_ns: int, assigned_ns: int = ASSIGNED_NS, **rows: Any) -> Tables:
    return tables(had(A, ns(1), (REVOKED_NS, returned_ns)), had(B, assigned_ns), **rows)


@pytest.mark.parametrize(
    ("of", "early"),
    [
        (handed_over(ASSIGNED_NS + NS), False),
        (handed_over(ASSIGNED_NS + NS + 1), True),
        (handed_over(ASSIGNED_NS + NS + 1, lives={}), True),  # nobody knows of a pause
        (handed_over(ns(7), REVOKED_NS), False),  # it had not begun before: that is an overlap
        (handed_over(ns(7), REVOKED_NS + 1), True),
        (handed_over(ns(7), stalls=(Window(ns(4), ASSIGNED_NS - 1),)), True),
        (handed_over(ns(7), stalls=(Window(ns(4), ASSIGNED_NS),)), False),
        (handed_over(ns(7), stalls=(Window(ns(7), ns(8)),)), False),
        (handed_over(ns(7), stalls=(Window(ns(7) + 1, ns(8)),)), True),
        *(
            (handed_over(ns(7), lives={A: replace(LIVES[A], paused=(pause,)), B: LIVES[B]}), early)
            for pause, early in [
                (Window(ns(4), ASSIGNED_NS - 1), True),
                (Window(ns(4), ASSIGNED_NS), False),
                (Window(ns(7), ns(8)), False),
                (Window(ns(7) + 1, ns(8)), True),
            ]
        ),
        (handed_over(ns(7), lives={A: LIVES[A], B: replace(LIVES[B], paused=(Window(ns(6), ns(6.1)),))}), True),
    ],
)
def test_a_revoked_callback_is_slow_when_it_returns_over_1_s_after_and_nothing_stood_still(
    of: Tables, early: bool
) -> None:
    assert [s.members for s in told(of, EARLY)] == [(A, B)] * early


LAST_NS = ns(5.5)  # when the revoked callback returned: too soon to be slow


@pytest.mark.parametrize(
    ("commit", "early"),
    [
        (committed(ns(5.1), ASSIGNED_NS), False),
        (committed(ns(5.1), ASSIGNED_NS + 1), True),
        (committed(ns(5.1), LAST_NS), True),
        (committed(ns(5.1), LAST_NS + 1), False),  # not from inside of it
        (committed(ns(5.1), 0), False),
        (committed(REVOKED_NS, ns(5.3)), True),
        (committed(REVOKED_NS - 1, ns(5.3)), False),
        (committed(ns(5.1), ns(5.3), mode="sync"), True),
        (committed(ns(5.3), ns(5.3), mode="auto"), False),
        (committed(ns(5.1), ns(5.3), name=C), False),
        (committed(ns(5.1), ns(5.3), tp=1), False),
    ],
)
def test_a_callback_still_commits_when_one_of_its_commits_is_answered_after_the_other_began(
    commit: Commit, early: bool
) -> None:
    found = told(handed_over(LAST_NS, commits=(commit,)), EARLY)
    assert found == [Detection(EARLY, 0, (A, B), "", "", -1, ASSIGNED_NS, LAST_NS)] * early


@pytest.mark.parametrize(("gone_ns", "excuse"), [(ns(7), "zombie"), (ns(7) + 1, "")])
def test_a_former_owner_was_a_zombie_if_it_was_gone_when_it_was_through(gone_ns: int, excuse: str) -> None:
    gone = (MemberRemoval(f"id-{A}", A, 1, gone_ns, 0),)
    assert [s.excuse for s in told(handed_over(ns(7), gone=gone), EARLY)] == [excuse]


# A generation of an eager group, written at 5 s; A had partition 0 of the one before, B is assigned partition 1.

WRITTEN_NS, BLUR_NS = ns(5), 1_000
CERTAIN_NS = WRITTEN_NS + 2 * BLUR_NS  # it may have been written from the one to the other
ROUND = Rebalance(1, 2, ns(4.5), WRITTEN_NS + BLUR_NS, (A, B), "", BLUR_NS)
OLD, NEW = had(A, ns(1), (ns(6), ns(6) + 1)), had(B, ns(5.1), tp=1, generation=2)


def generation(
    *intervals: Interval, rounds: Sequence[Rebalance] = (ROUND,), protocol: str = "eager", **rows: Any
) -> Tables:
    scenario = {"scenario": {"group": {"protocol": protocol}}}
    return tables(*(intervals or (OLD, NEW)), rounds=tuple(rounds), scenario=scenario, **rows)


def old(**changes: Any) -> Tables:
    return generation(OLD._replace(**changes), NEW)


def new(**changes: Any) -> Tables:
    return generation(OLD, NEW._replace(**changes))


@pytest.mark.parametrize(
    ("of", "early"),
    [
        (generation(), True),
        (generation(protocol="cooperative"), False),
        (generation(rounds=()), False),
        (generation(rounds=[ROUND._replace(members=(B,))]), False),  # nobody waited for A
        (generation(rounds=[ROUND._replace(generation=1)]), False),
        (generation(rounds=[ROUND._replace(generation=3)]), False),
        (generation(OLD), False),  # nobody was assigned anything of it
        (generation(NEW), False),
        (old(generation=0), False),
        (old(generation=2), False),
        (old(how="lost"), False),
        (old(assigned_end_ns=0), False),
        (old(assigned_end_ns=WRITTEN_NS - 1), True),
        (old(assigned_end_ns=WRITTEN_NS), False),  # maybe of the new one
        (old(given_up_begin_ns=ns(5.1)), False),  # in its callback, which was not slow
        (old(given_up_begin_ns=ns(5.1) + 1), True),
        (old(tp=1), False),  # told for that partition
        (new(assigned_begin_ns=CERTAIN_NS), True),
        (new(assigned_begin_ns=CERTAIN_NS - 1), False),  # maybe of the one before
        (new(generation=3), False),
        (generation(gone=(MemberRemoval(f"id-{A}", A, 1, ns(6) + 1, 0),)), False),
        (generation(gone=(MemberRemoval(f"id-{A}", A, 1, ns(6) + 2, 0),)), True),
    ],
)
def test_a_generation_is_early_where_a_member_that_was_waited_for_still_has_its_partitions(
    of: Tables, early: bool
) -> None:
    assert [s.members for s in told(of, EARLY)] == [(A, B)] * early


def test_of_an_early_generation_it_is_told_what_was_assigned_and_from_when_to_when() -> None:
    times = (NEW.assigned_begin_ns, OLD.given_up_end_ns)
    assert told(generation(), EARLY) == [Detection(EARLY, 1, (A, B), "generation", "", -1, *times)]


@pytest.mark.parametrize(("returned_ns", "early"), [(CERTAIN_NS, False), (CERTAIN_NS + 1, True)])
def test_a_commit_that_was_not_answered_when_the_next_generation_was_assigned_is_early(
    returned_ns: int, early: bool
) -> None:
    before = OLD._replace(given_up_begin_ns=WRITTEN_NS - 100, given_up_end_ns=returned_ns)
    after = NEW._replace(assigned_begin_ns=CERTAIN_NS)
    commits = (committed(WRITTEN_NS - 50, returned_ns),)
    assert bool(told(generation(before, after, commits=commits), EARLY)) == early


def test_the_least_of_a_generation_and_the_first_that_was_late_are_told() -> None:
    """A gave up partition 0 in time and partition 3 too late; B had one partition before, and is assigned two."""
    in_time = had(A, ns(1), (ns(4), ns(5.05)), generation=1)
    late = had(A, ns(1.1), (ns(6), ns(6.1)), tp=3)
    before = had(B, ns(4.9), tp=1, generation=2)
    of = generation(in_time, late, before, had(B, ns(5.2), tp=2, generation=2))
    (found,) = told(of, EARLY)
    assert (found.tp, found.from_ns, found.to_ns) == (2, ns(5.2), ns(6.1))


def test_one_member_that_is_in_time_hides_no_other() -> None:
    """C was given nothing new after the generation was written; A has what it had, and so has C."""
    of = generation(
        had(C, ns(1), (ns(4), ns(4) + 1), tp=2),
        OLD,
        had(C, ns(4.9), tp=2, generation=2),
        NEW,
        had(C, ns(5.3), tp=3, generation=3),
        rounds=[ROUND._replace(members=(A, B, C)), ROUND._replace(generation=9)],
    )
    assert [s.members for s in told(of, EARLY)] == [(A, B)]


# Taken and given back: A has partition 0 of generation 1 from 1 s to 4 s, and of generation 3 from 6 s on.

NEEDLESS = "needless-revocation"
FORMER, LATER = had(A, ns(1), (ns(4), ns(4) + 1)), had(A, ns(6), generation=3, number=1)
ROUNDS = tuple(Rebalance(1, g, ns(at) - 1, ns(at), (A, B)) for g, at in ((1, 0.9), (2, 4.5), (3, 5.9)))


def given_back(former: Interval = FORMER, later: Interval = LATER, **rows: Any) -> Tables:
    protocol = rows.pop("protocol", "cooperative")
    scenario = {"scenario": {"group": {"protocol": protocol}}}
    return tables(former, later, **{"rounds": ROUNDS, "scenario": scenario, **rows})


def rounds(**changes: Any) -> dict[str, Any]:
    """The second round is another one."""
    return {"rounds": (ROUNDS[0], ROUNDS[1]._replace(**changes), ROUNDS[2])}


def given(at_ns: int, member_id: str, incarnation: str, tp: int = 0) -> dict[str, Any]:
    return {"given": (AssignmentChange(tp, 1, at_ns, 0, member_id, incarnation),)}


@pytest.mark.parametrize(
    ("of", "needless"),
    [
        (given_back(), True),
        (given_back(protocol="consumer"), True),
        (given_back(protocol="eager"), False),
        (given_back(FORMER._replace(how="lost")), False),
        (given_back(FORMER._replace(incarnation=B)), False),
        (given_back(rounds=()), False),
        (given_back(rounds=ROUNDS[1:]), False),
        (given_back(rounds=ROUNDS[:2]), False),
        (given_back(rounds=ROUNDS[::2]), True),
        (given_back(later=LATER._replace(generation=1), rounds=ROUNDS[:1]), True),
        (given_back(**rounds(members=(A,))), False),
        (given_back(**rounds(members=(B, A))), True),
        (given_back(rounds=tuple(one._replace(members=()) for one in ROUNDS)), False),
        (given_back(**rounds(restarted=True)), False),
        (given_back(**rounds(generation=3)), False),  # the same one twice
        (given_back(rounds=(*ROUNDS, ROUNDS[2]._replace(generation=4, members=(A,)))), False),
        (given_back(rounds=(*ROUNDS, ROUNDS[2]._replace(generation=4, members=(A,), begin_ns=ns(6) + 2))), True),
        (given_back(**given(ns(5), f"id-{B}", B)), False),
        (given_back(**given(ns(5), f"id-{A}", A)), True),
        (given_back(**given(ns(5), "somebody", "")), False),
        (given_back(**given(ns(5), "", "")), True),
        (given_back(**given(ns(5), f"id-{B}", B, tp=1)), True),
        (given_back(**given(ns(1) - 1, f"id-{B}", B)), True),
        (given_back(**given(ns(1), f"id-{B}", B)), False),
        (given_back(**given(ns(6) + 1, f"id-{B}", B)), False),
        (given_back(**given(ns(6) + 2, f"id-{B}", B)), True),
        *(
            (given_back(acts=(DeclaredAction("recreate_topic", 1, begin_ns, begin_ns + 1, skipped),)), needless)
            for begin_ns, skipped, needless in (
                (ns(3), 0, False),
                (ns(3), -1, True),  # it is no other partition
                (ns(1) - 2, 0, True),
                (ns(1) - 1, 0, False),
                (ns(6) + 1, 0, False),
                (ns(6) + 2, 0, True),
            )
        ),
        (given_back(lives={**LIVES, C: Life(C, started_ns=ns(3))}), False),
        (given_back(later=LATER._replace(assigned_end_ns=0), lives={**LIVES, C: Life(C, started_ns=ns(9))}), False),
        (given_back(lives={**LIVES, C: Life(C, started_ns=ns(9))}), True),
        *(
            (given_back(lives={**LIVES, name: replace(LIVES[name], subscribed=(Window(*window),))}), needless)
            for name in (A, C)
            for window, needless in (
                ((ns(3), ns(3) + 1), False),
                ((ns(1) - 2, ns(1) - 1), True),
                ((ns(1) - 1, ns(1)), False),
                ((ns(6) + 1, ns(7)), False),
                ((ns(6) + 2, ns(7)), True),
            )
        ),
    ],
)
def test_a_revocation_is_needless_where_nothing_explains_it(of: Tables, needless: bool) -> None:
    assert told(of, NEEDLESS) == [Detection(NEEDLESS, 0, (A,), "", "", -1, ns(4), ns(6) + 1)] * needless


def test_without_the_end_of_the_later_assigned_callback_all_that_came_counts() -> None:
    """The callback may have returned at any time."""
    later = LATER._replace(assigned_end_ns=0)
    assert told(given_back(later=later), NEEDLESS)
    beyond = ROUNDS[2]._replace(generation=4, members=(A,), begin_ns=ns(9))
    assert not told(given_back(later=later, rounds=(*ROUNDS, beyond)), NEEDLESS)


@pytest.mark.parametrize(
    ("act", "excuse"),
    [
        (DeclaredAction("remove-member", 0, ns(6) + 1), "declared act: remove-member"),
        (DeclaredAction("remove-member", 0, ns(6) + 2), ""),
        (DeclaredAction("remove-member", 1, ns(3)), ""),
    ],
)
def test_a_declared_act_by_then_excuses_a_revocation(act: DeclaredAction, excuse: str) -> None:
    assert [s.excuse for s in told(given_back(acts=(act,)), NEEDLESS)] == [excuse]


# Fenced: A has partition 0 from 1 s until its revoked callback begins at 5 s.

LOST = "lost-reported-as-revoked"
OPEN, UNTIL_NS = had(A, ns(1), (ns(5), ns(5.1))), ns(5)
CLOSED = {A: replace(LIVES[A], how="closed", ended_ns=ns(9))}


def fenced(begin_ns: int = ns(4), end_ns: int = ns(4) + 1, **options: Any) -> Commit:
    return committed(begin_ns, end_ns, error=options.pop("error", UNKNOWN), mode="sync", **options)


@pytest.mark.parametrize(
    ("commits", "knew"),
    [
        ([fenced()], (UNKNOWN, ns(4) + 1)),
        ([fenced(error=FENCED)], (FENCED, ns(4) + 1)),
        ([fenced(error="ILLEGAL_GENERATION")], None),
        ([fenced(), fenced(ns(4.1), ns(4.2), error=FENCED)], (UNKNOWN, ns(4) + 1)),
        ([fenced(error="REBALANCE_IN_PROGRESS"), fenced(ns(4.1), ns(4.2))], (UNKNOWN, ns(4.2))),
        ([fenced(end_ns=0)], None),
        ([fenced(end_ns=UNTIL_NS - 1)], (UNKNOWN, UNTIL_NS - 1)),
        ([fenced(end_ns=UNTIL_NS)], None),
        ([fenced(ns(1) + 2)], (UNKNOWN, ns(4) + 1)),
        ([fenced(ns(1) + 1)], None),  # maybe it was begun before
        ([fenced(name=B)], None),
        ([fenced(tp=1)], None),
    ],
)
def test_a_member_knew_that_it_was_fenced_by_the_answer_to_a_commit_of_the_interval(
    commits: Sequence[Commit], knew: tuple[str, int] | None
) -> None:
    found = told(tables(OPEN, commits=tuple(commits)), LOST)
    assert found == ([Detection(LOST, 0, (A,), knew[0], "", -1, knew[1], UNTIL_NS)] if knew else [])


@pytest.mark.parametrize(
    ("lives", "assigned_ns", "told_wrongly"),
    [
        (LIVES, 0, True),
        ({}, 0, False),  # maybe it closed
        (CLOSED, 0, False),
        (CLOSED, UNTIL_NS, False),
        (CLOSED, UNTIL_NS + 1, True),
        ({A: replace(CLOSED[A], how="killed")}, 0, True),
    ],
)
def test_who_closed_may_have_given_up_by_itself_what_was_followed_by_nothing(
    lives: Mapping[str, Life], assigned_ns: int, told_wrongly: bool
) -> None:
    """Another partition, or this one once more."""
    for tp, number in ((2, 0), (0, 1)):
        others = [had(A, ns(2), tp=1), *([had(A, assigned_ns, tp=tp, number=number)] if assigned_ns else [])]
        found = told(tables(OPEN, *others, commits=(fenced(),), lives=lives), LOST)
        assert bool(found) == told_wrongly


def test_an_interval_that_nobody_saw_begin_is_not_judged() -> None:
    assert not told(tables(OPEN._replace(assigned_end_ns=0), commits=(fenced(),)), LOST)
    assert not told(tables(OPEN._replace(how="lost"), commits=(fenced(),)), LOST)


# Told twice.


def test_the_ledger_tells_both_callbacks_of_an_assignment_and_the_one_that_gave_up_nothing() -> None:
    again = had(A, ns(3), number=1)
    of = tables(
        had(A, ns(1), (ns(3), ns(3)), "reassigned"), again, strays=(UnmatchedRevocation(2, B, Window(ns(4), ns(4.5))),)
    )
    assert told(of, "callback-imbalance") == [
        Detection("callback-imbalance", 0, (A,), "assigned twice", "", -1, ns(1), ns(3)),
        Detection("callback-imbalance", 2, (B,), "given up twice", "", -1, ns(4), ns(4.5)),
    ]
