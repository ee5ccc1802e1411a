"""Every kind of ``Commits`` in the smallest history that shows it, beside near misses that must not.

As in ``test_kinds`` a case tells one story twice, ``wrong`` and right, and returns exactly what either shows of these
kinds. There are two partitions; the second one is often idle.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import pytest

from fencepost.checkers import Commits, oracle
from history.builder import HistoryBuilder
from history.test_kinds import CASES as OTHER_CASES
from history.test_kinds import A, B, Story, Told, rest, told_by, two
from history.test_stale_answers import CASES as STALE_CASES

CASES: list[Story] = []
UNKNOWN = "UNKNOWN_MEMBER_ID"


def case(story: Story) -> Story:
    CASES.append(story)
    return story


@pytest.mark.parametrize("classic", [False, True], ids=["consumer", "classic"])
@pytest.mark.parametrize("wrong", [True, False], ids=["wrong", "near-miss"])
@pytest.mark.parametrize("story", CASES, ids=lambda story: story.__name__)
def test_a_story_shows_exactly_this(tmp_path: Path, story: Story, wrong: bool, classic: bool) -> None:
    h = HistoryBuilder(tmp_path, 2, classic=classic)
    expected = story(h, wrong)
    assert [reported for reported in told_by(h) if reported[0] in Commits.kinds] == sorted(expected)


def test_every_kind_of_the_oracle_has_a_case(tmp_path: Path) -> None:
    shown = set()
    for n, story in enumerate(STORIES):
        shown |= {reported[0] for reported in story(HistoryBuilder(tmp_path / str(n), 2), True)}
    assert shown >= {kind for kinds in oracle.RULES.values() for kind in kinds} | set(Commits.kinds)


@case
def a_commit_that_goes_back_and_is_believed(h: HistoryBuilder, wrong: bool) -> Iterable[Told]:
    a, b = two(h)
    a.commit(6, 3.5)
    a.commit(5 if wrong else 6, 3.6)
    a.revoked(4)
    b.assigned(5)
    b.fetches(5 if wrong else 6, 5.01)
    rest(b, 5 if wrong else 6)
    return [("commit-regression", "", "", (A,), 5, 5, 1)] if wrong else []


@case
def a_commit_that_goes_back_because_another_one_wrote_it(h: HistoryBuilder, wrong: bool) -> Iterable[Told]:
    """Nobody can say who, when two asked for the same at the same time."""
    a, b = two(h)
    a.commit(6, 3.5)
    a.revoked(4)
    b.commit(5, 4.5)
    if not wrong:
        a.asks_to_commit(5, 4.5)
    b.assigned(5)
    rest(b, 5)
    return [("commit-regression", "", "", (B, A) if wrong else (), 5, 5, 1)]


@case
def a_retry_that_heals_itself(h: HistoryBuilder, wrong: bool) -> Iterable[Told]:
    a, b = two(h)
    a.commit(6, 3.5)
    a.commit(5, 3.6)
    for reported in (4, 5 if wrong else 6):  # maybe in between; what the broker said tells
        b.fetches(reported, 3.65)
    b.fetches(5, 3.65)
    h.requests[-1].update(client_id="somebody who looks on", member_id=None)
    a.commit(6, 3.7)
    rest(a, 6)
    return [("commit-regression", "" if wrong else "own retry", "", (A,), 5, 5, 1)]


def overtaken(h: HistoryBuilder, connection: str = "1") -> None:
    """What a connection still holds comes behind what a newer one brought, and is what the next owner is told."""
    a, b = two(h)
    a.commit(4, 3.2)
    a.commit(5, 3.5, connection="2")
    a.commit(6, 3.7, connection="2")
    h.accepts(5, 4)
    a.asks_to_commit(5, 4, connection=connection)
    a.revoked(4.5)
    b.assigned(5)
    b.fetches(5, 5.01)
    rest(b, 5)


@case
def a_commit_that_dropped_packets_hold_back(h: HistoryBuilder, wrong: bool) -> Iterable[Told]:
    """They are dropped before the member gives its connection up; or after it took another one of itself."""
    h.fault("drop_packets", 3.6 if wrong else 3.4, 3.9, members=(A,))
    overtaken(h)
    return [("commit-regression", "", "" if wrong else "drop_packets was in effect", (A,), 5, 5, 1)]


@case
def a_commit_that_is_asked_for_again(h: HistoryBuilder, wrong: bool) -> Iterable[Told]:
    """By the connection of the later one, where everything comes in order; or by one that nobody uses any more."""
    h.fault("drop_packets", 3.4, 3.9, members=(A,))
    overtaken(h, connection="2" if wrong else "1")
    return [("commit-regression", "", "" if wrong else "drop_packets was in effect", (A,), 5, 5, 1)]


@case
def a_commit_after_the_offset_was_deleted(h: HistoryBuilder, wrong: bool) -> Iterable[Told]:
    a, _ = two(h)
    if not wrong:
        h.accepts(None, 3.4)
    h.accepts(2, 3.5)
    rest(a, 6)
    return [("commit-regression", "", "", (), 2, 2, 1)] if wrong else []


@case
def a_commit_that_a_declared_act_set_back(h: HistoryBuilder, wrong: bool) -> Iterable[Told]:
    a, _ = two(h)
    h.act("reset-offsets", 3.6 if wrong else 3.4)
    h.accepts(2, 3.5)
    rest(a, 6)
    return [("commit-regression", "", "" if wrong else "declared act: reset-offsets", (), 2, 2, 1)]


@case
def a_commit_before_the_records_were_done(h: HistoryBuilder, wrong: bool) -> Iterable[Told]:
    a, _ = two(h)
    a.process([6, 7], 3.1, each=0.1)
    a.commit(8, 3.25 if wrong else 3.3)  # the second one is done at 3.29
    rest(a, 8)
    return [("commit-ahead", "", "", (A,), 7, 7, 1)] if wrong else []


@case
def a_commit_of_what_is_stored_that_takes_along_what_was_done_meanwhile(
    h: HistoryBuilder, wrong: bool
) -> Iterable[Told]:
    """The client sent it when it had stored another record, which was done before that, and not when it was asked."""
    a, _ = two(h)
    a.process([6, 7], 3.3, each=0.0003)
    a.commit(8, 3.2998 if wrong else 3.2999, mode="async", asked=6)
    a.rows[-1].end(3.3014)  # the coordinator wrote it 0.5 to 1.5 ms after it was asked for
    rest(a, 8)
    return [("commit-ahead", "", "", (A,), 7, 7, 1)] if wrong else []


@case
def a_commit_of_what_was_stored_when_it_was_asked_for(h: HistoryBuilder, wrong: bool) -> Iterable[Told]:
    """That is what the program says to be done, at once."""
    a, _ = two(h)
    a.process([6, 7], 3.1, each=0.1)
    a.commit(8, 3.2898, mode="async", asked=8 if wrong else 7)  # the second one is done at 3.29
    rest(a, 8)
    return [("commit-ahead", "", "", (A,), 7, 7, 1)] if wrong else []


@case
def a_commit_past_what_a_former_owner_left_unfinished(h: HistoryBuilder, wrong: bool) -> Iterable[Told]:
    """Who was told to start above it has nothing to do with it; who was given it has."""
    a, b = two(h)
    a.revoked(4)
    if not wrong:
        h.accepts(8, 4.5)
    b.assigned(5)
    b.poll([4, 5, 6, 7], 14)
    rest(b, 8)
    return [("commit-ahead", "", "", (B,), 6, 7, 2)] if wrong else []


@case
def a_refused_commit_ahead(h: HistoryBuilder, wrong: bool) -> Iterable[Told]:
    a, _ = two(h)
    a.commit(8, 3.2, outcome="info" if wrong else "fail", error="" if wrong else "REBALANCE_IN_PROGRESS")
    rest(a, 6)
    return [("commit-ahead", "", "", (A,), 6, 7, 2)] if wrong else []


@case
def a_commit_above_the_end(h: HistoryBuilder, wrong: bool) -> Iterable[Told]:
    a, _ = two(h)
    rest(a, 6)
    a.commit(11 if wrong else 10, 17)
    return [("commit-beyond-end", "", "", (A,), 11, 11, 1)] if wrong else []


@case
def a_log_that_lost_its_tail(h: HistoryBuilder, wrong: bool) -> Iterable[Told]:
    """What is missing at the end was there when it was committed: that is the log's fault."""
    a, _ = two(h)
    h.write(2, at=5)
    a.process([6, 7, 8, 9] if wrong else [6, 7, 8, 9, 10, 11], 15)
    a.commit(12, 16)
    a.close(39)
    if wrong:
        h.produced[10:] = []
    del h.log[10:]
    h._next[0] = 10
    return [("commit-beyond-end", "", "", (A,), 12, 12, 1)] if wrong else []


