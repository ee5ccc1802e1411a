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
from fencepost.checkers.tables.rows import CoordinatorChange, Window
from fencepost.model import Check, Severity, Validity, Verdict
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
    """The client resets its position to the start; right is that where the offset was deleted."""
    _, b = handed_over(h)
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
    return [("wrong-start", "", "", (B,), 3, 3, 1), ("redelivery-below-commit", "", "", (B, A), 3, 5, 3)]


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


# What promises make of it.


def verdict(h: HistoryBuilder, without: Iterable[str] = ()) -> Verdict:
    return judge(h.seal(without=without), oracle.detect)


def check(of: Verdict, name: str) -> Check:
    return next(c for c in of.checks if c.check == name)


def told(of: Check) -> set[tuple[str, Severity, str]]:
    return {(f.kind, f.severity, f.reason) for f in of.findings}


def promising(folder: Path, **options: Any) -> HistoryBuilder:
    promises = [{"type": name} for name in ("delivery", "commits", "effects")]
    return HistoryBuilder(folder, 1, promises=promises, classic=True, **options)


def test_what_follows_breaks_the_promise_that_it_would_break_else_and_no_member_is_accused(tmp_path: Path) -> None:
    h = promising(tmp_path)
    a, b = handed_over(h)
    b.fetches(4, 5.01, broker=2)
    b.process([4], 6)
    b.commit(5, 7)
    rest(b, 5)
    for n, (member, offset) in enumerate([*((a, n) for n in range(6)), *((b, n) for n in range(4, 10))]):
        member.effect(offset, 2 + n, seq=n)
    of = verdict(h)
    assert of.validity == Validity.INVALID
    assert told(check(of, "delivery")) == {(STALE, Severity.VIOLATION, "redelivery-below-commit")}
    assert told(check(of, "effects")) == {(STALE, Severity.VIOLATION, "duplicate-effect")}
    assert told(check(of, "commits")) == {
        (STALE, Severity.VIOLATION, "wrong-start"),
        (STALE, Severity.VIOLATION, "commit-regression"),
        (STALE, Severity.NOTE, "told a member"),
    }


def effects_of_all_but(h: HistoryBuilder, offset: int) -> None:
    for other in {*range(10)} - {offset}:
        h.members[other > 5].effect(other, 3 if other < 6 else 15, seq=10 + other)


def test_an_effect_may_come_twice_where_that_is_not_promised(tmp_path: Path) -> None:
    h = promising(tmp_path)
    h.promises[2]["guarantee"] = "at-least-once"
    twice(h, True, "effect")
    effects_of_all_but(h, 4)
    assert told(check(verdict(h), "effects")) == {(STALE, Severity.PERMITTED, "duplicate-effect")}


@pytest.mark.parametrize("asker", ["administrator", "member-1.1"])
def test_an_answer_that_nobody_begins_by_is_a_note(tmp_path: Path, asker: str) -> None:
    """As that to an administrator, or to a program that looks at its lag."""
    h = promising(tmp_path)
    h.promises.pop()
    _, b = handed_over(h)
    b.fetches(6, 5.01, broker=2)
    b.fetches(4, 5.02, broker=2)
    h.requests[-1].update(client_id=asker)
    rest(b, 6)
    of = verdict(h)
    assert of.validity == Validity.VALID
    assert {(kind, severity) for kind, severity, _ in told(check(of, "commits"))} == {(STALE, Severity.NOTE)}
    assert not check(of, "delivery").findings


def test_the_sentence_names_both_requests_and_a_witness_the_high_watermark(tmp_path: Path) -> None:
    h = promising(tmp_path)
    _, b = handed_over(h)
    b.fetches(4, 5.01, broker=2)
    h.requests[1] |= {"broker": 1}  # that to commit 6
    rest(b, 4)
    (found,) = (f for f in check(verdict(h), "commits").findings if f.severity == Severity.VIOLATION)
    assert found.examples[0]["sentence"] == (
        "The coordinator (broker 2) sent member-1.1 4 as the committed offset of orders-0 at 5.011 s, although a "
        "commit of 6 had been acknowledged at 3.502 s; member-1.1 began there."
    )
    assert {
        "3.502 s: a commit of 6 had been acknowledged (record 2, of member-0.1, answered by broker 1)",
        "4.500 s: broker 2 began to lead the group's partition of the offsets topic: high watermark 15 (its log ended "
        "at 17)",
        "5.011 s: broker 2 answered member-1.1, asked at 5.010 s: 4 is committed",
    } <= {*found.examples[0]["witnesses"]}


