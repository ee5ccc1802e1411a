"""Every kind of anomaly in the smallest history that shows it, beside a near miss that must not.

A case tells one story twice, ``wrong`` and right; the difference is a detail. Wrong must give exactly the anomalies
that are listed (so each test fails when its rule is disabled), right at most kinds that are listed for it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest

from fencepost.checkers import oracle
from fencepost.checkers.judge import _bounds
from fencepost.checkers.tables import load
from fencepost.checkers.tables.effects import LETTER_NS
from fencepost.history import RecordState
from fencepost.model import serialization
from history.builder import HistoryBuilder, MemberTeller, ns

Told = tuple[str, str, str, tuple[str, ...], int, int, int]  # kind, cause, excuse, members, first, last, count
Story = Callable[[HistoryBuilder, bool], Iterable[Told]]
CASES: list[Story] = []
A, B = "member-0.1", "member-1.1"


def case(story: Story) -> Story:
    CASES.append(story)
    return story


def told_by(h: HistoryBuilder) -> list[Told]:
    run = h.seal()
    promises = (serialization.decode("promise", promise) for promise in h.promises)
    found, facts = oracle.detect(run, load(run), _bounds(promises))
    assert not facts.failed
    return sorted((a.kind, a.cause, a.excuse, a.members, a.first_offset, a.last_offset, a.count) for a in found)


@pytest.mark.parametrize("classic", [False, True], ids=["consumer", "classic"])
@pytest.mark.parametrize("story", CASES, ids=lambda story: story.__name__)
def test_the_wrong_history_shows_exactly_this(tmp_path: Path, story: Story, classic: bool) -> None:
    h = HistoryBuilder(tmp_path, classic=classic)
    expected = story(h, True)
    assert told_by(h) == sorted(expected)


@pytest.mark.parametrize("classic", [False, True], ids=["consumer", "classic"])
@pytest.mark.parametrize("story", CASES, ids=lambda story: story.__name__)
def test_the_near_miss_shows_what_is_excused_and_nothing_else(tmp_path: Path, story: Story, classic: bool) -> None:
    h = HistoryBuilder(tmp_path, classic=classic)
    expected = story(h, False)
    assert told_by(h) == sorted(expected)


def two(h: HistoryBuilder) -> tuple[MemberTeller, MemberTeller]:
    """Ten records of partition 0, of which the first member processed 0..5 and committed 4; and a second member."""
    h.write(10)
    a, b = h.member(0), h.member(1)
    a.assigned(1)
    a.process(range(6), 2)
    a.commit(4, 3)
    return a, b


def rest(member: MemberTeller, first: int, at: float = 15) -> None:
    """The rest of the ten records, and a clean end."""
    member.process(range(first, 10), at)
    member.commit(10, at + 1)
    member.revoked(38)
    member.close(39)


@case
def a_lost_write(h: HistoryBuilder, wrong: bool) -> Iterable[Told]:
    a, _ = two(h)
    a.process([6, 8, 9], 15)
    a.commit(10, 16)
    a.revoked(38)
    a.close(39)
    if not wrong:  # nobody knows whether it was written
        h.produced[7] = h.produced[7]._replace(outcome=2, offset=-1, acked_ns=0)
    del h.log[7]
    return [("lost-write", "", "", ("producer-0",), 7, 7, 1)] if wrong else []


@case
def a_write_lost_by_a_declared_act(h: HistoryBuilder, wrong: bool) -> Iterable[Told]:
    rest(two(h)[0], 6)
    if wrong:
        h.act("delete-records", 17)
        del h.log[3]
        excuse = "declared act: delete-records"
        return [
            ("lost-write", "", excuse, ("producer-0",), 3, 3, 1),
            ("delivered-then-lost", "", excuse, (A,), 3, 3, 1),
        ]
    return []


@case
def a_phantom(h: HistoryBuilder, wrong: bool) -> Iterable[Told]:
    a, _ = two(h)
    rest(a, 6)
    if wrong:
        a.rows[5].seq = 999
        return [("phantom", "", "", (A,), 5, 5, 1)]
    h.produced[5] = h.produced[5]._replace(outcome=2, offset=-1, acked_ns=0)  # of a send, whatever its outcome
    return []


UNCOMMITTED = "its consumer reads uncommitted records"


def some_aborted(h: HistoryBuilder, read: Iterable[int], **reported: Any) -> None:
    """Of ten records the transaction of two was aborted; a member is delivered the others, and of the two those."""
    h.write(10)
    a = h.member(0, **reported)
    a.assigned(1)
    for offset in (4, 5):
        h.aborts(offset)
    a.process([*range(4), *read, *range(6, 10)], 2)
    a.commit(10, 16)
    a.revoked(38)
    a.close(39)


@case
def an_aborted_record(h: HistoryBuilder, wrong: bool) -> Iterable[Told]:
    some_aborted(h, (4, 5) if wrong else ())
    return [("aborted-read", "", "", (A,), 4, 5, 2)] if wrong else []


@case
def an_aborted_record_that_the_scenario_asks_for(h: HistoryBuilder, wrong: bool) -> Iterable[Told]:
    h.config["isolation.level"] = "read_uncommitted"
    some_aborted(h, (5,) if wrong else ())
    return [("aborted-read", "", UNCOMMITTED, (A,), 5, 5, 1)] if wrong else []


@case
def an_aborted_record_of_a_client_that_reads_all_by_default(h: HistoryBuilder, wrong: bool) -> Iterable[Told]:
    settings = {} if wrong else {"isolation.level": "read_committed"}
    some_aborted(h, (5,), client="kafka-python", config=settings)
    return [("aborted-read", "", UNCOMMITTED if wrong else "", (A,), 5, 5, 1)]


@case
def an_aborted_record_of_a_program_that_does_not_say_what_it_reads(h: HistoryBuilder, wrong: bool) -> Iterable[Told]:
    settings = {} if wrong else {"isolation.level": "read_committed"}
    some_aborted(h, (5,), client="sarama", told_by="lines", config=settings)
    excuse = "it is unknown whether its consumer reads uncommitted records" if wrong else ""
    return [("aborted-read", "", excuse, (A,), 5, 5, 1)]


@case
def an_aborted_record_that_an_act_excuses_first(h: HistoryBuilder, wrong: bool) -> Iterable[Told]:
    h.config["isolation.level"] = "read_uncommitted"
    h.act("delete-records", 17)
    some_aborted(h, (5,) if wrong else ())
    return [("aborted-read", "", "declared act: delete-records", (A,), 5, 5, 1)] if wrong else []


@case
def a_record_that_was_delivered_and_then_lost(h: HistoryBuilder, wrong: bool) -> Iterable[Told]:
    a, _ = two(h)
    rest(a, 6)
    h.produced[5] = h.produced[5]._replace(outcome=2, offset=-1, acked_ns=0)
    if wrong:
        del h.log[5]
        return [("delivered-then-lost", "", "", (A,), 5, 5, 1)]
    h.act("DeleteRecords", 20, 0)  # a declared act is another excuse: the record is there
    return []


@case
def a_send_that_landed_twice(h: HistoryBuilder, wrong: bool) -> Iterable[Told]:
    a, _ = two(h)
    again = h.lands_again(9) if wrong else h.write(1, key=0)[0]
    a.process([*range(6, 10), again], 15)
    a.commit(11, 16)
    a.close(39)
    return [("duplicate-write", "", "", ("producer-0",), 10, 10, 1)] if wrong else []


@case
def a_send_that_landed_late(h: HistoryBuilder, wrong: bool) -> Iterable[Told]:
    """Not: two producers' records."""
    a, _ = two(h)
    h.land_crossed(7, 8)
    if not wrong:
        h.log[7] = h.log[7]._replace(writer=1)
        h.produced[7] = h.produced[7]._replace(writer=1)
        h.content[0, 8] = (h.log[7].key, 1, h.log[7].seq)
    rest(a, 6)
    return [("nonmonotonic-send", "", "", ("producer-0",), 8, 8, 1)] if wrong else []