@case
def a_commit_before_the_records_were_sent(h: HistoryBuilder, wrong: bool) -> Iterable[Told]:
    a, _ = two(h)
    h.write(2, at=3.59 if not wrong else 3.61)
    a.process([6, 7, 8, 9], 3.1)
    a.commit(12, 3.6)
    a.process([10, 11], 15)
    a.close(39)
    ahead = ("commit-ahead", "", "", (A,), 10, 11, 2)
    return [ahead, ("commit-beyond-end", "", "", (A,), 10, 11, 2)] if wrong else [ahead]


@case
def an_offset_that_a_log_gives_again(h: HistoryBuilder, wrong: bool) -> Iterable[Told]:
    """Somebody had been delivered another record of that offset before: the log lost its tail and grew anew."""
    a, _ = two(h)
    h.write(2, at=5)
    a.process(range(6, 10), 3.1)
    a.process([10, 11], 5.5 if wrong else 3.2)
    a.commit(12, 3.6)
    a.close(39)
    ahead = ("commit-ahead", "", "", (A,), 10, 11, 2)
    return [ahead, ("commit-beyond-end", "", "", (A,), 10, 11, 2)] if wrong else []


def everything(h: HistoryBuilder, finals: tuple[int, int], done_at: float = 15) -> None:
    """Ten records of each of two partitions are processed, the last one at ``done_at``, and this is committed."""
    a = h.member(0)
    for tp, final in enumerate(finals):
        h.write(10, tp)
        a.assigned(1, tp)
        a.process(range(9), 2, tp)
        a.process([9], done_at, tp)
        a.commit(final, 16, tp)


