"""The parts of the kernel, each against the same thing said plainly."""

from __future__ import annotations

import pickle
import random
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from history import odd_histories, random_histories
from history.builder import HistoryBuilder
from hypothesis import given
from hypothesis import strategies as st

from fencepost.checkers import kernel
from fencepost.checkers.counts import Bounds
from fencepost.checkers.detections import Detection, aggregate
from fencepost.checkers.kernel.aggregates import Aggregates, Label, Totals
from fencepost.checkers.kernel.columns import Piece
from fencepost.checkers.kernel.context import KernelContext
from fencepost.checkers.kernel.offset_index import OffsetIndex
from fencepost.checkers.kernel.partitioning import FIRST, LAST, RowGroup, cut, read_groups
from fencepost.checkers.kernel.rows import concatenate
from fencepost.checkers.kernel.times import Span, _meet, meetings
from fencepost.checkers.spark import detector
from fencepost.checkers.spark.boundaries import boundary_tasks
from fencepost.checkers.tables import load
from fencepost.checkers.tables.rows import NS, Partition
from fencepost.model import TopicPartition

PARTITIONS = {0: Partition(0, TopicPartition("orders", 0))}
SIGHTINGS = st.lists(
    st.builds(
        Detection,
        kind=st.just("rewind"),
        tp=st.just(0),
        members=st.sampled_from([("a",), ("b",), ("a", "b")]),
        cause=st.sampled_from(["", "seek"]),
        offset=st.integers(0, 5),
        from_ns=st.integers(0, 3),
        to_ns=st.integers(0, 3),
        count=st.integers(1, 3),
    ),
    max_size=30,
)


@given(SIGHTINGS, st.integers(0, 30))
def test_aggregates_add_up_to_what_the_sightings_add_up_to(sightings: list[Detection], half: int) -> None:
    aggregates = Aggregates()
    aggregates.put_detections(sightings[:half])
    rest = sightings[half:]
    names = [("a",), ("b",), ("a", "b")]
    aggregates.put_many(
        "rewind",
        0,
        [np.array([names.index(s.members) for s in rest]), np.array([s.cause == "seek" for s in rest])],
        lambda members, seek: Label(names[members], "seek" if seek else ""),
        first=np.array([s.offset for s in rest]),
        from_ns=np.array([s.from_ns for s in rest]),
        to_ns=np.array([s.to_ns for s in rest]),
        count=np.array([s.count for s in rest]),
    )
    assert aggregates.anomalies(PARTITIONS) == aggregate(sightings, PARTITIONS)


@given(st.lists(st.integers(0, 60) | st.integers(10**12, 10**12 + 60), max_size=40), st.integers(-1, 70))
def test_places_are_the_ranks_of_offsets_in_order(offsets: list[int], bound: int) -> None:
    column = np.array(offsets, np.int64)
    places = OffsetIndex([column, np.empty(0, np.int64)])
    at = places.at(column)
    assert places.offsets(at).tolist() == offsets
    assert [bool(place < places.below(bound)) for place in at] == [offset < bound for offset in offsets]
    assert len(places) <= 20_000  # sparse offsets take no room


def piece(file: str, **columns: np.ndarray) -> Piece:
    rows = len(next(iter(columns.values())))
    return Piece(file, lambda names: {name: columns[name] for name in names}, list(columns), rows)


def test_rows_come_in_the_order_of_incarnation_and_ord() -> None:
    rows = concatenate(piece(name, ord=np.array([2, 0, 1]), offset=np.array([7, 5, 6])) for name in ("b", "a"))
    assert rows.names == ("a", "b")
    assert rows.offset.tolist() == [5, 6, 7] * 2
    assert rows.key.tolist() == [0] * 6


def test_streams_are_told_apart_by_incarnation_and_interval() -> None:
    columns = {"ord": np.arange(4), "offset": np.arange(4), "interval": np.array([0, 1, 0, 1])}
    rows = concatenate([piece("a", **columns), piece("b", **columns)])
    found = [(rows.names[s.who], s.interval, rows.by_interval.ord[s.begin : s.end].tolist()) for s in rows.streams]
    assert found == [("a", 0, [0, 2]), ("a", 1, [1, 3]), ("b", 0, [0, 2]), ("b", 1, [1, 3])]