@case
def records_of_strangers_have_no_numbers(h: HistoryBuilder, wrong: bool) -> Iterable[Told]:
    a, _ = two(h)
    del h.produced[7:9]
    for offset in (7, 8):
        stranger = {"writer": 0 if wrong else -1, "seq": 9 if wrong else -1}
        h.log[offset] = h.log[offset]._replace(**stranger)
        h.content[0, offset] = (h.log[offset].key, *stranger.values())
    rest(a, 6)
    return [("duplicate-write", "", "", ("producer-0",), 8, 9, 2)] if wrong else []


@case
def sends_again_without_idempotence(h: HistoryBuilder, wrong: bool) -> Iterable[Told]:
    """What a client may do that was not told to be idempotent: a batch lands, is taken for lost, and lands again."""
    a, _ = two(h)
    h.producer(idempotent=False)
    again = [h.lands_again(offset) for offset in (8, 9)] if wrong else [*h.write(2)]
    late = h.write(2)
    if wrong:
        h.land_crossed(*late)
    a.process([*range(6, 10), *again, *late], 15)
    a.commit(14, 16)
    a.close(39)
    excuse = "producer not idempotent"
    twice = ("duplicate-write", "", excuse, ("producer-0",), 10, 11, 2)
    return [twice, ("nonmonotonic-send", "", excuse, ("producer-0",), 13, 13, 1)] if wrong else []


@case
def a_log_that_deleted_its_begin(h: HistoryBuilder, wrong: bool) -> Iterable[Told]:
    rest(two(h)[0], 6)
    del h.log[3]
    if not wrong:
        h.log_starts[0] = 4
        h.log[:3] = []
        return []
    return [("lost-write", "", "", ("producer-0",), 3, 3, 1), ("delivered-then-lost", "", "", (A,), 3, 3, 1)]


@case
def an_offset_with_two_contents(h: HistoryBuilder, wrong: bool) -> Iterable[Told]:
    a, b = two(h)
    a.revoked(4)
    b.assigned(5)
    rest(b, 4)
    again = [("avoidable-redelivery", "", "", (A, B), 4, 5, 2)]
    if not wrong:
        return again
    a.rows[5].key, a.rows[5].seq = a.rows[4].key, a.rows[4].seq
    lost, other = ("delivered-then-lost", "", "", (A,), 5, 5, 1), ("inconsistent-offsets", "", "", (B, A), 5, 5, 1)
    return [*again, lost, other]


@case
def a_delivery_outside_of_the_assignment(h: HistoryBuilder, wrong: bool) -> Iterable[Told]:
    a, b = two(h)
    a.commit(6, 3.5)
    a.revoked(4, took=0.5)
    a.deliver(6, 4.6 if wrong else 4.4, interval=-1)
    b.assigned(5)
    rest(b, 6)
    return [("delivery-outside-assignment", "", "", (A,), 6, 6, 1)] if wrong else []


@case
def a_record_skipped(h: HistoryBuilder, wrong: bool) -> Iterable[Told]:
    a, b = two(h)
    a.commit(6, 3.5)
    a.revoked(4)
    b.assigned(5)
    rest(b, 8)
    b.process([6, 7] if not wrong else [6], 14)  # before the rest, if told in order of time
    b.rows.sort(key=lambda row: row.delivered_ns)
    for n, row in enumerate(b.rows):
        row.ord = row.poll = n
    jumped = ("poll-skip", "", "", (B,), 7, 7, 1)
    passed = ("commit-ahead", "", "", (B,), 7, 7, 1)
    return [("unseen", "skipped", "", (B,), 7, 7, 1), jumped, passed] if wrong else []


@case
def a_successor_that_starts_past_a_record(h: HistoryBuilder, wrong: bool) -> Iterable[Told]:
    a, b = two(h)
    a.commit(6, 3.5)
    a.revoked(4)
    b.assigned(5)
    rest(b, 8 if wrong else 6)
    return [("unseen", "skipped", "", (B,), 6, 7, 2), ("wrong-start", "", "", (B,), 8, 8, 1)] if wrong else []


@case
def a_hole_that_holds_nothing_visible(h: HistoryBuilder, wrong: bool) -> Iterable[Told]:
    h.write(4)
    if not wrong:
        h.write(4, hole=2)
    else:
        h.write(6)
    a = h.member(0)
    a.assigned(1)
    a.process([0, 1, 2, 3, 6, 7, 8, 9], 2)
    a.commit(10, 3)
    a.close(39)
    passed = [("poll-skip", "inside one poll", "", (A,), 4, 5, 2), ("commit-ahead", "", "", (A,), 4, 5, 2)]
    return [("unseen", "skipped", "", (A,), 4, 5, 2), *passed] if wrong else []


@case
def a_commit_past_what_was_in_hand(h: HistoryBuilder, wrong: bool) -> Iterable[Told]:
    a, b = two(h)
    rows = a.poll([6, 7], 3.1)
    a.commit(8 if wrong else 6, 3.2)
    rows[0].begin(3.3)
    a.die(3.4)
    a.evicted(9)
    b.assigned(10)
    rest(b, 8 if wrong else 6)
    if not wrong:
        return []
    died = "in hand when its owner died"
    return [
        ("commit-ahead", "", "", (A,), 6, 7, 2),
        ("unseen", "in-doubt", died, (A,), 6, 6, 1),
        ("unseen", "committed-unprocessed", died, (A,), 7, 7, 1),
    ]


@case
def a_commit_past_an_earlier_poll(h: HistoryBuilder, wrong: bool) -> Iterable[Told]:
    """Bounded by one poll: what came with an earlier one was not in hand."""
    a, b = two(h)
    rows = [*a.poll([6], 3.1), *a.poll([7], 3.2)]
    rows[1].begin(3.3).end(3.4)
    if not wrong:
        rows[0].begin(3.25).end(3.3, RecordState.PARKED)
    a.commit(8, 3.5)
    a.die(3.6)
    a.evicted(9)
    b.assigned(10)
    rest(b, 8)
    passed = ("commit-ahead", "", "", (A,), 6, 6, 1)
    return [("unseen", "committed-unprocessed", "", (A,), 6, 6, 1), passed] if wrong else []


@case
def a_handler_that_failed_and_was_committed_past(h: HistoryBuilder, wrong: bool) -> Iterable[Told]:
    a, _ = two(h)
    rest(a, 6)
    a.rows[2].end(2.0029, RecordState.FAILED if wrong else RecordState.PARKED)
    passed = ("commit-ahead", "", "", (A,), 2, 2, 1)
    return [("unseen", "committed-unprocessed", "", (A,), 2, 2, 1), passed] if wrong else []