@case
def a_group_that_commits_the_last_record_instead_of_the_next(h: HistoryBuilder, wrong: bool) -> Iterable[Told]:
    everything(h, (9, 9 if wrong else 10))
    return [("off-by-one", "", "", (A,), 9, 9, 1)] * 2 if wrong else []


@case
def a_last_record_that_was_done_after_the_last_commit(h: HistoryBuilder, wrong: bool) -> Iterable[Told]:
    everything(h, (9, 9), 15 if wrong else 16.1)
    return [("off-by-one", "", "", (A,), 9, 9, 1)] * 2 if wrong else []


@case
def a_last_commit_that_failed(h: HistoryBuilder, wrong: bool) -> Iterable[Told]:
    everything(h, (9, 9))
    h.members[0].commit(9 if wrong else 10, 17, outcome="fail", error=UNKNOWN)
    return [("off-by-one", "", "", (A,), 9, 9, 1)] * 2 if wrong else []


@case
def a_commit_of_a_partition_that_is_anothers(h: HistoryBuilder, wrong: bool) -> Iterable[Told]:
    a, b = two(h)
    b.assigned(1, 1)
    if not wrong:
        a.commit(6, 3.4)
        a.revoked(3.5)  # then it is nobody's
    b.commit(6, 4)
    (b if not wrong else a).assigned(5)
    rest(a if wrong else b, 6)
    return [("foreign-commit", "", "", (B, A), 6, 6, 1)] if wrong else []