@pytest.mark.parametrize("seed", range(20))
def test_pieces_that_meet_are_found_whatever_their_lengths(seed: int) -> None:
    rng = random.Random(seed)
    who, begin, length = (np.array([pick() for _ in range(50)]) for pick in _piece(rng))
    end = begin + length
    found = sorted(zip(*(found.tolist() for found in _meet(who, begin, end)), strict=True))
    assert found == [
        (a, b) for a in range(50) for b in range(50) if who[a] < who[b] and begin[a] < end[b] and begin[b] < end[a]
    ]


def _piece(rng: random.Random) -> list[Callable[[], int]]:
    return [lambda: rng.randrange(3), lambda: rng.randrange(100), lambda: rng.choice([1, 2, 5, 80])]


def test_spans_of_one_incarnation_never_meet() -> None:
    assert meetings([Span(0, 10, "a"), Span(5, 20, "a")]) == ()
    assert meetings([Span(0, 10, "a"), Span(10, 20, "b")]) == ()
    assert meetings([Span(0, 10, "a"), Span(2, 4, "b"), Span(3, 20, "b"), Span(30, 40, "a")]) == ((2, 10),)


def groups_of(*rows: int) -> list[RowGroup]:
    """The log of partition 0 in row groups of so many rows, and all of them delivered."""
    ends = np.cumsum(rows).tolist()
    log = [RowGroup("log", "audit.parquet", n, 0, end - rows[n], end - 1, rows[n]) for n, end in enumerate(ends)]
    unacked = RowGroup("unacked", "p.unacked.parquet", 0, 0, -1, -1, 4)
    return [*log, RowGroup("delivered", "member-0.1.parquet", 0, 0, 0, ends[-1] - 1, ends[-1]), unacked]


@pytest.mark.parametrize(
    ("rows", "edges"),
    [((10,), []), ((10, 10), []), ((10, 10, 10), [20]), ((50,), [16, 33]), ((), []), ((19, 5), [19])],
)
def test_a_large_partition_is_cut_at_row_groups_where_that_fits(rows: tuple[int, ...], edges: list[int]) -> None:
    tasks = sorted((t.low, t.high) for t in cut(groups_of(*rows) if rows else [], [0], 20) if t.rules != "streams")
    tasks = [task for task in tasks if task != (FIRST, LAST)] or [(FIRST, LAST)]
    assert tasks == list(zip([FIRST, *edges], [*edges, LAST], strict=True))


def test_every_range_gets_the_sends_without_an_offset_and_only_its_own_row_groups() -> None:
    tasks = [task for task in cut(groups_of(10, 10, 10), [0], 10) if task.rules == "offsets"]
    assert {task.low: task.of("log") for task in tasks} == {
        FIRST: [("audit.parquet", (0,))],
        10: [("audit.parquet", (1,))],
        20: [("audit.parquet", (2,))],
    }
    assert all(task.of("unacked") and task.of("delivered") for task in tasks)


def edges_of(*ranges: tuple[int, int, int]) -> Aggregates:
    """Ranges of ten offsets with the times of their first start and last finish."""
    aggregates = Aggregates()
    for low, begun, finished in ranges:
        cause = f"{low} {low + 10}"
        aggregates.put("#edge", 0, Label(cause=cause), Totals(1, -1, -1, begun, finished))
        aggregates.put("#key-order", 0, Label(("a",), cause, "an excuse"), Totals(1, low, low, begun, finished))
    return aggregates


def test_ranges_that_follow_one_another_in_time_are_not_judged_again() -> None:
    aggregates = edges_of((0, 1, 5), (10, 5, 9), (20, 9, 12))
    assert boundary_tasks(aggregates, groups_of(30)) == []
    assert aggregates["key-order", 0, ("a",), "", "an excuse"] == Totals(3, 0, 20, 1, 12)