@case
def a_redelivery_after_a_death(h: HistoryBuilder, wrong: bool) -> Iterable[Told]:
    a, b = two(h)
    a.die(4)
    a.evicted(9)
    b.assigned(10)
    if not wrong:
        h.accepts(6, 3.5)  # it was accepted, though the member never heard of it
    rest(b, 4 if wrong else 6)
    return [("redelivery", "", "former owner died", (A, B), 4, 5, 2)] if wrong else []


@case
def a_redelivery_that_nothing_explains(h: HistoryBuilder, wrong: bool) -> Iterable[Told]:
    """Nobody saw the first owner give the partition up, or the coordinator remove it."""
    _, b = two(h)
    b.assigned(10)
    if not wrong:
        h.accepts(6, 3.5)
    rest(b, 4 if wrong else 6)
    return [("redelivery", "", "", (A, B), 4, 5, 2)] if wrong else []


@case
def an_eviction_that_only_the_coordinator_tells(h: HistoryBuilder, wrong: bool) -> Iterable[Told]:
    a, b = two(h)
    a.evicted(9)
    b.assigned(10)
    a.revoked(9.5, reported=False)
    if not wrong:
        h.accepts(6, 3.5)
    rest(b, 4 if wrong else 6)
    return [("redelivery", "", "former owner was removed", (A, B), 4, 5, 2)] if wrong else []


@case
def a_final_commit_that_was_refused(h: HistoryBuilder, wrong: bool) -> Iterable[Told]:
    a, b = two(h)
    a.commit(6, 4.0005, outcome="fail" if wrong else "ok", error="REBALANCE_IN_PROGRESS" if wrong else "")
    a.revoked(4, took=0.01)
    b.assigned(5)
    rest(b, 4 if wrong else 6)
    return [("redelivery", "", "final commit was refused", (A, B), 4, 5, 2)] if wrong else []


@case
def a_final_commit_that_was_not_answered(h: HistoryBuilder, wrong: bool) -> Iterable[Told]:
    a, b = two(h)
    a.commit(6, 3.5, outcome=None if wrong else "ok")
    a.revoked(4)
    b.assigned(5)
    rest(b, 4 if wrong else 6)
    return [("redelivery", "", "final commit was not answered", (A, B), 4, 5, 2)] if wrong else []


@case
def an_avoidable_redelivery(h: HistoryBuilder, wrong: bool) -> Iterable[Told]:
    a, b = two(h)
    if not wrong:
        a.commit(6, 3.5)
    a.revoked(4)
    b.assigned(5)
    rest(b, 4 if wrong else 6)
    return [("avoidable-redelivery", "", "", (A, B), 4, 5, 2)] if wrong else []


@case
def a_start_below_the_commit(h: HistoryBuilder, wrong: bool) -> Iterable[Told]:
    """The commit that was answered is in force; one that was merely appended may not have been visible yet."""
    a, b = two(h)
    a.commit(6, 3.5, outcome="ok" if wrong else "info", accepted=True)
    a.revoked(4)
    b.assigned(5)
    rest(b, 4)
    if wrong:
        return [("redelivery-below-commit", "", "", (B, A), 4, 5, 2), ("wrong-start", "", "", (B,), 4, 4, 1)]
    return [("redelivery", "", "final commit was not answered", (A, B), 4, 5, 2)]


@case
def a_loop_over_one_offset(h: HistoryBuilder, wrong: bool) -> Iterable[Told]:
    h.write(7)
    a = h.member(0)
    a.assigned(1)
    a.process(range(6), 2)
    for n in range(11 if wrong else 10):
        a.intervals[0] = n + 1
        row = a.deliver(6, 4 + n / 10)
    row.begin(6).end(6.1)
    a.commit(7, 7)
    a.close(39)
    return [("redelivery-loop", "count", "", (A,), 6, 6, 1)] if wrong else []


@case
def a_loop_with_faults_around_it(h: HistoryBuilder, wrong: bool) -> Iterable[Told]:
    """Each step may make a record come again, and back to whom it was taken from."""
    reported = a_loop_over_one_offset(h, True)
    h.fault("move_coordinator", 3.5 if not wrong else 5.5)
    return reported if wrong else []


@case
def a_loop_while_the_commit_stands_still(h: HistoryBuilder, wrong: bool) -> Iterable[Told]:
    h.phases = {}
    a, _ = two(h)
    for n, at in enumerate((100, 120, 131)):
        a.intervals[0] = n + 1
        a.deliver(6, at)
    if not wrong:
        h.fault("kill", 105)
    return [("redelivery-loop", "standing", "", (A,), 6, 6, 1)] if wrong else []


@case
def a_rewind(h: HistoryBuilder, wrong: bool) -> Iterable[Told]:
    a, _ = two(h)
    if not wrong:
        a.revoked(3.5)
        a.assigned(4)
    a.process([4, 5], 5)
    rest(a, 6)
    return [("rewind", "", "", (A,), 4, 5, 2)] if wrong else [("avoidable-redelivery", "", "", (A,), 4, 5, 2)]


@case
def a_rewind_by_an_undeclared_seek(h: HistoryBuilder, wrong: bool) -> Iterable[Told]:
    a, _ = two(h)
    a.seek(5 if wrong else 6, 4)
    a.process([5, 6] if wrong else [6], 5)
    rest(a, 7)
    return [("rewind", "seek", "", (A,), 5, 5, 1)] if wrong else []


@case
def a_rewind_without_an_aborted_transaction(h: HistoryBuilder, wrong: bool) -> Iterable[Told]:
    """What a transaction that was not committed had read is read again. Wrong: it was committed, and what came after it
    is read again."""
    a, _ = two(h)
    a.commit(4, 3.5, mode="transaction", **({} if wrong else {"outcome": "fail", "error": "UNKNOWN"}))
    a.seek(4, 4)
    a.process([4, 5], 5)
    rest(a, 6)
    return [("rewind", "seek", "", (A,), 4, 5, 2)] if wrong else []


@case
def a_rewind_after_a_commit_that_was_refused(h: HistoryBuilder, wrong: bool) -> Iterable[Told]:
    """It was of no transaction."""
    a, _ = two(h)
    a.commit(6, 3.5, outcome="fail", error="UNKNOWN", mode="sync" if wrong else "transaction")
    a.seek(4, 4)
    a.process([4, 5], 5)
    rest(a, 6)
    return [("rewind", "seek", "", (A,), 4, 5, 2)] if wrong else []


@case
def a_rewind_to_before_an_aborted_transaction(h: HistoryBuilder, wrong: bool) -> Iterable[Told]:
    a, _ = two(h)
    a.commit(4, 3.2, mode="transaction")
    a.commit(6, 3.5, mode="transaction", outcome="info", error="UNKNOWN")
    a.seek(3 if wrong else 4, 4)
    a.process([3, 4, 5] if wrong else [4, 5], 5)
    rest(a, 6)
    return [("rewind", "seek", "", (A,), 3, 5, 3)] if wrong else []


