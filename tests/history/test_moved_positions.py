"""A user's program that moves its position: what comes of that is its own doing, and what does not is not.

A case tells one story twice, as in ``test_kinds``. Both finders must tell the same of it.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import pytest

from fencepost.checkers import Delivery, Order, Ownership
from fencepost.checkers.counts import Bounds
from fencepost.checkers.judge import judge
from fencepost.checkers.promises.delivery import SOUGHT
from fencepost.checkers.spark.detector import find_here
from fencepost.checkers.tables.rows import NS
from fencepost.evidence.sealing import parquet_records
from fencepost.model import Severity, Validity
from fencepost.model.serialization import encode
from history.builder import HistoryBuilder
from history.test_kernel_equals_oracle import NARROW, agreed
from history.test_kinds import A, B, Story, Told, rest, two

CASES: list[Story] = []


def case(story: Story) -> Story:
    CASES.append(story)
    return story


def program(folder: Path, **options: object) -> HistoryBuilder:
    """The history of a program of the user's."""
    return HistoryBuilder(folder, 2, workload={"type": "own_program"}, **options)  # type: ignore[arg-type]


@pytest.mark.parametrize("wrong", [True, False], ids=["wrong", "right"])
@pytest.mark.parametrize("story", CASES, ids=lambda story: story.__name__)
def test_both_finders_tell_exactly_this(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, story: Story, wrong: bool
) -> None:
    monkeypatch.setattr(parquet_records, "ROW_GROUP_ROWS", NARROW + 1)
    h = program(tmp_path)
    expected = story(h, wrong)
    found, _ = agreed(h.seal(), Bounds(loop_deliveries=3, loop_ns=20 * NS))
    found = [anomaly for anomaly in found if anomaly.kind != "orphaned-partition"]  # the other one
    reported = [(a.kind, a.cause, a.excuse, a.members, a.first_offset, a.last_offset, a.count) for a in found]
    assert reported == sorted(expected)


def again(first: int, last: int, count: int) -> Told:
    return ("rewind", "seek", SOUGHT, (A,), first, last, count)


def not_again(first: int, last: int, count: int) -> Told:
    return ("rewind", "", "", (A,), first, last, count)


@case
def a_record_that_is_tried_again(h: HistoryBuilder, wrong: bool) -> Iterable[Told]:
    """It seeks back and is given that again, and what follows it. Wrong: its client does it once more by itself."""
    a, _ = two(h)
    a.seek(4, 4)
    a.process([4, 5], 5)
    if wrong:
        a.process([4, 5], 6)
    rest(a, 6)
    return [again(4, 5, 2), *([not_again(4, 5, 2)] if wrong else [])]


@case
def a_return_to_below_where_the_program_went(h: HistoryBuilder, wrong: bool) -> Iterable[Told]:
    a, _ = two(h)
    a.seek(4, 4)
    a.process([3, 4, 5] if wrong else [4, 5], 5)
    rest(a, 6)
    return [again(4, 5, 2), not_again(3, 3, 1)] if wrong else [again(4, 5, 2)]


@case
def a_return_in_another_partition(h: HistoryBuilder, wrong: bool) -> Iterable[Told]:
    a, _ = two(h)
    a.seek(4, 4, 1 if wrong else 0)
    a.process([4, 5], 5)
    rest(a, 6)
    return [not_again(4, 5, 2) if wrong else again(4, 5, 2)]


@case
def a_return_in_another_assignment(h: HistoryBuilder, wrong: bool) -> Iterable[Told]:
    """A position that was moved is forgotten with the assignment."""
    a, _ = two(h)
    if wrong:
        a.seek(4, 4)
    a.revoked(4.1)
    a.assigned(4.2)
    if not wrong:
        a.seek(4, 4.3)
    a.process([4, 5], 5)
    a.process([4, 5], 6)
    rest(a, 6)
    back = [("avoidable-redelivery", "seek", SOUGHT, (A,), 4, 5, 2)]
    return [not_again(4, 5, 2), *back] if wrong else [again(4, 5, 2), *back]


@case
def a_poll_that_was_under_way_when_the_program_went_back(h: HistoryBuilder, wrong: bool) -> Iterable[Told]:
    """It returns what comes next, and the one after it what was asked for, once."""
    a, _ = two(h)
    a.seek(4, 4)
    a.process([6], 4.5)
    a.process([4, 5, 6], 5)
    if wrong:
        a.process([6], 6)
    rest(a, 7)
    return [again(4, 6, 3), *([not_again(6, 6, 1)] if wrong else [])]


@case
def several_moves_before_a_poll(h: HistoryBuilder, wrong: bool) -> Iterable[Told]:
    """The last one counts; those before it explain nothing any more."""
    a, _ = two(h)
    a.seek(2, 4)
    a.seek(4, 4.1)
    a.process([4, 5], 5)
    if wrong:
        a.process([2, 3], 6)
    rest(a, 6)
    return [again(4, 5, 2), *([not_again(2, 3, 2)] if wrong else [])]


