"""Functions of the kernel whose effect a verdict hides, each by itself: what it gives, to the nanosecond."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest
from hypothesis import given as drawn
from hypothesis import strategies as st

from fencepost.checkers import kernel
from fencepost.checkers.kernel import keys
from fencepost.checkers.kernel.before import heights
from fencepost.checkers.kernel.columns import DamagedFile, Files, Near, Piece, _Group
from fencepost.checkers.kernel.keys import key_order
from fencepost.checkers.kernel.owners import NOBODY, Owners
from fencepost.checkers.kernel.part import NEVER, Part
from fencepost.checkers.kernel.ranges import Task
from fencepost.checkers.kernel.streams import _counters
from fencepost.checkers.kernel.stuck import _runs, _Watch
from fencepost.checkers.kernel.tallies import Numbers, Tallies
from fencepost.checkers.kernel.times import _meet
from fencepost.checkers.kernel.whole import PRODUCED, First, Whole, _ascending
from fencepost.checkers.tables import Tables
from fencepost.checkers.tables.rows import Given, Window

# A rule that crashes, and one that meets a damaged file.


def failing(error: Exception) -> Callable[[Part], None]:
    def broken(part: Part) -> None:
        part.tallies.put("before", part.tp)
        raise error

    return broken


DAMAGED = DamagedFile(Path("delivered") / "member-0.1.parquet", "it cannot be read: torn")


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (
            RuntimeError("planted\nand more"),
            {("#failed", -1, ("rewind", "poll-skip"), "the rule broken failed: RuntimeError: planted", ""): 1},
        ),
        (
            DAMAGED,
            {
                ("#damaged", -1, ("history/delivered/member-0.1.parquet",), "it cannot be read: torn", ""): 1,
                ("#failed", -1, ("rewind", "poll-skip"), f"{DAMAGED}", ""): 1,
            },
        ),
    ],
    ids=["crashed", "damaged"],
)
def test_a_rule_that_fails_tells_which_kinds_and_why(
    error: Exception, told: Mapping[Any, int], caplog: pytest.LogCaptureFixture
) -> None:
    part = cast("Part", SimpleNamespace(tp=3, tallies=Tallies(), task="the task"))
    with caplog.at_level(logging.ERROR):
        kernel._look(part, failing(error), ("rewind", "poll-skip"))
    assert {key: numbers.count for key, numbers in part.tallies.items()} == {("before", 3, (), "", ""): 1, **told}
    crashed = not isinstance(error, DamagedFile)
    assert [record.getMessage() for record in caplog.records] == ["the rule broken failed on the task"] * crashed


# Gaps between deliveries, of which more than 10 is too long, from 100 to 200.


@pytest.mark.parametrize(
    ("moments", "runs"),
    [
        ([], []),
        ([100, 200], []),
        ([99, 100, 101, 111, 199, 200, 201], [(101, 111), (199, 199)]),
        ([110, 120, 130], [(110, 130)]),
        ([110, 121, 131, 142], [(110, 110), (121, 131), (142, 142)]),
    ],
)
def test_runs_are_deliveries_inside_of_the_window_not_more_than_the_bound_apart(
    moments: Sequence[int], runs: Sequence[tuple[int, int]]
) -> None:
    watch = _Watch("stuck-partition", Window(100, 200), 10)
    assert [tuple(run) for run in _runs(np.array(moments, np.int64), watch)] == runs


# The first delivery of a stream.


class Read:
    """Files of which each row group is a piece of some rows (interval, ord, offset, delivered_ns)."""

    columns: tuple[str, ...] = ("interval", "ord", "offset", "delivered_ns")

    def __init__(self, **pieces: Sequence[Sequence[tuple[int, int, int, int]]]) -> None:
        self.pieces, self.asked = pieces, list[Any]()

    def read(self, task: Task, folder: str, names: Sequence[str], near: Near | None = None) -> Iterator[Piece]:
        self.asked.append((folder, near))
        for file, _ in task.of(folder):
            for rows in self.pieces[file.removesuffix(".parquet")]:
                columns = dict(zip(self.columns, np.array(rows).T, strict=True))
                yield Piece(file, lambda names, of=columns: {name: of[name] for name in names}, names, len(rows))


class Polls(Read):
    """The same of (interval, ord, poll, delivered_ns)."""

    columns = ("interval", "ord", "poll", "delivered_ns")


def whole(read: Read, *folders: str) -> Whole:
    parts = tuple((folder, f"{name}.parquet", (0,)) for folder in folders or ["delivered"] for name in read.pieces)
    return Whole(cast("Files", read), Task(0, 0, 1, parts=parts, all=parts))


@pytest.mark.parametrize(
    ("pieces", "first"),
    [
        ([], None),
        ([[(0, 1, 7, 70)]], None),
        ([[(2, 5, 7, 70)]], First(7, 70)),
        ([[(0, 1, 1, 10), (2, 5, 7, 70), (2, 4, 9, 60), (2, 6, 5, 50)]], First(9, 60)),
        ([[(2, 5, 3, 30)], [(0, 1, 1, 10)], [(2, 4, 9, 90)], [(2, 6, 1, 10)]], First(9, 90)),
        ([[(2, 0, 9, 90)], [(2, 1, 1, 10)]], First(9, 90)),
        ([[(2, 4, 9, 90)], [(2, 4, 1, 10)]], First(9, 90)),  # of a damaged history: under one number
    ],
)
def test_the_first_delivery_of_a_stream_is_the_one_with_the_least_ord(
    pieces: Sequence[Sequence[tuple[int, int, int, int]]], first: First | None
) -> None:
    read = Read(a=pieces, b=[[(2, 0, 0, 1)]])
    assert whole(read).first("a", 2) == first
    assert read.asked == [("delivered", Near("interval", "interval", [(2, 2)]))]


@pytest.mark.parametrize(
    ("offsets", "expected"),
    [([], []), ([1, 2, 9], [1, 2, 9]), ([2, 1], [1, 2]), ([1, 2, 2, 9], [1, 2, 9]), ([9, 9], [9])],
)
def test_offsets_come_once_each_and_in_order(offsets: Sequence[int], expected: Sequence[int]) -> None:
    assert _ascending(np.array(offsets, np.int64)).tolist() == expected


def test_polls_are_those_that_returned_later() -> None:
    read = Polls(a=[[(2, 0, 5, 50), (1, 1, 1, 99)], [(2, 2, 3, 10)], [(2, 3, 7, 70), (2, 4, 6, 60)]])
    assert whole(read).polls("a", 2) == (3, 7)
    assert whole(read).polls("a", 2, 10) == (5, 7), "of a piece without any nothing is asked"
    assert whole(read).polls("a", 2, 59) == (6, 7)


class Sends(Read):
    """The same of sends."""

    columns = ("seq", "writer", "outcome", "offset")


def test_sends_are_looked_up_by_their_numbers_where_such_numbers_may_be() -> None:
    read = Sends(a=[[(5, 0, 0, 1), (7, 0, 0, 2), (9, 0, 0, 3)], [(6, 0, 0, 4)]])
    found = whole(read, *PRODUCED).sends(np.array([9, 5, 8]))
    assert [(piece["seq"][those].tolist(), those.tolist()) for piece, those in found] == [([5, 9], [0, 2])] * 2
    assert read.asked == [(folder, Near("seq", "seq", [(5, 5), (8, 8), (9, 9)])) for folder in PRODUCED]


def test_a_row_group_of_another_length_than_it_says_is_damage(tmp_path: Path) -> None:
    table = SimpleNamespace(num_rows=1234)
    parquet = SimpleNamespace(read_row_group=lambda number, columns, use_threads: table)
    group: Any = object.__new__(_Group)
    group.file, group._number, group.rows = (Path("log") / "audit.parquet", parquet, None), 0, 9
    with pytest.raises(DamagedFile) as damaged:
        group._decoded(["offset", "key"])
    told = "history/log/audit.parquet: offset, key have 1,234 rows, and it says another number"
    assert str(damaged.value) == told


def test_a_row_group_that_cannot_be_decoded_is_damage() -> None:
    def read_row_group(*told: Any, **more: Any) -> None:
        raise OSError("torn\nand more")

    group: Any = object.__new__(_Group)
    parquet = SimpleNamespace(read_row_group=read_row_group)
    group.file, group._number, group.rows = (Path("log") / "audit.parquet", parquet, None), 0, 9
    with pytest.raises(DamagedFile) as damaged:
        group._decoded(["offset", "key"])
    assert str(damaged.value) == "history/log/audit.parquet: it cannot be read: torn"


# What is remembered from one stretch of deliveries to the next.


def test_what_is_remembered_of_another_interval_says_nothing_of_a_new_one() -> None:
    ordered = SimpleNamespace(offset=np.array([90, 91, 3, 5, 4]), delivered_ns=np.array([1, 2, 10, 20, 30]))
    before = SimpleNamespace(rows=[0], height=91, heard_ns=2)
    stream = SimpleNamespace(begin=2, end=5)
    assert heights(cast("Any", ordered), cast("Any", stream), [], cast("Any", before)).tolist() == [-1, 3, 5, 5]
    stream.begin = 0
    assert heights(cast("Any", ordered), cast("Any", stream), [], cast("Any", before)).tolist() == [91] * 6


def test_a_hole_lies_between_two_deliveries() -> None:
    rows = type("Rows", (list,), {})(range(4))
    vars(rows).update(
        bounds=[0, 4],
        breaks=np.array([3]),
        ord=np.array([0, 1, 2, 5]),
        delivered_ns=np.array([10, 20, 30, 40]),
        offset=np.array([6, 7, 8, 9]),
        who=np.zeros(4, np.int64),
        names=["a"],
    )
    part = SimpleNamespace(tp=3, tallies=Tallies(), before=None)
    _counters(cast("Part", part), cast("Any", rows))
    assert part.tallies == {("history-incomplete", 3, ("a",), "hole", ""): Numbers(2, 9, 9, 30, 40)}


# The edges of a task that has only some offsets of its partition.


def edges(begun: Sequence[int], finished: Sequence[int], rules: str = "offsets", rows: int = 1) -> Tallies:
    """Of a task in which places were first begun and finished then (0: never)."""
    of = np.array([at > 0 for at in begun] * rows, bool)
    part = SimpleNamespace(
        tp=3,
        tallies=Tallies(),
        task=Task(3, 10, 20, rules),
        rows=type("Rows", (list,), {"begun": of})(of),
        begun_ns=np.array([at or NEVER for at in begun], np.int64),
        finished_ns=np.array([at or NEVER for at in finished], np.int64),
    )
    key_order(cast("Part", part))
    return cast("Tallies", part.tallies)


@pytest.mark.parametrize(
    ("begun", "finished", "times"),
    [
        ([5, 7], [6, 9], (5, 9)),
        ([5, 9], [6, 0], (5, 6)),
        ([0, 5], [0, 6], (5, 6)),
        ([0], [0], (0, 0)),
        ([5], [0], (5, 0)),
    ],
)
def test_a_range_tells_when_its_first_was_begun_and_its_last_was_finished(
    begun: Sequence[int], finished: Sequence[int], times: tuple[int, int]
) -> None:
    assert edges(begun, finished) == {("#edge", 3, (), "10 20", ""): Numbers(1, -1, -1, *times)}
    assert edges(begun, finished, rules="all") == {}


def test_only_the_places_that_were_begun_early_are_looked_at_exactly(monkeypatch: pytest.MonkeyPatch) -> None:
    looked = []
    monkeypatch.setattr(keys, "_exact", lambda part, early: looked.append((part.tp, early.tolist())))
    edges([5, 8, 9, 12], [10, 10, 11, 13], rules="all")
    edges([5, 10], [10, 11], rules="all")
    assert looked == [(3, [1, 2])]


def test_a_range_without_deliveries_tells_nothing() -> None:
    assert edges([0], [0], rows=0) == {}


# Pieces of work that meet.


@pytest.mark.parametrize(
    ("pieces", "pairs"),
    [
        ([], []),
        ([(0, 10, 20), (1, 20, 30)], []),
        ([(0, 10, 21), (1, 20, 30)], [(0, 1)]),
        ([(1, 10, 21), (0, 20, 30)], [(1, 0)]),
        ([(0, 10, 20), (0, 10, 20)], []),
        ([(0, 0, 1), (1, 0, 1)], [(0, 1)]),
        ([(0, 0, 1000), (1, 999, 1000)], [(0, 1)]),
        ([(0, 0, 1000), (1, 1000, 1001)], []),
        ([(0, 50, 51), (1, 0, 100), (2, 50, 52)], [(0, 1), (0, 2), (1, 2)]),
        ([(1, 0, 100), (0, 0, 1), (0, 1, 2), (0, 99, 100), (0, 100, 101)], [(1, 0), (2, 0), (3, 0)]),
        ([(0, 0, 64), (0, 65, 128), (1, 63, 66)], [(0, 2), (1, 2)]),
        ([(1, 0, 2), (1, 10, 12), (1, 20, 22), (0, 11, 12)], [(1, 3)]),
        ([(1, 10, 12), (1, 20, 23), (0, 12, 14)], []),  # of one class of lengths, and not the longest of it
    ],
)
def test_pieces_of_two_meet_where_they_have_time_in_common(
    pieces: Sequence[tuple[int, int, int]], pairs: Sequence[tuple[int, int]]
) -> None:
    who, begin, end = np.array(pieces, np.int64).reshape(-1, 3).T
    one, two = _meet(who, begin, end)
    lesser_first = [(a, b) if who[a] < who[b] else (b, a) for a, b in pairs]
    assert sorted(zip(one.tolist(), two.tolist(), strict=True)) == sorted(lesser_first)


# Who certainly owned a partition.

GIVEN = st.builds(
    Given,
    tp=st.just(0),
    order=st.just(0),
    at_ns=st.integers(1, 40),
    uncertainty_ns=st.integers(0, 4),
    member_id=st.just("id"),
    incarnation=st.sampled_from(["", "a", "b"]),
)


def owners(given: Sequence[Given]) -> tuple[Tables, Owners]:
    tables = Tables(Path(), given=(Given(1, 0, 1, 0, "id", "c"), *given))
    return tables, Owners(tables, 0)


@drawn(
    st.lists(GIVEN, max_size=5),
    st.booleans(),
    st.lists(st.tuples(st.integers(1, 50), st.booleans()), min_size=1, max_size=8),
)
def test_the_owner_at_each_moment_is_the_one_that_the_tables_tell(
    given: list[Given], in_order: bool, asked: list[tuple[int, bool]]
) -> None:
    if in_order:
        given.sort(key=lambda one: one.at_ns - one.uncertainty_ns)
    tables, these = owners(given)
    times, wanted = np.array([at for at, _ in asked]), np.array([is_wanted for _, is_wanted in asked])
    found = these.at(times, wanted)
    assert len(found) == len(times)
    for (at, is_wanted), index in zip(asked, found.tolist(), strict=True):
        one = tables.certain_owner(0, at)
        if is_wanted:
            assert (these.names[index] if index != NOBODY else None) == (one.incarnation if one else None)


def test_owners_are_known_by_the_order_of_their_names() -> None:
    _, these = owners([Given(0, 0, 5, 1, "id", name) for name in ("b", "", "a", "b")])
    assert (these.names, these.index) == (["a", "b"], {"a": 0, "b": 1})


B_THEN_A = [Given(0, 1, 10, 2, "b", "b"), Given(0, 2, 30, 2, "a", "a")]


@pytest.mark.parametrize("given", [B_THEN_A, [Given(0, 0, 12, 0, "a", "a"), *B_THEN_A]], ids=["in order", "not"])
@pytest.mark.parametrize(
    ("at_ns", "owner"),
    [(8, NOBODY), (11, NOBODY), (12, 1), (27, 1), (28, NOBODY), (31, NOBODY), (32, 0), (99, 0)],
)
def test_nobody_certainly_owns_a_partition_while_a_change_may_not_be_written(
    given: Sequence[Given], at_ns: int, owner: int
) -> None:
    """One moment alone, and beside others; a moment that is not wanted may be none."""
    _, these = owners(given)
    everywhere = np.ones(3, bool)
    assert these.at(np.array([at_ns]), everywhere[:1]).tolist() == [owner]
    assert these.at(np.array([at_ns, 99, at_ns]), everywhere).tolist() == [owner, 0, owner]
    assert these.at(np.array([at_ns, 0]), np.array([True, False]))[0] == owner


def test_without_a_moment_or_a_record_nobody_owns_it() -> None:
    for given, wanted in (([], True), (B_THEN_A, False)):
        found = owners(given)[1].at(np.array([40, 50]), np.array([wanted, wanted]))
        assert found.tolist() == [NOBODY, NOBODY]


def test_a_moment_that_is_not_wanted_is_not_looked_up_where_the_order_of_the_log_is_not_that_of_the_clock() -> None:
    _, these = owners(B_THEN_A[::-1])
    assert these.at(np.array([0, 1]), np.array([False, True])).tolist() == [NOBODY, NOBODY]


def test_one_owner_all_the_time_takes_no_room() -> None:
    _, these = owners(B_THEN_A)
    for times in ([40, 50, 60], [32, 33, 34], [12, 20, 27]):
        assert not any(these.at(np.array(times), np.ones(3, bool)).strides)
    assert these.at(np.array([12, 40]), np.ones(2, bool)).tolist() == [1, 0]
    assert these.at(np.array([40, 0]), np.array([True, False])).tolist() == [0, 0]
