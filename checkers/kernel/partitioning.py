"""Cuts the records of a run into tasks: one partition, one range of offsets, and the row groups that may hold them.

A task needs memory only for its own records. Rules about a member's deliveries in order, or about a whole partition,
process these piece by piece (``Task.spans``).

Only the footers of the Parquet files are read here. A task names files and row groups, not records: the worker that
performs the task reads the records (``columns``).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from fencepost.checkers.tables.reading import UNREADABLE, first_line, misfit
from fencepost.checkers.tables.rows import Damage
from fencepost.history import DELIVERED_COLUMNS, LOG_COLUMNS, PRODUCED_COLUMNS
from fencepost.history.run_folder import listed, opened

# Records per task. Each needs about 150 bytes of memory; cutting a partition adds a quarter to what is read. Columns of
# this length stay below 32 MiB; for a larger array malloc maps new pages each time, and unmaps them afterwards.
WIDTH = 4_170_000
UNACKED = ".unacked.parquet"  # these sends have no offsets: every task of their partition reads all of them
COLUMNS = {"delivered": DELIVERED_COLUMNS, "log": LOG_COLUMNS}
COLUMNS |= dict.fromkeys(("produced", "unacked"), PRODUCED_COLUMNS)
COUNTERS = ("ord", "interval", "poll")  # of delivered records: they ascend, except in very unusual histories
FIRST, LAST = -(1 << 62), 1 << 62


class RowGroup(NamedTuple):
    """One row group of one file, with the range of its offsets by its statistics.

    ``folder`` is delivered, produced, unacked (files of the folder produced) or log. ``counters``: the least and the
    greatest value of each of ``COUNTERS`` in delivered records, if statistics have them.
    """

    folder: str
    file: str
    number: int
    tp: int
    low: int
    high: int
    rows: int
    counters: tuple[tuple[int, int], ...] = ()


Parts = tuple[tuple[str, str, tuple[int, ...]], ...]
Spans = tuple[tuple[int, int], ...]


@dataclass(frozen=True)
class Task:
    """The records of ``tp`` to judge, from offset ``low`` to before ``high``.

    Attributes:
        rules: the rules to apply, see ``kernel.RULES``.
        spans: what these process one after the other, each from one number to before another: row groups of a member's
            file, or ranges of offsets; or the windows of time to which they are limited.
        rows: about how many rows have to be read.
        parts: what has to be read: (folder, file, row groups).
        all: the same for the whole partition, for rules that need more than the range.
    """

    tp: int
    low: int
    high: int
    rules: str = "all"
    spans: Spans = ()
    rows: int = 0
    parts: Parts = ()
    all: Parts = ()

    def whole(self) -> Task:
        """The task for the whole partition."""
        return replace(self, low=FIRST, high=LAST, parts=self.all)

    def only(self, file: str) -> Task:
        """The task limited to the files of one name, given without suffix."""
        return replace(self, parts=tuple(part for part in self.parts if part[1] == f"{file}.parquet"))

    def stretch(self, begin: int, end: int) -> Task:
        """The task limited to some row groups of its only file, from index ``begin`` to before ``end``."""
        ((folder, file, groups),) = self.parts
        return replace(self, parts=((folder, file, groups[begin:end]),))

    def of(self, folder: str) -> list[tuple[str, tuple[int, ...]]]:
        """The files of a folder, with their row groups."""
        return [(file, groups) for name, file, groups in self.parts if name == folder]


def read_groups(run: Path) -> tuple[list[RowGroup], tuple[Damage, ...]]:
    """The row groups of all record files, and the files that cannot be read."""
    import pyarrow.parquet as pq

    found: list[RowGroup] = []
    damage: list[Damage] = []
    for folder in ("delivered", "produced", "log"):
        paths = listed(run, f"history/{folder}/*.parquet")
        if not paths:
            damage.append(Damage(folder, f"history/{folder}", "it holds no Parquet file"))
        for path in paths:
            part = "unacked" if path.name.endswith(UNACKED) else folder
            try:
                with opened(run, path) as file:
                    found += list(_groups(part, path.name, pq.read_metadata(file)))
            except UNREADABLE as error:
                damage.append(
                    Damage(folder, f"history/{folder}/{path.name}", f"it cannot be read: {first_line(error)}")
                )
    return found, tuple(damage)


def _groups(folder: str, file: str, metadata: object) -> Iterator[RowGroup]:
    if reason := misfit(metadata.schema.to_arrow_schema(), COLUMNS[folder]):  # type: ignore[attr-defined]
        raise ValueError(reason)
    names = [metadata.schema.column(n).name for n in range(metadata.num_columns)]  # type: ignore[attr-defined]
    tp_at, offset_at = names.index("tp"), names.index("offset")
    for number in range(metadata.num_row_groups):  # type: ignore[attr-defined]
        group = metadata.row_group(number)  # type: ignore[attr-defined]
        tp, offset = group.column(tp_at).statistics, group.column(offset_at).statistics
        if not group.num_rows:
            continue
        if tp is None or not tp.has_min_max or tp.min != tp.max or offset is None or not offset.has_min_max:
            raise ValueError("a row group mixes partitions or has no statistics")
        counters = [statistics_of(group.column(names.index(name))) for name in COUNTERS if folder == "delivered"]
        bounds = tuple((one.min, one.max) for one in counters if one)
        yield RowGroup(folder, file, number, tp.min, offset.min, offset.max, group.num_rows, bounds)


def statistics_of(column: Any) -> Any:
    """The statistics of a column of a row group; None if they do not cover all of its values."""
    found = column.statistics
    return found if found and found.has_min_max and found.has_null_count and not found.null_count else None


def joined(ranges: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """Ranges (or windows of time), each from one number to before another, merged where they overlap."""
    found: list[tuple[int, int]] = []
    for low, high in sorted(ranges):
        if found and low < found[-1][1]:
            before = found.pop()
            low, high = before[0], max(before[1], high)
        found.append((low, high))
    return found


def cut(groups: Sequence[RowGroup], partitions: Iterable[int], width: int = WIDTH) -> list[Task]:
    """The tasks of a run; together they cover all offsets of each partition.

    A partition of more than ``width`` records is cut into ranges. Rules about the order of a member's deliveries, or
    about a partition as a whole, are then separate tasks.
    """
    by_tp: dict[int, list[RowGroup]] = defaultdict(list)
    for group in groups:
        by_tp[group.tp].append(group)
    tasks: list[Task] = []
    for tp in sorted({*partitions, *by_tp}):
        ranges = list(_ranges(by_tp[tp], width))
        tasks += [task(by_tp[tp], tp, low, high, "all" if len(ranges) == 1 else "offsets") for low, high in ranges]
        if len(ranges) > 1:
            files: dict[str, list[RowGroup]] = defaultdict(list)
            for group in by_tp[tp]:
                if group.folder == "delivered":
                    files[group.file].append(group)
            for file, of_file in sorted(files.items()):
                tasks.append(task(by_tp[tp], tp, FIRST, LAST, "streams", _stretches(of_file, width), file))
            tasks.append(task(by_tp[tp], tp, FIRST, LAST, "stuck", tuple(ranges)))
    return tasks


def _ranges(groups: Sequence[RowGroup], width: int) -> Iterator[tuple[int, int]]:
    """Ranges with about ``width`` records of the log in each; where possible they begin with a row group."""
    edges, rows = [FIRST], 0
    for group in sorted((group for group in groups if group.folder == "log"), key=lambda group: group.low):
        pieces = -(-group.rows // width)
        for n in range(pieces):
            if rows and rows + group.rows / pieces > width:
                edges.append(group.low + (group.high + 1 - group.low) * n // pieces)
                rows = 0
            rows += group.rows // pieces
    edges = sorted(set(edges))
    yield from zip(edges, [*edges[1:], LAST], strict=True)


def _stretches(groups: Sequence[RowGroup], width: int) -> Spans:
    """Stretches of consecutive row groups of a file, with about ``width`` records in each.

    A stretch ends only where all counters continue above their earlier values, so that little has to be carried over.
    """
    edges, rows, may_end = [0], 0, _ascending(groups)
    for number, group in enumerate(groups):
        if rows and rows + group.rows > width and may_end[number]:
            edges.append(number)
            rows = 0
        rows += group.rows
    return tuple(pairwise([*edges, len(groups)]))


def _ascending(groups: Sequence[RowGroup]) -> list[bool]:
    """For each row group, whether it may begin a stretch: no counter is lower from there on than before.

    The first counter, ``ord``, is unique: it must be higher.
    """
    if any(len(group.counters) != len(COUNTERS) for group in groups):
        return [False] * len(groups)
    least, most = np.array([group.counters for group in groups], np.int64).transpose(2, 0, 1)
    before, after = np.maximum.accumulate(most)[:-1], np.minimum.accumulate(least[::-1])[-2::-1]
    return [False, *((before <= after).all(axis=1) & (before < after)[:, 0]).tolist()]


def task(
    groups: Iterable[RowGroup], tp: int, low: int, high: int, rules: str, spans: Spans = (), file: str = ""
) -> Task:
    """A task for a range of offsets of a partition, with its row groups among ``groups``; of one ``file``, if given."""
    groups = [group for group in groups if group.tp == tp]
    needed = [
        group
        for group in groups
        if (group.folder == "unacked" or (group.low < high and group.high >= low)) and file in ("", group.file)
    ]
    return Task(tp, low, high, rules, spans, sum(group.rows for group in needed), _parts(needed), _parts(groups))


def _parts(groups: Iterable[RowGroup]) -> Parts:
    parts: dict[tuple[str, str], list[int]] = defaultdict(list)
    for group in groups:
        parts[group.folder, group.file].append(group.number)
    return tuple((*name, tuple(numbers)) for name, numbers in parts.items())