@case
def a_return_long_after_a_move_that_led_nowhere(h: HistoryBuilder, wrong: bool) -> Iterable[Told]:
    """To where it was anyway. That explains nothing later on."""
    a, _ = two(h)
    a.seek(6, 4)
    a.process([6], 5)
    a.process([7], 6)
    a.process([6, 7] if wrong else [8], 7)
    rest(a, 8 if wrong else 9)
    return [not_again(6, 7, 2)] if wrong else []


@case
def a_return_with_a_hole(h: HistoryBuilder, wrong: bool) -> Iterable[Told]:
    """What the program went back to is left out. (It was given it before, so nothing is lost.)"""
    a, _ = two(h)
    a.seek(2, 4)
    a.process([4, 5] if wrong else [2, 3, 4, 5], 5)
    rest(a, 6)
    return [again(4, 5, 2), ("poll-skip", "", "", (A,), 2, 3, 2)] if wrong else [again(2, 5, 4)]


@case
def records_that_the_program_goes_past(h: HistoryBuilder, wrong: bool) -> Iterable[Told]:
    """They are lost by that. Wrong: one more is skipped."""
    a, _ = two(h)
    a.commit(6, 3.5)
    a.seek(8, 4)
    rest(a, 9 if wrong else 8)
    skipped = [("poll-skip", "seek", SOUGHT, (A,), 6, 7, 2), ("unseen", "seek", "", (A,), 6, 7, 2)]
    ahead = ("commit-ahead", "", "", (A,), 6, 8 if wrong else 7, 3 if wrong else 2)
    more = [("poll-skip", "", "", (A,), 8, 8, 1), ("unseen", "skipped", "", (A,), 8, 8, 1)] if wrong else []
    return [ahead, *skipped, *more]


@case
def records_that_were_skipped_before_the_program_moved(h: HistoryBuilder, wrong: bool) -> Iterable[Told]:
    a, _ = two(h)
    if not wrong:
        a.process([6], 3.5)
    a.process([7], 3.6)
    a.seek(8, 4)
    rest(a, 8)
    if not wrong:
        return []
    return [
        ("commit-ahead", "", "", (A,), 6, 6, 1),
        ("poll-skip", "", "", (A,), 6, 6, 1),
        ("unseen", "skipped", "", (A,), 6, 6, 1),
    ]


@case
def a_start_where_the_program_went(h: HistoryBuilder, wrong: bool) -> Iterable[Told]:
    """In its assigned callback, back to before what is committed. Wrong: its client begins elsewhere."""
    a, b = two(h)
    a.commit(6, 3.5)
    a.revoked(4)
    b.assigned(5, took=0.2)
    b.seek(2, 5.1)
    rest(b, 3 if wrong else 2)
    redone = ("redelivery-below-commit", "seek", SOUGHT, (B, A), 3 if wrong else 2, 5, 3 if wrong else 4)
    start = ("wrong-start", "", "", (B,), 3, 3, 1) if wrong else ("wrong-start", "seek", SOUGHT, (B,), 2, 2, 1)
    return [redone, start]


@case
def a_start_past_what_is_committed(h: HistoryBuilder, wrong: bool) -> Iterable[Told]:
    """By the program, or by its client."""
    a, b = two(h)
    a.commit(6, 3.5)
    a.revoked(4)
    b.assigned(5, took=0.2)
    if not wrong:
        b.seek(8, 5.1)
    rest(b, 8)
    cause, excuse = ("", "") if wrong else ("seek", SOUGHT)
    return [
        ("unseen", "skipped" if wrong else "seek", "", (B,), 6, 7, 2),
        ("wrong-start", cause, excuse, (B,), 8, 8, 1),
    ]


@case
def a_commit_after_the_program_went_back(h: HistoryBuilder, wrong: bool) -> Iterable[Told]:
    """It commits where it is. Wrong: a late one arrives when it had committed more since."""
    a, b = two(h)
    a.commit(6, 3.5)
    a.seek(2, 4)
    a.process([2, 3, 4, 5], 5)
    a.commit(6 if wrong else 3, 6)
    if wrong:
        a.commit(3, 7)
    a.revoked(8)
    b.assigned(9)
    b.fetches(3, 9.01)
    rest(b, 3)
    went = ("", "") if wrong else ("seek", SOUGHT)
    return [
        again(2, 5, 4),
        ("avoidable-redelivery", "", "", (A, B), 3, 5, 3),
        ("commit-regression", *went, (A,), 3, 3, 1),
    ]


@case
def a_commit_below_where_the_program_went(h: HistoryBuilder, wrong: bool) -> Iterable[Told]:
    """Its next owner begins there, and does again what it had done."""
    a, b = two(h)
    a.commit(6, 3.5)
    a.seek(4, 4)
    at = 3 if wrong else 4
    a.commit(at, 6)
    a.revoked(8)
    b.assigned(9)
    b.fetches(at, 9.01)
    rest(b, at)
    back = ("avoidable-redelivery", "seek", SOUGHT, (A, B), 4, 5, 2)
    if wrong:
        return [
            ("avoidable-redelivery", "", "", (A, B), 3, 3, 1),
            back,
            ("commit-regression", "", "", (A,), 3, 3, 1),
        ]
    return [back, ("commit-regression", "seek", SOUGHT, (A,), 4, 4, 1)]