@case
def a_commit_that_the_owner_may_have_written(h: HistoryBuilder, wrong: bool) -> Iterable[Told]:
    a, b = two(h)
    b.commit(6, 4)
    if not wrong:
        a.asks_to_commit(6, 4)
    rest(a, 6)
    return [("foreign-commit", "", "", (B, A), 6, 6, 1)] if wrong else []


@case
def a_commit_after_the_hand_over(h: HistoryBuilder, wrong: bool) -> Iterable[Told]:
    a, b = two(h)
    a.evicted(9)
    if not wrong:
        a.commit(6, 9.5)  # nobody has it
    b.assigned(10)
    if wrong:
        a.commit(6, 11)
    b.fetches(4 if wrong else 6, 10.1)
    rest(b, 4 if wrong else 6)
    return [("zombie-commit", "", "", (A, B), 6, 6, 1)] if wrong else []


@case
def a_commit_just_before_the_hand_over(h: HistoryBuilder, wrong: bool) -> Iterable[Told]:
    """The order of the coordinator's log decides, however close the times are."""
    a, b = two(h)
    a.commit(6, 9.9891 if wrong else 9.9889)  # the coordinator gives it away at 9.990 s
    b.assigned(10)
    rest(b, 6)
    return [("zombie-commit", "", "", (A, B), 6, 6, 1)] if wrong else []


@case
def a_fenced_member_that_carries_on(h: HistoryBuilder, wrong: bool) -> Iterable[Told]:
    """It may go on with what it has, and with one poll that may have begun before the next heartbeat."""
    a, b = two(h)
    a.evicted(3.9)
    a.commit(6, 4, outcome="fail", error=UNKNOWN)
    a.process([6], 6.9)
    a.process([7], 7.1, each=2)
    if wrong:
        a.process([8], 9.5)
    a.lost(9.7)
    b.assigned(10)
    rest(b, 4)
    return [("work-after-fencing", UNKNOWN, "", (A,), 8, 8, 1)] if wrong else []


@case
def a_refused_automatic_commit(h: HistoryBuilder, wrong: bool) -> Iterable[Told]:
    """Its generation is not known: it may have been overtaken by the round that the member is in."""
    a, _ = two(h)
    a.commit(6, 4, outcome="fail", error="ILLEGAL_GENERATION", generation=9, mode="sync" if wrong else "auto")
    a.process([6], 8)
    a.process([7], 9)
    rest(a, 8)
    return [("work-after-fencing", "ILLEGAL_GENERATION", "", (A,), 7, 9, 3)] if wrong else []


@case
def a_refused_commit_of_nobody_knows_which_generation(h: HistoryBuilder, wrong: bool) -> Iterable[Told]:
    """As of a program that tells what it does as lines: it need not tell its generation."""
    a, _ = two(h)
    a.commit(6, 4, outcome="fail", error="ILLEGAL_GENERATION", generation=9 if wrong else -1)
    a.process([6], 8)
    a.process([7], 9)
    rest(a, 8)
    return [("work-after-fencing", "ILLEGAL_GENERATION", "", (A,), 7, 9, 3)] if wrong else []


@case
def a_member_that_is_told_to_wait(h: HistoryBuilder, wrong: bool) -> Iterable[Told]:
    a, _ = two(h)
    a.commit(6, 4, outcome="fail", error="ILLEGAL_GENERATION" if wrong else "REBALANCE_IN_PROGRESS", generation=9)
    a.process([6], 8)
    a.process([7], 9)
    rest(a, 8)
    return [("work-after-fencing", "ILLEGAL_GENERATION", "", (A,), 7, 9, 3)] if wrong else []


