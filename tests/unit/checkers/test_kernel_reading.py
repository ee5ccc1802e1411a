"""What makes the kernel quick and must change nothing: lazy columns, constants, slices instead of indices, screens."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from history.builder import HistoryBuilder

from fencepost.checkers.kernel import arrays
from fencepost.checkers.kernel import columns as reading
from fencepost.checkers.kernel.commits import _after
from fencepost.checkers.kernel.offset_index import SHORT, SPARSE, ConsecutiveRuns, OffsetIndex, RowPositions
from fencepost.checkers.kernel.partitioning import FIRST, LAST, Task, read_groups
from fencepost.checkers.kernel.writes import _batches
from fencepost.checkers.spark.jvm import SETTINGS
from fencepost.evidence.sealing import parquet_records
from fencepost.history import DELIVERED_COLUMNS, PRODUCED_COLUMNS

ROWS = 4 * SHORT


def write(history: Path, *groups: dict[str, int]) -> Task:
    """Row groups of ten sends each, with consecutive offsets and these constants; a task that wants all of them."""

    def group(number: int, same: dict[str, int]) -> parquet_records.Columns:
        rising = {name: 10 * number + np.arange(10) for name in PRODUCED_COLUMNS}
        return {**rising, **{name: np.full(10, value) for name, value in {"tp": 0, **same}.items()}}

    found = [group(number, same) for number, same in enumerate(groups)]
    parquet_records.write(history / "produced" / "producer-0.parquet", PRODUCED_COLUMNS, found)
    return Task(0, FIRST, LAST, parts=(("produced", "producer-0.parquet", tuple(range(len(groups)))),))


def test_a_column_with_one_value_in_a_row_group_is_not_read_and_takes_no_room(tmp_path: Path) -> None:
    task = write(tmp_path, {"writer": 7, "outcome": 0}, {"writer": 7})
    with reading.Files(tmp_path) as files:
        one, two = files.read(task, "produced", ["offset", "writer", "outcome"])
        assert (one["writer"].strides, one["outcome"].strides, two["writer"].strides) == ((0,), (0,), (0,))
        assert one["writer"].tolist() == [7] * 10
        assert one["writer"].dtype == np.int32
        assert two["outcome"].tolist() == list(range(10, 20))


@pytest.mark.parametrize(
    ("spans", "begins"),
    [
        ([], []),
        ([(-5, -1)], []),
        ([(-5, 0)], [0]),
        ([(9, 10)], [0, 10]),
        ([(-3, -2), (12, 12), (29, 40)], [10, 20]),
        ([(-3, -2), (25, 25), (30, 40)], [20]),
        ([(30, 40)], []),
    ],
)
def test_a_row_group_is_read_where_it_has_numbers_of_a_span(
    spans: list[tuple[int, int]], begins: list[int], tmp_path: Path
) -> None:
    task = write(tmp_path, {}, {}, {})
    with reading.Files(tmp_path) as files:
        found = files.read(task, "produced", ["seq"], reading.Near("seq", "seq", spans))
        assert [int(piece["seq"][0]) for piece in found] == begins


@pytest.mark.parametrize(
    ("column", "asked"),
    [
        (np.array([4, 5, 5]), [3]),
        (np.broadcast_to(np.int8(5), 3), [1]),
        (np.broadcast_to(np.int8(5), 0), [0]),
        (np.empty(0, np.int8), [0]),
    ],
)
def test_what_a_column_says_is_asked_once_where_it_is_the_same_everywhere(column: np.ndarray, asked: list[int]) -> None:
    lengths = []
    found = arrays.each(column, lambda some: lengths.append(len(some)) or some == 5)
    assert (found.tolist(), found.dtype, lengths) == ([value == 5 for value in column.tolist()], bool, asked)
    assert found.flags.writeable


def pieces(*columns: list[int] | np.ndarray) -> list[reading.Piece]:
    def piece(column: np.ndarray) -> reading.Piece:
        return reading.Piece("a", lambda names: dict.fromkeys(names, column), ["seq"], len(column))

    return [piece(np.asarray(column)) for column in columns]


SEVENS = np.broadcast_to(np.int32(7), 3)
EIGHTS = np.broadcast_to(np.int32(8), 2)


@pytest.mark.parametrize(
    ("columns", "room"),
    [
        ([[1, 2], [3], [4, 5]], True),
        ([SEVENS], False),
        ([SEVENS, SEVENS, SEVENS], False),
        ([SEVENS, EIGHTS], True),
        ([SEVENS, SEVENS, [1, 2], SEVENS], True),
        ([[1, 2], SEVENS, EIGHTS], True),
        ([], False),
    ],
)
def test_pieces_are_joined_in_order_and_what_is_the_same_everywhere_takes_no_room(columns: list, room: bool) -> None:
    found = reading.joined(pieces(*columns), ["seq", "poll"])
    assert found["seq"].tolist() == [number for column in columns for number in column]
    assert bool(any(found["seq"].strides)) == room
    assert found["poll"].tolist() == [0] * len(found["seq"])  # nobody wanted it


def test_joined_pieces_keep_nothing() -> None:
    some = pieces([1, 2], [3])
    reading.joined(some, ["seq"])
    assert some == [{}, {}]


@pytest.mark.parametrize("length", [0, 1, 2, 4, 5, 8, 9, 10])
def test_breaks_are_where_a_column_does_not_go_up_by_one(length: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(arrays, "STEP", 4)
    assert arrays.breaks(np.arange(length)).tolist() == []
    for broken in range(1, length):
        column = np.arange(length) + 5 * (np.arange(length) >= broken)
        assert arrays.breaks(column).tolist() == [broken]
    assert arrays.breaks(np.full(length, 3)).tolist() == [*range(1, length)]


def test_a_column_that_was_not_read_is_read_when_it_is_asked_for_and_of_the_same_rows(tmp_path: Path) -> None:
    task = write(tmp_path, {}, {})
    part = Task(0, 5, 12, parts=task.parts)
    with reading.Files(tmp_path) as files:
        one, two = files.read(part, "produced", ["offset"])
        assert not one
        assert (one["offset"].tolist(), two["offset"].tolist()) == ([5, 6, 7, 8, 9], [10, 11])
        assert (one["seq"].tolist(), two["seq"].tolist()) == ([5, 6, 7, 8, 9], [10, 11])
        few = one.where(one["offset"] % 2 == 0)
        assert few["acked_ns"].tolist() == [6, 8]


def test_a_task_reads_its_offsets_and_no_others(tmp_path: Path) -> None:
    parts = write(tmp_path, {}, {}).parts
    with reading.Files(tmp_path) as files:
        for low in range(22):
            for high in range(low, 23):
                found = [*files.read(Task(0, low, high, parts=parts), "produced", ["offset"])]
                assert [offset for piece in found for offset in piece["offset"]] == [*range(low, min(high, 20))]


@pytest.mark.parametrize(
    ("low", "high", "within"), [(0, 20, True), (0, 19, False), (1, 20, False), (FIRST, LAST, True), (10, 20, False)]
)
def test_a_task_has_a_whole_interval_where_it_has_all_row_groups_that_may_be_of_it(
    tmp_path: Path, low: int, high: int, within: bool
) -> None:
    def group(number: int, interval: int) -> parquet_records.Columns:
        rising = {name: 10 * number + np.arange(10) for name in DELIVERED_COLUMNS}
        return {**rising, "tp": np.zeros(10, int), "interval": np.full(10, interval)}

    groups = [group(0, 1), group(1, 1), group(2, 2)]
    parquet_records.write(tmp_path / "delivered" / "a.parquet", DELIVERED_COLUMNS, groups)
    parts = (("delivered", "a.parquet", (0, 1, 2)), ("delivered", "b.parquet", (7,)))
    with reading.Files(tmp_path) as files:
        assert files.within(Task(0, low, high, parts=(), all=parts), "a", 1) == within
        assert files.within(Task(0, low, high, parts=(), all=parts), "a", 3)


def test_a_value_that_is_not_there_is_below_0() -> None:
    assert reading._numpy(pa.chunked_array([[5, None], [7]])).tolist() == [5, -1, 7]
    assert reading._numpy(pa.chunked_array([[5, 6]])).tolist() == [5, 6]


def test_the_row_groups_of_records_are_told_with_offsets_and_what_counters_members_had(tmp_path: Path) -> None:
    h = HistoryBuilder(tmp_path)
    h.write(3)
    a = h.member(0)
    a.assigned(1)
    a.poll([0, 1], 2)
    a.poll([2], 3)
    found, damage = read_groups(h.seal())
    reported = {(g.folder, g.low, g.high, g.rows, g.counters) for g in found}
    assert reported == {
        ("delivered", 0, 2, 3, ((0, 2), (0, 0), (0, 1))),
        ("produced", 0, 2, 3, ()),
        ("log", 0, 2, 3, ()),
    }
    assert damage == ()


def test_row_groups_without_a_value_that_is_wanted_are_left_out(tmp_path: Path) -> None:
    task = write(tmp_path, {}, {}, {})
    with reading.Files(tmp_path) as files:
        found = [
            piece["seq"][0] for piece in files.read(task, "produced", ["seq"], reading.Near("seq", "seq", [(9, 12)]))
        ]
    assert found == [0, 10]


def placed(kind: str) -> tuple[np.ndarray, int]:
    """Places of rows, and how many places there are."""
    rising = np.arange(ROWS)
    chance = np.random.default_rng(1).integers(0, ROWS, ROWS)
    return {
        "whole": (rising, ROWS),
        "one stretch": (rising + 5, ROWS + 9),
        "stretches": (np.concatenate([rising[10:], rising[:20] + 5]), ROWS + 7),
        "scattered": (chance, ROWS),
        "none": (rising[:0], 3),
    }[kind]


@pytest.mark.parametrize("kind", ["whole", "one stretch", "stretches", "scattered", "none"])
def test_columns_go_from_rows_to_places_and_back_as_by_index(kind: str) -> None:
    at, size = placed(kind)
    where, by_place, column = (
        RowPositions(ConsecutiveRuns(at + 3), 3, size),
        np.arange(size) * 3,
        np.arange(len(at)) + 1,
    )
    assert where.whole == (kind == "whole")
    assert where.of(by_place).tolist() == by_place[at].tolist()
    assert where.places(np.arange(len(at))).tolist() == at.tolist()
    assert np.flatnonzero(where.occupied()).tolist() == np.unique(at).tolist()
    assert where.count().tolist() == np.bincount(at, minlength=size).tolist()
    same = by_place[at] + (np.arange(len(at)) % 3 == 0)
    assert where.same(by_place, same).tolist() == (by_place[at] == same).tolist()
    put, expected = np.zeros(size, np.int64), np.zeros(size, np.int64)
    where.put(put, column)
    for place, value in zip(at.tolist(), column.tolist(), strict=True):
        expected[place] = value
    assert put.tolist() == expected.tolist()


def test_numbers_that_mostly_go_up_by_one_are_stretches_and_others_are_none() -> None:
    reported = {
        kind: ConsecutiveRuns(placed(kind)[0]) for kind in ("whole", "one stretch", "stretches", "scattered", "none")
    }
    assert {kind: of.begins.tolist() for kind, of in reported.items()} == {
        "whole": [0],
        "one stretch": [0],
        "stretches": [0, ROWS - 10],
        "scattered": [],
        "none": [],
    }
    for kind, of in reported.items():
        assert kind == "none" or (of.least, of.most) == (of.numbers.min(), of.numbers.max())


@pytest.mark.parametrize(
    ("offsets", "size"),
    [
        ([], 0),
        ([[]], 0),
        ([[7], [9, 8]], 3),
        ([[30, 20], [], [25]], 11),
        ([range(100, 15_100, 10)], 14_991),
        ([[5], [5 + SPARSE * 1025 - 1]], SPARSE * 1025),
        ([[5], [5 + SPARSE * 1025]], 2),
        ([range(0, 150_000, 100), [3, 100]], 1_501),
    ],
    ids=["no column", "no row", "dense", "with gaps", "many with gaps", "just dense", "just sparse", "many and sparse"],
)
def test_offsets_are_their_own_places_until_they_are_sparse_and_then_they_are_ranked(
    offsets: list[list[int]], size: int
) -> None:
    columns = [np.array(column, np.int64) for column in offsets]
    places = OffsetIndex(columns)
    assert len(places) == size
    for number, column in enumerate(columns):
        where = places.where(number)
        assert where.places(np.arange(len(column))).tolist() == places.at(column).tolist()
        assert places.offsets(places.at(column)).tolist() == column.tolist()
        assert len(where.occupied()) == size
        assert not len(column) or 0 <= places.at(column).min() <= places.at(column).max() < size
        for offset in column.tolist():
            assert places.below(offset) == places.at(np.array([offset]))[0]
    highest = max((max(column, default=0) for column in offsets), default=0)
    assert [places.below(-5), places.below(highest + 1), places.below(10**9)] == [0, size, size]


@pytest.mark.parametrize("seed", range(40))
def test_sends_after_a_commit_above_them_are_the_same_with_and_without_the_screen(seed: int) -> None:
    chance = np.random.default_rng(seed)
    offset = np.unique(chance.integers(0, 60, 30))
    edges = np.unique(chance.integers(0, 70, chance.integers(0, 9)))
    at_ns = np.append(np.sort(chance.integers(0, 100, len(edges))), np.iinfo(np.int64).max)
    sent_ns = np.sort(chance.integers(0, 100, len(offset))) if seed % 2 else chance.integers(0, 100, len(offset))
    sent_ns //= 1 + 3 * (seed % 4 == 0)
    late = [n for n in range(len(offset)) if at_ns[np.searchsorted(edges, offset[n], side="right")] < sent_ns[n]]
    assert _after(offset, sent_ns, edges, at_ns).tolist() == late
    if len(offset) > 1:
        turned = slice(None, None, -1)
        assert sorted(_after(offset[turned], sent_ns[turned], edges, at_ns)) == [
            len(offset) - 1 - n for n in late[::-1]
        ]


@pytest.mark.parametrize("seed", range(20))
def test_the_numbers_of_a_writer_are_told_by_its_batches_as_by_all_its_records(seed: int) -> None:
    chance = np.random.default_rng(seed)
    writer = np.repeat(chance.integers(-1, 3, 12), chance.integers(1, 4, 12))
    seq = np.arange(len(writer)) if seed % 2 else chance.integers(0, 40, len(writer))
    batches = _batches(writer, seq)
    for one in set(writer.tolist()):
        mine, all_ = batches.take(batches.writer == one), seq[writer == one]
        falls = int(mine.falls.sum() + np.count_nonzero(mine.first[1:] <= mine.last[:-1]))
        assert falls == np.count_nonzero(all_[1:] <= all_[:-1])
        assert (mine.least.min(), mine.most.max()) == (all_.min(), all_.max()) or not falls
        if not falls:
            assert (mine.least.min(), mine.most.max()) == (all_[0], all_[-1])


FAULTS = """
import resource, numpy
def work():
    for _ in range(5):
        columns = [numpy.ones(2_000_000) for _ in range(10)]
work()
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
work()
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""


def test_a_worker_keeps_the_memory_that_its_tasks_free() -> None:
    prefix = "spark.executorEnv."
    worker = {name.removeprefix(prefix): value for name, value in SETTINGS.items() if name.startswith(prefix)}
    command = [sys.executable, "-c", FAULTS]
    faults = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True, env={**os.environ, **worker})
    assert int(faults.stdout) < 1_000
