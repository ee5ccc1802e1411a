"""The Parquet files of records: encodings, row groups, and the derived columns of delivered and produced records.

Integers of 64 bits are delta-encoded, the others have dictionaries, and all is compressed with LZ4. Of all pairs of
encoding and codec, this one is the fastest to read (2 ns a value) and nearly the smallest (3 bytes for a key number, 2
for each time, nearly none for counters). A row group never mixes topic-partitions, so that its statistics show a reader
which groups it needs. Every page has a checksum: a flipped bit on a disk is noticed as damage.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from fencepost.evidence.sealing.segment_reader import Records, take_rows
from fencepost.history import DELIVERED_COLUMNS, FORMAT_VERSION, PRODUCED_COLUMNS, RecordState, SendOutcome
from fencepost.history.atomic import replacing
from fencepost_member.recording.segments import ABORTED, FAILED, UNKNOWN

ROW_GROUP_ROWS = 256 * 1024

Columns = dict[str, NDArray[Any]]


def write(path: Path, columns: Mapping[str, str], groups: Iterable[Columns], version: int = FORMAT_VERSION) -> None:
    """Write one file of record columns.

    Args:
        columns: name and type of each column, as in ``fencepost.history``.
        groups: the rows, in pieces that do not mix topic-partitions.
        version: the format version, which is stored in the file.
    """
    metadata = {"format_version": str(version)}
    fields = [pa.field(name, getattr(pa, kind)(), nullable=False) for name, kind in columns.items()]
    schema = pa.schema(fields, metadata=metadata)
    encodings = {name: "DELTA_BINARY_PACKED" for name, kind in columns.items() if kind == "int64"}
    path.parent.mkdir(parents=True, exist_ok=True)
    with (
        replacing(path) as draft,
        pq.ParquetWriter(
            draft,
            schema,
            compression="lz4",
            write_page_checksum=True,
            use_dictionary=[name for name in columns if name not in encodings],
            column_encoding=encodings,
        ) as writer,
    ):
        for group in groups:
            arrays = [pa.array(group[field.name], type=field.type) for field in schema]
            writer.write_table(pa.Table.from_arrays(arrays, schema=schema), row_group_size=ROW_GROUP_ROWS)


def delivered(partitions: Iterable[Records]) -> Iterator[Columns]:
    """Delivered records as columns. The state of each follows from its times and its outcome byte."""
    for rows in _pieces(partitions):
        ended = np.where(rows["outcome"] == 0, np.uint8(RecordState.DONE), rows["outcome"])
        begun = (rows["begin_ns"] != 0).astype(np.uint8)  # RecordState.BEGUN or .DELIVERED
        state = np.where(rows["done_ns"] != 0, ended, begun).astype(np.int8)
        yield {**_columns(rows, DELIVERED_COLUMNS), "state": state}


def produced(partitions: Iterable[Records], *, acked: bool) -> Iterator[Columns]:
    """Produced records as columns: the acknowledged ones, or all others, whose offset is -1."""
    for rows in _pieces(take_rows(rows, _is_acked(rows) == acked) for rows in partitions):
        columns = _columns(rows, PRODUCED_COLUMNS)
        if acked:
            columns["outcome"] = np.full(len(rows), SendOutcome.OK, dtype=np.int8)
        else:
            ended = np.where(rows["acked_ns"] != 0, rows["outcome"], UNKNOWN)
            known = [ended == FAILED, ended == ABORTED]
            columns["outcome"] = np.select(known, [SendOutcome.FAIL, SendOutcome.ABORTED], SendOutcome.INFO).astype(
                np.int8
            )
            columns["offset"] = np.full(len(rows), -1, dtype=np.int64)
        yield columns


def _is_acked(rows: Records) -> NDArray[np.bool_]:
    return np.asarray((rows["acked_ns"] != 0) & (rows["outcome"] == 0))


def _pieces(partitions: Iterable[Records]) -> Iterator[Records]:
    """Cut each partition into row groups."""
    for rows in partitions:
        for begin in range(0, len(rows), ROW_GROUP_ROWS):
            yield rows[begin : begin + ROW_GROUP_ROWS]


def _columns(rows: Records, names: Iterable[str]) -> Columns:
    return {name: np.ascontiguousarray(rows[name]) for name in names if name in (rows.dtype.names or ())}
