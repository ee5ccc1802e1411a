"""The kernel finds what the oracle finds, to the value, in random lives and very odd histories.

Each history is judged three times in this process: by the oracle, by the kernel, and by the kernel with every partition
cut into ranges of a few records, with row groups as short, and taken for many (``AS_IF_LARGE``). Spark performs the
same kernel; ``test_spark_equals_oracle`` looks at 50 more of each teller.
The nightly run adds 5,000 of each that nobody has seen before. One that tells the finders apart is shrunk
(``shrinking``), and becomes a test at the end of this module.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest

from fencepost.checkers import kernel, oracle
from fencepost.checkers.counts import Bounds, JudgedCounts
from fencepost.checkers.judge import judge
from fencepost.checkers.spark import detector
from fencepost.checkers.tables import load
from fencepost.checkers.tables.rows import NS
from fencepost.evidence.sealing import parquet_records
from fencepost.model import Anomaly, Verdict
from history import odd_histories, random_histories
from history.builder import HistoryBuilder, MemberTeller, ns
from history.shrinking import SHRINKING_S, Tell, check_each, fresh

STRICT = Bounds(stuck_ns=5 * NS, recovers_ns=2 * NS, catches_up_ns=NS, done_again=0, loop_deliveries=3, loop_ns=2 * NS)
NARROW = 3  # records of a range
AS_IF_LARGE = {
    "arrays.STEP": 2,
    "offset_index.SHORT": 0,
    "offset_index.SPARSE": 0,
}  # what the kernel does for large tasks only
FIRST, LAST, EACH = 50, 70, 20  # seeds below FIRST are judged on Spark, too
BATCHES, BATCH = 50, 100  # of fresh histories, by night
TELLERS = {"lives": random_histories.wild, "odd": odd_histories.tell, "silent": random_histories.silent}
TELLERS["recorded"] = random_histories.recorded
KINDS = pytest.mark.parametrize("tell", TELLERS.values(), ids=TELLERS.keys())
pytestmark = pytest.mark.timeout(SHRINKING_S)

Found = tuple[list[Anomaly], JudgedCounts]


@pytest.fixture(autouse=True, scope="module")
def short_row_groups() -> Iterator[None]:
    """So that the deliveries of a member are several stretches where partitions are cut."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(parquet_records, "ROW_GROUP_ROWS", NARROW + 1)
        yield


@KINDS
@pytest.mark.parametrize("first", range(FIRST, LAST, EACH))
def test_random_histories(tmp_path: Path, tell: Tell, first: int) -> None:
    check_each(tell, tmp_path, range(first, first + EACH), agreed)


@pytest.mark.slow
@KINDS
@pytest.mark.parametrize("batch", range(BATCHES))
def test_fresh_histories(request: pytest.FixtureRequest, tmp_path: Path, tell: Tell, batch: int) -> None:
    check_each(tell, tmp_path, fresh(request, batch, BATCH), agreed)


def agreed(run: Path, bounds: Bounds = STRICT, processed: str = "") -> Found:
    """What the oracle finds, and the kernel too. However odd a history is, no rule may crash on it."""
    tables = load(run, processed)
    expected = oracle.detect(run, tables, bounds)
    assert not expected[1].failed
    assert detector.find_here(run, tables, bounds) == expected
    with pytest.MonkeyPatch.context() as patch:
        for name, value in AS_IF_LARGE.items():
            patch.setattr(f"{kernel.__name__}.{name}", value)
        assert detector.find_here(run, tables, bounds, NARROW) == expected
    return expected


def verdict_of(h: HistoryBuilder) -> Verdict:
    """The verdict of a history by the kernel and by the oracle, which agree."""
    run = h.seal()
    agreed(run)
    verdict = judge(run, detector.find_here)
    assert verdict == judge(run, oracle.detect)
    return verdict


# What random histories showed: each once told finders apart.


def test_two_deliveries_of_a_record_under_one_number(tmp_path: Path) -> None:
    """A history that is damaged: which poll brought the one that is looked at, its number does not tell."""
    h = HistoryBuilder(tmp_path)
    h.write(2)
    a = h.member(0)
    a.assigned(1)
    a.deliver(0, 2).begin(2)
    a.deliver(0, 3, ord=0).begin(3)
    a.commit(1, 4)
    a.lost(5)
    a.die(6)
    (unseen,) = (anomaly for anomaly in agreed(h.seal(), STRICT)[0] if anomaly.kind == "unseen")
    assert unseen.excuse == "in hand when its owner was evicted"


# What is to be remembered of a member's deliveries where they are judged stretch by stretch: here of four.


def test_a_poll_goes_on_in_the_next_stretch(tmp_path: Path) -> None:
    """Its first records lie between the highest one and the last one: none of the three is enough."""
    h = HistoryBuilder(tmp_path)
    h.write(12)
    a = h.member(0)
    a.assigned(1)
    for poll, offset in [(0, 0), (0, 1), (0, 2), (0, 9), (1, 10), (1, 11), (2, 7), (2, 3), (2, 5)]:
        a.deliver(offset, 2 + poll, poll=poll)
    rewinds = [anomaly for anomaly in agreed(h.seal())[0] if anomaly.kind == "rewind"]
    assert {anomaly.cause: anomaly.count for anomaly in rewinds} == {"": 1, "inside one poll": 2}


