"""What the coordinator's own lines come to, line by line: accepted commits, owners, rounds, terms and leaders."""

from __future__ import annotations

from typing import Any

import pytest

from fencepost.checkers.tables import coordinator
from fencepost.checkers.tables.rows import (
    AssignmentChange,
    Commit,
    DoubleAssignment,
    LeaderChange,
    Life,
    MemberRemoval,
    OffsetCommit,
    Rebalance,
)

NUMBERS = {("orders", 0): 0, ("orders", 1): 1, ("", 5): 5, ("orders", -1): 8}
WHO = {"a": "member-0.1", "b": "member-1.1"}
TIMES = {"order": 7, "at_ns": 100, "uncertainty_ns": 3}


def lacking(line: dict[str, Any], field: str) -> dict[str, Any]:
    return {name: value for name, value in line.items() if name != field}


# Whose a member id is.

LIVES = {
    "early": Life("early", slot=0, started_ns=1, ended_ns=5),
    "late": Life("late", slot=0, started_ns=6),
    "other": Life("other", slot=1, started_ns=0),
}


@pytest.mark.parametrize(
    ("events", "asked", "whose"),
    [
        ([("x", "early")], [], "early"),
        ([("x", "early"), ("x", "early")], [], "early"),
        ([("x", "early"), ("x", "late")], [], None),
        ([("x", "stranger")], [], None),
        ([(None, "early"), ("", "early")], [], None),
        ([("x", "early")], [(0, 7)], "early"),
        ([("x", "stranger")], [(0, 7)], "late"),
        ([], [(0, 1)], "early"),
        ([], [(0, 5)], "early"),
        ([], [(0, 6)], "late"),
        ([], [(0, 2), (0, 3)], "early"),
        ([], [(0, 2), (0, 7)], None),
        ([], [(0, 2), (0, 0)], None),
        ([], [(0, 2), (3, 2)], None),
        ([], [(1, 2)], "other"),
        ([], [(1, None)], "other"),
        ([], [(0, None)], None),
        ([], [(None, 2), (0, 2)], "early"),
    ],
)
def test_a_member_id_is_of_one_life(
    events: list[tuple[str | None, str]], asked: list[tuple[int | None, int | None]], whose: str | None
) -> None:
    reported = [{"member_id": member_id, "actor": actor} for member_id, actor in events]
    requests = [{"member_id": "x", "slot": slot, "start_ns": at_ns} for slot, at_ns in asked]
    expected = {"x": whose} if whose else {}
    assert coordinator.incarnations(reported, requests, LIVES) == expected
    nobodys = [{"member_id": None, "slot": 0, "start_ns": 2}, {"slot": 0, "start_ns": 2}, {"member_id": "y"}]
    known = {"member_id": "z", "slot": 1}  # no time: the first moment
    assert coordinator.incarnations(reported, [*nobodys, *requests, known], LIVES) == {**expected, "z": "other"}


@pytest.mark.parametrize(
    ("asked", "whose"),
    [
        ([("early", 0, 6)], "early"),
        ([("early", None, 6)], "early"),
        ([("early", 0, 6), ("early", 1, 2)], "early"),
        ([("early", 0, 2), ("other", 0, 2)], None),
        ([("stranger", 0, 2)], "early"),
        ([("stranger", None, 2)], None),
        ([("early", 0, 2), (None, 0, 6)], None),
    ],
)
def test_a_member_id_is_of_the_life_that_the_client_of_its_requests_is_called_by(
    asked: list[tuple[str | None, int | None, int]], whose: str | None
) -> None:
    requests = [{"member_id": "x", "client_id": c, "slot": slot, "start_ns": at_ns} for c, slot, at_ns in asked]
    assert coordinator.incarnations([], requests, LIVES) == ({"x": whose} if whose else {})


# Accepted commits.


def answered(offset: int, end_ns: int, *, tp: int = 0, outcome: str = "ok", begin_ns: int = 0) -> Commit:
    return Commit(tp, offset, "member-0.1", "a", 1, begin_ns, end_ns, outcome)


LINE = {"type": "commit", "topic": "orders", "partition": 0, "committed": 4, "deleted": False, **TIMES}
ACCEPTED = OffsetCommit(0, 4, 7, 100, 3, 0)


