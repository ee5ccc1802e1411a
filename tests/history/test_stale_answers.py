"""What coordinators told members, and was older than a commit that had been acknowledged: whose fault what follows is.

As in ``test_kinds`` a case tells one story twice, ``wrong`` and right, and returns exactly what either shows.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from fencepost.checkers import oracle
from fencepost.checkers.judge import judge
from fencepost.checkers.tables import load
from fencepost.checkers.tables.rows import Seat, Window
from fencepost.model import Check, Finding, Severity, Validity, Verdict
from history.builder import BLUR_NS, HistoryBuilder, MemberTeller, ns
from history.test_kernel_equals_oracle import agreed
from history.test_kinds import A, B, Story, Told, rest, told_by, two

STALE, NOT_SEEN = "stale-offset-answer", "answer not seen"
CASES: list[Story] = []


def case(story: Story) -> Story:
    CASES.append(story)
    return story


@pytest.mark.parametrize("classic", [False, True], ids=["consumer", "classic"])
@pytest.mark.parametrize("wrong", [True, False], ids=["wrong", "near-miss"])
@pytest.mark.parametrize("story", CASES, ids=lambda story: story.__name__)
def test_a_story_shows_exactly_this(tmp_path: Path, story: Story, wrong: bool, classic: bool) -> None:
    h = HistoryBuilder(tmp_path, 2, classic=classic)
    expected = story(h, wrong)
    found = [told for told in told_by(h) if told[0] != "orphaned-partition"]  # the second one is idle
    assert sorted(found) == sorted(expected)
    agreed(h.run.path)


def handed_over(h: HistoryBuilder, *, moved: bool = True) -> tuple[MemberTeller, MemberTeller]:
    """The first member commits 4, and then 6; another broker becomes the coordinator; the second member takes over."""
    a, b = two(h)
    h.coordinates(1, 0.1)
    a.commit(6, 3.5)
    if moved:
        h.term += 1
        h.coordinates(2, 4.5, log_end=17, mark=15)
    a.revoked(4.6)
    b.assigned(5)
    return a, b


def begun_again(cause: str = "", excuse: str = "") -> list[Told]:
    """What the second member shows that begins at 4: by itself, or sent there by a broker."""
    kinds = ("wrong-start", "redelivery-below-commit")
    start, again = ((STALE, kind, excuse) if cause == STALE else (kind, cause, excuse) for kind in kinds)
    told = [(STALE, "told a member", excuse, (B,), 4, 4, 1)] if cause == STALE else []
    return [(*start, (B,), 4, 4, 1), (*again, (B, A), 4, 5, 2), *told]


@case
def a_stale_answer_that_a_member_begins_by(h: HistoryBuilder, wrong: bool) -> Iterable[Told]:
    """Without it, it would have no reason to begin there."""
    _, b = handed_over(h)
    b.fetches(4 if wrong else 6, 5.01, broker=2)
    rest(b, 4)
    return begun_again(STALE) if wrong else begun_again()


@case
def a_stale_answer_of_no_committed_offset(h: HistoryBuilder, wrong: bool) -> Iterable[Told]:
    """The client resets its position to the begin; right is that where the offset was deleted."""
    a, b = handed_over(h)
    if not wrong:
        h.accepts(None, 4.8)
    b.fetches(None, 5.01, broker=2)
    rest(b, 0)
    again = [(STALE, "redelivery-below-commit", "", (B, A), 0, 5, 6), (STALE, "wrong-start", "", (B,), 0, 0, 1)]
    told = (STALE, "told a member", "", (B,), -1, -1, 1)
    return [*again, told] if wrong else [("avoidable-redelivery", "", "", (A, B), 0, 5, 6)]


@case
def a_stale_answer_that_has_commits_go_back(h: HistoryBuilder, wrong: bool) -> Iterable[Told]:
    _, b = handed_over(h)
    b.fetches(4 if wrong else 6, 5.01, broker=2)
    b.process([4], 6)
    b.commit(5, 7)
    rest(b, 5)
    back = (STALE, "commit-regression") if wrong else ("commit-regression", "")
    return [(*back, "", (B, A), 5, 5, 1), *(begun_again(STALE) if wrong else begun_again())]


@case
def a_stale_answer_that_somebody_else_got(h: HistoryBuilder, wrong: bool) -> Iterable[Told]:
    """Nobody of the group begins by it."""
    _, b = handed_over(h)
    b.fetches(4 if wrong else 6, 4.51, broker=2)
    h.requests[-1].update(client_id="administrator", member_id=None, slot=None)
    b.fetches(6, 5.01, broker=2)
    rest(b, 6)
    return [(STALE, "", "", (), 4, 4, 1)] if wrong else []


@case
def an_answer_whose_line_may_have_been_written_late(h: HistoryBuilder, wrong: bool) -> Iterable[Told]:
    """Who became the coordinator after the commit was acknowledged cannot have been asked before."""
    _, b = handed_over(h, moved=wrong)
    for told, asked in ((4, 4.501), (6, 4.52)):
        b.fetches(told, asked, broker=2 if wrong else 1)
        h.requests[-1].update(client_id="administrator", member_id=None, slot=None)
    h.requests = [
        r | {"start_ns": ns(4.499), "end_ns": ns(4.499)} if not wrong and r.get("broker") else r for r in h.requests
    ]
    rest(b, 6)
    return [(STALE, "", "", (), 4, 4, 1)] if wrong else []


@case
def an_answer_from_before_a_coordinator_came_back(h: HistoryBuilder, wrong: bool) -> Iterable[Told]:
    """It may be of the time when the same broker was the coordinator before, and the line of the request late."""
    a, b = two(h)
    h.coordinates(2, 0.1)
    a.commit(6, 3.5)
    h.coordinates(1, 1.5 if wrong else 3.51)
    h.coordinates(2, 3.6)
    b.fetches(4, 3.61, broker=2)
    h.requests[-1].update(client_id="administrator", member_id=None, slot=None)
    rest(a, 6)
    return [(STALE, "", "", (), 4, 4, 1)] if wrong else []


@case
def a_stale_answer_to_who_asks_for_stable_offsets(h: HistoryBuilder, wrong: bool) -> Iterable[Told]:
    """Until a transaction has ended everywhere others may rightly be told what was before."""
    a, b = two(h)
    a.commit(6, 3.5, mode="transaction")
    a.revoked(4.6)
    b.assigned(5)
    b.fetches(4, 5.01, stable=wrong)
    rest(b, 4)
    return begun_again(STALE) if wrong else [("avoidable-redelivery", "", "", (A, B), 4, 5, 2)]


@case
def a_stale_answer_beside_a_commit_that_goes_back(h: HistoryBuilder, wrong: bool) -> Iterable[Told]:
    """What was committed last is in force, be it less or more."""
    _, b = handed_over(h)
    if not wrong:
        h.accepts(4, 4.2)
    b.fetches(4, 5.01, broker=2)
    rest(b, 4)
    right = [("avoidable-redelivery", "", "", (A, B), 4, 5, 2), ("commit-regression", "", "", (), 4, 4, 1)]
    return begun_again(STALE) if wrong else right


@case
def a_stale_answer_after_offsets_were_reset(h: HistoryBuilder, wrong: bool) -> Iterable[Told]:
    """A declared act excuses it."""
    _, b = handed_over(h)
    if not wrong:
        h.act("reset-offsets", 3.2)
    b.fetches(4, 5.01, broker=2)
    rest(b, 4)
    return begun_again(STALE, "" if wrong else "declared act: reset-offsets")


@case
def a_commit_of_another_partition(h: HistoryBuilder, wrong: bool) -> Iterable[Told]:
    """What is acknowledged of one says nothing of another."""
    a, b = two(h)
    a.commit(6, 3.5, tp=0 if wrong else 1)
    a.evicted(4)
    b.assigned(5)
    b.fetches(4, 5.01)
    rest(b, 4)
    removed = [("redelivery", "", "former owner was removed", (A, B), 4, 5, 2)]
    foreign = [("commit-beyond-end", "", "", (A,), 6, 6, 1)]
    return begun_again(STALE) if wrong else [*removed, *foreign]


@case
def a_start_below_the_commit_with_no_answer_seen(h: HistoryBuilder, wrong: bool) -> Iterable[Told]:
    """A coordinator that had just loaded may have sent it there; where none had, nobody but the member did."""
    _, b = handed_over(h, moved=wrong)
    rest(b, 4)
    return begun_again(NOT_SEEN) if wrong else begun_again()


@case
def a_start_where_nothing_was_ever_committed(h: HistoryBuilder, wrong: bool) -> Iterable[Told]:
    """No stale answer sends anybody there."""
    _, b = handed_over(h)
    first = 3 if wrong else 4
    rest(b, first)
    if not wrong:
        return begun_again(NOT_SEEN)
    again = [("redelivery-below-commit", "", "", (B, A), 3, 3, 1)]
    return [("wrong-start", "", "", (B,), 3, 3, 1), *again, ("redelivery-below-commit", NOT_SEEN, "", (B, A), 4, 5, 2)]


@case
def an_answer_of_an_assignment_before(h: HistoryBuilder, wrong: bool) -> Iterable[Told]:
    """Long ago somebody was rightly told less."""
    a, b = two(h)
    b.assigned(2.5, 1)
    a.commit(6, 3.5)
    a.fetches(4, 3.05)
    a.revoked(4.6)
    who = b if wrong else a
    who.assigned(6)
    rest(who, 4)
    kinds = ("wrong-start", "redelivery-below-commit")
    start, again = (
        (kind, "", "", people, 4, last, count)
        for kind, people, last, count in zip(
            kinds, ((who.name,), tuple(dict.fromkeys((who.name, A)))), (4, 5), (1, 2), strict=True
        )
    )
    return [start, again]


KINDS_OF_EFFECTS = {"effect": "duplicate-effect", "dead-letter": "dead-letter-twice", "requeued": "requeue-twice"}


def twice(h: HistoryBuilder, wrong: bool, kind: str) -> Iterable[Told]:
    """A record has its effect, and once more by who was sent back to it."""
    a, b = handed_over(h)
    more = {"again": 20} if kind == "requeued" else {}
    a.effect(4, 2.5, seq=1, kind=kind, **more)
    b.fetches(4 if wrong else 6, 5.01, broker=2)
    b.effect(4, 6, seq=2, kind=kind, **more)
    rest(b, 6)
    found = (STALE, KINDS_OF_EFFECTS[kind]) if wrong else (KINDS_OF_EFFECTS[kind], "")
    told = [(STALE, "told a member", "", (B,), 4, 4, 1)] if wrong else []
    return [(*found, "", (B, A), 4, 4, 1), *told]


@case
def a_stale_answer_that_brings_a_second_effect(h: HistoryBuilder, wrong: bool) -> Iterable[Told]:
    return twice(h, wrong, "effect")


@case
def a_stale_answer_that_brings_a_second_dead_letter(h: HistoryBuilder, wrong: bool) -> Iterable[Told]:
    return twice(h, wrong, "dead-letter")


@case
def a_second_effect_with_no_answer_seen(h: HistoryBuilder, wrong: bool) -> Iterable[Told]:
    a, b = handed_over(h, moved=wrong)
    a.effect(4, 2.5, seq=1)
    b.effect(4, 6, seq=2)
    rest(b, 6)
    return [("duplicate-effect", NOT_SEEN if wrong else "", "", (B, A), 4, 4, 1)]