def test_a_member_goes_on_where_it_had_got_to_two_stretches_before(tmp_path: Path) -> None:
    h = HistoryBuilder(tmp_path)
    h.write(16)
    a = h.member(0)
    for begin, offsets in ((1, range(12)), (4, range(8)), (7, range(12, 16))):
        a.assigned(begin)
        a.process(offsets, begin + 1)
        a.revoked(begin + 2)
    assert "wrong-start" not in {anomaly.kind for anomaly in agreed(h.seal())[0]}


ABORTED: dict[str, Any] = {"outcome": "fail", "error": "UNKNOWN", "mode": "transaction"}


def going_back(h: HistoryBuilder, offset: int, at: float, then: Iterable[int]) -> MemberTeller:
    """A member is given five records, has a transaction aborted, goes back to ``offset``, and is given others."""
    h.write(40)
    a = h.member(0)
    a.assigned(1)
    a.process(range(5), 2)
    a.commit(5, at - 0.01, **ABORTED)
    a.seek(offset, at)
    a.process(then, 5)
    return a


@pytest.mark.parametrize(
    ("offset", "then", "reported"),
    [
        (2, [2, 3, 4, 5], []),
        (2, [3, 4, 5], [("poll-skip", 2, 2, 1)]),
        (2, [1, 2, 3], [("rewind", 1, 1, 1)]),
        (4, [3, 4, 9], [("poll-skip", 5, 8, 4), ("rewind", 3, 3, 1)]),
        (9, [3, 9], [("poll-skip", 5, 8, 4), ("rewind", 3, 3, 1)]),  # it went forwards: that takes nothing back
        (2, [5, 6], [("poll-skip", 2, 4, 3)]),  # and its client went on as if nothing were
    ],
)
def test_an_aborted_transaction_takes_back_what_was_given_in_the_stretch_before(
    tmp_path: Path, offset: int, then: list[int], reported: list[tuple[str, int, int, int]]
) -> None:
    h = HistoryBuilder(tmp_path)
    going_back(h, offset, 4, then)
    found = [a for a in agreed(h.seal())[0] if a.kind in ("rewind", "poll-skip")]
    assert [(a.kind, a.first_offset, a.last_offset, a.count) for a in found] == reported


@pytest.mark.parametrize("late", [2, 4], ids=["in the first stretch", "the last of it"])
def test_what_was_taken_back_once_is_not_taken_back_again(tmp_path: Path, late: int) -> None:
    """By one clock some record came after those that came after it; the program went back in between."""
    h = HistoryBuilder(tmp_path)
    a = going_back(h, 2, 4, range(5, 14))
    a.rows[late].delivered_ns = ns(4.5)
    agreed(h.seal())


def test_nor_two_stretches_later(tmp_path: Path) -> None:
    """The record that came last by the clock is the second one of the first stretch."""
    h = HistoryBuilder(tmp_path)
    a = going_back(h, 2, 10, range(5, 13))
    a.process(range(13, 18), 12)
    a.rows[1].delivered_ns = ns(20)
    agreed(h.seal())


# A record that was done before it was begun was processed at no moment; it must not hide others that overlap.


def overlaps(h: HistoryBuilder) -> list[tuple[tuple[str, ...], int, int]]:
    return [(a.members, a.first_offset, a.count) for a in agreed(h.seal())[0] if a.kind == "processing-overlap"]


def test_a_record_done_before_it_was_begun_in_a_later_interval(tmp_path: Path) -> None:
    """Seed 781253557 of the odd ones."""
    h = HistoryBuilder(tmp_path, 6, keys=5, classic=True)
    a, b = h.member(0, client="kafka-python"), h.member(1, client="json-lines")
    h.write(4, 4, at=25.0, acked=False)
    b.process([14], 6.5, 4, each=0.5)
    (long,) = a.process([15], 5.5, 4, each=0.0)
    long.done_ns = ns(12.0)
    b.assigned(10.8, 4, took=1.0, generation=2)
    (odd,) = b.process([15], 11.0, 4, each=0.0)
    odd.done_ns = ns(1.3)
    assert overlaps(h) == [(("member-0.1", "member-1.1"), 15, 1)]


def test_a_record_done_before_it_was_begun_by_a_third_member(tmp_path: Path) -> None:
    """Seed 781258546 of the odd ones."""
    config = {"auto.offset.reset": "latest", "heartbeat.interval.ms": 250}
    h = HistoryBuilder(tmp_path, 6, keys=1, classic=True, config=config)
    a, b = h.member(0, client="kafka-python"), h.member(1, at=12.0, client="confluent-kafka")
    c = h.member(1, client="json-lines")
    h.write(4, 2)
    c.process([3_000_000_000_008], 2.25, 2, each=0.5)
    b.process([3_000_000_000_013], 2.25, 2, each=0.5)
    b.process([3_000_000_000_016], 6.25, 2, each=0.5)
    undone, odd = a.process([3_000_000_000_015, 3_000_000_000_016], 5.75, 2)
    undone.done_ns, odd.done_ns = 0, ns(2.2)
    assert overlaps(h) == [(("member-1.1", "member-1.2"), 3_000_000_000_013, 1)]