def accepted_of(lines: list[dict[str, Any]], commits: list[Commit]) -> tuple[OffsetCommit, ...]:
    """Those in force, of a log in which none was overtaken."""
    found, overtaken = coordinator.accepted(lines, commits, NUMBERS)
    assert overtaken == ()
    return found


@pytest.mark.parametrize(
    ("line", "accepted"),
    [
        (LINE, ACCEPTED),
        ({**LINE, "partition": 1, "committed": 0}, ACCEPTED._replace(tp=1, offset=0)),
        ({**LINE, "deleted": True}, ACCEPTED._replace(offset=-1)),
        (lacking(LINE, "deleted"), ACCEPTED),
        (lacking(LINE, "committed"), ACCEPTED._replace(offset=-1)),
        (lacking(LINE, "order"), ACCEPTED._replace(order=0)),
        (lacking(LINE, "at_ns"), ACCEPTED._replace(at_ns=0)),
        (lacking(LINE, "uncertainty_ns"), ACCEPTED._replace(uncertainty_ns=0)),
        (lacking(LINE, "partition"), ACCEPTED._replace(tp=8)),
        ({**lacking(LINE, "topic"), "partition": 5}, ACCEPTED._replace(tp=5)),
        ({**LINE, "partition": 9}, None),
        ({**LINE, "type": "current"}, None),
        (lacking(LINE, "type"), None),
    ],
)
def test_a_commit_is_accepted_by_its_line(line: dict[str, Any], accepted: OffsetCommit | None) -> None:
    last = {**LINE, "order": 9, "partition": 1}
    unanswered = [answered(4, 100, tp=1)]
    others = [
        answered(5, 200),
        answered(4, 200, tp=8, outcome="info"),
        answered(4, 0),
        answered(4, 200, outcome="fail"),
    ]
    found = accepted_of([line, last], others)
    assert found == (*([accepted] if accepted else ()), OffsetCommit(1, 4, 9, 100, 3, 0))
    (*_, answered_too) = accepted_of([line, last], [*others, *unanswered])
    assert answered_too == OffsetCommit(1, 4, 9, 100, 3, 100)


@pytest.mark.parametrize(
    ("ends", "answered_ns"),
    [
        ([97], 97),
        ([96], 0),
        ([96, 150, 120], 120),
        ([400, 98, 97, 96], 97),
        ([], 0),
    ],
)
def test_a_commit_is_answered_by_the_first_answer_that_can_be_its_own(ends: list[int], answered_ns: int) -> None:
    commits = [answered(4, end_ns, begin_ns=-end_ns) for end_ns in ends]  # not in the order of their starts
    (found,) = accepted_of([LINE], commits)
    assert found == ACCEPTED._replace(answered_ns=answered_ns)


def test_accepted_commits_are_in_the_order_of_the_log_and_not_of_the_lines() -> None:
    lines = [{**LINE, "order": order, "committed": offset} for order, offset in ((3, 1), (1, 9), (2, 5))]
    assert [(a.order, a.offset) for a in accepted_of(lines, [])] == [(1, 9), (2, 5), (3, 1)]
    assert accepted_of([{"type": "member"}], [answered(4, 100)]) == ()


def test_what_was_overtaken_is_apart_and_was_settled_when_its_transaction_ended() -> None:
    pending = [{**LINE, "order": order, "committed": offset, "producer": 7} for order, offset in ((2, 6), (1, 5))]
    later, end = {**LINE, "order": 3}, {"type": "transaction-end", "order": 4, "at_ns": 120, "producer": 7}
    lines = [*pending, later, {**end, "committed": True}]
    found, overtaken = coordinator.accepted(lines, [answered(5, 130)], NUMBERS)
    assert found == (OffsetCommit(0, 4, 3, 100, 3, 0),)
    assert overtaken == (OffsetCommit(0, 5, 1, 110, 13, 130, True), OffsetCommit(0, 6, 2, 110, 13, 0, True))


