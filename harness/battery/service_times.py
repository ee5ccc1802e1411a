"""How long a group did not serve: standstills of partitions, the lag after disruptions, and how late records were.

Measured from a history.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow.parquet as pq
from numpy.typing import NDArray

from fencepost.history import RecordState
from fencepost.history.run_folder import listed, opened

NS = 1_000_000_000
ABOVE = 1.2  # times the highest lag before the first disruption: more is not normal
CONFIDENCE = 0.95


class WrittenRecords(NamedTuple):
    """The records of a run that were acknowledged; arrays of equal length, by partition and offset.

    Attributes:
        tp: the number of the partition.
        sent_ns: when the producer gave it to its client. Producers send by the clock, however late deliveries are.
        written_ns: when the producer got the acknowledgement.
        seen_ns: when the record was delivered first; 0: never.
    """

    tp: NDArray[np.int64]
    offset: NDArray[np.int64]
    sent_ns: NDArray[np.int64]
    written_ns: NDArray[np.int64]
    seen_ns: NDArray[np.int64]


class LatencyPercentiles(NamedTuple):
    """The time from sending a record to its first delivery, in seconds.

    None: there are too few records, or so many were never delivered that the percentile is one of those.

    Attributes:
        records: how many were sent in that time.
    """

    records: int
    p50_s: float | None = None
    p99_s: float | None = None


class ServiceTimes(NamedTuple):
    """What a disruption did to the service, in seconds; None: it cannot be measured.

    Attributes:
        standstill_s: the longest time in which records of a partition waited and none was delivered.
        first_record_s: from the first disruption until every partition with waiting records had one delivered.
        normal_after_s: from the first disruption until the lag stayed within its normal bound.
        again: records that were processed more than once.
        latency: before the first disruption; during disruptions, until the last one is healed and the lag is normal;
            and after that. Without a disruption there is only ``before``; without a normal lag there is no ``after``.
    """

    standstill_s: float | None
    first_record_s: float | None
    normal_after_s: float | None
    again: int
    latency: Mapping[str, LatencyPercentiles]


def measure(run: Path, disrupted: Sequence[tuple[int, int]], warm_ns: int, ended_ns: int) -> ServiceTimes:
    """The service times of a run.

    Args:
        run: a run folder.
        disrupted: when each of its disruptions began and was healed, in nanoseconds; none: there were none.
        warm_ns, ended_ns: when the group was warm, and when producers were stopped.

    Raises:
        OSError, ValueError: the records cannot be read.
    """
    delivered = _columns(run, "delivered", ("tp", "offset", "delivered_ns", "state"))
    produced = _columns(run, "produced", ("tp", "offset", "sent_ns", "acked_ns"))
    records = joined(produced, delivered)
    done = delivered["state"] == RecordState.DONE
    twice = np.stack([delivered["tp"][done], delivered["offset"][done]])
    _, counts = np.unique(twice, axis=1, return_counts=True)
    first_ns = min((begin_ns for begin_ns, _ in disrupted), default=0)
    normal_s = normal_after_s(records, warm_ns, first_ns, ended_ns) if first_ns else None
    return ServiceTimes(
        standstill_s(records, warm_ns, ended_ns),
        first_record_s(records, first_ns) if first_ns else None,
        normal_s,
        int((counts > 1).sum()),
        {name: latency(records, *period) for name, period in periods(disrupted, normal_s, warm_ns, ended_ns).items()},
    )


def periods(
    disrupted: Sequence[tuple[int, int]], normal_s: float | None, warm_ns: int, ended_ns: int
) -> dict[str, tuple[int, int]]:
    """The periods of ``ServiceTimes.latency``, each from one moment to another, in nanoseconds; ``normal_s``: see its
    ``normal_after_s``."""
    if not disrupted:
        return {"before": (warm_ns, ended_ns)}
    first_ns, healed_ns = min(begin_ns for begin_ns, _ in disrupted), max(end_ns for _, end_ns in disrupted)
    over_ns = ended_ns if normal_s is None else max(healed_ns, first_ns + round(normal_s * NS))
    found = {"before": (warm_ns, first_ns), "during": (first_ns, min(over_ns, ended_ns))}
    return {**found, "after": (over_ns, ended_ns)} if over_ns < ended_ns else found


def latency(records: WrittenRecords, from_ns: int, until_ns: int) -> LatencyPercentiles:
    """The latency of the records that were sent between two moments.

    A percentile needs so many records that the highest of them reaches it with ``CONFIDENCE``. A record that was never
    delivered is later than all others.
    """
    sent = (records.sent_ns >= from_ns) & (records.sent_ns < until_ns)
    seen_ns = records.seen_ns[sent].astype(float)
    took_s = np.sort(np.where(seen_ns > 0, (seen_ns - records.sent_ns[sent]) / NS, np.inf))

    def percentile(share: float) -> float | None:
        if len(took_s) < math.log(1 - CONFIDENCE) / math.log(share):
            return None
        found = float(np.quantile(took_s, share, method="inverted_cdf"))
        return round(found, 3) if math.isfinite(found) else None

    return LatencyPercentiles(len(took_s), percentile(0.5), percentile(0.99))


def joined(produced: dict[str, NDArray[Any]], delivered: dict[str, NDArray[Any]]) -> WrittenRecords:
    """Each acknowledged record with its first delivery."""
    written = produced["offset"] >= 0
    order = np.lexsort((produced["offset"][written], produced["tp"][written]))
    tp, offset, sent_ns, at_ns = (
        produced[name][written][order].astype(np.int64) for name in ("tp", "offset", "sent_ns", "acked_ns")
    )
    seen = np.zeros(len(tp), np.int64)
    found = np.lexsort((delivered["delivered_ns"], delivered["offset"], delivered["tp"]))
    dtp, doff, dns = (delivered[name][found].astype(np.int64) for name in ("tp", "offset", "delivered_ns"))
    first = np.append(True, (dtp[1:] != dtp[:-1]) | (doff[1:] != doff[:-1]))[: len(dtp)]
    wide = int(max(offset.max(initial=0), doff.max(initial=0))) + 1
    keys, have = tp * wide + offset, dtp[first] * wide + doff[first]
    place = np.searchsorted(have, keys)
    there = (place < len(have)) & (have[np.minimum(place, len(have) - 1)] == keys) if len(have) else place < 0
    seen[there] = dns[first][place[there]]
    return WrittenRecords(tp, offset, sent_ns, at_ns, seen)


def standstill_s(records: WrittenRecords, from_ns: int, until_ns: int) -> float | None:
    """The longest time within two moments in which records of one partition waited and none was delivered."""
    longest = 0
    for part in _partitions(records):
        seen = np.where(part.seen_ns > 0, part.seen_ns, until_ns)
        before = np.append(0, np.maximum.accumulate(seen)[:-1])
        waited_from = np.maximum(np.maximum(before, part.written_ns), from_ns)
        longest = max(longest, int((np.minimum(seen, until_ns) - waited_from).max(initial=0)))
    return round(longest / NS, 3) if len(records.tp) else None


def first_record_s(records: WrittenRecords, since_ns: int) -> float | None:
    """From a moment until each partition had a record delivered that was written after it; None: one never had."""
    latest = 0
    for part in _partitions(records):
        after = part.seen_ns[(part.written_ns >= since_ns) & (part.seen_ns > 0)]
        if not (part.written_ns >= since_ns).any():
            continue
        if not len(after):
            return None
        latest = max(latest, int(after.min()) - since_ns)
    return round(latest / NS, 3) if latest else None


def normal_after_s(records: WrittenRecords, warm_ns: int, since_ns: int, until_ns: int) -> float | None:
    """From ``since_ns`` until the lag stayed within its normal bound; None: it did not until ``until_ns``.

    Normal is up to ``ABOVE`` times the highest lag between ``warm_ns`` and ``since_ns``.
    """
    times = np.concatenate([records.written_ns, records.seen_ns[records.seen_ns > 0]])
    steps = np.concatenate([np.ones(len(records.tp)), -np.ones(int((records.seen_ns > 0).sum()))])
    order = np.argsort(times, kind="stable")
    times, lag = times[order], np.cumsum(steps[order])
    before = lag[(times >= warm_ns) & (times < since_ns)]
    if not len(before):
        return None
    high = times[(lag > ABOVE * before.max()) & (times >= since_ns) & (times <= until_ns)]
    if not len(high):
        return 0.0
    calm = times[(times > high[-1]) & (times <= until_ns)]
    return round(float(calm[0] - since_ns) / NS, 3) if len(calm) else None


def _partitions(records: WrittenRecords) -> Iterator[WrittenRecords]:
    """The records of each partition."""
    for begin, end in zip(*_bounds(records.tp), strict=True):
        yield WrittenRecords(*(column[begin:end] for column in records))


def _bounds(tp: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    starts = np.flatnonzero(np.append(True, tp[1:] != tp[:-1])[: len(tp)])
    return starts, np.append(starts[1:], len(tp))


def _columns(run: Path, kind: str, names: Sequence[str]) -> dict[str, NDArray[Any]]:
    found = []
    for path in listed(run, f"history/{kind}/*.parquet"):
        with opened(run, path) as file:
            found.append(pq.read_table(file, columns=list(names)))
    return {name: np.concatenate([np.empty(0, np.int64), *(t[name].to_numpy() for t in found)]) for name in names}
