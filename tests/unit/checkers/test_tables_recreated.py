"""A partition that was deleted and made again: which of the two a row means, on tables written here."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from fencepost.checkers.tables import Tables
from fencepost.checkers.tables.effects import Effect
from fencepost.checkers.tables.recreated import EFFECT_NS, RecreatedPartition, renewals, split_by_generation
from fencepost.checkers.tables.requests import Request
from fencepost.checkers.tables.rows import (
    FOREVER,
    AssignmentChange,
    Commit,
    DeclaredAction,
    Interval,
    Life,
    OffsetCommit,
    Partition,
    Window,
)
from fencepost.checkers.tables.seeks import Seek
from fencepost.model import TopicPartition

OLD, NEW, OTHER = 7, 3, 4
RENEWED = RecreatedPartition(OLD, NEW, Window(100, 200), 210, 8, 3, {"a": EFFECT_NS + 250}, {"a": 260})


def of(made: RecreatedPartition = RENEWED, **tables: Any) -> Tables:
    return split_by_generation(Tables(Path(), **tables), [made])


def test_what_was_renewed_is_told_with_what_is_known_of_it_and_the_last_one_first() -> None:
    full = {
        "begin_ns": 5,
        "end_ns": 9,
        "last_ns": 7,
        "next": 4,
        "begun": 2,
        "begin_ns_of": {"a": 11},
        "done_ns": {"b": 12},
    }
    entries = [{"tp": 0}, {"tp": 1, "renewed": {"as": 3, **full}}, {"tp": 2, "renewed": {"as": 1, "begin_ns": 6}}]
    assert renewals(entries) == [
        RecreatedPartition(2, 1, Window(6, 0), 0, 0, -1, {}, {}),
        RecreatedPartition(1, 3, Window(5, 9), 7, 4, 2, {"a": 11}, {"b": 12}),
    ]
    (early,) = renewals([{"tp": 1, "renewed": {"as": 3}}])
    assert early.window == Window(0, 0)


@pytest.mark.parametrize(("next_", "begun", "skipped"), [(8, 3, 3), (2, 3, 2), (8, -1, 0), (0, 3, 0)])
def test_at_most_what_lies_below_both_positions_was_passed_over(next_: int, begun: int, skipped: int) -> None:
    assert RENEWED._replace(next=next_, begun=begun).skipped == skipped


# By the coordinator's log.


@pytest.mark.parametrize(
    ("rows", "before"),
    [
        ([(5, 50, 0), (6, 99, 0), (7, 100, 0)], 2),
        ([(5, 50, 0), (6, 98, 3), (7, 250, 0)], 2),
        ([(5, 50, 0), (-1, 150, 0), (7, 160, 0)], 2),
        ([(5, 50, 0), (-1, 99, 1), (7, 99, 0)], 2),
        ([(5, 50, 0), (-1, 98, 1), (7, 160, 0)], 2),
        ([(5, 50, 0), (-1, 201, 1), (7, 250, 0)], 2),
        ([(5, 50, 0), (-1, 202, 1), (7, 250, 0)], 1),
        ([(-1, 110, 0), (-1, 120, 0), (7, 130, 0)], 1),
        ([(5, 110, 0), (7, 130, 0)], 0),
    ],
)
def test_the_commits_of_before_end_with_the_deletion_or_with_the_last_one_before_it(
    rows: Sequence[tuple[int, int, int]], before: int
) -> None:
    accepted = tuple(OffsetCommit(NEW, offset, n, at, blur) for n, (offset, at, blur) in enumerate(rows))
    others = OffsetCommit(OTHER, -1, 50, 150), OffsetCommit(OTHER, 5, 51, 160)
    tables = of(accepted=(*accepted, *others), overtaken=accepted)
    for found in (tables.accepted[:-2], tables.overtaken):
        assert [one.tp for one in found] == [OLD] * before + [NEW] * (len(rows) - before)
        assert [one._replace(tp=NEW) for one in found] == [*accepted]
    assert tables.accepted[-2:] == others


@pytest.mark.parametrize(
    ("offset", "begin_ns", "end_ns", "mode", "is_old"),
    [
        (9, 50, 99, "", True),
        (9, 99, 100, "", True),
        (9, 100, 101, "", False),
        (9, 50, 0, "", True),
        (5, 110, 300, "", True),
        (5, 171, 300, "", False),
        (6, 90, 300, "", False),
        (6, 90, 249, "", True),
        (6, 90, 250, "", False),
        (6, 90, 0, "", False),
        (5, 180, 300, "auto", True),
        (6, 180, 300, "auto", False),
        (9, 180, 300, "auto", False),
        (9, 99, 300, "auto", True),
    ],
)
def test_a_commit_is_of_the_one_to_which_it_was_written_or_else_by_when_it_began(
    offset: int, begin_ns: int, end_ns: int, mode: str, is_old: bool
) -> None:
    """5 was written to the former one at 170, 6 to the other one at 250."""
    commit = Commit(NEW, offset, "a", "", 1, begin_ns, end_ns, "ok", "", mode)
    accepted = (OffsetCommit(NEW, 5, 0, 170), OffsetCommit(NEW, -1, 1, 180), OffsetCommit(NEW, 6, 2, 250))
    tables = of(commits=(commit,), accepted=accepted, lives={"a": Life("a", started_ns=40)})
    assert tables.commits == (commit._replace(tp=OLD if is_old else NEW),)
    if mode != "auto":
        other = commit._replace(tp=OTHER)
        assert of(commits=(other,), accepted=accepted).commits == (other,)


# By the clock.


@pytest.mark.parametrize(
    ("table", "row", "is_old"),
    [
        ("fetched", Request(NEW, 5, "a", 90, 99, 0), True),
        ("fetched", Request(NEW, 5, "a", 90, 100, 0), False),
        ("seeks", Seek(NEW, "a", 5, 200), True),
        ("seeks", Seek(NEW, "a", 5, 201), False),
        ("effects", Effect(0, NEW, 5, "a", 0, 249), True),
        ("effects", Effect(0, NEW, 5, "a", 0, 250), False),
        ("effects", Effect(0, NEW, 5, "b", 0, 999), True),
        ("dead_letters", Effect(0, NEW, 5, "a", 0, 249), True),
        ("dead_letters", Effect(0, NEW, 5, "a", 0, 250), False),
        ("dead_letters", Effect(0, NEW, 5, "b", 0, 999), True),
    ],
)
def test_a_row_is_of_the_former_one_until_it_was_gone_or_the_other_one_begun(
    table: str, row: Any, is_old: bool
) -> None:
    other = row._replace(tp=OTHER)
    (found, same) = sorted(getattr(of(**{table: (row, other)}), table), key=lambda one: one.tp == OTHER)
    assert (found, same) == (row._replace(tp=OLD if is_old else NEW), other)


def test_a_letter_of_the_former_partition_was_retried_when_it_was() -> None:
    (letter,) = of(dead_letters=(Effect(0, NEW, 5, "a", 0, 249, 1, retried_ns=300),)).dead_letters
    assert letter == Effect(0, OLD, 5, "a", 0, 249, 1, retried_ns=300)


@pytest.mark.parametrize("table", ["effects", "dead_letters"])
def test_effects_stay_in_the_order_of_where_they_are(table: str) -> None:
    rows = (Effect(0, NEW, 5, "a", 0, 249), Effect(1, OTHER, 1, "a", 0, 9), Effect(2, NEW, 5, "a", 0, 260))
    assert [one.seq for one in getattr(of(**{table: rows[::-1]}), table)] == [0, 1, 2]


@pytest.mark.parametrize(("at_ns", "copied"), [(200, True), (201, False)])
def test_callbacks_and_assignments_of_a_name_are_of_both_if_they_began_while_the_former_one_was_there(
    at_ns: int, copied: bool
) -> None:
    interval, given = Interval(NEW, "a", 0, 1, "id", at_ns, at_ns), AssignmentChange(NEW, 0, at_ns, 0, "id", "a")
    others = interval._replace(tp=OTHER), given._replace(tp=OTHER)
    tables = of(intervals=(interval, others[0]), given=(given, others[1]))
    assert tables.intervals == (interval, others[0], *[interval._replace(tp=OLD)] * copied)
    assert tables.given == (given, others[1], *[given._replace(tp=OLD)] * copied)


# Until when the former one may show.

Told = tuple[int, int, str, str]  # begin, end, outcome, mode


@pytest.mark.parametrize(
    ("commits", "until_ns"),
    [
        ([], FOREVER - 1),
        ([(260, 270, "ok", "")], FOREVER - 1),
        ([(261, 270, "ok", "")], 270),
        ([(261, 270, "fail", ""), (280, 290, "info", ""), (300, 310, "ok", "")], 310),
        ([(300, 310, "ok", ""), (261, 270, "ok", "")], 270),
        ([(261, 270, "ok", "auto")], FOREVER - 1),
        ([(261, 270, "ok", "auto"), (300, 310, "ok", "auto"), (320, 330, "ok", "auto")], 310),
        ([(261, 270, "ok", "auto"), (300, 310, "ok", "")], 310),
        ([(261, 262, "ok", "")], 263),
    ],
)
def test_the_former_one_shows_until_a_member_committed_that_had_finished_a_record_of_the_other_one(
    commits: Sequence[Told], until_ns: int
) -> None:
    """What is written between 261 and 263 is in force when it certainly is."""
    reported = [(NEW, "a", *one) for one in commits] + [
        (tp, name, 261, 262, "ok", "") for tp, name in ((OTHER, "a"), (NEW, "b"))
    ]
    of_members = tuple(
        Commit(tp, 9, name, "", 1, begin, end, outcome, "", mode) for tp, name, begin, end, outcome, mode in reported
    )
    accepted = (OffsetCommit(NEW, -1, 0, 150), OffsetCommit(NEW, 9, 1, 262, 1), OffsetCommit(NEW, 8, 2, 262, 90))
    act, earlier, other = (
        DeclaredAction("recreate_topic", NEW, 100),
        DeclaredAction("reset", NEW, 50),
        DeclaredAction("reset", OTHER, 100),
    )
    tables = of(commits=of_members, accepted=accepted, acts=(earlier, act, other))
    assert tables.acts == (
        earlier._replace(tp=OLD),
        earlier,
        act._replace(tp=OLD),
        act._replace(end_ns=until_ns, skipped=3),
        other,
    )


@pytest.mark.parametrize(
    ("end", "mode", "until_ns"), [(6, "auto", 350), (7, "auto", 310), (-1, "auto", 310), (6, "", 270)]
)
def test_what_a_client_committed_by_itself_above_all_records_of_the_other_one_shows_the_former(
    end: int, mode: str, until_ns: int
) -> None:
    reported = [(7, 261, 270), (7, 300, 310), (6, 320, 330), (6, 340, 350)]
    commits = tuple(Commit(NEW, at, "a", "", 1, begin, end_, "ok", "", mode) for at, begin, end_ in reported)
    partitions = {NEW: Partition(NEW, TopicPartition("orders", 0), 0, end)}
    found = of(commits=commits, acts=(DeclaredAction("recreate_topic", NEW, 100),), partitions=partitions).acts[1]
    assert found.end_ns == until_ns


@pytest.mark.parametrize(
    ("window", "last_ns", "until_ns"), [((100, 400), 210, 400), ((100, 200), 410, 410), ((100, 200), 210, 270)]
)
def test_it_shows_until_it_is_gone_and_its_last_sign_at_least(
    window: tuple[int, int], last_ns: int, until_ns: int
) -> None:
    made = RENEWED._replace(window=Window(*window), last_ns=last_ns)
    commits = (Commit(NEW, 9, "a", "", 1, 401 if window[1] == 400 else 261, 270, "ok"),)
    found = of(made, commits=commits, acts=(DeclaredAction("recreate_topic", NEW, 100),)).acts[1]
    assert found.end_ns == until_ns
