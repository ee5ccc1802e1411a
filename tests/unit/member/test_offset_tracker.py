"""What is in hand of a partition, and how far it may be committed, whatever is finished first."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from fencepost_member.committing.offset_tracker import OffsetTracker


@given(st.permutations(range(8)), st.integers(1, 3))
def test_all_below_what_is_reached_is_finished_and_what_is_there_is_not(order: list[int], gap: int) -> None:
    ledger, finished = OffsetTracker(), set()
    ends = [number * gap + 1 for number in range(len(order))]  # offsets have gaps
    for index, end in enumerate(ends):
        ledger.delivered(index, end)
    for index in order:
        assert ledger.begin(index)
        ledger.finish(index)
        finished.add(index)
        first = next((i for i in range(len(order)) if i not in finished), len(order))
        assert ledger.reached == (ends[first - 1] if first else -1)
        assert ledger.held == len(order) - len(finished)
    assert not ledger.owes


def in_hand(count: int) -> OffsetTracker:
    ledger = OffsetTracker()
    for index in range(count):
        ledger.delivered(index, index + 1)
    return ledger


def test_what_is_later_than_all_that_is_begun_is_dropped_when_it_is_closed_and_what_is_before_is_owed() -> None:
    ledger = in_hand(4)
    assert ledger.begin(2)
    assert ledger.begin(0)
    ledger.close()
    assert not ledger.begin(3)
    ledger.finish(2)
    ledger.finish(0)
    assert (ledger.reached, ledger.held, ledger.owes) == (1, 2, True)
    assert ledger.begin(1)
    ledger.finish(1)
    assert (ledger.reached, ledger.held, ledger.owes) == (3, 1, False)


def test_nothing_is_begun_once_it_is_dropped() -> None:
    ledger = in_hand(3)
    assert ledger.begin(1)
    ledger.drop()
    assert not ledger.begin(0)
    ledger.finish(1)
    assert (ledger.reached, ledger.held, ledger.owes) == (-1, 2, True)


def test_an_offset_that_comes_again_is_a_record_of_its_own_and_nothing_goes_back() -> None:
    ledger = OffsetTracker()
    for index, end in enumerate((5, 6, 5)):
        ledger.delivered(index, end)
    for index, reached, held in ((2, -1, 2), (0, 5, 1), (1, 6, 0)):
        assert ledger.begin(index)
        ledger.finish(index)
        assert (ledger.reached, ledger.held) == (reached, held)