NOT_KNOWN = "its coordinator had just loaded the group and may have answered with an older offset"
REQUESTS = "history/coordinator/requests.jsonl"


@pytest.mark.parametrize("moved", [True, False])
@pytest.mark.parametrize("without", [(), (REQUESTS,)], ids=["not-seen", "not-shown"])
def test_nobody_knows_whose_fault_it_is_where_no_answer_is_seen(
    tmp_path: Path, moved: bool, without: tuple[str, ...]
) -> None:
    """Whether the brokers show no requests at all, or just none of the member's; but a coordinator must have moved.

    If no request is shown, no start of a member is certain.
    """
    h = promising(tmp_path)
    a, b = handed_over(h, moved=moved)
    for seq, member in enumerate((a, b)):
        member.effect(4, 2.5 + 4 * seq, seq=seq)
    effects_of_all_but(h, 4)
    rest(b, 4)
    of = verdict(h, without)
    assert check(of, "effects").validity == (Validity.UNKNOWN if moved else Validity.INVALID)
    assert check(of, "delivery").validity == (Validity.UNKNOWN if moved or without else Validity.INVALID)
    assert not moved or all(NOT_KNOWN in check(of, name).reason for name in ("delivery", "effects"))


def test_a_coordinator_that_moves_unseen_is_known_by_the_terms_of_its_records(tmp_path: Path) -> None:
    h = promising(tmp_path)
    _, b = handed_over(h)
    rest(b, 4)
    of = verdict(h, (REQUESTS, "history/coordinator/metadata.jsonl"))
    assert check(of, "delivery").validity == Validity.UNKNOWN
    assert NOT_KNOWN in check(of, "delivery").reason


def outside(folder: Path) -> HistoryBuilder:
    return HistoryBuilder(folder, 1, promises=[{"type": "outside"}], black_box=True, classic=True)


@pytest.mark.parametrize("told_offset", [4, 6])
def test_what_a_black_box_is_told_is_the_brokers_doing_and_so_is_what_it_commits_by_it(
    tmp_path: Path, told_offset: int
) -> None:
    """It is known by its slot. Whether it began there is seen by nobody."""
    h = outside(tmp_path)
    _, b = handed_over(h)
    b.fetches(told_offset, 5.01, broker=2)
    h.requests[-1].update(client_id="its own")
    b.commit(5, 7)
    rest(b, 5)
    found = told(check(verdict(h), "outside"))
    back = (STALE, Severity.VIOLATION, "commit-regression"), (STALE, Severity.VIOLATION, "told a member")
    assert found == ({*back} if told_offset == 4 else {("commit-regression", Severity.VIOLATION, "")})


# The tables behind it.


def test_who_coordinated_a_group_is_told_by_the_metadata_log_and_by_changes_of_leaders_alone(tmp_path: Path) -> None:
    h = HistoryBuilder(tmp_path)
    h.write(1)
    h.coordinates(1, 1)
    h.coordinates(1, 2)  # as when a replica is in sync again
    h.coordinates(2, 3, log_end=9, mark=8)
    h.leader(3, 4)
    tables = load(h.seal())
    assert tables.seats == (
        CoordinatorChange(ns(1), BLUR_NS, 1, ns(3) + BLUR_NS),
        CoordinatorChange(ns(3), BLUR_NS, 2, log_end=9, high_watermark=8),
    )
    assert tables.loads == (Window.around(ns(3), BLUR_NS),)


@pytest.mark.parametrize("acknowledged", [True, False])
def test_a_broker_may_tell_of_an_acknowledgement_that_its_member_did_not_live_to_hear(
    tmp_path: Path, acknowledged: bool
) -> None:
    h = promising(tmp_path)
    a, b = two(h)
    a.commit(6, 3.5, outcome=None, accepted=True, logged="" if acknowledged else "REQUEST_TIMED_OUT")
    a.die(4)
    a.evicted(4.1)
    b.assigned(6)
    b.fetches(4, 6.01)
    rest(b, 4)
    assert {one.commit.offset for one in load(h.seal()).stale.values()} == ({6} if acknowledged else set())