def test_without_lines_the_answers_are_the_log() -> None:
    """Written somewhere between a commit's start and its answer."""
    commits = [
        *(answered(6, 21, begin_ns=12), answered(5, 9, tp=1, begin_ns=2), answered(4, 9, begin_ns=5)),
        *(answered(7, 0), answered(8, 30, outcome="fail"), answered(9, 31, outcome="info")),
    ]
    assert accepted_of([], commits) == (
        *(OffsetCommit(0, 4, 0, 7, 2, 9), OffsetCommit(1, 5, 1, 5, 4, 9), OffsetCommit(0, 6, 2, 16, 5, 21)),
    )


# Owners.


def has(member_id: str, *tps: int, order: int = 7, **more: Any) -> dict[str, Any]:
    return {"type": "current", "member_id": member_id, "assigned": {"orders": [*tps]}, **TIMES, "order": order, **more}


def without(kind: str, deleted: bool) -> dict[str, Any]:
    return {"type": kind, "deleted": deleted, "member_id": "a", "order": 8}


def generation(order: int, **owned: list[int] | None) -> dict[str, Any]:
    members = [{"member_id": m, "assignment": None if tps is None else {"orders": tps}} for m, tps in owned.items()]
    return {"type": "classic-group", "members": members, **TIMES, "order": order}


def test_who_is_given_what_is_told_with_the_times_of_the_line() -> None:
    given, gone, doubled = coordinator.assignments([has("a", 0), {**has("a"), "deleted": True}], WHO, NUMBERS)
    assert given == (AssignmentChange(0, 7, 100, 3, "a", "member-0.1"), AssignmentChange(0, 7, 100, 3, "", ""))
    assert gone == (MemberRemoval("a", "member-0.1", 7, 100, 3),)
    assert doubled == ()


@pytest.mark.parametrize("missing", TIMES)
def test_a_line_of_the_coordinator_may_lack_a_time(missing: str) -> None:
    when = tuple({**TIMES, missing: 0}.values())
    line = lacking(has("x", 0), missing)
    given, gone, _ = coordinator.assignments([line, {**line, "deleted": True}], WHO, NUMBERS)
    assert given[0] == AssignmentChange(0, *when, "x", "")
    assert gone == (MemberRemoval("x", "", *when),)


def changes(*lines: dict[str, Any]) -> tuple[list[tuple[int, int, str]], list[tuple[int, str]], list[DoubleAssignment]]:
    given, gone, doubled = coordinator.assignments(lines, WHO, NUMBERS)
    return [(g.order, g.tp, g.member_id) for g in given], [(g.order, g.member_id) for g in gone], list(doubled)


