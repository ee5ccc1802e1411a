"""What a partition of many records is cut into: no task holds more than its width, and nothing is lost at the seams."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from benchmarks import synthetic

from fencepost.checkers.counts import Bounds
from fencepost.checkers.kernel import task_data as parts
from fencepost.checkers.kernel.carry import Carry
from fencepost.checkers.kernel.columns import NEEDED
from fencepost.checkers.kernel.partition_lookup import between
from fencepost.checkers.kernel.partitioning import FIRST, LAST, RowGroup, Task, cut
from fencepost.checkers.kernel.rows import Rows, concatenate
from fencepost.checkers.spark import detector
from fencepost.checkers.tables import load
from fencepost.evidence.sealing import parquet_records

GROUP, WIDTH = 100, 1_000
POLL = 500  # records that a synthetic member polls at once


@pytest.mark.parametrize("shape", ["uniform", "sparse"])
def test_no_task_holds_more_records_than_its_width(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, shape: str) -> None:
    monkeypatch.setattr(parquet_records, "ROW_GROUP_ROWS", GROUP)
    run = synthetic.write(tmp_path, synthetic.shape(shape, 20_000, partitions=2, members=2, dirt=1))
    held = []

    def counted(pieces: Any) -> Rows:
        rows = concatenate(pieces)
        held.append(len(rows))
        return rows

    monkeypatch.setattr(parts, "concatenate", counted)
    tables = load(run)
    whole = detector.find_here(run, tables, Bounds())
    assert max(held) >= 10_000
    held.clear()
    assert detector.find_here(run, tables, Bounds(), WIDTH) == whole
    assert 0 < max(held) <= WIDTH + GROUP + POLL  # and what was delivered twice, and what is remembered


def group(number: int, *counters: tuple[int, int], rows: int = GROUP, tp: int = 0) -> RowGroup:
    """A row group of deliveries, with the least and the greatest ord, interval and poll."""
    return RowGroup(
        "delivered", "member-0.1.parquet", number, tp, number * rows, (number + 1) * rows - 1, rows, counters
    )


def stretches(groups: list[RowGroup], width: int) -> tuple[tuple[int, int], ...]:
    log = [RowGroup("log", "audit.parquet", g.number, g.tp, g.low, g.high, g.rows) for g in groups]
    (found,) = (task.spans for task in cut([*groups, *log], [0], width) if task.rules == "streams")
    return found


ASCENDING = [((100 * n, 100 * n + 99), (n, n), (n, n + 1)) for n in range(4)]


def test_a_stretch_has_as_many_row_groups_as_its_width_allows() -> None:
    groups = [group(n, *counters) for n, counters in enumerate(ASCENDING)]
    assert stretches(groups, GROUP) == ((0, 1), (1, 2), (2, 3), (3, 4))
    assert stretches(groups, 2 * GROUP) == ((0, 2), (2, 4))
    assert stretches(groups, 3 * GROUP) == ((0, 3), (3, 4))


@pytest.mark.parametrize(
    ("number", "counter", "odd", "cut_at"),
    [
        (2, 0, (199, 299), ((0, 1), (1, 3), (3, 4))),
        (2, 0, (200, 301), ((0, 1), (1, 2), (2, 4))),
        (2, 1, (0, 2), ((0, 1), (1, 3), (3, 4))),
        (1, 1, (1, 3), ((0, 1), (1, 3), (3, 4))),
        (3, 2, (0, 3), ((0, 4),)),
        (3, 2, (3, 3), ((0, 1), (1, 2), (2, 3), (3, 4))),
    ],
    ids=["ord again", "ord too far", "interval falls", "interval too far", "poll falls", "poll goes on"],
)
def test_a_stretch_ends_only_where_all_counters_go_on_above(
    number: int, counter: int, odd: tuple[int, int], cut_at: tuple[tuple[int, int], ...]
) -> None:
    counters = [list(those) for those in ASCENDING]
    counters[number][counter] = odd
    assert stretches([group(n, *those) for n, those in enumerate(counters)], GROUP) == cut_at


def test_where_statistics_do_not_tell_the_counters_there_is_one_stretch() -> None:
    groups = [group(n, *counters) for n, counters in enumerate(ASCENDING)]
    groups[1] = groups[1]._replace(counters=())
    assert stretches(groups, GROUP) == ((0, 4),)


def deliveries(*rows: tuple[int, int, int]) -> Rows:
    """Of (offset, interval, poll), in the order of ord."""
    offset, interval, poll = np.array(rows, np.int64).T
    reported = {"offset": offset, "interval": interval, "poll": poll, "ord": np.arange(len(rows))}
    zeros = {name: np.zeros(len(rows), np.int64) for name in ("key", "writer", "seq", "begin_ns", "done_ns", "state")}
    return Rows(names=("a",), who=np.zeros(len(rows), np.int32), delivered_ns=10 * reported["ord"], **reported, **zeros)


def test_what_is_remembered_is_the_highest_and_the_last_poll_of_the_last_interval() -> None:
    before = Carry.of(deliveries((50, 0, 0), (9, 1, 1), (5, 1, 2), (6, 1, 3), (7, 1, 3)), None)
    assert before.rows.offset.tolist() == [9, 6, 7]
    assert (before.reached, before.ord, before.delivered_ns) == (51, 4, 40)
    later = Carry.of(concatenate([before.piece()]), before)
    assert (later.rows.offset.tolist(), later.reached) == ([9, 6, 7], 51)
    assert before.piece().names == NEEDED["streams"]


def test_what_is_between_two_offsets_is_added_up_over_pieces_of_the_log() -> None:
    pieces = [np.array([1, 2, 5]), np.array([7, 8])]
    found = between(pieces, np.array([0, 2, 5, 8, 2]), np.array([9, 8, 7, 20, 5]))
    assert found.counts.tolist() == [5, 2, 0, 0, 0]
    assert (found.firsts[:2].tolist(), found.lasts[:2].tolist()) == ([1, 5], [8, 7])


@pytest.mark.parametrize(
    ("partitions", "each", "rows", "turns"),
    [(24, 60, 4_000_000, 32), (3, 1, 5_000, 3), (24, 1, 12_000_000, 24), (1, 9, 10, 4)],
    ids=["very long", "few partitions", "long", "one partition"],
)
def test_a_turn_has_a_fair_share_of_the_tasks_and_few_partitions(
    partitions: int, each: int, rows: int, turns: int
) -> None:
    tasks = [Task(tp, n, n + 1, rows=rows) for n in range(each) for tp in range(partitions)]
    bundles = detector._bundles(tasks, cores=2)
    assert {task for bundle in bundles for task in bundle} == {*tasks}
    assert len(bundles) == turns
    sizes = [len(bundle) for bundle in bundles]
    assert sum(sizes) == len(tasks)
    assert max(sizes) <= 1.2 * len(tasks) / len(bundles) + 1
    assert max(len({task.tp for task in bundle}) for bundle in bundles) <= 3


def test_ranges_cover_every_offset() -> None:
    log = [RowGroup("log", "audit.parquet", n, 0, 100 * n, 100 * n + 99, 100) for n in range(3)]
    ranges = sorted((task.low, task.high) for task in cut(log, [0], 150) if task.rules == "offsets")
    assert [low for low, _ in ranges] == [FIRST, *(high for _, high in ranges[:-1])]
    assert ranges[-1][1] == LAST
    (stuck,) = (task for task in cut(log, [0], 150) if task.rules == "stuck")
    assert stuck.spans == tuple(ranges)
