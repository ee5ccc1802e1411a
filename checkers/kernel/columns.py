"""Reads the columns of one task from Parquet into numpy arrays, where the task runs: in a Python worker of Spark.

If the statistics of a row group show that a column has only one value (often the state, or the writer), the column is
not read, and its array needs no memory.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from operator import itemgetter
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from fencepost.checkers.kernel.arrays import Array, Columns, constant
from fencepost.checkers.kernel.partitioning import Task, statistics_of
from fencepost.checkers.kernel.processing import ASKED, PROCESSED, Rules, as_processed
from fencepost.checkers.tables.processing_rules import Inferred
from fencepost.checkers.tables.reading import first_line
from fencepost.history.run_folder import opened

# The columns that the rules need of each folder; any other column is read on first use.
LOG = ["offset", "key", "writer", "seq"]
SENT = ["offset", "writer", "seq", "sent_ns", "outcome"]
DELIVERED = [*LOG, "interval", "ord", "delivered_ns", "begin_ns", "done_ns", "state"]
NEEDED = {  # columns of delivered records, by the rules of the task; all by default
    "streams": ["offset", "interval", "poll", "ord", "delivered_ns"],
    "stuck": ["offset", "ord", "delivered_ns"],
    "overlap": ["offset", "interval", "ord", "begin_ns", "done_ns"],
}


class Near(NamedTuple):
    """Selects the row groups in which some row may lie in one of ``spans``, each from a least to a greatest value.

    ``first`` and ``last`` name the columns in which a row starts and ends; usually they are the same. Spans ascend and
    do not overlap.
    """

    first: str
    last: str
    spans: Sequence[tuple[int, int]]


class Piece(dict[str, Array]):
    """Columns of the rows of one row group that belong to a task, read on first use.

    Attributes:
        file: the name of its file, without the suffix.
        names: the columns that are read together. Any other column is read when it is first used.
        rows: the number of rows.
    """

    def __init__(self, file: str, read: Callable[[Sequence[str]], Columns], names: Sequence[str], rows: int) -> None:
        """``read`` returns the named columns."""
        super().__init__()
        self.file, self.names, self.rows, self._read = file, names, rows, read

    def __missing__(self, name: str) -> Array:
        self.update(self._read(self.names if name in self.names else [name]))
        return self[name]

    def take(self, name: str) -> Array:
        """Remove a column from the piece and return it."""
        column = self[name]
        del self[name]
        return column

    def where(self, mask: Array) -> Piece:
        """The rows that a mask selects; their columns are removed from this piece when they are read."""
        rows = int(np.count_nonzero(mask))
        if rows == self.rows:
            return self
        return Piece(self.file, lambda names: {name: self.take(name)[mask] for name in names}, self.names, rows)


class DamagedFile(Exception):  # noqa: N818
    """A record file that is damaged, although its footer could be read when the tasks were cut."""

    def __init__(self, path: Path, what: str) -> None:
        """``what``: the damage, as a sentence about the file."""
        self.name, self.what = f"history/{path.parent.name}/{path.name}", what
        super().__init__(f"{self.name}: {what}")


class Files:
    """The open Parquet files of one history; a footer is parsed once per call of ``perform``, for all tasks."""

    def __init__(self, history: Path, rules: Rules = MappingProxyType({})) -> None:
        """Opens nothing yet. ``rules``: the rules of processing, which are applied to deliveries."""
        self._history, self._rules = history, rules
        self._open: dict[tuple[str, str], _File] = {}

    def __enter__(self) -> Files:
        return self

    def __exit__(self, *_: object) -> None:
        for file in self._open.values():
            file.parquet.close(force=True)

    def read(self, task: Task, folder: str, names: Sequence[str], near: Near | None = None) -> Iterator[Piece]:
        """Each row group of ``folder`` with rows of the task that is ``near``, as a piece with columns ``names``."""
        for group in self._groups(task, folder, near):
            offsets = None if folder == "unacked" else group.statistics("offset")
            if offsets and not (offsets.min < task.high and task.low <= offsets.max):
                continue
            piece = Piece(group.file.path.stem, group.read, names, group.rows)
            if folder != "unacked" and not _within(offsets, task):
                piece = piece.where((piece["offset"] >= task.low) & (piece["offset"] < task.high))
            if piece.rows:
                yield piece

    def within(self, task: Task, name: str, interval: int) -> bool:
        """Whether a task has all deliveries of an incarnation in one of its intervals."""
        near, own = Near("interval", "interval", [(interval, interval)]), task.whole().only(name)
        return all(_within(group.statistics("offset"), task) for group in self._groups(own, "delivered", near))

    def _groups(self, task: Task, folder: str, near: Near | None) -> Iterator[_Group]:
        for name, numbers in task.of(folder):
            file = self._file(folder, name)
            rules = self._rules.get((file.path.stem, task.tp), ()) if folder == "delivered" else ()
            for group in (_Group(file, number, rules) for number in numbers):
                if near is None or not group.disjoint(near):
                    yield group

    def _file(self, folder: str, name: str) -> _File:
        if (folder, name) not in self._open:
            path = self._history / ("produced" if folder == "unacked" else folder) / name
            try:
                parquet = pq.ParquetFile(opened(self._history.parent, path), page_checksum_verification=True)
            except OSError as error:
                raise DamagedFile(path, f"it cannot be read: {first_line(error)}") from error
            fields = {field.name: (number, field.type) for number, field in enumerate(parquet.schema_arrow)}
            self._open[folder, name] = _File(path, parquet, fields)
        return self._open[folder, name]


class _File(NamedTuple):
    """An open file; ``fields``: the number and the type of each column."""

    path: Path
    parquet: pq.ParquetFile
    fields: Mapping[str, tuple[int, pa.DataType]]


class _Group:
    """A row group of an open file; ``rules`` of processing are applied to its deliveries."""

    def __init__(self, file: _File, number: int, rules: Sequence[Inferred]) -> None:
        self.file, self._number, self._rules = file, number, rules
        self._metadata = file.parquet.metadata.row_group(number)
        self.rows = self._metadata.num_rows

    def statistics(self, name: str) -> Any:
        """The statistics of a column; None if they do not cover all of its values."""
        if self._rules and name in PROCESSED:
            return None  # the file has statistics of the recorded values only, not of the inferred ones
        return statistics_of(self._metadata.column(self.file.fields[name][0]))

    def disjoint(self, near: Near) -> bool:
        """Whether no row can lie in one of the spans."""
        first, last = self.statistics(near.first), self.statistics(near.last)
        if not (first and last):
            return False
        later = bisect_left(near.spans, first.min, key=itemgetter(1))  # the first span that ends late enough
        return later == len(near.spans) or near.spans[later][0] > last.max

    def read(self, names: Sequence[str]) -> Columns:
        """The named columns.

        Raises:
            DamagedFile: they cannot be read.
        """
        if not self._rules or PROCESSED.isdisjoint(names):
            return self._recorded(names)
        found = self._recorded({*names, *ASKED})
        return {name: column for name, column in as_processed(found, self._rules).items() if name in names}

    def _recorded(self, names: Iterable[str]) -> Columns:
        found = self._constants(names)
        rest = [name for name in names if name not in found]
        return {**found, **self._decoded(rest)} if rest else found

    def _constants(self, names: Iterable[str]) -> Columns:
        """The columns of small integers that have only one value, by their statistics."""
        found = {}
        for name in names:
            kind = self.file.fields[name][1]
            values = self.statistics(name) if kind.bit_width <= 32 else None
            if values and values.min == values.max:
                found[name] = np.broadcast_to(np.array(values.min, kind.to_pandas_dtype()), self.rows)
        return found

    def _decoded(self, names: list[str]) -> Columns:
        path, parquet, _ = self.file
        try:
            table = parquet.read_row_group(self._number, columns=names, use_threads=False)
        except OSError as error:
            raise DamagedFile(path, f"it cannot be read: {first_line(error)}") from error
        if table.num_rows != self.rows:
            raise DamagedFile(path, f"{', '.join(names)} have {table.num_rows:,} rows, and it says another number")
        return {name: _numpy(table[name]) for name in names}


def _within(offsets: Any, task: Task) -> bool:
    """Whether a task has all rows of a row group, by the statistics of their offsets."""
    return bool(offsets and task.low <= offsets.min and offsets.max < task.high)


def joined(pieces: Sequence[Piece], names: Iterable[str]) -> Columns:
    """The columns ``names`` of several pieces, one piece after the other; they are removed from the pieces.

    A column with one value in all pieces still needs no memory; a column that a piece does not have is zero there. Each
    piece is copied while it is in the processor's cache, and is released before the next one is read.
    """
    rows, at = sum(piece.rows for piece in pieces), 0
    whole: Columns = dict.fromkeys(names, np.empty(0, np.int64))
    for piece in pieces:
        for name in whole:
            column = piece.take(name) if name in piece.names else np.broadcast_to(np.int64(0), piece.rows)
            whole[name] = column if piece.rows == rows else _put(whole[name], at, column, rows)
        at += piece.rows
    return whole


def _put(whole: Array, at: int, column: Array, rows: int) -> Array:
    """A column of ``rows`` rows, of which those before ``at`` are filled, after ``column`` is added at ``at``."""
    if not at:
        whole = np.broadcast_to(column[0], rows)
    if not (constant(whole) and constant(column) and column[0] == whole[0]):
        if constant(whole):
            former, whole = whole[:at], np.empty(rows, column.dtype)
            whole[:at] = former
        whole[at : at + len(column)] = column
    return whole


def _numpy(column: pa.ChunkedArray) -> Array:
    """The column as an array; null becomes -1, as everywhere in a history."""
    return np.asarray((column.fill_null(-1) if column.null_count else column).to_numpy())