@pytest.mark.parametrize(
    ("lines", "given", "gone"),
    [
        ([has("a", 0, 0, 7)], [(7, 0, "a")], []),
        ([has("a", 0), has("a", 0, order=8)], [(7, 0, "a")], []),
        ([has("a"), has("a", 1, order=8)], [(8, 1, "a")], []),
        ([{**has("a"), "assigned": None, "pending_revocation": {"orders": [1]}}], [(7, 1, "a")], []),
        ([lacking(has("a"), "assigned")], [], []),
        ([{**has("a", 0), "type": "member"}], [], []),
        ([{**has("a", 0), "type": "target"}], [], []),
        ([has("a", 0), without("member", True)], [(7, 0, "a"), (8, 0, "")], [(8, "a")]),
        ([has("a", 0), without("current", True)], [(7, 0, "a"), (8, 0, "")], [(8, "a")]),
        ([has("a", 0), without("target", True)], [(7, 0, "a")], []),
        ([has("a", 0), without("current", False)], [(7, 0, "a"), (8, 0, "")], []),
        ([has("a", 0), has("b", 0, order=8), has("a", order=9)], [(7, 0, "a"), (8, 0, "b")], []),
        ([has("a", 0), has("b", 0, order=8), has("b", order=9)], [(7, 0, "a"), (8, 0, "b"), (9, 0, "")], []),
        ([has("a", 0), has("b", 0), has("b"), has("a")], [(7, 0, "a"), (7, 0, "b"), (7, 0, "")], []),
        ([has("a", 0), has("b", 0, order=8), has("a", 0, order=9)], [(7, 0, "a"), (8, 0, "b")], []),
        ([has("a", 0), has("b", 0, order=8), has("a", 0, 1, order=9)], [(7, 0, "a"), (8, 0, "b"), (9, 1, "a")], []),
        (
            [has("a", 0), has("b", 0, order=8), has("a", order=9), has("a", 0, order=10)],
            [(7, 0, "a"), (8, 0, "b"), (10, 0, "a")],
            [],
        ),
        (
            [has("a", 0), has("b", 0, order=8), has("b", order=9), has("a", 0, order=10)],
            [(7, 0, "a"), (8, 0, "b"), (9, 0, ""), (10, 0, "a")],
            [],
        ),
        ([generation(1, a=[0], b=[0]), generation(2, a=[0], b=[0])], [(1, 0, "b")], []),
        ([generation(1, a=[0], b=[0]), generation(2, a=[0], b=[1])], [(1, 0, "b"), (2, 0, "a"), (2, 1, "b")], []),
        (
            [generation(1, a=[0], b=[1]), generation(2, a=[0], b=[0])],
            [(1, 0, "a"), (1, 1, "b"), (2, 0, "b"), (2, 1, "")],
            [],
        ),
        ([generation(1, a=[1, 0]), generation(2, a=[1, 0])], [(1, 0, "a"), (1, 1, "a")], []),
        ([generation(1, a=[0]), generation(2, a=[1], b=[0])], [(1, 0, "a"), (2, 0, "b"), (2, 1, "a")], []),
        ([generation(1, a=[0]), generation(2, b=[0])], [(1, 0, "a"), (2, 0, "b")], [(2, "a")]),
        ([generation(1, a=[0]), generation(2, b=[1])], [(1, 0, "a"), (2, 0, ""), (2, 1, "b")], [(2, "a")]),
        ([generation(1, a=[0]), generation(2)], [(1, 0, "a"), (2, 0, "")], [(2, "a")]),
        ([generation(1, a=[0]), {**generation(2, a=[0]), "deleted": True}], [(1, 0, "a"), (2, 0, "")], [(2, "a")]),
        ([generation(1, a=[0]), {**generation(2), "members": None}], [(1, 0, "a"), (2, 0, "")], [(2, "a")]),
        ([generation(1, a=None, b=[0]), generation(2, b=[0])], [(1, 0, "b")], [(2, "a")]),
        ([generation(1, a=[0]), lacking(generation(2), "members")], [(1, 0, "a"), (2, 0, "")], [(2, "a")]),
    ],
)  # fmt: skip
def test_an_owner_changes_with_the_lines(
    lines: list[dict[str, Any]], given: list[tuple[int, int, str]], gone: list[tuple[int, str]]
) -> None:
    assert changes(*lines)[:2] == (given, gone)


BEFORE, TOMB = generation(1, a=[0]), {**generation(2), "deleted": True, "batch": 2}
LEFT = {**without("current", True), "batch": 2}


@pytest.mark.parametrize(
    ("lines", "gone"),
    [
        ([BEFORE, TOMB, has("a", 0, order=3, batch=2)], []),
        ([BEFORE, TOMB, has("b", 0, order=3, batch=2)], [(2, "a")]),
        ([BEFORE, TOMB, has("a", 0, order=3, batch=3)], [(2, "a")]),
        ([BEFORE, TOMB, {**generation(3, a=[0]), "batch": 2}], [(2, "a")]),
        ([has("a", 0), LEFT, {**generation(9, a=[0]), "batch": 2}], []),
        ([has("a", 0), LEFT, {**generation(9, b=[0]), "batch": 2}], [(8, "a")]),
        ([has("a", 0), LEFT, {**generation(9, a=[0]), "batch": 3}], [(8, "a")]),
        ([has("a", 0), LEFT, has("a", 0, order=9, batch=2)], [(8, "a")]),
        ([BEFORE, TOMB, has("a", 0, order=3, batch=2), {**LEFT, "batch": 4}], [(8, "a")]),
    ],
)
def test_nobody_is_gone_from_a_group_that_is_converted(
    lines: list[dict[str, Any]], gone: list[tuple[int, str]]
) -> None:
    assert changes(*lines)[1] == gone


def test_a_member_without_an_assignment_has_nothing() -> None:
    lines = [generation(1, a=[0]), {**generation(2), "members": [{"member_id": "a"}]}]
    assert changes(*lines) == ([(1, 0, "a"), (2, 0, "")], [], [])


