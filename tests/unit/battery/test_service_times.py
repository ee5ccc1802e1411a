"""Standstills and recovery, from hand-written histories. Times are in seconds."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from fencepost.battery.service_times import (
    NS,
    LatencyPercentiles,
    WrittenRecords,
    first_record_s,
    joined,
    latency,
    normal_after_s,
    periods,
    standstill_s,
)


def history(*records: tuple[int, int, float, float]) -> WrittenRecords:
    """Of (partition, offset, written, first seen); each was sent when it was written."""
    rows = [(tp, offset, *[round(written * NS)] * 2, round(seen * NS)) for tp, offset, written, seen in records]
    return WrittenRecords(*(np.array(column, np.int64) for column in zip(*rows, strict=True)))


def columns(**names: Sequence[float]) -> dict[str, np.ndarray]:
    return {name: np.array(values) for name, values in names.items()}


def test_a_record_has_its_first_delivery_in_whichever_order_the_rows_are() -> None:
    produced = columns(tp=[1, 0, 0], offset=[0, 1, 0], sent_ns=[3, 4, 5], acked_ns=[5, 6, 7])
    delivered = columns(tp=[0, 0, 1, 0], offset=[0, 0, 0, 9], delivered_ns=[30, 20, 40, 50])
    found = joined(produced, delivered)
    assert list(zip(*(column.tolist() for column in found), strict=True)) == [
        (0, 0, 5, 7, 20),
        (0, 1, 4, 6, 0),
        (1, 0, 3, 5, 40),
    ]


def test_a_record_that_was_not_acknowledged_does_not_count() -> None:
    found = joined(
        columns(tp=[0], offset=[-1], sent_ns=[0], acked_ns=[0]), columns(tp=[0], offset=[0], delivered_ns=[1])
    )
    assert not len(found.tp)


def test_nothing_delivered_leaves_every_record_waiting() -> None:
    found = joined(columns(tp=[0], offset=[0], sent_ns=[NS], acked_ns=[NS]), columns(tp=[], offset=[], delivered_ns=[]))
    assert standstill_s(found, 0, 5 * NS) == 4


def test_a_partition_stands_still_while_a_record_waits() -> None:
    assert standstill_s(history((0, 0, 1, 1.1), (0, 1, 2, 7), (1, 0, 3, 3.1)), 0, 10 * NS) == 5


def test_a_partition_without_waiting_records_does_not_stand_still() -> None:
    assert standstill_s(history((0, 0, 1, 1.1), (0, 1, 8, 8.1)), 0, 10 * NS) == 0.1


def test_the_wait_of_a_backlog_counts_only_until_the_next_delivery() -> None:
    assert standstill_s(history((0, 0, 1, 3), (0, 1, 1, 4), (0, 2, 1, 5)), 0, 10 * NS) == 2


def test_what_waited_before_the_group_was_warm_does_not_count() -> None:
    assert standstill_s(history((0, 0, 1, 9)), 8 * NS, 10 * NS) == 1


def test_a_partition_that_never_gets_a_record_stands_still_to_the_end() -> None:
    assert standstill_s(history((0, 0, 1, 1.1), (0, 1, 2, 0)), 0, 10 * NS) == 8


def test_the_first_record_is_that_of_the_last_partition() -> None:
    served = history((0, 0, 1, 1.1), (0, 1, 6, 6.5), (1, 0, 6, 9))
    assert first_record_s(served, 5 * NS) == 4


def test_a_record_from_before_the_disruption_is_not_the_first_record() -> None:
    assert first_record_s(history((0, 0, 1, 5.1), (0, 1, 6, 8)), 5 * NS) == 3


def test_without_a_record_in_a_partition_there_is_no_first_record() -> None:
    assert first_record_s(history((0, 0, 6, 7), (1, 0, 6, 0)), 5 * NS) is None


def lagging(seen_from: float) -> WrittenRecords:
    """Ten records a second, each seen after 0.1 s; those of seconds 5 to ``seen_from`` are seen only then."""
    rows = []
    for number in range(200):
        written = number / 10
        late = 5 <= written < seen_from
        rows.append((0, number, written, (seen_from if late else written) + 0.1))
    return history(*rows)


def test_the_lag_is_normal_again_when_the_backlog_is_consumed() -> None:
    found = normal_after_s(lagging(8), NS, 5 * NS, 20 * NS)
    assert found is not None
    assert abs(found - 3.1) < 0.15


def test_a_lag_that_stays_within_its_bound_is_normal_at_once() -> None:
    assert normal_after_s(lagging(5), NS, 5 * NS, 20 * NS) == 0


def test_a_lag_that_is_never_normal_again_has_no_time() -> None:
    assert normal_after_s(lagging(20), NS, 5 * NS, 19 * NS) is None


def late(*seconds: float) -> WrittenRecords:
    """Records that are sent in the first second, and delivered after so many seconds; 0: never."""
    return history(*((0, n, n / 1000, n / 1000 + took if took else 0) for n, took in enumerate(seconds)))


def test_percentiles_are_those_of_the_records_that_were_sent_in_that_time() -> None:
    records = late(*([0.1] * 200 + [2.0] * 199 + [5.0]))
    assert latency(records, 0, NS) == LatencyPercentiles(400, 0.1, 2.0)
    assert latency(records, 0, NS // 5) == LatencyPercentiles(200, 0.1, None)


@pytest.mark.parametrize(
    ("count", "p50", "p99"), [(4, False, False), (5, True, False), (298, True, False), (299, True, True)]
)
def test_a_percentile_needs_enough_records(count: int, p50: bool, p99: bool) -> None:
    found = latency(late(*[0.1] * count), 0, NS)
    assert (found.p50_s is not None, found.p99_s is not None) == (p50, p99)


def test_a_record_that_was_never_delivered_is_later_than_all_others() -> None:
    assert latency(late(*[0.1] * 396, *[0] * 4), 0, NS) == LatencyPercentiles(400, 0.1, 0.1)
    assert latency(late(*[0.1] * 395, *[0] * 5), 0, NS) == LatencyPercentiles(400, 0.1, None)


def test_the_periods_are_divided_by_the_first_disruption_and_by_the_normal_lag() -> None:
    assert periods([], None, 1, 90) == {"before": (1, 90)}
    two = [(5 * NS, 6 * NS), (8 * NS, 9 * NS)]
    whole = {"before": (NS, 5 * NS), "during": (5 * NS, 9 * NS), "after": (9 * NS, 20 * NS)}
    assert periods(two, 1.0, NS, 20 * NS) == whole
    assert periods(two, 7.0, NS, 20 * NS)["during"] == (5 * NS, 12 * NS)
    assert periods(two, None, NS, 20 * NS) == {"before": (NS, 5 * NS), "during": (5 * NS, 20 * NS)}
    assert "after" not in periods(two, 1.0, NS, 7 * NS)