@case
def a_rewind_some_time_after_an_aborted_transaction(h: HistoryBuilder, wrong: bool) -> Iterable[Told]:
    """It went back once; nobody went back twice."""
    a, _ = two(h)
    a.commit(6, 3.5, mode="transaction", outcome="fail", error="UNKNOWN")
    a.seek(4, 4)
    a.process([4, 5, 6], 5)
    if wrong:
        a.process([5, 6], 6)
    rest(a, 7)
    return [("rewind", "", "", (A,), 5, 6, 2)] if wrong else []


@case
def a_skip_after_an_aborted_transaction(h: HistoryBuilder, wrong: bool) -> Iterable[Told]:
    """It goes on from further up than where it went. (Two records of that were done before.)"""
    a, _ = two(h)
    a.commit(6, 3.5, mode="transaction", outcome="fail", error="UNKNOWN")
    a.seek(4, 4)
    a.process([5] if wrong else [4, 5], 5)
    rest(a, 6)
    return [("poll-skip", "", "", (A,), 4, 4, 1)] if wrong else []


@case
def a_record_without_an_effect(h: HistoryBuilder, wrong: bool) -> Iterable[Told]:
    """Not so one that nobody committed past."""
    h.promises.append({"type": "effects"})
    a, _ = two(h)
    for offset in range(9):
        if not (wrong and offset in (4, 5, 7)):
            a.effect(offset, 16, seq=offset)
    a.process(range(6, 10), 15)
    a.commit(9, 16)
    a.revoked(38)
    a.close(39)
    return [("missing-effect", "", "", (A,), 4, 7, 3)] if wrong else []


@case
def a_swallowed_error_without_a_dead_letter(h: HistoryBuilder, wrong: bool) -> Iterable[Told]:
    """Members say that they are done with all: of each fourth record the workload knows better. Not so the last one,
    which nobody committed past."""
    h.promises.append({"type": "parked"})
    h.workload["poison_every"] = 4
    h.write(12)
    a = h.member(0)
    a.assigned(1)
    a.process(range(12), 2)
    a.effect(3, 3, seq=1, kind="dead-letter")
    if not wrong:
        a.effect(7, 3, seq=2, kind="dead-letter")
    a.commit(8, 4)
    a.revoked(38)
    a.close(39)
    return [("dead-letter-missing", "", "", (A,), 7, 7, 1)] if wrong else []


@case
def what_others_wrote_is_no_poison(h: HistoryBuilder, wrong: bool) -> Iterable[Told]:
    h.promises.append({"type": "parked"})
    h.workload["poison_every"] = 1
    a, _ = two(h)
    for offset in range(1, 10):
        a.effect(offset, 17, seq=offset, kind="dead-letter")
    rest(a, 6)
    if not wrong:
        h.log[0] = h.log[0]._replace(writer=-1, seq=-1)
        a.rows[0].writer = a.rows[0].seq = -1
        del h.produced[0]
    return [("dead-letter-missing", "", "", (A,), 0, 0, 1)] if wrong else []


@case
def a_parked_record_without_a_dead_letter(h: HistoryBuilder, wrong: bool) -> Iterable[Told]:
    """Unless somebody else was able to process it."""
    h.promises.append({"type": "parked"})
    h.write(10)
    a, b = h.member(0), h.member(1)
    a.assigned(1)
    for offset, row in enumerate(a.poll(range(6), 2)):
        row.begin(2 + offset / 100).end(2.005 + offset / 100, RecordState.PARKED if offset > 3 else RecordState.DONE)
    a.commit(4, 3)
    a.effect(4, 3, seq=1, kind="dead-letter")
    a.die(3.4)
    a.evicted(9)
    b.assigned(10)
    rest(b, 6 if wrong else 4)
    if wrong:
        return [("dead-letter-missing", "", "", (B,), 5, 5, 1), ("wrong-start", "", "", (B,), 6, 6, 1)]
    return [("redelivery", "", "former owner died", (A, B), 4, 5, 2)]


@case
def a_record_processed_after_one_of_its_key_was_parked(h: HistoryBuilder, wrong: bool) -> Iterable[Told]:
    """Not one of another key, of before the letter, or of an entity without a name."""
    h.promises.append({"type": "parked", "in_order": wrong})
    a, b = two(h)
    key = h.content[0, 2][0]
    later = [offset for offset in range(3, 10) if h.content[0, offset][0] == key]
    assert later[0] < 6 <= later[-1]  # some were done before
    a.effect(2, 5, seq=1, key=key, kind="dead-letter")
    b.effect(2, 6, seq=2, key=key, kind="dead-letter")
    b.effect(3, 5, seq=3, key=-1, kind="dead-letter")
    a.effect(9, 5, seq=4, key=h.content[0, 9][0], kind="dead-letter")  # it is no earlier one than itself
    a.rows[2].state = RecordState.PARKED
    a.commit(6, 6)
    rest(a, 6)
    a.rows[7].key = -1
    h.log[7], h.produced[7] = (of[7]._replace(key=-1) for of in (h.log, h.produced))
    again = [offset for offset in later if offset >= 6]
    twice = ("dead-letter-twice", "", "", (B, A), 2, 2, 1)
    return [("per-entity-order", "", "", (A,), again[0], again[-1], len(again)), twice] if wrong else [twice]


@case
def a_record_processed_just_after_a_letter_of_its_key(h: HistoryBuilder, wrong: bool) -> Iterable[Told]:
    """Letters bear their time in milliseconds, of another clock: within 10 ms nobody knows. Nor is it the letter's own
    record."""
    h.promises.append({"type": "parked", "in_order": True})
    a, _ = two(h)
    a.effect(6, 15.003 - (0.011 if wrong else 0.010), seq=1, key=h.content[0, 6][0], kind="dead-letter")
    rest(a, 6)
    a.rows[6].state = RecordState.PARKED
    assert h.content[0, 9][0] == h.content[0, 6][0]
    return [("per-entity-order", "", "", (A,), 9, 9, 1)] if wrong else []


def of_its_key(h: HistoryBuilder, offset: int) -> tuple[int, list[int]]:
    """The key of a record, and which of the last four records of partition 0 have it, too."""
    key = h.content[0, offset][0]
    return key, [later for later in range(6, 10) if h.content[0, later][0] == key]


def overtook(later: list[int]) -> list[Told]:
    """These records, of the first member, overtook a letter of the second one."""
    return [("per-entity-order", "", "", (A, B), later[0], later[-1], len(later))]


@case
def a_record_processed_while_a_letter_of_its_key_was_not_retried_yet(h: HistoryBuilder, wrong: bool) -> Iterable[Told]:
    """Letters of another key, and of later records, may lie there for ever."""
    h.promises.append({"type": "parked", "in_order": True})
    a, b = two(h)
    (key, later), other = of_its_key(h, 2), h.content[0, 3][0]
    assert other != key
    b.effect(2, 5, seq=1, key=key, kind="dead-letter", retried_ns=ns(30 if wrong else 14))
    b.effect(3, 5, seq=2, key=other, kind="dead-letter", retried_ns=ns(14))
    b.effect(9, 5, seq=3, key=key, kind="dead-letter")
    a.rows[2].state = RecordState.PARKED
    rest(a, 6)
    return overtook(later) if wrong else []