BOTH = DoubleAssignment(0, 100, ("member-0.1", "member-1.1"))


@pytest.mark.parametrize(
    ("batches", "doubled"),
    [
        ([[has("a", 0)], [has("b", 0)]], [BOTH]),
        ([[has("a", 0)], [has("b", 0)], [has("b", 0)]], [BOTH]),
        ([[has("a", 0)], [has("b", 0)], [has("b", 0, 1)]], [BOTH]),
        ([[has("a", 0)], [has("b", 0), has("a")]], []),
        ([[has("a", 0)], [has("b", 0), has("x", 1)]], [BOTH]),
        ([[has("a", 0)], [has("b", 0)], [has("a")], [has("a", 0)]], [BOTH, BOTH]),
        ([[has("a", 0)], [has("b", 0)], [has("a"), has("a", 0)]], [BOTH]),
        ([[has("a", 0, 1)], [has("b", 1, 0)]], [BOTH, BOTH._replace(tp=1)]),
        ([[has("a", 0)], [has("x", 0)]], [BOTH._replace(incarnations=("member-0.1", "x"))]),
        ([[has("a", 0)], [has("b", 0)], [has("a")], [has("b")]], [BOTH]),
        ([[has("b", 0)], [has("a", 0)], [has("a", 1), has("b", 1)]], [BOTH, BOTH._replace(tp=1)]),
        ([[has("a", 0)], [{"type": "group-epoch"}], [has("b", 0)], [{"type": "group-epoch"}]], [BOTH]),
        ([[has("a", 0)], [has("b", 0)], [{**has("a"), "deleted": True}], [has("a", 0)]], [BOTH, BOTH]),
    ],
)
def test_a_partition_is_doubled_after_a_batch_and_once(
    batches: list[list[dict[str, Any]]], doubled: list[DoubleAssignment]
) -> None:
    lines = [{**line, "batch": number} for number, batch in enumerate(batches) for line in batch]
    assert changes(*lines)[2] == doubled


def test_a_batch_is_told_by_its_last_line() -> None:
    lines = [has("a", 0, batch=1), has("b", 0, batch=2), {**has("b", 0, batch=2), "at_ns": 150}, has("b", 1, batch=3)]
    assert changes(*lines)[2] == [BOTH._replace(at_ns=150)]
    assert changes(has("a", 0), has("b", 0))[2] == [BOTH]  # of no batch: all one


# Rounds.


def epoch(number: int | None, at_ns: int, **more: Any) -> dict[str, Any]:
    return {"type": "group-epoch", "epoch": number, "at_ns": at_ns, "uncertainty_ns": 3, "term": 6, **more}


def member(member_id: str, **more: Any) -> dict[str, Any]:
    return {"type": "member", "member_id": member_id, **more}


def classic(number: int | None, at_ns: int, *ids: str, **more: Any) -> dict[str, Any]:
    members = [{"member_id": member_id} for member_id in ids]
    return {**epoch(None, at_ns), "type": "classic-group", "generation": number, "members": members, **more}


def join(at_ns: int | None, reason: str | None = None, api: str = "JOIN_GROUP", **answer: int) -> dict[str, Any]:
    reported = {f"{name}_generation": number for name, number in answer.items()}
    return {"api": api, "start_ns": at_ns, "reason": reason, **reported}


ONE, TWO = Rebalance(6, 1, 100, 100, ("member-0.1",), "", 3), Rebalance(6, 2, 200, 200, ("member-0.1",), "", 3)
NEXT = [classic(1, 100, "a"), classic(2, 200, "a")]
# A group that is converted: what is deleted, and written, in one batch.
OF_CLASSIC, OF_CONSUMERS = classic(1, 150, deleted=True, batch=1), epoch(1, 150, deleted=True, batch=1)
UP, LATER = epoch(1, 150, batch=1), Rebalance(6, 1, 150, 150, ("member-0.1",), "", 3, restarted=True)


