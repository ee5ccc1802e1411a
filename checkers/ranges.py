"""Cuts the records of a run into tasks: one partition, one range of offsets, and the row groups that can hold them.

Only the footers of the Parquet files are read here. A task names files and row groups, never records: whoever performs
it reads them itself (``columns``).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

WIDTH = 4_000_000  # records of one task: memory is some 150 bytes for each
UNACKED = ".unacked.parquet"  # these have no offsets: every task of their partition gets all of them
FIRST, LAST = -(1 << 62), 1 << 62


class Group(NamedTuple):
    """One row group of one file, with the offsets that its statistics tell.

    ``folder`` is delivered, produced, unacked (of the folder produced) or log.
    """

    folder: str
    file: str
    number: int
    tp: int
    low: int
    high: int
    rows: int


@dataclass(frozen=True)
class Task:
    """The records of ``tp`` from offset ``low`` to before ``high``; ``parts`` holds (folder, file, row groups)."""

    tp: int
    low: int
    high: int
    rows: int
    parts: tuple[tuple[str, str, tuple[int, ...]], ...]

    def of(self, folder: str) -> list[tuple[str, tuple[int, ...]]]:
        """The files of a folder, with their row groups."""
        return [(file, groups) for name, file, groups in self.parts if name == folder]


def read_groups(history: Path, folder: str) -> tuple[list[Group], list[str]]:
    """The row groups of all files in a folder of the history, and the names of the files that cannot be read."""
    import pyarrow.parquet as pq

    found: list[Group] = []
    broken: list[str] = []
    for path in sorted((history / folder).glob("*.parquet")):
        part = "unacked" if path.name.endswith(UNACKED) else folder
        try:
            found += list(_groups(part, path.name, pq.read_metadata(path)))
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            broken.append(path.name)
    return found, broken


def _groups(folder: str, file: str, metadata: object) -> Iterator[Group]:
    names = [metadata.schema.column(n).name for n in range(metadata.num_columns)]  # type: ignore[attr-defined]
    tp_at, offset_at = names.index("tp"), names.index("offset")
    for number in range(metadata.num_row_groups):  # type: ignore[attr-defined]
        group = metadata.row_group(number)  # type: ignore[attr-defined]
        tp, offset = group.column(tp_at).statistics, group.column(offset_at).statistics
        if not group.num_rows:
            continue
        if tp is None or not tp.has_min_max or tp.min != tp.max or offset is None or not offset.has_min_max:
            raise ValueError("a row group mixes partitions or has no statistics")
        yield Group(folder, file, number, tp.min, offset.min, offset.max, group.num_rows)


def cut(groups: Sequence[Group], partitions: Iterable[int], width: int = WIDTH) -> list[Task]:
    """The tasks of a run, the largest first; together they cover every offset there is of each partition."""
    by_tp: dict[int, list[Group]] = defaultdict(list)
    for group in groups:
        by_tp[group.tp].append(group)
    tasks = [
        _task(tp, low, high, by_tp[tp])
        for tp in sorted({*partitions, *by_tp})
        for low, high in _ranges(by_tp[tp], width)
    ]
    return sorted(tasks, key=lambda task: -task.rows)


def join(tasks: Sequence[Task], groups: Iterable[Group]) -> Task:
    """One task over the ranges of several of one partition, and what lies between them."""
    tp, low, high = tasks[0].tp, min(t.low for t in tasks), max(t.high for t in tasks)
    return _task(tp, low, high, [group for group in groups if group.tp == tp])


def _ranges(groups: Sequence[Group], width: int) -> Iterator[tuple[int, int]]:
    """Ranges that begin where a row group of the log begins, with some ``width`` records of the log in each."""
    edges, rows = [FIRST], 0
    for group in sorted((group for group in groups if group.folder == "log"), key=lambda group: group.low):
        if rows and rows + group.rows > width:
            edges.append(group.low)
            rows = 0
        rows += group.rows
    yield from zip(edges, [*edges[1:], LAST], strict=True)


def _task(tp: int, low: int, high: int, groups: Sequence[Group]) -> Task:
    parts: dict[tuple[str, str], list[int]] = defaultdict(list)
    rows = 0
    for group in groups:
        if group.folder == "unacked" or (group.low < high and group.high >= low):
            parts[group.folder, group.file].append(group.number)
            rows += group.rows
    return Task(tp, low, high, rows, tuple((*name, tuple(numbers)) for name, numbers in parts.items()))
