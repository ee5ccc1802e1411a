"""Lookups of the kernel in many rows at once, each beside the same thing said row by row: with many ties and edges."""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest

from fencepost.checkers.kernel.arrays import among
from fencepost.checkers.kernel.before import within_polls
from fencepost.checkers.kernel.delivery import _holders, passers
from fencepost.checkers.kernel.keys import _first
from fencepost.checkers.kernel.part import Part
from fencepost.checkers.kernel.places import Places
from fencepost.checkers.kernel.rows import inside, of_streams
from fencepost.checkers.kernel.stuck import _sooner, _Stop
from fencepost.checkers.kernel.tallies import NOBODY, Label, Numbers, Tallies
from fencepost.checkers.kernel.times import _minus
from fencepost.checkers.kernel.whole import between
from fencepost.checkers.tables.rows import Window
from fencepost.history import State

ROWS = 300  # a sort of a few keeps the order of equal ones by chance
SEEDS = pytest.mark.parametrize("seed", range(10))


@SEEDS
@pytest.mark.parametrize("ascending", [True, False])
@pytest.mark.parametrize("values", [1, 3, 40])
def test_rows_among_some_values_are_found_in_their_order(seed: int, ascending: bool, values: int) -> None:
    chance = np.random.default_rng(seed)
    column, wanted = chance.integers(0, 60, ROWS), chance.integers(-5, 65, values)
    column = np.sort(column) if ascending else column
    assert among(column, wanted).tolist() == [row for row, value in enumerate(column.tolist()) if value in wanted]


def test_no_row_is_among_values_of_an_empty_column() -> None:
    assert among(np.empty(0, np.int64), np.array([3])).tolist() == []


@SEEDS
def test_the_first_row_of_a_number_is_the_earliest_and_of_equal_ones_the_one_that_comes_first(seed: int) -> None:
    chance = np.random.default_rng(seed)
    at, times, which = chance.integers(0, 30, ROWS), chance.integers(0, 3, ROWS), chance.random(ROWS) < 0.4
    expected = [
        min(((times[row], row) for row in range(ROWS) if which[row] and at[row] == number), default=(0, -1))[1]
        for number in range(at.max() + 1)
    ]
    assert _first(at, times, which).tolist() == expected


@SEEDS
def test_what_comes_later_or_lower_inside_of_a_poll_is_told_record_by_record(seed: int) -> None:
    """The rows are in the order of ``ord``; their polls may be in any."""
    chance = np.random.default_rng(seed)
    poll, offset = chance.integers(0, 40, ROWS), chance.integers(0, 50, ROWS)
    poll = np.sort(poll) if seed % 2 else poll
    odd = np.unique(chance.integers(0, ROWS, 60))
    later, lower = within_polls(poll, offset, odd)
    for row in odd.tolist():
        before = offset[:row][poll[:row] == poll[row]]
        assert (later[row], lower[row]) == (len(before) > 0, bool((before >= offset[row]).any()))


@pytest.mark.parametrize(
    ("windows", "found"),
    [
        ([], []),
        ([(20, 30)], [1, 2, 3, 4]),
        ([(21, 29)], [2, 3]),
        ([(45, 50), (30, 31), (0, 9)], [3, 4, 5]),
        ([(0, 100), (5, 6)], [0, 1, 2, 3, 4, 5]),
        ([(10, 10)], [0, 1]),
        ([(9, 9), (41, 41)], []),
    ],
)
def test_a_span_is_inside_when_it_has_a_moment_in_common_with_a_window(
    windows: Sequence[tuple[int, int]], found: Sequence[int]
) -> None:
    begin, end = np.array([(10, 10), (10, 20), (22, 23), (21, 40), (30, 40), (0, 0)]).T
    assert np.flatnonzero(inside(begin, end, [Window(*window) for window in windows])).tolist() == found


def test_streams_are_asked_once_each_and_every_row_gets_the_answer() -> None:
    asked = []

    def ask(who: int, interval: int) -> int:
        asked.append((who, interval))
        return 100 * who + interval

    assert of_streams(np.array([1, 0, 1, 0, 2]), np.array([7, -1, 7, 2, 6]), ask).tolist() == [107, -1, 107, 2, 206]
    assert asked == [(0, -1), (0, 2), (1, 7), (2, 6)]