@pytest.mark.parametrize(
    ("lines", "rounds"),
    [
        ([classic(1, 100, "a")], [ONE]),
        ([classic(1, 100, "x", "a")], [ONE._replace(members=("x", "member-0.1"))]),
        ([classic(0, 100, "a")], [ONE._replace(generation=0)]),
        ([lacking(classic(1, 100, "a"), "term")], [ONE._replace(term=-1)]),
        ([lacking(classic(1, 100, "a"), "at_ns")], [ONE._replace(begin_ns=0, end_ns=0)]),
        ([lacking(classic(1, 100, "a"), "uncertainty_ns")], [ONE._replace(uncertainty_ns=0)]),
        ([{**classic(1, 100, "a"), "epoch": 9}], [ONE]),
        ([{**epoch(1, 100), "generation": 9}], [ONE._replace(members=())]),
        ([{**epoch(1, 100), "members": [{"member_id": "a"}]}], [ONE._replace(members=())]),
        (NEXT, [ONE, TWO]),
        ([NEXT[0], classic(1, 200, "b")], [ONE]),
        ([NEXT[0], classic(2, 150), NEXT[1]], [ONE, TWO._replace(restarted=True)]),
        ([NEXT[0], {**classic(2, 150), "members": None}, NEXT[1]], [ONE, TWO._replace(restarted=True)]),
        ([NEXT[0], lacking(classic(2, 150), "members"), NEXT[1]], [ONE, TWO._replace(restarted=True)]),
        (
            [NEXT[0], classic(1, 150, deleted=True), classic(1, 200, "a")],
            [ONE, TWO._replace(generation=1, restarted=True)],
        ),
        ([NEXT[0], classic(None, 150, "a"), NEXT[1]], [ONE, TWO._replace(restarted=True)]),
        ([classic(7, 100, "a", deleted=True), *NEXT], [ONE._replace(restarted=True), TWO]),
        ([NEXT[0], member("b"), {"type": "current", "epoch": 9, "generation": 9}, NEXT[1]], [ONE, TWO]),
        ([NEXT[0], {"type": "commit"}, {"generation": 3}, NEXT[1]], [ONE, TWO]),
        ([member("a"), epoch(1, 100)], [ONE]),
        ([epoch(1, 100), member("a"), epoch(2, 200)], [ONE._replace(members=()), TWO]),
        ([member("b"), member("a"), epoch(1, 100)], [ONE._replace(members=("member-1.1", "member-0.1"))]),
        ([member("b"), member("a"), member("b", deleted=True), epoch(1, 100)], [ONE]),
        ([member("a"), member("b", deleted=True), epoch(1, 100)], [ONE]),
        ([member("a"), epoch(1, 100), epoch(1, 150), epoch(2, 200)], [ONE, TWO]),
        ([member("a"), epoch(1, 100), epoch(None, 150), epoch(2, 200)], [ONE, TWO._replace(restarted=True)]),
        ([member("a"), epoch(1, 100), epoch(1, 150, deleted=True), epoch(2, 200)], [ONE, TWO._replace(restarted=True)]),
        ([member("a"), classic(1, 100, "b")], [ONE._replace(members=("member-1.1",))]),
        ([NEXT[0], OF_CLASSIC, member("a"), UP, epoch(2, 200)], [ONE, TWO]),
        ([NEXT[0], OF_CLASSIC, member("a"), {**UP, "epoch": 2}], [ONE, TWO._replace(begin_ns=150, end_ns=150)]),
        ([NEXT[0], OF_CLASSIC, member("a"), {**UP, "batch": 2}], [ONE, LATER]),
        ([NEXT[0], OF_CLASSIC, {**classic(1, 150, "a"), "batch": 1}], [ONE, LATER]),
        ([NEXT[0], classic(9, 120), OF_CLASSIC, member("a"), UP], [ONE, LATER]),
        ([member("a"), epoch(1, 100), OF_CONSUMERS, {**classic(1, 150, "a"), "batch": 1}, NEXT[1]], [ONE, TWO]),
        ([member("a"), epoch(1, 100), OF_CONSUMERS, UP], [ONE, LATER]),
    ],
)  # fmt: skip
def test_a_round_is_a_generation_that_the_group_had_not(lines: list[dict[str, Any]], rounds: list[Rebalance]) -> None:
    assert coordinator.rounds(lines, [], WHO) == tuple(rounds)