def test_ranges_that_cross_in_time_are_judged_again_together_with_all_between() -> None:
    aggregates = edges_of((0, 1, 5), (10, 5, 30), (20, 31, 32), (30, 29, 40), (40, 41, 50))
    again = boundary_tasks(aggregates, groups_of(50))
    assert [(task.rules, task.low, task.high) for task in again] == [("keys", 10, 40)]
    assert aggregates["key-order", 0, ("a",), "", "an excuse"].count == 2  # of the first and the last range


@pytest.mark.parametrize(
    ("sends", "again"),
    [
        ([(0, "a", 0, 0, 5), (10, "a", 0, 6, 9)], []),
        ([(0, "a", 0, 0, 6), (10, "a", 0, 6, 9)], [(0, 20)]),
        ([(0, "a", 0, 4, 6), (10, "a", 0, 7, 9), (20, "a", 0, 5, 5), (30, "a", 0, 10, 11)], [(0, 30)]),
        ([(0, "a", 0, 0, 6), (10, "b", 0, 6, 9)], []),
        ([(0, "a", 1, 0, 6), (10, "a", 0, 7, 9)], [(0, 10)]),
        (
            [(0, "a", 0, 5, 6), (10, "a", 0, 5, 9), (10, "b", 0, 7, 9), (20, "b", 0, 8, 8), (30, "a", 2, 10, 11)],
            [(0, 30), (30, 40)],
        ),
    ],
    ids=["ascending", "one in two ranges", "late", "two writers", "inside", "two writers cross"],
)
def test_ranges_where_the_numbers_of_a_writer_do_not_ascend_are_judged_again(
    sends: list[tuple[int, str, int, int, int]], again: list[tuple[int, int]]
) -> None:
    aggregates = Aggregates()
    for low, writer, falls, first, last in sends:
        aggregates.put("#sends", 0, Label((writer,), f"{low} {low + 10}"), Totals(falls, first, last))
    assert [(task.rules, task.low, task.high) for task in boundary_tasks(aggregates, groups_of(50))] == [
        ("sends", low, high) for low, high in again
    ]


def test_work_that_meets_in_time_is_judged_again() -> None:
    aggregates = Aggregates()
    aggregates.put("#span", 0, Label(("a",), "0"), Totals(from_ns=1, to_ns=10))
    aggregates.put("#span", 0, Label(("b",), "0"), Totals(from_ns=8, to_ns=20))
    again = boundary_tasks(aggregates, groups_of(50))
    assert [(task.rules, task.spans) for task in again] == [("overlap", ((8, 10),))]


def test_a_rule_that_crashes_fails_its_kinds_and_no_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(part: object) -> None:
        raise RuntimeError("planted")

    h = HistoryBuilder(tmp_path)
    h.write(3)
    del h.log[1]
    monkeypatch.setitem(kernel.RULES, "all", {**kernel.OFFSETS, broken: ("rewind",)})
    run = h.seal()
    found, facts = detector.find_here(run, load(run), Bounds())
    assert facts.failed == {"rewind": "the rule broken failed: RuntimeError: planted"}
    assert "lost-write" in {anomaly.kind for anomaly in found}


@pytest.mark.parametrize("tell", [random_histories.wild, odd_histories.tell], ids=["lives", "odd"])
@pytest.mark.parametrize("seed", range(20))
def test_a_worker_that_is_sent_only_the_tables_of_its_partitions_finds_the_same(
    tmp_path: Path, tell: Callable[[Path, int], Path], seed: int
) -> None:
    run = tell(tmp_path, seed)
    tables = load(run)
    groups, _ = read_groups(run)
    parts = cut(groups, tables.partitions)
    judged = KernelContext.of(tables, Bounds(stuck_ns=5 * NS, recovers_ns=2 * NS), {}, frozenset())
    common, rows = judged.split([[part.tp] for part in parts])
    for part, sent in zip(parts, rows, strict=True):
        travelled = pickle.loads(pickle.dumps((common.together(sent), part)))
        assert all(row.tp == part.tp for table in sent.values() for row in table)
        assert kernel.perform(run / "history", travelled[0], [travelled[1]]) == kernel.perform(
            run / "history", judged, [part]
        )