@case
def a_record_processed_after_a_letter_of_another_that_nobody_was_done_with(
    h: HistoryBuilder, wrong: bool
) -> Iterable[Told]:
    """Else who parked it had it no longer, as a member that stood still past its session."""
    h.promises.append({"type": "parked", "in_order": True})
    a, b = two(h)
    key, later = of_its_key(h, 2)
    b.effect(2, 5, seq=1, key=key, kind="dead-letter")
    a.rows[2].state = RecordState.PARKED if wrong else RecordState.DONE
    rest(a, 6)
    return overtook(later) if wrong else []


@case
def a_record_processed_when_only_the_first_of_two_letters_of_its_key_was_retried(
    h: HistoryBuilder, wrong: bool
) -> Iterable[Told]:
    """The one that still lies there is told."""
    h.promises.append({"type": "parked", "in_order": True})
    a, b = two(h)
    key, later = of_its_key(h, 2)
    assert h.content[0, 5][0] == key
    a.effect(2, 5, seq=1, key=key, kind="dead-letter", retried_ns=ns(14))
    b.effect(5, 6, seq=2, key=key, kind="dead-letter", **({} if wrong else {"retried_ns": ns(14)}))
    a.rows[2].state = a.rows[5].state = RecordState.PARKED
    rest(a, 6)
    return overtook(later) if wrong else []


@case
def a_record_processed_just_before_a_letter_of_its_key_was_retried(h: HistoryBuilder, wrong: bool) -> Iterable[Told]:
    """What tells of that bears its time in milliseconds, too: within 10 ms nobody knows."""
    h.promises.append({"type": "parked", "in_order": True})
    a, _ = two(h)
    rest(a, 6)
    a.rows[6].state = RecordState.PARKED
    key, done_ns = h.content[0, 6][0], a.rows[9].done_ns
    assert h.content[0, 9][0] == key
    a.effect(6, 14, seq=1, key=key, kind="dead-letter", retried_ns=done_ns + LETTER_NS + wrong)
    return [("per-entity-order", "", "", (A,), 9, 9, 1)] if wrong else []


@case
def a_record_that_was_to_come_again_is_not_in_the_log(h: HistoryBuilder, wrong: bool) -> Iterable[Told]:
    """Nobody committed past the last one. A copy is no second send of its producer."""
    h.promises.append({"type": "requeued"})
    h.write(10)
    a = h.member(0)
    a.assigned(1)
    rows = a.process(range(10), 2)
    for offset in (2, 4, 9):
        rows[offset].state = RecordState.PARKED
    for seq, offset in enumerate((2,) if wrong else (2, 4), 1):
        a.effect(offset, 2 + offset / 1000, seq=seq, kind="requeued", again=h.lands_again(offset))
    a.commit(9, 3)
    a.revoked(38)
    a.close(39)
    left = ("unconsumed", "", "", (A,), 10, 10 if wrong else 11, 1 if wrong else 2)
    return [("requeue-missing", "", "", (A,), 4, 4, 1), left] if wrong else [left]


@case
def a_copy_is_promised_where_records_are_requeued_and_nobody_else_is_done_with_them(
    h: HistoryBuilder, wrong: bool
) -> Iterable[Told]:
    h.promises.append({"type": "requeued" if wrong else "parked"})
    a, b = two(h)
    a.rows[4].state = a.rows[5].state = RecordState.PARKED
    if not wrong:
        for offset in (4, 5):
            a.effect(offset, 3, seq=offset, kind="dead-letter")
    a.die(3.4)
    a.evicted(9)
    b.assigned(10)
    rest(b, 4)
    b.rows[0].state = RecordState.PARKED
    again = ("redelivery", "", "former owner died", (A, B), 4, 5, 2)
    return [("requeue-missing", "", "", (B,), 4, 4, 1), again] if wrong else [again]


@case
def a_record_that_was_requeued_is_done_by_the_next_owner(h: HistoryBuilder, wrong: bool) -> Iterable[Told]:
    """Who re-queued it died before it committed that. The next owner may re-queue it, too, and that is another kind."""
    a, b = two(h)
    a.rows[4].state = RecordState.PARKED
    a.effect(4, 3, seq=1, kind="requeued", again=h.lands_again(4))
    a.die(3.4)
    a.evicted(9)
    b.assigned(10)
    rows = b.process(range(4, 11), 15)
    b.commit(11, 16)
    b.revoked(38)
    b.close(39)
    again = ("redelivery", "", "former owner died", (A, B), 4, 5, 2)
    if wrong:
        return [("requeued-and-done", "", "", (A, B), 4, 4, 1), again]
    rows[0].state = RecordState.PARKED
    return [again]


@case
def a_record_is_done_by_who_requeued_it(h: HistoryBuilder, wrong: bool) -> Iterable[Told]:
    a, _ = two(h)
    a.rows[4].state = RecordState.DONE if wrong else RecordState.PARKED
    a.effect(4, 3, seq=1, kind="requeued", again=h.lands_again(4))
    a.process(range(6, 11), 15)
    a.commit(11, 16)
    a.revoked(38)
    a.close(39)
    return [("requeued-and-done", "one owner", "", (A,), 4, 4, 1)] if wrong else []


@case
def a_record_processed_while_an_earlier_one_of_its_key_lay_behind_it(h: HistoryBuilder, wrong: bool) -> Iterable[Told]:
    """Not one of before it was re-queued, of another key, or that was parked; nor the copy itself."""
    a, _ = two(h)
    key, later = of_its_key(h, 2)
    a.rows[2].state = RecordState.PARKED
    again = h.lands_again(2)
    a.effect(2, 15 if wrong else 30, seq=1, key=key, kind="requeued", again=again)
    a.effect(3, 5, seq=2, key=-1, kind="requeued", again=again)
    a.rows[3].state = RecordState.PARKED
    a.process(range(6, 11), 16)
    a.commit(11, 17)
    a.revoked(38)
    a.close(39)
    return [("per-entity-order", "re-queued", "", (A,), later[0], later[-1], len(later))] if wrong else []


@case
def a_missing_dead_letter_is_one_where_they_are_promised(h: HistoryBuilder, wrong: bool) -> Iterable[Told]:
    h.promises.extend([{"type": "parked"}] if wrong else [{"type": "effects"}])
    h.workload["poison_every"] = 4
    a, _ = two(h)
    for offset in range(10):
        if not wrong or offset != 3:
            a.effect(offset, 17, seq=offset, kind="dead-letter" if wrong else "effect")
    rest(a, 6)
    return [("dead-letter-missing", "", "", (A,), 3, 3, 1)] if wrong else []


@case
def a_missing_effect_is_one_where_effects_are_promised(h: HistoryBuilder, wrong: bool) -> Iterable[Told]:
    h.promises.extend([{"type": "effects"}] if wrong else [{"type": "delivery"}])
    a, _ = two(h)
    a.effect(4, 16, seq=1)
    rest(a, 6)
    return [("missing-effect", "", "", (A,), 0, 9, 9)] if wrong else []


@case
def a_poll_that_goes_back(h: HistoryBuilder, wrong: bool) -> Iterable[Told]:
    """No seek explains that: it would come between two polls."""
    a, _ = two(h)
    a.seek(6, 3.5)
    a.process([6, 7, 6] if wrong else [6, 7], 4)
    rest(a, 8)
    return [("rewind", "inside one poll", "", (A,), 6, 6, 1)] if wrong else []