@pytest.mark.parametrize(
    ("pauses", "pieces"),
    [
        ([], [(10, 20)]),
        ([(0, 10), (20, 30)], [(10, 20)]),
        ([(12, 14), (16, 18)], [(10, 12), (14, 16), (18, 20)]),
        ([(5, 12), (18, 25), (30, 40)], [(12, 18)]),
        ([(12, 18), (13, 14)], [(10, 12), (18, 20)]),
        ([(10, 20)], []),
        ([(11, 20)], [(10, 11)]),
    ],
)
def test_work_without_pauses_is_what_is_left_of_it(
    pauses: Sequence[tuple[int, int]], pieces: Sequence[tuple[int, int]]
) -> None:
    assert [*_minus(Window(10, 20), [Window(*pause) for pause in pauses])] == pieces


@pytest.mark.parametrize(
    ("one", "other", "both"),
    [
        (None, None, None),
        (_Stop(3, 9), None, _Stop(3, 9)),
        (None, _Stop(5, 7), _Stop(5, 7)),
        (_Stop(3, 9), _Stop(5, 7), _Stop(3, 7)),
        (_Stop(3, 6), _Stop(5, 7), _Stop(3, 6)),
    ],
)
def test_what_waits_in_two_lots_waits_since_the_sooner(
    one: _Stop | None, other: _Stop | None, both: _Stop | None
) -> None:
    assert _sooner(one, other) == both


def commit(offset: int, begin_ns: int, incarnation: str, outcome: str = "ok") -> Any:
    return SimpleNamespace(offset=offset, begin_ns=begin_ns, incarnation=incarnation, outcome=outcome)


@pytest.mark.parametrize(
    ("commits", "expected"),
    [
        ([], [("", 0)] * 4),
        ([commit(0, 5, "a")], [("", 0)] * 4),
        ([commit(1, 5, "a")], [("a", 5), ("", 0), ("", 0), ("", 0)]),
        ([commit(2, 9, "a"), commit(1, 5, "b")], [("b", 5), ("a", 9), ("", 0), ("", 0)]),
        ([commit(3, 5, "b"), commit(3, 5, "a"), commit(2, 4, "c")], [("c", 4), ("c", 4), ("a", 5), ("", 0)]),
        ([commit(4, 5, "a", "fail"), commit(4, 7, "b", "info")], [("b", 7)] * 4),
    ],
)
def test_who_passed_an_offset_is_the_first_whose_commit_lies_above_it(
    commits: Sequence[Any], expected: Sequence[tuple[str, int]]
) -> None:
    names, who, at_ns = passers(cast("Part", SimpleNamespace(commits=commits)), np.arange(4))
    assert [(names[n], at) for n, at in zip(who.tolist(), at_ns.tolist(), strict=True)] == expected


@pytest.mark.parametrize(
    ("one", "other", "both"),
    [
        (Numbers(), Numbers(), Numbers(2, -1, -1, 0, 0)),
        (Numbers(2, 0, 3, 1, 5), Numbers(3), Numbers(5, 0, 3, 1, 5)),
        (Numbers(2, 4, 4, 3, 5), Numbers(1, 1, 9, 1, 9), Numbers(3, 1, 9, 1, 9)),
        (Numbers(2, 1, 9, 1, 9), Numbers(1, 4, 4, 3, 5), Numbers(3, 1, 9, 1, 9)),
    ],
)
def test_numbers_add_up(one: Numbers, other: Numbers, both: Numbers) -> None:
    assert one + other == both


