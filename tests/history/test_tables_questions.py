"""What is asked of the small tables, on tables of a few rows: on which side of each answer a moment is."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from fencepost.checkers.tables import Tables, commits
from fencepost.checkers.tables.committed import Committed
from fencepost.checkers.tables.effects import Effect, effects
from fencepost.checkers.tables.interval_index import FEW, IntervalIndex
from fencepost.checkers.tables.requests import LATE_NS, Heartbeat, Request
from fencepost.checkers.tables.rows import (
    FOREVER,
    AssignmentChange,
    Commit,
    Damage,
    DeclaredAction,
    Interval,
    LeaderChange,
    Life,
    MemberRemoval,
    OffsetCommit,
    Partition,
    PerformedStep,
    Rebalance,
    Window,
)
from fencepost.checkers.tables.subset import BY_PARTITION, OF_THE_DRIVER, TableSubset
from fencepost.history import EventKind
from fencepost.model import TopicPartition

A, B = "member-0.1", "member-1.1"
NOTHING = Tables(Path())
OWNED = Interval(0, A, 0, 1, "a", 100, 101, 200, 210, "revoked")


def having(**rows: Any) -> Tables:
    return replace(NOTHING, **rows)


# Commits.


@pytest.mark.parametrize("error", ["ILLEGAL_GENERATION", "UNKNOWN_MEMBER_ID", "FENCED_INSTANCE_ID", "OTHER", ""])
@pytest.mark.parametrize("mode", ["sync", "auto", ""])
def test_a_fence_is_an_answer_to_the_program_itself(error: str, mode: str) -> None:
    commit = Commit(0, 4, A, "a", 1, 5, 6, "fail", error, mode)
    assert commits.is_fence(commit) == (error not in ("OTHER", "") and mode != "auto")


def fetch(end_ns: int, *, begin_ns: int | None = None, tp: int = 0, who: str = A) -> Request:
    """Begun by the end, or when told, as the broker saw it."""
    return Request(tp, 4, who, LATE_NS + (end_ns if begin_ns is None else begin_ns), end_ns, 0)


# Offset 1 is answered at 50, 2 at 120, 3 at 140 and 4 at 180, each written in that moment.
LOG = tuple(OffsetCommit(0, n, n, at_ns, 0, at_ns) for n, at_ns in enumerate((50, 120, 140, 180), 1))


@pytest.mark.parametrize(
    ("fetched", "reported"),
    [
        ([], (1, 2, 3)),  # up to the first delivery at 150
        ([fetch(110)], (1,)),
        ([fetch(120)], (1, 2)),
        ([fetch(119)], (1,)),
        ([fetch(110), fetch(130)], (1, 2)),
        ([fetch(130, begin_ns=105), fetch(110, begin_ns=108)], (1, 2)),
        ([fetch(190, begin_ns=110)], (1, 2, 3)),
        ([fetch(150, begin_ns=105), fetch(130)], (1, 2, 3)),
        ([fetch(99)], (1, 2, 3)),
        ([fetch(100)], (1,)),
        ([fetch(110, tp=1), fetch(110, who=B)], (1, 2, 3)),
    ],
)
def test_an_owner_is_told_what_was_committed_up_to_its_last_fetch(
    fetched: list[Request], reported: tuple[int, ...]
) -> None:
    tables = having(accepted=LOG, fetched=tuple(fetched), partitions={0: Partition(0, TopicPartition("t", 0), 0, 4)})
    assert commits.reported_offsets(tables, OWNED, 150) == (reported, False)


@pytest.mark.parametrize(
    ("log", "log_end", "reset"),
    [
        (LOG, 4, False),
        (LOG, 3, False),
        (LOG, 2, True),
        (LOG, 0, True),
        (LOG, -1, False),
        (LOG, None, False),
        (LOG[1:], 4, True),  # there was none at first
        ([row._replace(offset=0) for row in LOG], 0, False),
        ([row._replace(offset=0) for row in LOG], None, False),
    ],
)
def test_an_owner_may_have_been_reset_without_an_offset_or_above_the_end(
    log: tuple[OffsetCommit, ...], log_end: int | None, reset: bool
) -> None:
    known = {} if log_end is None else {0: Partition(0, TopicPartition("t", 0), 0, log_end)}
    assert commits.reported_offsets(having(accepted=tuple(log), partitions=known), OWNED, 150)[1] == reset


def test_somebody_tried_past_an_offset_with_a_greater_one() -> None:
    tried = tuple(Commit(tp, offset, A, "a", 1, 5, 6, "fail") for tp, offset in ((0, 3), (0, 5), (0, 4), (2, 0)))
    tables = having(commits=tried)
    assert [commits.tried_past(tables, OffsetCommit(0, offset, 0, 0)) for offset in (4, 5, 6)] == [True, False, False]
    assert not commits.tried_past(tables, OffsetCommit(1, -1, 0, 0))
    assert commits.tried_past(tables, OffsetCommit(2, -1, 0, 0))
    assert not commits.tried_past(tables, OffsetCommit(2, 0, 0, 0))


@pytest.mark.parametrize(
    ("rounds", "back_ns"),
    [
        ([], FOREVER),
        ([Rebalance(1, 3, 4, 6, (A,))], FOREVER),
        ([Rebalance(1, 3, 4, 7, (A,))], 4),  # another one, of the next coordinator
        ([Rebalance(1, 2, 30, 31, (A,))], FOREVER),
        ([Rebalance(1, 4, 40, 41, (A,))], 40),
        ([Rebalance(1, 4, 40, 41, (B,)), Rebalance(1, 5, 50, 51, (B, A)), Rebalance(1, 6, 60, 61, (A,))], 50),
    ],
)
def test_a_member_is_back_with_its_first_later_generation_or_one_that_was_written_later(
    rounds: list[Rebalance], back_ns: int
) -> None:
    fence = Commit(0, 4, A, "a", 3, 5, 6, "fail", "ILLEGAL_GENERATION")
    assert commits.back_ns(having(rounds=tuple(rounds)), fence) == back_ns
    assert commits.back_ns(having(rounds=tuple(rounds)), fence._replace(generation=-1)) == 0  # which it was is not told


PAUSED = PerformedStep(0, "pause", members=(A,), heals=True, begun_ns=20, proven_ns=25, undone_ns=29, healed_ns=30)
NEVER = (FOREVER, "")


@pytest.mark.parametrize(
    ("rows", "hindered"),
    [
        ({}, NEVER),
        ({"steps": (PAUSED,)}, (20, "pause was in effect")),
        ({"steps": (replace(PAUSED, healed_ns=29),)}, NEVER),
        ({"steps": (replace(PAUSED, members=(B,)),)}, NEVER),
        ({"steps": (replace(PAUSED, members=(), brokers=(1,)),)}, (20, "pause was in effect")),
        ({"steps": (replace(PAUSED, begun_ns=0),)}, NEVER),
        ({"steps": (replace(PAUSED, begun_ns=1, fault="cut"), PAUSED)}, (1, "cut was in effect")),
        ({"steps": (replace(PAUSED, heals=False, proven_ns=30),)}, (20, "pause was in effect")),
        ({"steps": (replace(PAUSED, heals=False),)}, NEVER),
        ({"steps": (replace(PAUSED, healed_ns=0),)}, (20, "pause was in effect")),
        ({"stalls": (Window(10, 30),)}, (10, "the host stood still")),
        ({"stalls": (Window(10, 29),)}, NEVER),
        ({"stalls": (Window(10, 30),), "steps": (PAUSED,)}, (10, "the host stood still")),
        ({"stalls": (Window(21, 30),), "steps": (PAUSED,)}, (20, "pause was in effect")),
    ],
)
def test_a_member_is_hindered_by_what_was_in_effect_from_a_moment_on(
    rows: dict[str, Any], hindered: tuple[int, str]
) -> None:
    assert commits.hindrance(having(**rows), A, 30) == hindered


@pytest.mark.parametrize(
    ("from_ns", "to_ns", "reported"),
    [
        (49, 49, (-1,)),
        (49, 50, (-1, 1)),
        (50, 50, (1,)),
        (119, 120, (1, 2)),
        (120, 120, (2,)),
        (120, 139, (2,)),
        (140, 120, (2, 3)),
        (500, 500, (4,)),
        (0, 500, (-1, 1, 2, 3, 4)),
    ],
)
def test_what_may_be_told_is_from_the_last_answered_commit_on(
    from_ns: int, to_ns: int, reported: tuple[int, ...]
) -> None:
    assert Committed(LOG).between(from_ns, to_ns) == reported


def test_a_commit_that_was_never_answered_is_never_certain_and_clocks_may_go_back() -> None:
    rows = (
        LOG[0],
        OffsetCommit(0, 7, 2, 400, 300),
        OffsetCommit(0, 8, 3, 90, 10, 95),
        OffsetCommit(0, 9, 4, 80, 0, 300),
    )
    assert Committed(rows).between(95, 95) == (8, 9)
    assert Committed(rows).between(94, 94) == (1, 8, 9)
    assert Committed(rows).between(60, 100) == (1, 7, 8, 9)
    assert Committed(()).between(1, 2) == (-1,)


# What was in force when.


@pytest.mark.parametrize("count", [1, 2, FEW - 1, FEW, FEW + 1, 16, 17, 40])
def test_rows_are_found_by_key_and_window_however_many(count: int) -> None:
    """Each from n to n + 2, save the first, which is in force for long; given backwards."""
    rows = [("x", -n, Window(n, n + 2 if n else 20)) for n in reversed(range(count))]
    spans = IntervalIndex([*rows, ("y", 0, Window(0, 99))], lambda row: row[0], lambda row: row[2])
    assert spans["x"] == rows
    assert [*spans.meeting("none", Window(0, 99))] == []
    for begin_ns in range(-1, count + 4):
        for window in (Window(begin_ns, begin_ns), Window(begin_ns, begin_ns + 3), Window(begin_ns + 1, begin_ns)):
            met = [row for row in reversed(rows) if row[2].meets(window)]
            assert [*spans.meeting("x", window)] == met


# Rows.


def test_rows_of_one_moment() -> None:
    assert Window.around(10, 3) == Window(7, 13)
    assert Window(1, 5).common(Window(3, 9)) == Window(3, 5)
    assert [Window(3, 5).meets(Window(*of)) for of in ((1, 2), (1, 3), (5, 9), (6, 9))] == [False, True, True, False]
    assert Window(3, 5).length_ns == 2
    assert OffsetCommit(0, 1, 2, 10, 3).written == Window(7, 13)
    assert (Life(A, started_ns=1).alive, Life(A, started_ns=1, ended_ns=4).alive) == (Window(1, FOREVER), Window(1, 4))
    assert (OWNED.certain, OWNED._replace(assigned_end_ns=0).certain) == (Window(101, 200), Window(0, 0))
    assert (OWNED.possible, OWNED._replace(how="").possible) == (Window(100, 210), Window(100, FOREVER))
    assert [OWNED.possible_at(at_ns) for at_ns in (99, 100, 210, 211)] == [False, True, True, False]
    assert replace(PAUSED, heals=False, proven_ns=10).in_effect == Window(20, 20)
    assert PerformedStep(3, "pause").name == "step 3 (pause)"
    assert [str(Damage("log", file, "lost")) for file in ("a/b", "")] == ["a/b: lost", "lost"]


# Tables.


def test_rounds_up_to_a_generation_and_later_ones_that_began_in_time() -> None:
    rounds = tuple(Rebalance(1, n, 10 * n, 10 * n + 1) for n in (1, 2, 3, 4, 5, 6))
    tables = having(rounds=rounds)

    def asked(*of: int) -> list[int]:
        return [one.generation for one in tables.rounds_from(*of)]

    assert asked(2, 3, 0) == [2, 3]
    assert asked(2, 3, 50) == [2, 3, 4, 5]
    assert asked(2, 3, 49) == [2, 3, 4]
    assert asked(5, 3, 60) == [5, 6]
    assert asked(3, 3, 0) == [3]
    early = having(rounds=(rounds[4], rounds[0], rounds[1]))
    assert [one.generation for one in early.rounds_from(1, 5, 0)] == [5, 1, 2]


def test_the_host_stood_still_at_some_moment() -> None:
    tables = having(stalls=(Window(10, 20),))
    assert [tables.host_stalled(Window(*of)) for of in ((1, 9), (1, 10), (20, 30), (21, 30))] == [
        False,
        True,
        True,
        False,
    ]


def test_what_is_not_known_of_a_partition_or_a_commit() -> None:
    tables = having(partitions={0: Partition(0, TopicPartition("t", 0), 7, 9)}, accepted=LOG)
    assert (tables.log_start(0), tables.log_start(1)) == (7, 0)
    assert (tables.final_committed(0), tables.final_committed(1)) == (4, -1)
    assert tables.committed_between(1, 0, 500) == (-1,)
    assert tables.writer(LOG[0]) == ""
    asked = (Request(0, 1, A, LOG[0].at_ns, LOG[0].at_ns, 0),)
    assert replace(tables, asked_commits=asked).writer(LOG[0]) == A
    assert tables.tp_of == {TopicPartition("t", 0): 0}


def test_the_commits_of_an_interval_began_in_it_and_are_in_order() -> None:
    rows = [(99, 0, A), (210, 0, A), (100, 0, A), (211, 0, A), (150, 1, A), (150, 0, B)]
    reported = tuple(Commit(tp, 4, who, "a", 1, begin_ns, 300, "ok") for begin_ns, tp, who in rows)
    assert [c.begin_ns for c in having(commits=reported).commits_in(OWNED)] == [100, 210]


@pytest.mark.parametrize(
    ("given", "owner"),
    [
        ([], None),
        ([AssignmentChange(0, 1, 50, 5, "a", A)], A),
        ([AssignmentChange(0, 1, 95, 5, "a", A)], A),
        ([AssignmentChange(0, 1, 96, 5, "a", A)], None),
        ([AssignmentChange(0, 1, 50, 5, "a", "")], None),
        ([AssignmentChange(1, 1, 50, 5, "a", A)], None),
        ([AssignmentChange(0, 1, 50, 5, "a", A), AssignmentChange(0, 2, 60, 5, "b", B)], B),
        ([AssignmentChange(0, 1, 50, 5, "a", A), AssignmentChange(0, 2, 105, 5, "b", B)], None),
        ([AssignmentChange(0, 1, 50, 5, "a", A), AssignmentChange(0, 2, 106, 5, "b", B)], A),
    ],
)
def test_an_owner_is_certain_outside_the_uncertainty(given: list[AssignmentChange], owner: str | None) -> None:
    found = having(given=tuple(given)).certain_owner(0, 100)
    assert (found and found.incarnation) == owner


@pytest.mark.parametrize(
    ("member_id", "gone", "order"),
    [
        ("a", [("a", B, 150)], 1),
        ("a", [("a", B, 99)], None),
        ("a", [("a", B, 100)], 1),
        ("a", [("a", B, 180)], 1),
        ("a", [("a", B, 181)], None),
        ("a", [("b", A, 150)], None),
        ("", [("b", A, 150)], 1),
        ("", [("a", B, 150)], None),
        ("", [("b", A, 150), ("a", A, 150)], 1),
        ("a", [("a", A, 170), ("a", A, 150)], 1),
    ],
)
def test_an_owner_is_removed_by_the_first_record_during_its_interval(
    member_id: str, gone: list[tuple[str, str, int]], order: int | None
) -> None:
    rows = tuple(MemberRemoval(who, incarnation, n, at_ns, 0) for n, (who, incarnation, at_ns) in enumerate(gone, 1))
    found = having(gone=rows).removed(OWNED._replace(member_id=member_id), 180)
    assert (found and found.order) == order


@pytest.mark.parametrize(
    ("acts", "excuse"),
    [
        ([], ""),
        ([DeclaredAction("seek", 0, 100)], "declared act: seek"),
        ([DeclaredAction("seek", 0, 101)], ""),
        ([DeclaredAction("seek", 1, 50)], ""),
        ([DeclaredAction("all", -1, 50)], "declared act: all"),
        ([DeclaredAction("seek", 0, 50), DeclaredAction("all", -1, 60)], "declared act: seek"),
        ([DeclaredAction("all", -1, 50), DeclaredAction("seek", 0, 60)], "declared act: all"),
        ([DeclaredAction("first", 0, 50), DeclaredAction("second", 0, 60)], "declared act: first"),
    ],
)
def test_the_first_act_on_a_partition_or_on_all_excuses(acts: list[DeclaredAction], excuse: str) -> None:
    assert having(acts=tuple(acts)).declared(0, 100) == excuse


def test_a_partition_has_possibly_no_leader_from_one_change_to_the_next() -> None:
    led = (LeaderChange(50, 2, 0, -1), LeaderChange(60, 2, 1, 3), LeaderChange(70, 3, 0, 1), LeaderChange(80, 0, 1, -1))
    tables = having(leaders=led)

    def leaderless(tp: int, *of: tuple[int, int]) -> list[bool]:
        return [tables.leaderless(tp, *window) for window in of]

    assert leaderless(0, (1, 47), (1, 48), (73, 99), (74, 99)) == [False, True, True, False]
    assert leaderless(1, (1, 79), (80, 80), (FOREVER, FOREVER)) == [False, True, True]
    assert leaderless(2, (1, FOREVER)) == [False]


PHASES = {"warm-up": Window(1, 10), "heal": Window(80, 90), "drain": Window(90, 300)}
CLOSED = Life(A, ended_ns=220, how="closed")


@pytest.mark.parametrize(
    ("rows", "closing_ns"),
    [
        ({}, FOREVER),
        ({"lives": {A: CLOSED}}, 220),
        ({"lives": {A: replace(CLOSED, ended_ns=90)}}, 90),
        ({"lives": {A: replace(CLOSED, ended_ns=89)}}, FOREVER),
        ({"lives": {A: replace(CLOSED, how="killed")}}, FOREVER),
        ({"lives": {A: CLOSED}, "phases": {}}, FOREVER),
        ({"lives": {A: CLOSED}, "intervals": (OWNED,)}, 200),
        ({"lives": {A: CLOSED}, "intervals": (OWNED, OWNED._replace(given_up_begin_ns=205))}, 205),
        ({"lives": {A: CLOSED}, "intervals": (OWNED._replace(how="lost"),)}, 220),
        ({"lives": {A: CLOSED}, "intervals": (OWNED._replace(how=""),)}, 220),
        ({"lives": {A: CLOSED}, "intervals": (OWNED._replace(given_up_begin_ns=90),)}, 90),
        ({"lives": {A: CLOSED}, "intervals": (OWNED._replace(given_up_begin_ns=89),)}, 220),
        ({"lives": {A: CLOSED}, "intervals": (OWNED._replace(incarnation=B),)}, 220),
        ({"lives": {A: CLOSED, B: replace(CLOSED, incarnation=B, ended_ns=210)}}, 210),
    ],
)
def test_the_drain_closes_when_the_first_member_begins_to_leave(rows: dict[str, Any], closing_ns: int) -> None:
    tables = replace(having(phases=PHASES), **rows)
    assert tables.closing_ns == closing_ns
    if closing_ns < 300:
        assert tables.calm == Window(10, closing_ns - 1)


@pytest.mark.parametrize(
    ("rows", "quiet"),
    [
        ({}, Window(10, 300)),
        ({"steps": (PAUSED,)}, Window(90, 300)),
        ({"phases": {"drain": Window(90, 300)}}, Window(0, 0)),
        ({"phases": {"drain": Window(90, 300)}, "steps": (PAUSED,)}, Window(0, 0)),
        ({"phases": {"warm-up": Window(1, 10)}}, Window(0, 0)),
        ({"phases": {**PHASES, "drain": Window(90, 0)}}, Window(0, 0)),
        ({"phases": {**PHASES, "warm-up": Window(1, 0)}}, Window(0, 0)),
    ],
)
def test_it_is_quiet_from_the_end_of_the_faults_on(rows: dict[str, Any], quiet: Window) -> None:
    tables = replace(having(phases=PHASES), **rows)
    assert tables.quiet == quiet
    assert tables.calm == quiet  # nobody leaves


@pytest.mark.parametrize(
    ("scenario", "protocol", "to_end", "heartbeat_ms"),
    [
        ({}, "", False, 3000),
        ({"scenario": [1]}, "", False, 3000),
        ({"scenario": {"group": {"protocol": "eager"}}}, "eager", False, 3000),
        ({"scenario": {"group": {"protocol": None, "config": None}}}, "", False, 3000),
        ({"scenario": {"group": {"config": {"auto.offset.reset": "latest"}}}}, "", True, 3000),
        ({"scenario": {"group": {"config": {"auto.offset.reset": "largest"}}}}, "", True, 3000),
        ({"scenario": {"group": {"config": {"auto.offset.reset": "end"}}}}, "", True, 3000),
        ({"scenario": {"group": {"config": {"auto.offset.reset": "earliest"}}}}, "", False, 3000),
        ({"scenario": {"group": {"config": {"heartbeat.interval.ms": 250.5}}}}, "", False, 250.5),
        ({"cluster": {"broker_config": {"group.consumer.heartbeat.interval.ms": "5000"}}}, "", False, 5000),
        ({"cluster": {"broker_config": {"group.consumer.heartbeat.interval.ms": 500}}}, "", False, 3000),
        ({"cluster": {"broker_config": {}}}, "", False, 3000),
        ({"cluster": {}}, "", False, 3000),
    ],
)
def test_what_the_scenario_sets(scenario: dict[str, Any], protocol: str, to_end: bool, heartbeat_ms: float) -> None:
    tables = having(scenario=scenario)
    assert (tables.protocol, tables.resets_to_end, tables.heartbeat_ns) == (protocol, to_end, heartbeat_ms * 1_000_000)
    assert tables.setting("group.id", "of its own") == "of its own"


@pytest.mark.parametrize(
    ("reported", "protocol"),
    [((), "eager"), (("eager",), "eager"), (("consumer",), "eager"), (("eager", "consumer"), "")],
)
def test_the_protocol_is_the_groups_unless_it_changed(reported: tuple[str, ...], protocol: str) -> None:
    scenario = {"scenario": {"group": {"protocol": "eager"}}}
    assert having(scenario=scenario, protocols=frozenset(reported)).protocol == protocol


def test_whose_writer_was_not_told_to_be_idempotent_is_excused() -> None:
    tables = having(unguarded=frozenset({3}))
    assert [tables.not_idempotent(writer) for writer in (3, 4)] == ["producer not idempotent", ""]


def test_a_group_may_have_changed_when_members_came_or_went_or_a_partition_was_made() -> None:
    tables = having(
        lives={A: Life(A, started_ns=10, ended_ns=50, last_sign_ns=40), B: Life(B, started_ns=20, last_sign_ns=99)},
        gone=(MemberRemoval("a", A, 1, 70, 3),),
        leaders=(LeaderChange(5, 1, 0, 1), LeaderChange(30, 1, 0, 2), LeaderChange(6, 0, 1, 1)),
    )
    assert sorted(tables.regrouped[None]) == [
        *(Window(4, 6), Window(6, 6), Window(10, 10), Window(20, 20), Window(40, 50), Window(67, 73))
    ]


def test_rounds_begin_when_the_records_say_so_else_with_the_first_assignments() -> None:
    rounds = (Rebalance(1, 2, 20, 21, (), "", 3), Rebalance(1, 1, 10, 11, (), "", 4))
    intervals = (OWNED, OWNED._replace(assigned_begin_ns=7))
    assert having(rounds=rounds, intervals=intervals).begins == [(10, 4), (20, 3)]
    assert having(intervals=intervals).begins == [(7, 0), (100, 0)]


def test_refused_heartbeats_are_heard_and_do_not_count() -> None:
    beats = (Heartbeat(A, 1, 5, 6, 0), Heartbeat(A, 1, 7, 8, 0, accepted=False))
    tables = having(heartbeats=beats)
    assert (tables.heartbeats_of[A], tables.heard_of[A]) == ([beats[0]], [*beats])


def test_only_intervals_of_some_length_are_certain() -> None:
    moment = OWNED._replace(given_up_begin_ns=101)
    assert having(intervals=(moment, OWNED)).certain_by_tp == {0: [OWNED]}


# Tables taken apart.


def test_the_rows_of_some_partitions_are_apart_from_what_all_have() -> None:
    intervals = (OWNED._replace(tp=2), OWNED, OWNED._replace(tp=1), OWNED._replace(number=1))
    tables = having(
        plan={"seed": 1},
        origin_ns=5,
        intervals=intervals,
        accepted=LOG,
        damage=(Damage("log", "", "lost"),),
        heartbeats=(Heartbeat(A, 1, 5, 6, 0),),
    )
    apart = TableSubset(tables)
    assert apart.common == having(origin_ns=5)
    rows = apart.rows([1, 0, 1, 7])
    assert rows["intervals"] == (intervals[1], intervals[3], intervals[2])
    assert (rows["accepted"], rows["given"]) == (LOG, ())
    assert {*rows} == {*BY_PARTITION}
    assert not {*rows} & {*OF_THE_DRIVER}


def test_an_effect_that_tells_little_has_the_first_place_no_offset_no_lease_and_no_key_and_lasts() -> None:
    reported = {
        "kind": EventKind.EFFECT,
        "actor": "a",
        "topic": "orders",
        "partition": 0,
        "offset": None,
        "begin_ns": 5,
    }
    full = {**reported, "offset": 9, "detail": {"seq": 3, "token": 4, "key": 6, "again": 8, "retried_ns": 7}}
    other = {**full, "kind": EventKind.DEAD_LETTER}
    found = effects([full, other, {**reported, "detail": {}}], {("orders", 0): 7}, EventKind.EFFECT)
    assert found == (Effect(0, 7, -1, "a", 0, 5), Effect(3, 7, 9, "a", 4, 5, 6, 8, 7))