@case
def a_poll_with_a_hole(h: HistoryBuilder, wrong: bool) -> Iterable[Told]:
    a, _ = two(h)
    a.process([6, 8, 9] if wrong else [6, 7, 8, 9], 15)
    a.commit(10, 16)
    a.close(39)
    jumped = ("poll-skip", "inside one poll", "", (A,), 7, 7, 1)
    passed = ("commit-ahead", "", "", (A,), 7, 7, 1)
    return [("unseen", "skipped", "", (A,), 7, 7, 1), jumped, passed] if wrong else []


@case
def two_records_of_a_key_out_of_order(h: HistoryBuilder, wrong: bool) -> Iterable[Told]:
    a, _ = two(h)
    first, second = a.poll([6, 9] if wrong else [6, 8], 4)  # keys are offset % 3
    second.begin(4.1).end(4.2)
    first.begin(4.3).end(4.4)
    a.process([7, 8] if wrong else [7, 9], 5)
    a.rows.sort(key=lambda row: row.offset)
    for n, row in enumerate(a.rows):
        row.ord = n
    a.commit(10, 6)
    a.close(39)
    return [("key-order", "", "", (A,), 9, 9, 1)] if wrong else []


def frozen_with_one_in_hand(h: HistoryBuilder) -> tuple[MemberTeller, MemberTeller]:
    """The first of two stands still from 4.5 to 12 s with offset 6 begun; the other has the partition from 10.5 s."""
    a, b = two(h)
    (frozen,) = a.poll([6], 4)
    frozen.begin(4).end(12.5)
    a.pause(4.5, 12)
    a.evicted(10)
    a.commit(6, 3.5)
    b.assigned(10.5)
    return a, b


@case
def a_zombie_is_judged_by_first_begin_and_first_finish(h: HistoryBuilder, wrong: bool) -> Iterable[Told]:
    """It finishes late what the new owner had finished long ago: no disorder. Wrong: nobody else had finished it."""
    a, b = frozen_with_one_in_hand(h)
    if wrong:
        b.poll([6], 10.9)  # and dropped
    b.process(range(7 if wrong else 6, 10), 11)
    b.commit(10, 13)
    a.lost(12.6)
    a.close(38)
    b.close(39)
    excused = [
        ("assignment-overlap", "", "zombie", (A, B), -1, -1, 1),
        ("redelivery", "", "former owner lost it", (A, B), 6, 6, 1),
    ]
    late = ("stale-effect", "", "in flight when frozen", (A, B), 6, 6, 1)
    return [("key-order", "", "", (B, A), 9, 9, 1), excused[0]] if wrong else [late, *excused]


@case
def what_was_deleted_comes_last_when_its_former_owner_did_it(h: HistoryBuilder, wrong: bool) -> Iterable[Told]:
    """The next owner could not be given it. Wrong: it could, and went past it."""
    a, b = frozen_with_one_in_hand(h)
    if wrong:
        b.poll([6], 10.9)  # and dropped
    else:
        h.log_starts[0] = 7
        h.log[:7] = []
    b.process(range(7, 10), 11)
    b.commit(10, 13)
    a.lost(12.6)
    a.close(38)
    b.close(39)
    overlap = ("assignment-overlap", "", "zombie", (A, B), -1, -1, 1)
    return [("key-order", "", "" if wrong else "deleted", (B, A), 9, 9, 1), overlap]


@case
def two_owners(h: HistoryBuilder, wrong: bool) -> Iterable[Told]:
    a, b = two(h)
    a.commit(6, 3.5)
    a.revoked(5 if wrong else 4.9)
    b.assigned(4.95, reported=False)
    rest(b, 6)
    return [("assignment-overlap", "", "", (A, B), -1, -1, 1)] if wrong else []


@case
def two_callbacks_that_cross_own_nothing_certainly(h: HistoryBuilder, wrong: bool) -> Iterable[Told]:
    """Between the start of giving up and the end of being assigned nobody knows."""
    a, b = two(h)
    a.commit(6, 3.5)
    a.revoked(5, took=0.5)
    b.assigned(4.9, took=0.05 if wrong else 0.2, reported=False)
    rest(b, 6)
    return [("assignment-overlap", "", "", (A, B), -1, -1, 1)] if wrong else []


@case
def two_at_work_on_one_partition(h: HistoryBuilder, wrong: bool) -> Iterable[Told]:
    a, b = two(h)
    a.commit(6, 3.5)
    (long,) = a.poll([6], 4)
    long.begin(4).end(6.2 if wrong else 5.9)
    a.revoked(6.5 if wrong else 5.9, reported=not wrong)
    b.assigned(5.95)
    _, other = b.poll([6, 7], 6)
    other.begin(6).end(6.3)
    rest(b, 8)
    both = ("assignment-overlap", "", "", (A, B), -1, -1, 1)
    return [("processing-overlap", "", "", (A, B), 6, 6, 1), both] if wrong else []


@case
def a_pause_is_no_work(h: HistoryBuilder, wrong: bool) -> Iterable[Told]:
    """Frozen in its handler: the new owner's work beside it is no overlap, but what it does once awake is."""
    a, b = two(h)
    a.commit(6, 3.5)
    (frozen,) = a.poll([6], 4)
    frozen.begin(4).end(12.5)
    a.pause(4.5, 12)
    a.evicted(10)
    b.assigned(10.5)
    b.process([6], 11)
    (other,) = b.poll([7], 12.2 if wrong else 11.5)
    other.begin(12.2 if wrong else 11.5).end(12.3 if wrong else 11.9)
    a.lost(12.6)
    a.close(14)
    rest(b, 8)
    excused = [
        ("assignment-overlap", "", "zombie", (A, B), -1, -1, 1),
        ("redelivery", "", "former owner lost it", (A, B), 6, 6, 1),
        ("stale-effect", "", "in flight when frozen", (A, B), 6, 6, 1),
    ]
    return [("processing-overlap", "", "in flight when frozen", (A, B), 6, 6, 1), *excused] if wrong else excused


@case
def a_backlog_of_a_partition_given_away(h: HistoryBuilder, wrong: bool) -> Iterable[Told]:
    """Only what begins after the coordinator certainly gave the partition away is stale."""
    a, b = two(h)
    a.commit(6, 3.5)
    rows = a.poll([6, 7], 4)
    a.evicted(9)
    b.assigned(10)  # the coordinator's record is of 9.990 s, give or take 0.5 ms
    for n, row in enumerate(rows):
        at = (9.991 if wrong else 9.9902) + n * 0.0001
        row.begin(at).end(at + 0.0001)
    a.lost(11)
    b.poll([6, 7], 10.5)  # and dropped: they were done by then
    rest(b, 8)
    zombie = ("assignment-overlap", "", "zombie", (A, B), -1, -1, 1)
    return [("work-after-reassignment", "", "", (A, B), 6, 7, 2), zombie] if wrong else [zombie]


@case
def work_after_ones_own_callback_returned(h: HistoryBuilder, wrong: bool) -> Iterable[Told]:
    a, b = two(h)
    (row,) = a.poll([6], 3.1)
    a.commit(7, 3.96)
    a.revoked(4)
    b.assigned(8)
    row.begin(6 if wrong else 3.9).end(6.1 if wrong else 3.95)
    rest(b, 7)
    passed = ("commit-ahead", "", "", (A,), 6, 6, 1)
    return [("processing-after-revocation", "revoked", "", (A,), 6, 6, 1), passed] if wrong else []