@case
def a_record_that_is_tried_again_and_again(h: HistoryBuilder, wrong: bool) -> Iterable[Told]:
    """By the program, each time. Wrong: it does so three times, and its client does the others."""
    a, _ = two(h)
    for n in range(5):
        if n < (3 if wrong else 5):
            a.seek(5, 4 + n)
        a.process([5], 4.5 + n)
    rest(a, 6)
    by_client = [not_again(5, 5, 2)] if wrong else []
    loop = ("redelivery-loop", "count", SOUGHT, (A,), 5, 5, 1)
    return [again(5, 5, 3 if wrong else 5), *by_client, loop]


@case
def a_loop_that_the_program_has_little_to_do_with(h: HistoryBuilder, wrong: bool) -> Iterable[Told]:
    a, _ = two(h)
    if not wrong:
        a.seek(5, 4)
    for n in range(3):
        a.process([5], 4.5 + n)
    rest(a, 6)
    if wrong:
        return [not_again(5, 5, 3), ("redelivery-loop", "count", "", (A,), 5, 5, 1)]
    return [again(5, 5, 1), not_again(5, 5, 2), ("redelivery-loop", "count", SOUGHT, (A,), 5, 5, 1)]


@case
def records_of_one_poll_that_are_out_of_order(h: HistoryBuilder, wrong: bool) -> Iterable[Told]:
    """Nothing that a program does comes between these."""
    a, _ = two(h)
    a.seek(4, 4)
    a.process([6, 4] if wrong else [4, 5, 6], 5)
    rest(a, 7)
    return [("rewind", "inside one poll", "", (A,), 4, 4, 1)] if wrong else [again(4, 5, 2)]


def test_a_move_is_over_whatever_the_clock_says_of_the_rows_after_it(tmp_path: Path) -> None:
    """By which the row that shows that it is over came before the move. (A random history told the finders apart.)"""
    h = program(tmp_path)
    a, _ = two(h)
    a.seek(6, 4)
    for offset, at in ((6, 4), (8, 4.2), (7, 3.9), (7, 4.3), (9, 4.4)):
        a.deliver(offset, at)
    agreed(h.seal())


ANY, ONCE_EACH = Delivery("at-least-once"), Delivery("at-least-once", duplicates="only-after-failure")


@pytest.mark.parametrize("own", [True, False], ids=["a program of the user's", "our own loop"])
@pytest.mark.parametrize("promise", [ANY, ONCE_EACH, Delivery("at-most-once")], ids=["any", "after failures", "once"])
def test_only_who_promises_nothing_of_duplicates_may_go_back(tmp_path: Path, promise: Delivery, own: bool) -> None:
    """And only a program that is the user's own: of our loops nobody says that they do so."""
    h = HistoryBuilder(tmp_path, promises=[encode(promise)], workload={"type": "own_program"} if own else None)
    a, _ = two(h)
    a.seek(4, 4)
    a.process([4, 5], 5)
    rest(a, 6)
    (check,) = (check for check in judge(h.seal(), find_here).checks if check.check == "delivery")
    (finding,) = (finding for finding in check.findings if finding.kind == "rewind")
    permitted = own and promise == ANY
    assert finding.severity is (Severity.PERMITTED if permitted else Severity.VIOLATION)
    assert check.validity is (Validity.VALID if permitted else Validity.INVALID)
    assert "the program itself had moved its position back" in finding.examples[0]["sentence"]


def test_whoever_skips_records_on_purpose_has_lost_them(tmp_path: Path) -> None:
    h = program(tmp_path, promises=[encode(promise) for promise in (ANY, Order(), Ownership())])
    a, _ = two(h)
    a.commit(6, 3.5)
    a.seek(8, 4)
    rest(a, 8)
    found = {check.check: check for check in judge(h.seal(), find_here).checks}
    assert [found[name].validity for name in ("delivery", "order")] == [Validity.INVALID, Validity.VALID]
    assert found["ownership"].validity is Validity.VALID
    (lost,) = (finding for finding in found["delivery"].findings if finding.severity is Severity.VIOLATION)
    assert lost.kind == "unseen"
    assert "the program of member-0.1 had itself moved its position past them" in lost.examples[0]["sentence"]


def test_what_is_tried_again_behind_a_later_record_of_its_key_is_out_of_order(tmp_path: Path) -> None:
    h = program(tmp_path, promises=[encode(Order())])
    a, _ = two(h)
    first, _, _, later = a.poll([6, 7, 8, 9], 3.5)  # keys are offset % 3
    later.begin(3.6).end(3.7)
    first.begin(3.8)  # and is given up
    a.seek(6, 4)
    a.process([6, 7, 8, 9], 5)
    a.commit(10, 6)
    a.close(39)
    (check,) = (check for check in judge(h.seal(), find_here).checks if check.check == "order")
    assert [f.kind for f in check.findings if f.severity is Severity.VIOLATION] == ["key-order"]
