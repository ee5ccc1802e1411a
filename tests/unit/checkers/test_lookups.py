"""What was in force when, found by indices: the same as by looking at every row."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from fencepost.checkers.tables.committed import Committed
from fencepost.checkers.tables.effects import Effect, by_key
from fencepost.checkers.tables.interval_index import FEW, IntervalIndex
from fencepost.checkers.tables.rows import OffsetCommit, Window

TIMES = st.integers(0, 12)
WINDOWS = st.builds(Window, TIMES, TIMES)  # some end before they begin, as those of damaged histories do
ROWS = st.lists(st.tuples(st.integers(0, 1), WINDOWS), max_size=5 * FEW)


@given(ROWS, WINDOWS)
def test_spans_find_the_rows_of_a_key_that_meet_a_window(rows: list[tuple[int, Window]], window: Window) -> None:
    spans = IntervalIndex(rows, lambda row: row[0], lambda row: row[1])
    for key in (0, 1, 2):
        mine = [row for row in rows if row[0] == key]
        assert spans.get(key, []) == mine
        met = sorted((row for row in mine if row[1].meets(window)), key=lambda row: row[1].begin_ns)
        assert list(spans.meeting(key, window)) == met


COMMITS = st.lists(st.builds(OffsetCommit, st.just(0), st.integers(-1, 9), st.just(0), TIMES, st.integers(0, 2), TIMES))


@given(COMMITS, TIMES, TIMES)
def test_the_offsets_that_somebody_may_be_told_are_those_from_the_last_answered_one_on(
    rows: list[OffsetCommit], one_ns: int, other_ns: int
) -> None:
    from_ns, to_ns = sorted((one_ns, other_ns))
    answered = [n for n, commit in enumerate(rows) if 0 < commit.answered_ns <= from_ns]
    appended = [a.offset for a in rows[answered[-1] if answered else 0 :] if a.at_ns - a.uncertainty_ns <= to_ns]
    assert list(Committed(rows).between(one_ns, other_ns)) == ([] if answered else [-1]) + appended


def test_letters_of_keys_are_in_the_order_of_their_times_whatever_their_numbers() -> None:
    late, early, other = Effect(1, 0, 7, "a", 0, 30, 5), Effect(2, 0, 8, "a", 0, 20, 5), Effect(3, 1, 2, "a", 0, 10, 6)
    assert by_key([late, early, other, Effect(4, 0, 9, "a", 0, 5)]) == {0: [early, late], 1: [other]}