@pytest.mark.parametrize(
    ("joins", "first", "second"),
    [
        ([join(100), join(150)], (100, ""), (150, "")),
        ([join(1)], (1, ""), (200, "")),
        ([join(150), join(101), join(40)], (40, ""), (101, "")),
        ([join(200), join(201)], (100, ""), (200, "")),
        ([join(100, "new"), join(101, "first"), join(150, "second")], (100, "new"), (101, "first")),
        ([join(101), join(150, "second"), join(199, "third")], (100, ""), (101, "second")),
        ([join(150, "heart", "HEARTBEAT"), {"start_ns": 150, "reason": "none"}], (100, ""), (200, "")),
        ([join(None), join(0), {"api": "JOIN_GROUP"}, {"api": "JOIN_GROUP", "start_ns": 120}], (100, ""), (120, "")),
        ([join(150, "z"), join(150, "b"), join(150)], (100, ""), (150, "b")),
        ([join(120, answered=1), join(150, answered=2)], (100, ""), (150, "")),  # 120: a static member is back
        ([join(120, "back", answered=1)], (100, ""), (200, "")),
        ([join(90, answered=1), join(120, answered=-1), join(120)], (90, ""), (120, "")),
    ],
)
def test_a_round_begins_with_the_first_join_since_the_last_one(
    joins: list[dict[str, Any]], first: tuple[int, str], second: tuple[int, str]
) -> None:
    one, two = coordinator.rounds(NEXT, joins, WHO)
    assert one == ONE._replace(begin_ns=first[0], reason=first[1])
    assert two == TWO._replace(begin_ns=second[0], reason=second[1])


def test_a_group_that_was_empty_begins_with_whoever_joins_it() -> None:
    lines = [NEXT[0], classic(1, 150), classic(2, 200, "a")]
    assert coordinator.rounds(lines, [join(160, answered=1)], WHO) == (ONE, TWO._replace(begin_ns=160, restarted=True))


# Terms and leaders.


@pytest.mark.parametrize(
    ("lines", "terms"),
    [
        ([{"term": 3, "at_ns": 5, "uncertainty_ns": 2}], [(3, 5, 2)]),
        ([{"term": 3, "at_ns": 5}], [(3, 5, 0)]),
        ([{"term": 3, "at_ns": 5, "uncertainty_ns": None}, {"term": 3, "at_ns": 4}], [(3, 5, 0)]),
        ([{"term": 4, "at_ns": 5}, {"term": 3, "at_ns": 6}], [(4, 5, 0), (3, 6, 0)]),
        ([{"term": 3, "at_ns": 0}, {"term": 3}, {"at_ns": 5}], []),
        ([{"term": 0, "at_ns": 1}], [(0, 1, 0)]),
    ],
)
def test_a_term_begins_with_its_first_line(lines: list[dict[str, Any]], terms: list[tuple[int, int, int]]) -> None:
    assert coordinator.terms(lines) == tuple(terms)


LED = {"topic": "orders", "partition": 1, "leader": 2, **TIMES}


@pytest.mark.parametrize(
    ("line", "led"),
    [
        (LED, LeaderChange(100, 3, 1, 2)),
        ({**LED, "leader": -1}, LeaderChange(100, 3, 1, -1)),
        ({**LED, "leader": 0}, LeaderChange(100, 3, 1, 0)),
        (lacking(LED, "at_ns"), LeaderChange(0, 3, 1, 2)),
        (lacking(LED, "uncertainty_ns"), LeaderChange(100, 0, 1, 2)),
        ({**lacking(LED, "topic"), "partition": 5}, LeaderChange(100, 3, 5, 2)),
        (lacking(LED, "partition"), LeaderChange(100, 3, 8, 2)),
        ({**LED, "leader": None}, None),
        (lacking(LED, "leader"), None),
        ({**LED, "partition": 9}, None),
    ],
)
def test_a_leader_is_named_by_its_line(line: dict[str, Any], led: LeaderChange | None) -> None:
    first = {**LED, "at_ns": 9}
    found = (LeaderChange(9, 3, 1, 2), *([led] if led else ()))
    assert coordinator.leaders([first, line], NUMBERS) == found