@case
def a_fenced_member_that_cannot_know(h: HistoryBuilder, wrong: bool) -> Iterable[Told]:
    a, b = two(h)
    h.fault("black_hole", 3.8 if not wrong else 3, 9 if not wrong else 3.9, members=(A,))
    a.evicted(3.9)
    a.commit(6, 4, outcome="fail", error=UNKNOWN)
    a.process([6], 8)
    a.process([7], 9)
    a.lost(9.7)
    b.assigned(10)
    rest(b, 4)
    return [("work-after-fencing", UNKNOWN, "" if wrong else "black_hole was in effect", (A,), 7, 7, 1)]


@pytest.mark.parametrize("joined", [False, True])
@pytest.mark.parametrize("refused", [2, 3])
def test_a_member_that_has_joined_again_is_not_fenced(tmp_path: Path, joined: bool, refused: int) -> None:
    """A cooperative member keeps its partition through the next generation, without any callback. That has the number
    of the refused one where a coordinator had counted it and did not live to write it down."""
    h = HistoryBuilder(tmp_path, 2, classic=True)
    a, b = two(h)
    b.assigned(2, 1)
    a.commit(6, 4, outcome="fail", error="ILLEGAL_GENERATION", generation=refused)
    if joined:
        h.gives(b, 1, 5)  # generation 3 has both members
    a.process([6], 8)
    rest(a, 7)
    found = [reported for reported in told_by(h) if reported[0] in Commits.kinds]
    assert found == ([] if joined else [("work-after-fencing", "ILLEGAL_GENERATION", "", (A,), 7, 9, 3)])


@case
def a_commit_that_failed_in_silence(h: HistoryBuilder, wrong: bool) -> Iterable[Told]:
    """Refused once and accepted at the second attempt is fine."""
    a, _ = two(h)
    if not wrong:
        a.asks_to_commit(6, 3.5004, error=UNKNOWN)
    a.commit(6, 3.5, accepted=not wrong, logged=UNKNOWN if wrong else True)
    rest(a, 6)
    return [("silent-commit-failure", UNKNOWN, "", (A,), 6, 6, 1)] if wrong else []


@case
def a_commit_whose_refusal_was_logged_last(h: HistoryBuilder, wrong: bool) -> Iterable[Told]:
    """Times of brokers are coarse: while the coordinator has the record, the client was right."""
    a, _ = two(h)
    a.commit(6, 3.5, accepted=not wrong)
    a.asks_to_commit(6, 3.5006, error=UNKNOWN)
    rest(a, 6)
    return [("silent-commit-failure", UNKNOWN, "", (A,), 6, 6, 1)] if wrong else []


@case
def an_acknowledged_commit_that_is_nowhere(h: HistoryBuilder, wrong: bool) -> Iterable[Told]:
    a, _ = two(h)
    a.commit(5, 3.2)
    a.commit(6, 3.5, accepted=not wrong, logged="")
    rest(a, 6)
    return [("acknowledged-commit-missing", "", "", (A,), 6, 6, 1)] if wrong else []


@case
def an_acknowledged_commit_that_may_have_been_cleaned_away(h: HistoryBuilder, wrong: bool) -> Iterable[Told]:
    """The coordinator's log keeps the last commit of each partition; older ones may go."""
    a, _ = two(h)
    a.commit(5, 3.2)
    a.commit(6, 3.5, accepted=False, logged="")
    rest(a, 6)
    if not wrong:
        h.coordinator = [line for line in h.coordinator if line.get("committed") not in (4, 5)]
    return [("acknowledged-commit-missing", "", "", (A,), 6, 6, 1)] if wrong else []


