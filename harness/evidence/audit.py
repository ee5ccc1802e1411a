"""The audit: reads what every partition really holds, from its first record to its last, outside of any group.

The consumer assigns itself and commits nothing, so the group under test never notices. Everything visible in the log
is read, aborted transactions too (``read_uncommitted``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from operator import itemgetter
from pathlib import Path
from typing import Any

import confluent_kafka as ck
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from fencepost.clock import NS, now_ns
from fencepost.errors import ClusterError, WaitTimeout
from fencepost.history import LOG_COLUMNS
from fencepost.model import TopicPartition
from fencepost_member import payload

FILE = "log/audit.parquet"
SILENCE_S = 15.0  # no record and no end of a partition for so long: the audit gives up
_BATCH = 10_000
_ROWS = 1 << 20  # greatest row group
_LAYOUT = np.dtype([("magic", "S4"), ("writer", "<u4"), ("seq", "<u8"), ("key", "<u8")])
_SCHEMA = pa.schema([(name, getattr(pa, kind)()) for name, kind in LOG_COLUMNS.items()])
# Large fetches, and no answer held back for more: the log is already there.
_CONFIG = {
    "group.id": "fencepost-audit",  # the client wants one; it is never joined
    "enable.auto.commit": False,
    "enable.auto.offset.store": False,
    "enable.partition.eof": True,
    "auto.offset.reset": "error",
    "isolation.level": "read_uncommitted",
    "fetch.wait.max.ms": 20,
    "fetch.max.bytes": 8 << 20,
    "max.partition.fetch.bytes": 2 << 20,
    "queued.max.messages.kbytes": 16 << 10,
    "queued.min.messages": 20_000,
    "fetch.queue.backoff.ms": 5,  # by default a full queue stops fetching for a whole second: a third of the speed
    "check.crcs": True,
}


def read(
    bootstrap: str,
    partitions: Mapping[TopicPartition, int],
    into: Path,
    committed: Mapping[TopicPartition, int] | None = None,
) -> list[dict[str, Any]]:
    """Write ``log/audit.parquet`` and return the entries of ``partitions.json``, in the order of their numbers.

    Args:
        bootstrap: brokers, past the proxies.
        partitions: what to read, with the number ``tp`` of each.
        into: the ``history`` folder of the run.
        committed: the group's committed offsets, put into the entries (-1: none).

    Raises:
        ClusterError: a partition cannot be read.
        WaitTimeout: the brokers fell silent before the end.
    """
    path = into / FILE
    path.parent.mkdir(parents=True, exist_ok=True)
    consumer = ck.Consumer({**_CONFIG, "bootstrap.servers": bootstrap})
    try:
        bounds = {tp: _bounds(consumer, tp) for tp in partitions}
        with pq.ParquetWriter(
            path, _SCHEMA, compression="zstd", compression_level=1, write_page_checksum=True
        ) as writer:
            _read_all(consumer, partitions, bounds, _Columns(writer))
    except ck.KafkaException as error:
        raise ClusterError(f"the audit cannot read the log: {error}") from error
    finally:
        consumer.close()
    return [
        {
            "tp": number,
            "topic": tp.topic,
            "partition": tp.partition,
            "log_start": bounds[tp][0],
            "log_end": bounds[tp][1],
            "committed": (committed or {}).get(tp, -1),
        }
        for tp, number in sorted(partitions.items(), key=lambda item: item[1])
    ]


def _bounds(consumer: ck.Consumer, tp: TopicPartition) -> tuple[int, int]:
    bounds = consumer.get_watermark_offsets(ck.TopicPartition(tp.topic, tp.partition), timeout=SILENCE_S)
    if bounds is None:
        raise WaitTimeout(f"waited {SILENCE_S:g} s for the bounds of {tp}, which did not come: is its leader up?")
    return bounds[0], bounds[1]


def _read_all(
    consumer: ck.Consumer,
    partitions: Mapping[TopicPartition, int],
    bounds: Mapping[TopicPartition, tuple[int, int]],
    columns: _Columns,
) -> None:
    """Read until each partition told its end. What was appended behind the bounds is left out."""
    unread = {tp for tp, (start, end) in bounds.items() if start < end}
    consumer.assign([ck.TopicPartition(tp.topic, tp.partition, bounds[tp][0]) for tp in unread])
    heard_ns = now_ns()
    while unread:
        messages = consumer.consume(_BATCH, timeout=0.5)
        if messages:
            heard_ns = now_ns()
        elif now_ns() - heard_ns > SILENCE_S * NS:
            left = ", ".join(map(str, sorted(unread)))
            raise WaitTimeout(f"the audit waited {SILENCE_S:g} s for records of {left}, which did not come.")
        for records in _runs(messages):
            tp = TopicPartition(str(records[0].topic()), int(records[0].partition() or 0))
            if any(map(ck.Message.error, records)):
                _end(records, tp, unread)
                records = [m for m in records if not m.error()]
            columns.add(partitions[tp], bounds[tp][1], records)
    columns.flush()


def _runs(messages: list[ck.Message]) -> Iterator[list[ck.Message]]:
    """``messages`` cut where topic or partition changes. (``map`` over methods of C: no Python code per record.)"""
    if not messages:
        return
    count, topics = len(messages), list(map(ck.Message.topic, messages))
    numbers = {topic: number << 32 for number, topic in enumerate(dict.fromkeys(topics))}
    places = np.fromiter(map(ck.Message.partition, messages), np.int64, count)
    places += np.fromiter(map(numbers.__getitem__, topics), np.int64, count)
    cuts = [0, *(np.flatnonzero(np.diff(places)) + 1).tolist(), count]
    for begin, end in pairwise(cuts):
        yield messages[begin:end]


def _end(records: Iterable[ck.Message], tp: TopicPartition, unread: set[TopicPartition]) -> None:
    """Take the end of ``tp`` from what is no record; anything else that is none is an error."""
    for error in (e for m in records if (e := m.error())):
        if error.code() != ck.KafkaError._PARTITION_EOF:
            raise ClusterError(f"the audit cannot read {tp}: {error.str()}")
        unread.discard(tp)


class _Columns:
    """Collects the columns of each partition and writes them as row groups that never mix partitions."""

    def __init__(self, writer: pq.ParquetWriter) -> None:
        self._writer = writer
        self._parts: dict[int, list[dict[str, np.ndarray[Any, Any]]]] = {}
        self._rows: dict[int, int] = {}

    def add(self, number: int, end: int, records: Sequence[ck.Message]) -> None:
        """Take records of one partition, in the order of the log; those at or above ``end`` are not wanted."""
        if not records:
            return
        count = len(records)
        offsets = np.fromiter(map(ck.Message.offset, records), np.int64, count)
        part = decode(list(map(ck.Message.value, records)), lambda n: records[n].key())
        part["offset"] = offsets
        part["appended_ms"] = np.fromiter(map(itemgetter(1), map(ck.Message.timestamp, records)), np.int64, count)
        wanted = int(np.searchsorted(offsets, end))
        self._parts.setdefault(number, []).append({name: column[:wanted] for name, column in part.items()})
        self._rows[number] = self._rows.get(number, 0) + wanted
        if self._rows[number] >= _ROWS:
            self._write(number)

    def flush(self) -> None:
        """Write what is left."""
        for number in sorted(self._parts):
            self._write(number)

    def _write(self, number: int) -> None:
        parts, rows = self._parts.pop(number), self._rows.pop(number)
        if not rows:
            return
        columns = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
        columns["tp"] = np.full(rows, number, np.int32)
        table = pa.table([columns[name] for name in LOG_COLUMNS], schema=_SCHEMA)
        self._writer.write_table(table, row_group_size=_ROWS)


def decode(values: Sequence[bytes | None], key_of: Callable[[int], bytes | None]) -> dict[str, np.ndarray[Any, Any]]:
    """The columns key, writer and seq of records, as ``payload.unpack`` gives them; in bulk where they are ours.

    ``key_of`` gives the key bytes of the n-th record; it is asked for foreign records only.
    """
    size, blank = payload.SIZE, bytes(payload.SIZE)
    heads = b"".join([v[:size] if v is not None and len(v) >= size else blank for v in values])
    found = np.frombuffer(heads, _LAYOUT)
    columns: dict[str, np.ndarray[Any, Any]] = {
        "key": found["key"].astype(np.int64),
        "writer": found["writer"].astype(np.int32),
        "seq": found["seq"].astype(np.int64),
    }
    for n in np.flatnonzero(found["magic"] != payload.MAGIC).tolist():
        columns["key"][n], columns["writer"][n], columns["seq"][n] = payload.unpack(key_of(n), values[n])
    return columns
