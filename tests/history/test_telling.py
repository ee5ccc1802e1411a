"""What is told of one anomaly besides the words of its kind: its fields, its witnesses, and what others did then."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from fencepost.checkers.explanations import example
from fencepost.checkers.explanations.anomaly_context import WITNESSES_MAX, AnomalyContext
from fencepost.checkers.tables import Tables
from fencepost.checkers.tables.requests import Request
from fencepost.checkers.tables.rows import AssignmentChange, Commit, Life, MemberRemoval, OffsetCommit, PerformedStep
from fencepost.checkers.tables.seeks import Seek
from fencepost.model import Anomaly
from history.builder import ns
from history.test_callback_moments import PARTITIONS, had
from history.test_coordination import A, B, C

FROM_NS, TO_NS = ns(3), ns(4)


def of(kind: str = "rewind", *members: str, **fields: Any) -> Anomaly:
    """An anomaly of offset 4 of orders-0, from 3 s to 4 s."""
    return replace(Anomaly(kind, "orders", 0, members, "", "", 4, 4, FROM_NS, TO_NS, 1), **fields)


def tables(**rows: Any) -> Tables:
    return Tables(Path(), **{"origin_ns": ns(0), "partitions": PARTITIONS, **rows})


def witnesses(anomaly: Anomaly, **rows: Any) -> Sequence[str]:
    return AnomalyContext(tables(**rows), anomaly).witnesses()


def sentence(anomaly: Anomaly, **rows: Any) -> str:
    return str(example(tables(**rows), anomaly)["sentence"])


# The fields.

PLACE = {"topic": "orders", "partition": 0}
OFFSETS = {"offset": 4, "last_offset": 4}
TIMES = {"from_ns": FROM_NS, "to_ns": TO_NS}


@pytest.mark.parametrize(
    ("anomaly", "fields"),
    [
        (of("rewind", A), {**PLACE, **OFFSETS, **TIMES, "jepsen": "nonmonotonic-poll"}),
        (of("rewind", A, first_offset=0), {**PLACE, **OFFSETS, "offset": 0, **TIMES, "jepsen": "nonmonotonic-poll"}),
        (of("stale-effect", A, topic="", partition=-1), {**OFFSETS, **TIMES}),
        (of("stale-effect", A, first_offset=-1, last_offset=-1), {**PLACE, **TIMES}),
        (of("stale-effect", A, from_ns=0, to_ns=0), {**PLACE, **OFFSETS}),
        (
            of("stale-effect", A, excuse="not told yet", last_offset=9, count=2),
            {**PLACE, "offset": 4, "last_offset": 9, **TIMES, "excuse": "not told yet", "count": 2},
        ),
        (
            of("poll-skip", A, cause="inside one poll"),
            {**PLACE, **OFFSETS, **TIMES, "cause": "inside one poll", "jepsen": "int-poll-skip"},
        ),
        (of("poll-skip", A, cause="seek"), {**PLACE, **OFFSETS, **TIMES, "cause": "seek"}),
        (
            of("rewind", A, cause="inside one poll"),
            {**PLACE, **OFFSETS, **TIMES, "cause": "inside one poll", "jepsen": "int-nonmonotonic-poll"},
        ),
        (of("lost-write", A), {**PLACE, **OFFSETS, **TIMES}),
        (of("unconsumed", A), {**PLACE, **OFFSETS, **TIMES, "jepsen": "unseen"}),
    ],
)
def test_an_example_has_the_fields_that_are_known(anomaly: Anomaly, fields: Mapping[str, Any]) -> None:
    reported = dict(example(tables(), anomaly))
    assert reported.pop("sentence").endswith(".")
    assert reported == {"members": [A], "count": 1, "witnesses": [], **fields}


@pytest.mark.parametrize(
    ("intervals", "generation"),
    [
        ([], None),
        ([had(A, ns(1), generation=0)], 0),
        ([had(A, ns(1), (ns(3), ns(3.1))), had(A, ns(3.5), number=1, generation=7)], 7),
        ([had(A, ns(1), generation=2), had(B, ns(1), generation=3), had(C, ns(1), generation=4)], 2),
        ([had(B, ns(1), generation=3)], None),
        ([had(A, TO_NS, generation=2)], 2),
        ([had(A, TO_NS + 1, generation=2)], None),
        ([had(A, ns(1), (ns(2), FROM_NS), generation=2)], 2),
        ([had(A, ns(1), (ns(2), FROM_NS - 1), generation=2)], None),
        ([had(A, ns(1), tp=1, generation=2)], None),
    ],
)
def test_the_generation_is_that_of_the_last_interval_then_of_the_one_to_blame(
    intervals: Sequence[Any], generation: int | None
) -> None:
    reported = example(tables(intervals=tuple(intervals)), of("stale-effect", A, B))
    assert reported.get("generation") == generation


def test_without_an_end_all_that_came_later_is_meant() -> None:
    endless = of("rewind", A, to_ns=0)
    rows = {"intervals": (had(A, ns(9), generation=5),), "given": (AssignmentChange(0, 3, ns(8), 0, "a", A),)}
    reported = AnomalyContext(tables(**rows), endless)
    assert reported.generation == 5
    assert len(reported.witnesses()) == 2


@pytest.mark.parametrize(
    ("to_ns", "span", "length"),
    [
        (TO_NS, "from 3.000 s to 4.000 s", "1.000 s"),
        (FROM_NS, "at 3.000 s", "0.000 s"),
        (FROM_NS + 400_000, "at 3.000 s", "0.000 s"),
        (FROM_NS + 600_000, "from 3.000 s to 3.001 s", "0.001 s"),
        (ns(2), "at 3.000 s", "-1.000 s"),
    ],
)
def test_a_span_is_one_moment_where_its_ends_read_the_same(to_ns: int, span: str, length: str) -> None:
    reported = AnomalyContext(tables(), of("rewind", A, to_ns=to_ns))
    assert (reported.span, reported.length) == (span, length)


def test_who_is_not_known_is_told_as_such() -> None:
    assert sentence(of("key-order")) == (
        "An unknown member began offset 4 of orders-0 at 3.000 s, before an earlier record of the same key was first "
        "finished (by an unknown member, 4.000 s)."
    )


def test_of_a_send_without_a_time_none_is_told() -> None:
    reported = sentence(of("duplicate-write", "producer-0", from_ns=0, to_ns=0))
    assert reported == "Offset 4 of orders-0, by producer-0, was already in the log at a lower offset."


def test_a_partition_that_the_tables_do_not_know_is_none_of_theirs() -> None:
    for anomaly in (of("rewind", A, topic="others"), of("rewind", A, topic="", partition=-1)):
        assert witnesses(anomaly, intervals=tuple(had(A, ns(1), tp=tp) for tp in PARTITIONS)) == []


# Witnesses.

ASSIGNED = "1.000 s: member-0.1 was assigned orders-0: "


def commit(offset: int, begin_ns: int, outcome: str = "ok", error: str = "", name: str = A) -> Commit:
    return Commit(0, offset, name, "a", 2, begin_ns, begin_ns + 1, outcome, error, "sync")


@pytest.mark.parametrize(
    ("rows", "reported"),
    [
        ({"intervals": (had(A, ns(1)),)}, [f"{ASSIGNED}never revoked"]),
        (
            {"intervals": (had(A, ns(1), (ns(3.5), ns(3.6)), generation=3),)},
            [f"{ASSIGNED}generation 3, revoked at 3.500 s"],
        ),
        ({"intervals": (had(C, ns(1)),)}, []),
        (
            {"given": (AssignmentChange(0, 7, ns(2), 0, "a", A),)},
            ["2.000 s: the coordinator assigned orders-0 to member-0.1 (record 7)"],
        ),
        (
            {"given": (AssignmentChange(0, 7, TO_NS, 0, "a", A),)},
            ["4.000 s: the coordinator assigned orders-0 to member-0.1 (record 7)"],
        ),
        ({"given": (AssignmentChange(0, 7, TO_NS + 1, 0, "a", A),)}, []),
        ({"given": (AssignmentChange(0, 7, ns(2), 0, "c", C), AssignmentChange(1, 8, ns(2), 0, "a", A))}, []),
        (
            {"gone": (MemberRemoval("b", B, 7, ns(2), 0),)},
            ["2.000 s: member-1.1 left the coordinator's records (record 7)"],
        ),
        (
            {"gone": (MemberRemoval("b", B, 7, TO_NS, 0),)},
            ["4.000 s: member-1.1 left the coordinator's records (record 7)"],
        ),
        ({"gone": (MemberRemoval("b", B, 7, TO_NS + 1, 0), MemberRemoval("c", C, 8, ns(2), 0))}, []),
        ({"lives": {B: Life(B, ended_ns=ns(3.2), how="killed")}}, ["3.200 s: member-1.1 was killed at 3.200 s"]),
        ({"lives": {A: Life(A, ended_ns=ns(3.2), how="crashed")}}, ["3.200 s: member-0.1 crashed at 3.200 s"]),
        ({"lives": {A: Life(A, ended_ns=ns(3.2), how="closed"), C: Life(C, ended_ns=ns(3), how="killed")}}, []),
        ({"accepted": (OffsetCommit(0, 5, 1, ns(2)),)}, []),
        ({"seeks": (Seek(0, A, 2, ns(2)),)}, []),
        ({"commits": (commit(9, ns(2)),)}, []),
    ],
)
def test_what_witnesses_an_anomaly_of_two_members(rows: Mapping[str, Any], reported: Sequence[str]) -> None:
    assert witnesses(of("stale-effect", A, B), **rows) == reported


@pytest.mark.parametrize(
    ("step", "reported"),
    [
        (
            PerformedStep(3, "pause", "member-0", begun_ns=TO_NS, heals=True),
            "4.000 s: pause of member-0 was in effect (step 3)",
        ),
        (PerformedStep(3, "pause", "member-0", begun_ns=TO_NS + 1, heals=True), ""),
        (PerformedStep(3, "pause", begun_ns=0, heals=True), ""),
        (PerformedStep(3, "pause", begun_ns=ns(1), heals=True), "1.000 s: pause of the cluster was in effect (step 3)"),
        (
            PerformedStep(3, "pause", begun_ns=ns(1), heals=True, healed_ns=FROM_NS),
            "1.000 s: pause of the cluster was in effect (step 3)",
        ),
        (PerformedStep(3, "pause", begun_ns=ns(1), heals=True, healed_ns=FROM_NS - 1), ""),
        (PerformedStep(3, "kill", begun_ns=FROM_NS), "3.000 s: kill of the cluster was in effect (step 3)"),
        (PerformedStep(3, "kill", begun_ns=FROM_NS - 1, healed_ns=ns(9)), ""),
    ],
)
def test_a_step_is_a_witness_while_it_was_in_effect(step: PerformedStep, reported: str) -> None:
    assert witnesses(of("rewind", A), steps=(step,)) == [reported] * bool(reported)


@pytest.mark.parametrize(
    ("kind", "cause", "reported"),
    [("rewind", "seek", ["3.000 s", "4.000 s"]), ("rewind", "", []), ("poll-skip", "seek", ["3.000 s", "4.000 s"])],
)
def test_seeks_until_then_are_witnesses_of_what_a_seek_did(kind: str, cause: str, reported: Sequence[str]) -> None:
    seeks = (Seek(0, A, 2, FROM_NS), Seek(0, A, 2, TO_NS), Seek(0, A, 2, TO_NS + 1), Seek(0, B, 2, ns(3)))
    found = witnesses(of(kind, A, B, cause=cause), seeks=seeks)
    assert found == [f"{at}: the program of member-0.1 moved its position to 2" for at in reported]


def test_the_last_two_accepted_commits_are_witnesses_of_a_commit() -> None:
    accepted = tuple(OffsetCommit(0, n, n, ns(at)) for n, at in ((1, 1), (2, 2.5), (3, 4), (4, 4.1)))
    rows = {"accepted": accepted, "asked_commits": (Request(0, 3, B, ns(4), ns(4), 0),)}
    assert witnesses(of("foreign-commit", A), **rows) == [
        "2.500 s: the coordinator recorded 2 as committed (record 2)",
        "4.000 s: the coordinator recorded 3 as committed (record 3, written by member-1.1)",
    ]


def test_of_many_witnesses_the_last_are_told_in_the_order_of_time() -> None:
    """Whatever else would be an order of them: names of members, numbers of records, offsets."""
    at_s = [at / 10 for at in range(1, 21)]
    intervals = (had(B if at <= 1 else A, ns(at), (ns(at) + 2, ns(3)), number=20 - n) for n, at in enumerate(at_s))
    given = (AssignmentChange(0, 20 - n, ns(at) - 1, 0, "a", A) for n, at in enumerate(at_s))
    reported = witnesses(of("rewind", A, B), intervals=tuple(intervals), given=tuple(given))
    assert [line.partition(":")[0] for line in reported] == [f"{at:.3f} s" for at in at_s[-6:] for _ in range(2)]
    seeks = tuple(Seek(0, A, 20 - n, ns(at)) for n, at in enumerate(at_s))
    reported = witnesses(of("rewind", A, cause="seek"), seeks=seeks)
    assert [line.partition(":")[0] for line in reported] == [f"{at:.3f} s" for at in at_s[-WITNESSES_MAX:]]
    assert len(reported) == WITNESSES_MAX


# A record that was passed unseen: by the first commit of its member past it that was not refused.


@pytest.mark.parametrize(
    ("commits", "passed", "reported"),
    [
        (
            [commit(5, ns(2))],
            "member-0.1 committed offset 5 (generation 2, 2.000 s),",
            "2.000 s: member-0.1 committed 5 (ok)",
        ),
        ([commit(4, ns(2))], "The group committed", ""),
        ([commit(9, ns(2), name=B)], "The group committed", ""),
        (
            [commit(4, ns(1)), commit(6, ns(1.5), "fail", "UNKNOWN_MEMBER_ID"), commit(8, ns(2.5)), commit(9, ns(2.6))],
            "member-0.1 committed offset 8 (generation 2, 2.500 s),",
            "2.500 s: member-0.1 committed 8 (ok)",
        ),
        (
            [commit(5, ns(2), "info", "REQUEST_TIMED_OUT")],
            "member-0.1 committed offset 5 (generation 2, 2.000 s),",
            "2.000 s: member-0.1 committed 5 (info, REQUEST_TIMED_OUT)",
        ),
    ],
)
def test_a_record_that_was_passed_unseen_names_the_commit(
    commits: Sequence[Commit], passed: str, reported: str
) -> None:
    unseen = of("unseen", A, B, cause="skipped")
    rows = {"commits": tuple(commits)}
    assert sentence(unseen, **rows) == (
        f"{passed} past offset 4 of orders-0, which no member had ever received; no member processed it."
    )
    assert witnesses(unseen, **rows) == [reported] * bool(reported)
    assert example(tables(**rows), unseen).get("generation") == (2 if reported else None)


def test_of_records_that_several_commits_went_past_the_first_ones_have_the_first() -> None:
    unseen = of("unseen", A, B, cause="skipped", last_offset=9, count=6)
    in_turns = sentence(unseen, commits=(commit(6, ns(2)), commit(10, ns(2.5))))
    assert in_turns == (
        "Several commits, the first of offset 6 by member-0.1 (generation 2, 2.000 s), went past 6 records of orders-0 "
        "(offsets 4 to 9), which no member had ever received; no member processed them."
    )
    assert "member-0.1 committed offset 10 (" in sentence(unseen, commits=(commit(10, ns(2.5)),))


@pytest.mark.parametrize(("cause", "died"), [("in-doubt", "member-1.1 was killed at 3.200 s; "), ("skipped", "")])
def test_the_death_of_who_had_an_unseen_record_is_told(cause: str, died: str) -> None:
    lives = {B: Life(B, ended_ns=ns(3.2), how="killed")}
    assert sentence(of("unseen", A, B, cause=cause), lives=lives).partition("; ")[2] == f"{died}no member processed it."


def test_the_death_of_a_former_owner_is_told() -> None:
    lives = {A: Life(A, ended_ns=ns(3.2), how="crashed")}
    reported = sentence(of("redelivery", A, B, excuse="former owner died"), lives=lives)
    assert reported.partition(": ")[2] == "member-0.1 crashed at 3.200 s."


@pytest.mark.parametrize(
    ("life", "cause", "reported"),
    [
        (Life(A, signal="SIGKILL"), "SIGKILL", "was ended by SIGKILL, which the harness never sent, at {0}"),
        (
            Life(A, signal="SIGABRT", fatal="FENCED"),
            "FENCED",
            "ended by itself at {0}; its client had reported a fatal error (FENCED)",
        ),
        (Life(A), "", "ended by itself at {0}"),
    ],
)
def test_how_a_member_ended(life: Life, cause: str, reported: str) -> None:
    way, _, gave_up = reported.partition("; ")
    expected = f"{A} {way.format('4.000 s')}; its last sign of life was at 3.000 s{f'; {gave_up}' if gave_up else ''}."
    assert sentence(of("dead-member", A, cause=cause), lives={A: life}) == expected


# A member that does not poll.

OWNED = had(A, ns(1), tp=1)


@pytest.mark.parametrize(
    ("intervals", "owned"),
    [
        ([OWNED], "orders-1"),
        ([OWNED, had(A, ns(1), tp=2)], "orders-1 and 1 more"),
        ([OWNED, had(A, ns(1), tp=2), had(A, ns(1), tp=3)], "orders-1 and 2 more"),
        ([OWNED, had(B, ns(1), tp=2)], "orders-1"),
        ([OWNED, had(A, ns(1), tp=2, returned_ns=FROM_NS)], "orders-1 and 1 more"),
        ([OWNED, had(A, ns(1), tp=2, returned_ns=FROM_NS + 1)], "orders-1"),
        ([OWNED, had(A, ns(1), (ns(2), FROM_NS), tp=2)], "orders-1 and 1 more"),
        ([OWNED, had(A, ns(1), (ns(2), FROM_NS - 1), tp=2)], "orders-1"),
        ([], ""),
    ],
)
def test_what_a_member_owned_that_did_not_poll(intervals: Sequence[Any], owned: str) -> None:
    stuck = of("stuck-member", A, topic="", partition=-1, first_offset=-1, last_offset=-1)
    assert sentence(stuck, intervals=tuple(intervals)) == (
        f"member-0.1, which owned {owned} and sent heartbeats, neither polled nor processed a record for 1.000 s (from "
        "3.000 s to 4.000 s)."
    )


def test_a_slow_handler_and_how_often() -> None:
    reported = sentence(of("stuck-member", A, cause="slow handler", count=1234), intervals=(OWNED,))
    assert reported == (
        "member-0.1, which owned orders-1 and sent heartbeats, did not poll 1,234 times (from 3.000 s to 4.000 s); its "
        "handler was processing offset 4 of orders-0."
    )
