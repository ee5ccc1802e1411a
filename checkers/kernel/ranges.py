"""Cuts the records of a run into tasks: one partition, one range of offsets, and the row groups that can hold them.

Only the footers of the Parquet files are read here. A task names files and row groups, never records: whoever performs
it reads them itself (``columns``).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

from fencepost.checkers.tables.reading import UNREADABLE, first_line, misfit
from fencepost.checkers.tables.rows import Damage
from fencepost.history import DELIVERED_COLUMNS, LOG_COLUMNS, PRODUCED_COLUMNS

WIDTH = 4_500_000  # records of one task: memory is some 150 bytes for each, and a cut partition is read by a third more
UNACKED = ".unacked.parquet"  # these have no offsets: every task of their partition gets all of them
COLUMNS = {"delivered": DELIVERED_COLUMNS, "log": LOG_COLUMNS}
COLUMNS |= dict.fromkeys(("produced", "unacked"), PRODUCED_COLUMNS)
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


Parts = tuple[tuple[str, str, tuple[int, ...]], ...]
Argument = str | tuple[tuple[int, int], ...]


@dataclass(frozen=True)
class Task:
    """What to judge of ``tp``: the records from offset ``low`` to before ``high``.

    Attributes:
        rules: which rules look at them, see ``kernel``; ``argument`` is what else these need to know.
        rows: how many rows have to be read, about.
        parts: what has to be read: (folder, file, row groups).
        all: the same for the whole partition, for rules that look further.
    """

    tp: int
    low: int
    high: int
    rules: str = "all"
    argument: Argument = ""
    rows: int = 0
    parts: Parts = ()
    all: Parts = ()

    def whole(self) -> Task:
        """The same for the whole partition."""
        return replace(self, low=FIRST, high=LAST, parts=self.all)

    def only(self, file: str) -> Task:
        """The same for the files of one name alone, given without suffix."""
        return replace(self, parts=tuple(part for part in self.parts if part[1] == f"{file}.parquet"))

    def of(self, folder: str) -> list[tuple[str, tuple[int, ...]]]:
        """The files of a folder, with their row groups."""
        return [(file, groups) for name, file, groups in self.parts if name == folder]


def read_groups(run: Path) -> tuple[list[Group], tuple[Damage, ...]]:
    """The row groups of all record files, and which files cannot be read."""
    import pyarrow.parquet as pq

    found: list[Group] = []
    damage: list[Damage] = []
    for folder in ("delivered", "produced", "log"):
        paths = sorted((run / "history" / folder).glob("*.parquet"))
        if not paths:
            damage.append(Damage(folder, f"history/{folder}", "it holds no Parquet file"))
        for path in paths:
            part = "unacked" if path.name.endswith(UNACKED) else folder
            try:
                found += list(_groups(part, path.name, pq.read_metadata(path)))
            except UNREADABLE as error:
                damage.append(
                    Damage(folder, f"history/{folder}/{path.name}", f"it cannot be read: {first_line(error)}")
                )
    return found, tuple(damage)


def _groups(folder: str, file: str, metadata: object) -> Iterator[Group]:
    if lack := misfit(metadata.schema.to_arrow_schema(), COLUMNS[folder]):  # type: ignore[attr-defined]
        raise ValueError(lack)
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


def joined(ranges: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """Ranges (or windows of time), each from one number to before another, joined where they overlap."""
    found: list[tuple[int, int]] = []
    for low, high in sorted(ranges):
        if found and low < found[-1][1]:
            before = found.pop()
            low, high = before[0], max(before[1], high)
        found.append((low, high))
    return found


def cut(groups: Sequence[Group], partitions: Iterable[int], width: int = WIDTH) -> list[Task]:
    """The tasks of a run, the largest first; together they cover every offset there is of each partition.

    A partition of more than ``width`` records is cut into ranges; what concerns the order of a member's deliveries, or
    a partition as a whole, are then tasks of their own.
    """
    by_tp: dict[int, list[Group]] = defaultdict(list)
    for group in groups:
        by_tp[group.tp].append(group)
    tasks: list[Task] = []
    for tp in sorted({*partitions, *by_tp}):
        ranges = list(_ranges(by_tp[tp], width))
        tasks += [task(by_tp[tp], tp, low, high, "all" if len(ranges) == 1 else "offsets") for low, high in ranges]
        if len(ranges) > 1:
            files = sorted({group.file for group in by_tp[tp] if group.folder == "delivered"})
            tasks += [task(by_tp[tp], tp, FIRST, LAST, "streams", file) for file in files]
            tasks.append(task(by_tp[tp], tp, FIRST, LAST, "stuck"))
    return sorted(tasks, key=lambda task: -task.rows)


def _ranges(groups: Sequence[Group], width: int) -> Iterator[tuple[int, int]]:
    """Ranges with some ``width`` records of the log in each; where possible they begin with a row group."""
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


def task(groups: Iterable[Group], tp: int, low: int, high: int, rules: str, argument: Argument = "") -> Task:
    """A task over some offsets of a partition, whose row groups are among ``groups``."""
    groups = [group for group in groups if group.tp == tp]
    wanted = [
        group
        for group in groups
        if (group.folder == "unacked" or (group.low < high and group.high >= low))
        and (rules != "streams" or group.file == argument)
    ]
    return Task(tp, low, high, rules, argument, sum(group.rows for group in wanted), _parts(wanted), _parts(groups))


def _parts(groups: Iterable[Group]) -> Parts:
    parts: dict[tuple[str, str], list[int]] = defaultdict(list)
    for group in groups:
        parts[group.folder, group.file].append(group.number)
    return tuple((*name, tuple(numbers)) for name, numbers in parts.items())