def test_of_many_sightings_the_earliest_time_is_told_that_there_is() -> None:
    """And ``last`` is told beside ``first``; nothing comes of none."""
    tallies, of = Tallies(), np.array([0, 1, 0, 1, 0])
    times = {"from_ns": np.array([0, 0, 1, 0, 7]), "to_ns": np.array([1, 0, 9, 0, 7])}
    some = {"first": np.array([5, 1, 4, 0, 6]), "last": np.array([8, 1, 9, 3, 6])}
    tallies.put_many("rewind", 2, [of], lambda n: Label((f"{n}",)), **some, **times)
    tallies.put_many("poll-skip", 2, [of], lambda n: NOBODY, **some, **times, count=np.array([1, 2, 3, 0, 7]))
    tallies.put_many("rewind", 2, [of[:0]], lambda n: Label(), **{k: v[:0] for k, v in {**some, **times}.items()})
    assert tallies == {
        ("rewind", 2, ("0",), "", ""): Numbers(3, 4, 9, 1, 9),
        ("rewind", 2, ("1",), "", ""): Numbers(2, 0, 3, 0, 0),
        ("poll-skip", 2, (), "", ""): Numbers(13, 0, 9, 1, 9),
    }


def test_sightings_are_of_one_group_where_all_their_codes_are_the_same() -> None:
    tallies, zeros = Tallies(), np.zeros(4, np.int64)
    codes = [np.array([0, 2, 1, 2]), np.array([1, 0, 0, 0])]
    label = {(0, 1): "a", (2, 0): "b", (1, 0): "c"}
    tallies.put_many("rewind", 2, codes, lambda *of: Label((label[of],)), first=zeros, from_ns=zeros, to_ns=zeros)
    assert {members: numbers.count for (_, _, members, _, _), numbers in tallies.items()} == {
        ("a",): 1,
        ("b",): 2,
        ("c",): 1,
    }


@SEEDS
def test_a_record_is_held_by_who_may_have_it_in_doubt_or_else_by_who_got_it_last(seed: int) -> None:
    """Of those that got it at the same time by the greatest name, and of its rows by the first."""
    chance = np.random.default_rng(seed)
    who = np.sort(chance.integers(0, 4, ROWS))
    offset, at_ns, state = chance.integers(0, 40, ROWS), chance.integers(0, 3, ROWS), chance.integers(0, 4, ROWS)
    lives = {name: SimpleNamespace(how=how) for name, how in (("a", "killed"), ("b", "crashed"), ("c", "closed"))}
    rows = SimpleNamespace(names=("a", "b", "c", "d"), who=who, delivered_ns=at_ns, state=state)
    places, missed = Places([offset, np.arange(50)]), np.arange(1, 50, 2)
    of = SimpleNamespace(rows=rows, places=places, where=places.where(0), tables=SimpleNamespace(lives=lives))
    expected = []
    for one in missed.tolist():
        those = [
            (bool(who[row] < 2 and state[row] == State.BEGUN), at_ns[row], who[row], -row)
            for row in np.flatnonzero(offset == one).tolist()
        ]
        doubtful, *_, row = max(those, default=(False, 1))
        expected.append((-row, doubtful))
    holder, in_doubt = _holders(cast("Part", of), missed)
    assert [*zip(holder.tolist(), in_doubt.tolist(), strict=True)] == expected


def test_nobody_holds_what_was_not_delivered() -> None:
    places = Places([np.empty(0, np.int64), np.arange(3)])
    rows = SimpleNamespace(names=(), who=np.empty(0, np.int32), delivered_ns=places.at(np.empty(0, np.int64)))
    rows.state = rows.delivered_ns
    of = SimpleNamespace(rows=rows, places=places, where=places.where(0), tables=SimpleNamespace(lives={}))
    holder, in_doubt = _holders(cast("Part", of), np.arange(3))
    assert (holder.tolist(), in_doubt.tolist()) == ([-1] * 3, [False] * 3)


def test_the_files_of_a_log_may_be_in_any_order() -> None:
    """What is between two offsets is counted, and its first and last are told, whichever file tells of them."""
    files = [np.array(offsets, np.int64) for offsets in ([8, 12], [3, 9], [], [20])]
    after, before = np.array([2, 8, 12, 30]), np.array([13, 10, 20, 40])
    found = between(files, after, before)
    assert [column.tolist() for column in found] == [[4, 1, 0, 0], [3, 9, 0, 0], [12, 9, 0, 0]]
