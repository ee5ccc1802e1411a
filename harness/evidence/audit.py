"""The audit: reads all records of every partition, independently of the group.

Its consumer assigns the partitions itself and commits nothing, so the group under test is not affected. It sees only
committed records (``read_committed``): aborted records and the ends of transactions are gaps in the offsets.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from operator import itemgetter
from pathlib import Path
from typing import Any

import confluent_kafka as ck
import numpy as np

from fencepost.clock import NS, eventually, now_ns
from fencepost.errors import ClusterError, WaitTimeout
from fencepost.evidence.sealing import parquet_records
from fencepost.history import LOG_COLUMNS
from fencepost.model import TopicPartition
from fencepost_member import payload
from fencepost_member.config import OPEN_MS

FILE = "log/audit.parquet"
ANSWER_S = 5.0
SILENCE_S = 15.0  # the audit gives up after this time without a record or an end of a partition
ABORTED_WITHIN_S = 15.0  # brokers check every 10 s for transactions that timed out
OPEN_S = OPEN_MS / 1000 + ABORTED_WITHIN_S  # how long an abandoned transaction may hide later records
# Errors of a broker that is no longer the leader; the client then looks for the new leader.
MOVED = (ck.KafkaError.NOT_LEADER_FOR_PARTITION, ck.KafkaError.LEADER_NOT_AVAILABLE)
_BATCH = 10_000
_LAYOUT = np.dtype([("magic", "S4"), ("writer", "<u4"), ("seq", "<u8"), ("key", "<u8")])
# Large fetches, which brokers answer without waiting for more records: the log is complete.
READING = {
    "group.id": "fencepost-audit",  # the client requires one; the audit never joins the group
    "enable.auto.commit": False,
    "enable.auto.offset.store": False,
    "enable.partition.eof": True,
    "auto.offset.reset": "error",
    "fetch.wait.max.ms": 20,
    "fetch.max.bytes": 8 << 20,
    "max.partition.fetch.bytes": 2 << 20,
    "queued.max.messages.kbytes": 16 << 10,
    "queued.min.messages": 20_000,
    "fetch.queue.backoff.ms": 5,  # by default a full queue stops fetching for a second: reading is three times slower
    "check.crcs": True,
}


def read(
    bootstrap: str,
    partitions: Mapping[TopicPartition, int],
    into: Path,
    committed: Mapping[TopicPartition, int] | None = None,
    access: Mapping[str, str] | None = None,
) -> list[dict[str, Any]]:
    """Write ``log/audit.parquet`` and return the entries of ``partitions.json``, in the order of their numbers.

    Args:
        bootstrap: addresses of brokers, not of proxies.
        partitions: the partitions to read, with the number ``tp`` of each.
        into: the ``history`` folder of the run.
        committed: the group's committed offsets, which are added to the entries (-1: none).
        access: client settings of SASL and TLS.

    Raises:
        ClusterError: a partition cannot be read.
        WaitTimeout: the brokers stopped answering before the end.
    """
    settings = {**READING, **(access or {}), "bootstrap.servers": bootstrap}
    # To a client with read_committed, a log ends at the first open transaction.
    whole = ck.Consumer({**settings, "isolation.level": "read_uncommitted"})
    # Records that are deleted during the audit are skipped, without a warning.
    settings |= {"auto.offset.reset": "earliest", "log_level": 3}
    consumer = ck.Consumer({**settings, "isolation.level": "read_committed"})
    try:
        bounds = {tp: _bounds(whole, tp) for tp in partitions}
        parquet_records.write(into / FILE, LOG_COLUMNS, _read_all(consumer, partitions, bounds))
        starts = {
            tp: _bounds(whole, tp)[0] for tp in partitions
        }  # records before it were deleted, perhaps during the audit
    except ck.KafkaException as error:
        raise ClusterError(f"the audit cannot read the log: {error}") from error
    finally:
        whole.close()
        consumer.close()
    return [
        {
            "tp": number,
            "topic": tp.topic,
            "partition": tp.partition,
            "log_start": starts[tp],
            "log_end": bounds[tp][1],
            "committed": (committed or {}).get(tp, -1),
        }
        for tp, number in sorted(partitions.items(), key=lambda item: item[1])
    ]


def _bounds(consumer: ck.Consumer, tp: TopicPartition) -> tuple[int, int]:
    """First offset and end of a partition. The request is repeated if the leader has just moved.

    Raises:
        WaitTimeout: no broker answered it.
        KafkaException: any other error.
    """
    last_error = ""

    def ask() -> tuple[int, int] | None:
        nonlocal last_error
        place = ck.TopicPartition(tp.topic, tp.partition)
        try:
            found: tuple[int, int] | None = consumer.get_watermark_offsets(place, timeout=ANSWER_S)
        except ck.KafkaException as error:
            if error.args[0].code() not in MOVED:
                raise
            last_error = error.args[0].name()
            return None
        return found

    bounds = f"the first offset and the end of {tp}"
    return eventually(ask, SILENCE_S, bounds, state=lambda: last_error, hint="Is its leader up?", every_s=0.2)


def _read_all(
    consumer: ck.Consumer,
    partitions: Mapping[TopicPartition, int],
    bounds: Mapping[TopicPartition, tuple[int, int]],
) -> Iterator[parquet_records.Columns]:
    """Row groups, until the end of each partition. Records after the bounds are left out.

    Raises:
        ClusterError: a log was truncated during the audit, so that records are read twice.
    """
    read, after = _Unwritten(), dict.fromkeys(partitions, -1)
    unread = {tp for tp, (start, end) in bounds.items() if start < end}
    consumer.assign([ck.TopicPartition(tp.topic, tp.partition, bounds[tp][0]) for tp in unread])
    for messages in batches(consumer, unread, OPEN_S, " Is a transaction open there?"):
        for records in _runs(messages):
            tp = TopicPartition(str(records[0].topic()), int(records[0].partition() or 0))
            if any(map(ck.Message.error, records)):
                if any(end >= bounds[tp][1] for end in ends(records, tp)):
                    unread.discard(tp)
                records = [m for m in records if not m.error()]
            if records and (records[0].offset() or 0) <= after[tp]:
                raise ClusterError(f"the log of {tp} was truncated while the audit read it")
            after[tp] = max([after[tp], *(m.offset() or 0 for m in records[-1:])])
            yield from read.add(partitions[tp], bounds[tp][1], records)
    yield from read.rest()


def batches(
    consumer: ck.Consumer, unread: Collection[TopicPartition], silence_s: float, hint: str = ""
) -> Iterator[list[ck.Message]]:
    """Batches of messages of the assigned partitions, until the caller has removed all partitions from ``unread``.

    Raises:
        WaitTimeout: no message arrived for ``silence_s``.
    """
    heard_ns = now_ns()
    while unread:
        if messages := consumer.consume(_BATCH, timeout=0.5):
            heard_ns = now_ns()
            yield messages
        elif now_ns() - heard_ns > silence_s * NS:
            left = ", ".join(map(str, sorted(unread)))
            raise WaitTimeout(f"the audit waited {silence_s:g} s for records of {left}, but none arrived.{hint}")


def _runs(messages: list[ck.Message]) -> Iterator[list[ck.Message]]:
    """``messages`` cut where topic or partition changes. (``map`` over C methods runs no Python code per record.)"""
    if not messages:
        return
    count, topics = len(messages), list(map(ck.Message.topic, messages))
    numbers = {topic: number << 32 for number, topic in enumerate(dict.fromkeys(topics))}
    places = np.fromiter(map(ck.Message.partition, messages), np.int64, count)
    places += np.fromiter(map(numbers.__getitem__, topics), np.int64, count)
    cuts = [0, *(np.flatnonzero(np.diff(places)) + 1).tolist(), count]
    for begin, end in pairwise(cuts):
        yield messages[begin:end]


def ends(records: Iterable[ck.Message], tp: TopicPartition) -> Iterator[int]:
    """The current end offsets of ``tp`` in messages that report an end. Raises ClusterError for any other error."""
    for message in records:
        if (error := message.error()) is None:
            continue
        if error.code() != ck.KafkaError._PARTITION_EOF:
            raise ClusterError(f"the audit cannot read {tp}: {error.str()}")
        yield message.offset() or 0


class _Unwritten:
    """Collects the columns of each partition until they fill a row group, which never mixes partitions."""

    def __init__(self) -> None:
        self._parts: dict[int, list[parquet_records.Columns]] = {}
        self._rows: dict[int, int] = {}

    def add(self, number: int, end: int, records: Sequence[ck.Message]) -> Iterator[parquet_records.Columns]:
        """Add the records of one partition below ``end``, in the order of the log."""
        if not records:
            return
        count = len(records)
        offsets = np.fromiter(map(ck.Message.offset, records), np.int64, count)
        part = decode(list(map(ck.Message.value, records)), lambda n: records[n].key(), lambda n: records[n].headers())
        part["offset"] = offsets
        part["appended_ms"] = np.fromiter(map(itemgetter(1), map(ck.Message.timestamp, records)), np.int64, count)
        below = int(np.searchsorted(offsets, end))
        self._parts.setdefault(number, []).append({name: column[:below] for name, column in part.items()})
        self._rows[number] = self._rows.get(number, 0) + below
        if self._rows[number] >= parquet_records.ROW_GROUP_ROWS:
            yield self._joined(number)

    def rest(self) -> Iterator[parquet_records.Columns]:
        """The remaining rows."""
        for number in sorted(self._parts):
            if self._rows[number]:
                yield self._joined(number)

    def _joined(self, number: int) -> parquet_records.Columns:
        parts, rows = self._parts.pop(number), self._rows.pop(number)
        joined = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
        return {**joined, "tp": np.full(rows, number, np.int32)}


def decode(
    values: Sequence[bytes | None],
    key_of: Callable[[int], bytes | None],
    headers_of: Callable[[int], Any] = lambda n: None,
) -> parquet_records.Columns:
    """The columns key, writer and seq of records, as ``payload.unpack`` returns them; in bulk where the values have our
    format.

    ``key_of`` and ``headers_of`` are called for the n-th record only if its value has another format.
    """
    size, blank = payload.SIZE, bytes(payload.SIZE)
    heads = b"".join([v[:size] if v is not None and len(v) >= size else blank for v in values])
    found = np.frombuffer(heads, _LAYOUT)
    decoded: parquet_records.Columns = {
        "key": found["key"].astype(np.int64),
        "writer": found["writer"].astype(np.int32),
        "seq": found["seq"].astype(np.int64),
    }
    for n in np.flatnonzero(found["magic"] != payload.MAGIC).tolist():
        carrier = payload.carrier(values[n], headers_of(n))
        decoded["key"][n], decoded["writer"][n], decoded["seq"][n] = payload.unpack(key_of(n), carrier)
    return decoded
