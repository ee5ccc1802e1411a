"""Reads the columns of one task from Parquet into numpy arrays, where the task runs: in a Python worker of Spark."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
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

    def read(self, task: Task, folder: str, names: Sequence[str]) -> Iterator[tuple[str, Columns]]:
        """Each file of ``folder`` that has rows of the task: its stem, and the columns of these rows."""
        for name, groups in task.of(folder):
            columns = self._columns(folder, name, groups, names)
            wanted = None if folder == "unacked" else _within(columns["offset"], task)
            if wanted is not None:
                columns = {key: column[wanted] for key, column in columns.items()}
            if len(columns["offset"]):
                yield name.removesuffix(".parquet"), columns

    def _columns(self, folder: str, name: str, groups: Sequence[int], names: Sequence[str]) -> Columns:
        file = self._open.get((folder, name))
        if file is None:
            file = pq.ParquetFile(self._path(folder, name), page_checksum_verification=True)
            self._open[folder, name] = file
        try:
            table = file.read_row_groups(list(groups), columns=list(names), use_threads=False)
        except OSError as error:
            raise DamagedFile(self._path(folder, name), f"it cannot be read: {first_line(error)}") from error
        return {key: _numpy(table[key]) for key in names}

    def _path(self, folder: str, name: str) -> Path:
        return self._history / ("produced" if folder == "unacked" else folder) / name


def _numpy(column: pa.ChunkedArray) -> Array:
    """Null is -1, as everywhere in a history."""
    return np.asarray((column.fill_null(-1) if column.null_count else column).to_numpy())


def _within(offsets: Array, task: Task) -> Array | None:
    """Which rows belong to the task; None when all do."""
    if not len(offsets) or (offsets.min() >= task.low and offsets.max() < task.high):
        return None
    return np.asarray((offsets >= task.low) & (offsets < task.high))
