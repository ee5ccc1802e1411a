"""Wall-clock times on our clock, and the facts of the wire format."""

from __future__ import annotations

from pathlib import Path

import pytest

from fencepost.evidence.brokers import kafka_protocol
from fencepost.evidence.brokers.clock_conversion import MS, WallClockConverter, write_lines
from fencepost.model import group_partition

SECOND = 1_000_000_000


def test_a_wall_time_is_the_middle_of_its_millisecond() -> None:
    timeline = WallClockConverter.of([(5 * SECOND, 1000 * SECOND)])
    assert timeline.at_ns(1_000_000) == 5 * SECOND + MS // 2
    assert timeline.uncertainty_ns == MS // 2


def test_a_drift_between_two_pairs_is_spread_and_told_as_uncertainty() -> None:
    timeline = WallClockConverter.of([(0, 1000 * SECOND), (10 * SECOND, 1010 * SECOND + 4 * MS)])
    assert timeline.uncertainty_ns == MS // 2 + 4 * MS
    middle = timeline.at_ns(1_005_000)
    assert abs(middle - (5 * SECOND - 2 * MS + MS // 2)) < MS // 10
    assert timeline.at_ns(1_020_000) == 20 * SECOND - 4 * MS + MS // 2, "after the last pair it goes on as there"


def test_a_time_that_the_broker_lacks_is_never() -> None:
    assert WallClockConverter.of([(5, 1000)]).at_ns(-1) == 0


def test_no_pair_is_refused() -> None:
    with pytest.raises(ValueError, match="clock pair"):
        WallClockConverter.of([])


def test_a_file_of_lines_is_whole_or_not_there(tmp_path: Path) -> None:
    def facts() -> object:
        yield {"n": 1}
        raise RuntimeError("the source broke")

    with pytest.raises(RuntimeError, match="broke"):
        write_lines(tmp_path / "x" / "facts.jsonl", facts())  # type: ignore[arg-type]
    assert not (tmp_path / "x" / "facts.jsonl").exists()
    assert write_lines(tmp_path / "x" / "facts.jsonl", [{"n": 1}]) == 1


@pytest.mark.parametrize(
    ("group", "partitions", "expected"),
    [("gclassic", 3, 2), ("gconsumer", 3, 0), ("polygenelubricants", 50, 0), ("\U0001f980", 50, 1_772_802 % 50)],
)
def test_the_partition_of_a_group_is_javas_hash_made_positive(group: str, partitions: int, expected: int) -> None:
    """The first two are what a broker did; the hash of the third is the smallest int, the last is two UTF-16 units."""
    assert group_partition(group, partitions) == expected


def test_an_assignment_that_is_none_is_told_from_an_empty_one() -> None:
    given = "AAAAAAABAAZvcmRlcnMAAAAEAAAAAQAAAAMAAAACAAAAAAAAABwAAAABAAZvcmRlcnMAAAACAAAAAQAAAAMAAAAB"
    assert kafka_protocol.assignment(given) == {"orders": [0, 1, 2, 3]}
    assert kafka_protocol.assignment("") == {}
    assert kafka_protocol.assignment(given[:24]) is None
    assert kafka_protocol.assignment("not base64!") is None


def test_a_topic_id_that_nobody_knows_stays_an_id() -> None:
    listed = [
        {"topicId": "a", "partitions": [2, 1]},
        {"topicId": "b", "partitions": [0]},
        {"topic": "c", "partitions": []},
    ]
    assert kafka_protocol.named_partitions(listed, {"a": "orders"}) == {"orders": [1, 2], "b": [0], "c": []}