@case
def an_effect_of_a_former_owner_that_comes_last(h: HistoryBuilder, wrong: bool) -> Iterable[Told]:
    """Begun after its own callback returned, and finished after the new owner had finished it; or before."""
    a, b = two(h)
    a.commit(6, 3.5)
    (row,) = a.poll([6], 3.6)
    a.revoked(4)
    row.begin(6).end(6.5)
    b.assigned(5)
    b.poll([6], 5.1)[0].begin(5.1).end(6.4 if wrong else 6.6)
    rest(b, 7)
    again = [
        ("processing-after-revocation", "revoked", "", (A,), 6, 6, 1),
        ("avoidable-redelivery", "", "", (A, B), 6, 6, 1),
        ("processing-overlap", "", "", (A, B), 6, 6, 1),
    ]
    return [("stale-effect", "", "", (A, B), 6, 6, 1), *again] if wrong else again


@case
def an_effect_that_comes_last_of_a_handler_that_took_long(h: HistoryBuilder, wrong: bool) -> Iterable[Told]:
    """Nobody can take back what he is in the middle of."""
    a, b = two(h)
    a.commit(6, 3.5)
    a.poll([6], 4)[0].begin(4.1 if wrong else 9.1).end(11.5 if wrong else 9.2)
    a.evicted(9)
    b.assigned(10)
    rest(b, 6, at=11)
    a.lost(12)
    a.close(13)
    excused = [
        ("assignment-overlap", "", "zombie", (A, B), -1, -1, 1),
        ("redelivery", "", "former owner lost it", (A, B), 6, 6, 1),
    ]
    if not wrong:
        return excused
    busy = ("processing-overlap", "", "", (A, B), 6, 6, 1)
    return [("stale-effect", "", "begun as its owner", (A, B), 6, 6, 1), busy, *excused]


@case
def an_old_record_of_who_owns_the_partition_again(h: HistoryBuilder, wrong: bool) -> Iterable[Told]:
    """It is late all the same, but nothing forbids it to begin."""
    a, b = two(h)
    a.commit(6, 3.5)
    (row,) = a.poll([6], 3.6)
    a.revoked(4)
    b.assigned(5)
    b.process([6], 5.5)
    b.commit(7, 6)
    b.revoked(7)
    a.assigned(8)
    row.begin(8.1 if wrong else 3.7).end(8.2 if wrong else 3.8)
    rest(a, 7)
    again = ("avoidable-redelivery", "", "", (A, B), 6, 6, 1)
    return [("stale-effect", "", "begun as its owner", (A, B), 6, 6, 1), again] if wrong else [again]


@case
def work_goes_on_when_the_partition_came_back(h: HistoryBuilder, wrong: bool) -> Iterable[Told]:
    a, _ = two(h)
    (row,) = a.poll([6], 3.1)
    a.commit(6, 3.5)
    a.lost(4)
    if not wrong:
        a.assigned(5)
    row.begin(6).end(6.1)
    if wrong:
        a.assigned(7)
    rest(a, 7)
    return [("processing-after-revocation", "lost", "", (A,), 6, 6, 1)] if wrong else []


@case
def records_left_after_the_drain(h: HistoryBuilder, wrong: bool) -> Iterable[Told]:
    a, _ = two(h)
    rows = a.process(range(6, 10), 15)
    a.commit(6 if wrong else 10, 16)
    if wrong:
        rows[3].end(16, RecordState.FAILED)
    a.close(39)
    return [("unconsumed", "", "", (A,), 9, 9, 1)] if wrong else []


@case
def a_partition_that_stands_still(h: HistoryBuilder, wrong: bool) -> Iterable[Told]:
    a, _ = two(h)  # the last delivery is at 2 s
    rest(a, 6, at=32.1 if wrong else 31.9)
    return [("stuck-partition", "", "", (A,), 6, 6, 1)] if wrong else []


@case
def a_partition_that_stands_still_for_records_that_came_late(h: HistoryBuilder, wrong: bool) -> Iterable[Told]:
    a, _ = two(h)
    late_ns = (1 if wrong else 10) * 10**9
    h.produced[6:] = [p._replace(acked_ns=p.acked_ns + late_ns) for p in h.produced[6:]]
    rest(a, 6, at=35)
    return [("stuck-partition", "", "", (A,), 6, 6, 1)] if wrong else []


@case
def a_partition_that_stands_still_before_the_heal(h: HistoryBuilder, wrong: bool) -> Iterable[Told]:
    """With faults, waiting counts from the end of healing only."""
    h.phases = {"heal": (20, 20.1) if not wrong else (3, 3.1), "drain": (20.2, 40)}
    a, _ = two(h)
    h.fault("move_coordinator", 2.5)
    rest(a, 6, at=35)
    return [("stuck-partition", "", "", (A,), 6, 6, 1)] if wrong else []


@case
def a_partition_that_nobody_owns(h: HistoryBuilder, wrong: bool) -> Iterable[Told]:
    a, b = two(h)
    a.commit(6, 3)
    a.revoked(4)
    if not wrong:
        b.assigned(5)
        rest(b, 6, at=30)
        return []
    h.leader(-1, 10)
    return [
        ("stuck-partition", "unowned", "no leader", (), 6, 6, 1),
        ("unconsumed", "", "", (A,), 6, 9, 4),
    ]


@case
def a_partition_that_stops_beside_a_fault(h: HistoryBuilder, wrong: bool) -> Iterable[Told]:
    """B is frozen, and A, whose partition nothing touches, gets nothing for as long; see ``test_standing_still``."""
    h.protocol = "cooperative" if wrong else "eager"
    h.phases = {"warm-up": (0.0, 1.0), "heal": (36.0, 36.1), "drain": (36.2, 50.0)}
    a, b = two(h)
    b.pause(4, 35.5)
    rest(a, 6, at=35)
    return [("collateral-stall", "step 0 (pause)", "", (A,), 6, 6, 1)] if wrong else []


@case
def a_partition_that_is_delivered_late_after_a_fault(h: HistoryBuilder, wrong: bool) -> Iterable[Told]:
    """The fault is over at 9.01 s; see ``test_standing_still``."""
    h.promises.append({"type": "progress", "recovers_within_s": 5})
    a, b = two(h)
    b.pause(4, 9)
    rest(a, 6, at=14.1 if wrong else 14)
    return [("slow-recovery", "step 0 (pause)", "", (A,), 6, 6, 1)] if wrong else []


@case
def a_partition_that_catches_up_late_after_a_fault(h: HistoryBuilder, wrong: bool) -> Iterable[Told]:
    """The fault is over at 9.01 s; see ``test_recovery``."""
    h.promises.append({"type": "recovers", "lag_normal_within_s": 5})
    h.phases["warm-up"] = (0.0, 0.4)
    a, b = two(h)
    a.process(range(6, 10), 2.5)
    h.write(at=5)
    b.pause(4, 9)
    a.process([10], 14.1 if wrong else 14)
    a.commit(11, 15)
    a.revoked(38)
    a.close(39)
    return [("slow-catch-up", "step 0 (pause)", "", (A,), 10, 10, 1)] if wrong else []


