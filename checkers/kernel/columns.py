"""Reads the columns of one task from Parquet into numpy arrays, where the task runs: in a Python worker of Spark.

A column of which a row group's statistics say that it has one value only (how far each record got, who wrote it) is not
read at all; its array takes no room.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from fencepost.checkers.kernel.ranges import Task
from fencepost.checkers.tables.reading import first_line

Array = NDArray[Any]
Columns = dict[str, Array]

MANY = 1 << 16  # rows from which reading one column at a time costs nothing

# What the rules need of each folder's records; the rest is read where it is asked for.
LOG = ["offset", "key", "writer", "seq"]
SENT = ["offset", "writer", "seq", "sent_ns", "outcome"]
DELIVERED = [*LOG, "interval", "ord", "delivered_ns", "begin_ns", "done_ns", "state"]
NEEDED = {  # columns of delivered records by what a task's rules look at; all by default
    "streams": ["offset", "interval", "ord", "delivered_ns"],
    "stuck": ["offset", "ord", "delivered_ns", "begin_ns", "done_ns"],
    "overlap": ["offset", "interval", "ord", "begin_ns", "done_ns"],
}


class Piece(dict[str, Array]):
    """Columns of those rows of one row group that a task wants; one that is not there yet is read when it is asked for.

    Attributes:
        file: the name of its file, without the suffix.
        names: the columns that are wanted for certain. Many rows are read a column at a time, so that whoever takes
            them away one by one needs no room for all; few rows at once.
    """

    def __init__(self, file: str, read: Callable[[Sequence[str]], Columns], names: Sequence[str], rows: int) -> None:
        """``read`` gives columns; ``rows``: how many there are, about."""
        super().__init__(read(names) if rows < MANY else {})
        self.file, self.names, self._read, self._about = file, names, read, rows

    def __missing__(self, name: str) -> Array:
        self.update(self._read([name]))
        return self[name]

    def take(self, name: str) -> Array:
        """A column, which is no longer kept."""
        column = self[name]
        del self[name]
        return column

    def where(self, wanted: Array) -> Piece:
        """Some of the rows."""
        if wanted.all():
            return self
        return Piece(self.file, lambda names: {name: self[name][wanted] for name in names}, self.names, self._about)


class DamagedFile(Exception):  # noqa: N818
    """A record file of which the footer is whole and something else is not."""

    def __init__(self, path: Path, what: str) -> None:
        """``what``: what is wrong with it."""
        self.name, self.what = f"history/{path.parent.name}/{path.name}", what
        super().__init__(f"{self.name}: {what}")


class Files:
    """The open Parquet files of one history; a footer is parsed once for all tasks of a worker's turn."""

    def __init__(self, history: Path) -> None:
        """Nothing is opened yet."""
        self._history = history
        self._open: dict[tuple[str, str], pq.ParquetFile] = {}

    def __enter__(self) -> Files:
        return self

    def __exit__(self, *_: object) -> None:
        for file in self._open.values():
            file.close()

    def read(
        self, task: Task, folder: str, names: Sequence[str], near: tuple[str, int, int] | None = None
    ) -> Iterator[Piece]:
        """Each row group of ``folder`` that has rows of the task, with some columns of these rows.

        ``near``: a column, and a least and a greatest value; row groups without a value between these are left out.
        """
        for name, group in ((name, group) for name, groups in task.of(folder) for group in groups):
            file = self._file(folder, name)
            if near and _apart(file, group, *near):
                continue
            columns = partial(_columns, self._path(folder, name), file, group)
            piece = Piece(name.removesuffix(".parquet"), columns, names, file.metadata.row_group(group).num_rows)
            if folder != "unacked" and not _within(file, group, task):
                piece = piece.where((piece["offset"] >= task.low) & (piece["offset"] < task.high))
                if not len(piece["offset"]):
                    continue
            yield piece

    def _file(self, folder: str, name: str) -> pq.ParquetFile:
        if (folder, name) not in self._open:
            self._open[folder, name] = pq.ParquetFile(self._path(folder, name), page_checksum_verification=True)
        return self._open[folder, name]

    def _path(self, folder: str, name: str) -> Path:
        return self._history / ("produced" if folder == "unacked" else folder) / name


def _told(file: pq.ParquetFile, group: int, name: str) -> Any:
    """The statistics of a column in a row group; None where they do not tell all of its values."""
    told = file.metadata.row_group(group).column(file.schema_arrow.get_field_index(name)).statistics
    return told if told and told.has_min_max and told.has_null_count and not told.null_count else None


def _within(file: pq.ParquetFile, group: int, task: Task) -> bool:
    told = _told(file, group, "offset")
    return bool(told and task.low <= told.min and told.max < task.high)


def _apart(file: pq.ParquetFile, group: int, name: str, low: int, high: int) -> bool:
    told = _told(file, group, name)
    return bool(told and (told.max < low or told.min > high))


def _columns(path: Path, file: pq.ParquetFile, group: int, names: Sequence[str]) -> Columns:
    found = _constants(file, group, names)
    rest = [name for name in names if name not in found]
    if rest:
        found |= _read(path, file, group, rest)
    return found


def _read(path: Path, file: pq.ParquetFile, group: int, names: Sequence[str]) -> Columns:
    try:
        table = file.read_row_group(group, columns=list(names), use_threads=False)
    except OSError as error:
        raise DamagedFile(path, f"it cannot be read: {first_line(error)}") from error
    if table.num_rows != file.metadata.row_group(group).num_rows:
        raise DamagedFile(path, f"{', '.join(names)} have {table.num_rows:,} rows, and it says another number")
    return {name: _numpy(table[name]) for name in names}


def _constants(file: pq.ParquetFile, group: int, names: Sequence[str]) -> Columns:
    """The columns of small integers that have only one value in a row group."""
    found = {}
    for name in names:
        kind = file.schema_arrow.field(name).type
        told = _told(file, group, name) if kind.bit_width <= 32 else None
        if told and told.min == told.max:
            value = np.array(told.min, kind.to_pandas_dtype())
            found[name] = np.broadcast_to(value, file.metadata.row_group(group).num_rows)
    return found


def joined(columns: Sequence[Array]) -> Array:
    """Pieces of one column, one after the other. What is the same value everywhere still takes no room."""
    if len(columns) == 1:
        return columns[0]
    firsts = {int(column[0]) for column in columns if not any(column.strides)}
    if len(firsts) == 1 and not any(any(column.strides) for column in columns):
        return np.broadcast_to(columns[0][0], sum(map(len, columns)))
    return np.concatenate(columns) if columns else np.empty(0, np.int64)


def among(column: Array, values: Array) -> Array:
    """Which rows of a column have one of some values. Where it ascends, as most do, few rows are looked at."""
    values = np.unique(values)
    if len(values) * 64 > len(column) or (column[1:] < column[:-1]).any():
        return np.flatnonzero(np.isin(column, values))
    lows, highs = (np.searchsorted(column, values, side=side) for side in ("left", "right"))
    return np.concatenate([np.arange(low, high) for low, high in zip(lows, highs, strict=True)])


def _numpy(column: pa.ChunkedArray) -> Array:
    """Null is -1, as everywhere in a history."""
    return np.asarray((column.fill_null(-1) if column.null_count else column).to_numpy())