@case
def an_acknowledged_commit_of_a_transaction_that_was_overtaken(h: HistoryBuilder, wrong: bool) -> Iterable[Told]:
    """Offsets are reset while it is open: it is committed, and what it had written is not in force any more."""
    a, _ = two(h)
    a.commit(5, 3.2)
    a.commit(6, 3.5, mode="transaction", accepted=False, logged=False)
    h.accepts(6, 3.5004, producer=7)
    h.accepts(5, 3.5008)
    h.ends_transaction(7, 3.5012, committed=not wrong)
    rest(a, 6)
    return [("acknowledged-commit-missing", "", "", (A,), 6, 6, 1)] if wrong else []


@case
def a_commit_of_a_partition_that_the_coordinator_knows_nothing_of(h: HistoryBuilder, wrong: bool) -> Iterable[Told]:
    a, _ = two(h)
    rest(a, 6)
    h.write(3, 1)
    a.assigned(1, 1)
    a.process(range(3), 2, 1)
    a.commit(3, 2.5, 1, accepted=not wrong, logged=False)
    return [("acknowledged-commit-missing", "", "", (A,), 3, 3, 1)] if wrong else []


@case
def a_commit_of_what_is_stored_that_was_answered_late(h: HistoryBuilder, wrong: bool) -> Iterable[Told]:
    """Which commit of the program an answer is about, the client does not say: it may be one from before."""
    a, _ = two(h)
    a.commit(5, 3.2)
    if not wrong:
        h.accepts(6, 3.4)
    a.commit(6, 5, mode="async", asked=6, accepted=False, logged="" if wrong else False)
    rest(a, 6)
    return [("acknowledged-commit-missing", "", "", (A,), 6, 6, 1)] if wrong else []


@case
def a_commit_of_the_client_itself_that_was_answered_late(h: HistoryBuilder, wrong: bool) -> Iterable[Told]:
    a, _ = two(h)
    a.commit(5, 3.2)
    h.accepts(6, 3.6 if not wrong else 12.1)  # by another way than the one that was answered
    a.commit(6, 12, mode="auto", accepted=False, logged="UNKNOWN_MEMBER_ID" if wrong else False)
    rest(a, 6)
    return [("silent-commit-failure", UNKNOWN, "", (A,), 6, 6, 1)] if wrong else []


@case
def a_start_past_the_committed_offset(h: HistoryBuilder, wrong: bool) -> Iterable[Told]:
    a, b = two(h)
    a.commit(6, 3.5)
    a.revoked(4)
    b.assigned(5)
    rest(b, 7 if wrong else 6)
    return [("wrong-start", "", "", (B,), 7, 7, 1)] if wrong else []


@case
def a_start_that_is_right_by_what_was_fetched(h: HistoryBuilder, wrong: bool) -> Iterable[Told]:
    """What was committed after the fetch was told to nobody."""
    a, b = two(h)
    a.evicted(4)
    b.assigned(5)
    b.fetches(4, 5.01)
    h.accepts(6, 6)
    rest(b, 6 if wrong else 4)
    return [("wrong-start", "", "", (B,), 6, 6, 1)] if wrong else []


@case
def a_start_by_any_of_two_fetches(h: HistoryBuilder, wrong: bool) -> Iterable[Told]:
    """The earlier one may not be the one that the client went by."""
    a, b = two(h)
    a.evicted(4)
    b.assigned(5)
    b.fetches(4, 5.01)
    h.accepts(6, 6)
    if not wrong:
        b.fetches(6, 7)
    rest(b, 6)
    return [("wrong-start", "", "", (B,), 6, 6, 1)] if wrong else []


@case
def a_fetch_that_was_written_down_late(h: HistoryBuilder, wrong: bool) -> Iterable[Told]:
    """When a fetch began nobody knows: a busy broker writes its log late. Only a commit before the callback is sure."""
    a, b = two(h)
    a.commit(5, 3.5)
    a.evicted(4)
    a.commit(6, 4.99 if wrong else 5.005)
    b.assigned(5 if wrong else 5.001, reported=False)
    b.fetches(5, 5.01)
    h.gives(b, 0, 5.02)
    rest(b, 5)
    stale = [("stale-offset-answer", cause, "", (B,), 5, 5, 1) for cause in ("told a member", "wrong-start")]
    return [*stale, ("stale-offset-answer", "redelivery-below-commit", "", (B, A), 5, 5, 1)] if wrong else []