@case
def two_records_that_are_processed_again_after_a_fault(h: HistoryBuilder, wrong: bool) -> Iterable[Told]:
    """Offsets 4 and 5 were done and not committed when A died; see ``test_recovery``."""
    h.promises.append({"type": "recovers", "duplicates_per_disruption": 1 if wrong else 2})
    a, b = two(h)
    h.fault("kill", 5, members=(A,))
    a.die(5)
    a.evicted(9)
    b.assigned(10)
    rest(b, 4)
    redelivery = ("redelivery", "", "former owner died", (A, B), 4, 5, 2)
    return [("too-many-duplicates", "step 0 (kill)", "", (A,), 4, 5, 2), redelivery] if wrong else [redelivery]


@case
def a_member_that_stops_to_poll(h: HistoryBuilder, wrong: bool) -> Iterable[Told]:
    """It goes on to send heartbeats; see ``test_standing_still`` for all that excuses it."""
    a, _ = two(h)
    a.process(range(6, 10), 2.5)
    a.commit(10, 3.2)
    a.unpolled(3.5 if wrong else 7, 38)
    a.heartbeat(37)
    a.revoked(38)
    a.close(39)
    return [("stuck-member", "", "", (A,), -1, -1, 1)] if wrong else []


@case
def a_hole_in_the_counters(h: HistoryBuilder, wrong: bool) -> Iterable[Told]:
    a, _ = two(h)
    if wrong:
        a.ords[0] += 2
    rest(a, 6)
    return [("history-incomplete", "hole", "", (A,), 6, 6, 2)] if wrong else []


@case
def an_assignment_of_which_no_delivery_is_recorded(h: HistoryBuilder, wrong: bool) -> Iterable[Told]:
    h.workload = {"type": "own_program"}
    a, b = two(h)
    a.commit(6, 3.1)
    a.revoked(4)
    b.assigned(5)
    b.process([6] if not wrong else (), 6)
    b.commit(10, 7)
    b.close(39)
    if wrong:
        stuck = ("stuck-partition", "", "", (B,), 6, 6, 1)
        return [
            stuck,
            ("unrecorded-delivery", "unread", "", (B,), 6, 9, 4),
            ("unseen", "unrecorded", "", (B,), 6, 9, 4),
        ]
    stuck = ("stuck-partition", "", "", (B,), 7, 7, 1)
    return [stuck, ("commit-ahead", "", "", (B,), 7, 9, 3), ("unseen", "skipped", "", (B,), 7, 9, 3)]


@case
def a_write_that_another_record_replaced(h: HistoryBuilder, wrong: bool) -> Iterable[Told]:
    rest(two(h)[0], 6)
    if wrong:
        h.log[7] = h.log[7]._replace(writer=9)
        return [("lost-write", "", "", ("producer-0",), 7, 7, 1), ("delivered-then-lost", "", "", (A,), 7, 7, 1)]
    return []


@case
def a_record_passed_first_by_a_refused_commit(h: HistoryBuilder, wrong: bool) -> Iterable[Told]:
    """The one to blame is who went past it, not who was refused."""
    a, b = two(h)
    a.commit(7, 3.2, outcome="fail", error="ILLEGAL_GENERATION")
    a.lost(4)
    b.assigned(5)
    rest(b, 7 if wrong else 4)
    lost = ("redelivery", "", "former owner lost it", (A, B), 4, 5, 2)
    return [("unseen", "skipped", "", (B,), 6, 6, 1), ("wrong-start", "", "", (B,), 7, 7, 1)] if wrong else [lost]


@case
def a_long_wait_between_deliveries_that_led_somewhere(h: HistoryBuilder, wrong: bool) -> Iterable[Told]:
    h.phases = {}
    a, _ = two(h)
    for n, at in enumerate((100, 120, 131)):
        a.intervals[0] = n + 1
        a.deliver(6, at)
    a.commit(6 if wrong else 7, 125)
    reported = [("redelivery-loop", "standing", "", (A,), 6, 6, 1)]
    passed = ("commit-ahead", "", "", (A,), 6, 6, 1)
    return reported if wrong else [("unseen", "committed-unprocessed", "", (A,), 6, 6, 1), passed]


@case
def a_record_begun_before_the_last_of_its_key_was_done(h: HistoryBuilder, wrong: bool) -> Iterable[Told]:
    """At the very moment of the finish is in order."""
    a, _ = two(h)
    rows = a.process(range(6, 10), 15, each=0.01)
    rows[0].end(15.03)
    rows[3].begin(15.029 if wrong else 15.03).end(15.04)
    a.commit(10, 16)
    a.close(39)
    return [("key-order", "", "", (A,), 9, 9, 1)] if wrong else []


@case
def a_zombie_that_was_told_revoked(h: HistoryBuilder, wrong: bool) -> Iterable[Told]:
    """Its own callbacks do not say that it was removed; the coordinator's records do."""
    a, b = two(h)
    a.commit(6, 3.5)
    a.evicted(9)
    b.assigned(10)
    a.revoked(12 if wrong else 9.9, reported=False)
    rest(b, 6)
    return [("assignment-overlap", "", "zombie", (A, B), -1, -1, 1)] if wrong else []


@case
def an_eviction_long_ago_that_excuses_nothing_now(h: HistoryBuilder, wrong: bool) -> Iterable[Told]:
    a, b = two(h)
    a.commit(6, 3.5)
    a.evicted(5)
    a.lost(5.5)
    a.assigned(6)
    b.assigned(10, reported=False)
    a.revoked(11 if wrong else 9.9)
    if not wrong:
        h.gives(b, 0, 9.95)
    else:
        h.gives(b, 0, 11.1)
    rest(b, 6)
    return [("assignment-overlap", "", "", (A, B), -1, -1, 1)] if wrong else []


@case
def a_death_inside_the_revoked_callback(h: HistoryBuilder, wrong: bool) -> Iterable[Told]:
    a, b = two(h)
    a.revoked(4, took=None if wrong else 0.001)
    a.die(4.1)
    a.evicted(9)
    b.assigned(10)
    rest(b, 4)
    clean = [("avoidable-redelivery", "", "", (A, B), 4, 5, 2)]
    return [("redelivery", "", "former owner died", (A, B), 4, 5, 2)] if wrong else clean


@case
def a_zombie_whose_poll_returns_when_it_wakes(h: HistoryBuilder, wrong: bool) -> Iterable[Told]:
    """The former owner is who was assigned the partition before, not who was given the record before."""
    a, b = two(h)
    a.commit(6, 3.5)
    a.pause(4, 12)
    a.evicted(10)
    b.assigned(10.5)
    rest(b, 6, at=11)
    a.process([6, 7], 12.01) if wrong else a.poll([6, 7], 12.01)
    a.lost(12.6)
    a.close(38)
    zombie = ("assignment-overlap", "", "zombie", (A, B), -1, -1, 1)
    if not wrong:
        return [zombie]
    return [
        zombie,
        ("redelivery", "", "former owner lost it", (A, B), 6, 7, 2),
        ("work-after-reassignment", "", "", (A, B), 6, 7, 2),
        ("stale-effect", "", "not told yet", (A, B), 6, 7, 2),
    ]