@case
def a_writer_whose_request_was_written_down_late(h: HistoryBuilder, wrong: bool) -> Iterable[Told]:
    a, b = two(h)
    a.evicted(4)
    b.assigned(5)
    a.commit(4, 6, logged=False)
    a.asks_to_commit(4, 6.002 if wrong else 7.5)
    rest(b, 4)
    return [("zombie-commit", "", "", (A, B), 4, 4, 1)] if wrong else []


@case
def a_position_that_was_kept(h: HistoryBuilder, wrong: bool) -> Iterable[Told]:
    """Who gets a partition back may go on where it was."""
    a, b = two(h)
    a.revoked(4)
    who = b if wrong else a
    who.assigned(5)
    rest(who, 6)
    return [("wrong-start", "", "", (B,), 6, 6, 1)] if wrong else []


@case
def a_start_at_a_hole(h: HistoryBuilder, wrong: bool) -> Iterable[Told]:
    """Markers and deleted records are no records to start at."""
    a, b = two(h)
    a.commit(6, 3.5)
    a.revoked(4)
    b.assigned(5)
    rest(b, 8)
    if not wrong:
        del h.log[6:8]
    return [("wrong-start", "", "", (B,), 8, 8, 1)] if wrong else []


@case
def a_first_record_that_is_gone_at_the_audit(h: HistoryBuilder, wrong: bool) -> Iterable[Told]:
    """Where it lay among the visible ones nobody can say any more."""
    a, b = two(h)
    a.commit(6, 3.5)
    a.revoked(4)
    b.assigned(5)
    rest(b, 5)
    if not wrong:
        del h.log[5]
    return [("wrong-start", "", "", (B,), 5, 5, 1)] if wrong else []


@case
def a_reset_because_the_committed_offset_is_above_the_end(h: HistoryBuilder, wrong: bool) -> Iterable[Told]:
    a, b = two(h)
    h.accepts(6 if wrong else 20, 3.5)
    a.revoked(4)
    b.assigned(5)
    rest(b, 0)
    above = [("commit-beyond-end", "", "", (), 20, 20, 1), ("commit-regression", "", "", (B,), 10, 10, 1)]
    return [("wrong-start", "", "", (B,), 0, 0, 1)] if wrong else above


@case
def a_start_at_the_end_by_the_reset_policy(h: HistoryBuilder, wrong: bool) -> Iterable[Told]:
    """Without a committed offset ``latest`` starts anywhere."""
    h.write(10)
    a = h.member(0)
    h.config = {} if wrong else {"auto.offset.reset": "latest"}
    a.assigned(1)
    rest(a, 6)
    return [("wrong-start", "", "", (A,), 6, 6, 1)] if wrong else []


@case
def a_start_at_a_committed_offset_whatever_the_reset_policy(h: HistoryBuilder, wrong: bool) -> Iterable[Told]:
    h.config = {"auto.offset.reset": "latest"}
    return a_start_past_the_committed_offset(h, wrong)


@case
def a_start_where_the_program_sought(h: HistoryBuilder, wrong: bool) -> Iterable[Told]:
    """That excuses nothing that is not declared."""
    a, b = two(h)
    a.commit(6, 3.5)
    a.revoked(4)
    b.assigned(5)
    b.seek(8 if wrong else 6, 5.1)
    rest(b, 8 if wrong else 6)
    return [("wrong-start", "seek", "", (B,), 8, 8, 1)] if wrong else []


STORIES = [*OTHER_CASES, *CASES, *STALE_CASES]  # of all kinds, now that all are told
