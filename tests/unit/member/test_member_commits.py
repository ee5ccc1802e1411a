"""The commit policies and the planted bugs, against answers that a cluster gives only by chance."""

from __future__ import annotations

import pytest

from fencepost_member.committing import policies
from fencepost_member.committing.commits import Committer
from fencepost_member.committing.policies import AfterBatch, AfterProcessing, Asynchronous, BeforeProcessing
from fencepost_member.committing.transaction_policy import InTransaction
from fencepost_member.config import COMMIT_POLICIES, TRANSACTION, LoopConfig
from fencepost_member.ownership import AssignmentNumbers
from fencepost_member.planted_bugs import bug_trigger, records
from fencepost_member.planted_bugs import commits as wrong_commits
from fencepost_member.recording.events import EventLog, read

A, B = ("orders", 0), ("orders", 1)


class Answers:
    """A coordinator that gives the answers told, then accepts; each is an error name, or one for each partition."""

    def __init__(self, *answers):
        self._answers = list(answers)
        self.asked = []

    def commit(self, offsets):
        self.asked.append(dict(offsets))
        answer = self._answers.pop(0) if self._answers else ""
        return answer if isinstance(answer, dict) else dict.fromkeys(offsets, answer)

    def identity(self):
        return "member-id", 7


@pytest.fixture
def harness(tmp_path):
    log = EventLog(tmp_path / "harness.jsonl", "harness")
    yield log
    log.close()


@pytest.fixture
def warm(harness):
    """The run's warm-up is over, and the first time to be wrong has come."""
    harness.begin("phase", detail={"name": "chaos"})


@pytest.fixture
def log(tmp_path):
    with_path = EventLog(tmp_path / "member-0.1.jsonl", "member-0.1")
    with_path.found = lambda: [e for e in read(tmp_path / "member-0.1.jsonl").events if e["end_ns"]]
    yield with_path
    with_path.close()


def policy(kind, adapter, log, *owned, every_ms=0):
    ownership = AssignmentNumbers()
    ownership.assign(owned)
    return kind(LoopConfig(commit_every_ms=every_ms), adapter, Committer(adapter, log), ownership)


def test_what_was_refused_is_committed_again_when_it_is_due_again(log):
    adapter = Answers("REBALANCE_IN_PROGRESS")
    after = policy(AfterProcessing, adapter, log, A)
    after.finished(A, 5)
    after.between()
    after.between()
    after.between()
    assert adapter.asked == [{A: 5}, {A: 5}]
    assert [(e["outcome"], e["error"]) for e in log.found()] == [("fail", "REBALANCE_IN_PROGRESS"), ("ok", None)]


def test_a_batch_is_committed_when_all_of_it_is_processed(log):
    adapter = Answers()
    batch = policy(AfterBatch, adapter, log, A, every_ms=60_000)
    assert batch.batch_atomic, "the loop asks between polls only"
    for offset in (5, 6, 7):
        batch.finished(A, offset)
    batch.between()
    assert adapter.asked == [{A: 7}], "at once, not every minute"
    batch.between()
    assert len(adapter.asked) == 1, "nothing is due"


def test_partitions_that_are_answered_differently_are_commits_of_their_own(log):
    adapter = Answers({A: "", B: "REQUEST_TIMED_OUT"})
    after = policy(AfterProcessing, adapter, log, A, B)
    after.finished(A, 5)
    after.finished(B, 9)
    after.between()
    first, second = log.found()
    assert (first["partitions"], first["outcome"]) == ([["orders", 0, 5]], "ok")
    assert (second["partitions"], second["outcome"]) == ([["orders", 1, 9]], "info")
    assert first["begin_ns"] == second["begin_ns"] < second["end_ns"]
    after.leave()
    assert adapter.asked[1:] == [{B: 9}]


def test_a_commit_never_goes_back_inside_an_interval_and_may_after_it(log):
    adapter = Answers()
    after = policy(AfterProcessing, adapter, log, A)
    for next_offset in (5, 3):
        after.finished(A, next_offset)
        after.between()
    assert adapter.asked == [{A: 5}]
    after.revoking([A], lost=True)
    after.finished(A, 3)
    after.between()
    assert adapter.asked == [{A: 5}, {A: 3}]


def test_what_is_not_owned_is_not_committed_and_what_is_lost_is_forgotten(log):
    adapter = Answers()
    after = policy(AfterProcessing, adapter, log, A, every_ms=60_000)
    after.finished(A, 5)
    after.finished(B, 5)
    after.revoking([A], lost=True)
    after.leave()
    assert adapter.asked == []


def test_what_is_given_up_is_committed_while_it_is_still_owned(log):
    adapter = Answers()
    after = policy(AfterProcessing, adapter, log, A, B, every_ms=60_000)
    after.finished(A, 5)
    after.finished(B, 9)
    after.revoking([A], lost=False)
    assert adapter.asked == [{A: 5}]
    assert log.found()[0]["detail"] == {"mode": "on-revoke"}


class Later(Answers):
    """Commits may be begun, too; ``answer`` gives the next answer to each of them."""

    def __init__(self, *answers):
        super().__init__(*answers)
        self.begun = []

    def commit_async(self, offsets, answered):
        self.begun.append((dict(offsets), answered))

    def answer(self):
        for offsets, answered in self.begun:
            answered(self.commit(offsets))
        self.begun.clear()


def test_nobody_waits_for_an_asynchronous_commit_and_none_is_begun_before_its_answer(log):
    adapter = Later("REBALANCE_IN_PROGRESS")
    later = policy(Asynchronous, adapter, log, A, B)
    later.between()
    for work in ((A, 5), (A, 6), (B, 9)):
        later.finished(*work)
        later.between()
    assert [offsets for offsets, _ in adapter.begun] == [{A: 5}]
    assert log.found() == [], "it has not ended"
    adapter.answer()
    later.between()
    adapter.answer()
    later.between()
    assert adapter.asked == [{A: 5}, {A: 6, B: 9}], "what is newest, once, and not what was refused"
    assert [(e["detail"]["mode"], e["error"]) for e in log.found()] == [
        ("async", "REBALANCE_IN_PROGRESS"),
        ("async", None),
    ]


def test_what_an_asynchronous_commit_did_not_bring_is_still_to_be_committed(log):
    adapter = Later({A: "", B: "REBALANCE_IN_PROGRESS"})
    later = policy(Asynchronous, adapter, log, A, B)
    for tp in (A, B):
        later.finished(tp, 5)
    later.between()
    later.finished(A, 6)
    adapter.answer()
    later.between()
    adapter.answer()
    assert adapter.asked == [{A: 5, B: 5}, {A: 6, B: 5}], "what is newer, and what was refused"


def test_an_asynchronous_commit_is_due_by_time_and_what_is_given_up_is_waited_for(log):
    adapter = Later()
    later = policy(Asynchronous, adapter, log, A, every_ms=60_000)
    later.finished(A, 5)
    later.between()
    assert adapter.begun == [], "it is not due"
    later = policy(Asynchronous, adapter, log, A, B)
    for tp in (A, B):
        later.finished(tp, 5)
    later.between()
    later.finished(A, 6)
    later.revoking([A], lost=False)
    assert adapter.asked == [{A: 6}], "behind what is unanswered"
    later.leave()
    assert adapter.asked == [{A: 6}, {B: 5}]
    assert {e["detail"]["mode"] for e in log.found()} == {"on-revoke", "on-close"}


@pytest.mark.parametrize("answer", ["", "REBALANCE_IN_PROGRESS"])
def test_an_answer_that_comes_when_newer_positions_were_reached_changes_nothing_of_them(log, answer):
    adapter = Later("", answer)
    later = policy(Asynchronous, adapter, log, A, B)
    for tp in (A, B):
        later.finished(tp, 5)
    later.between()
    later.finished(A, 6)
    later.revoking([A], lost=False)
    for tp, offset in ((A, 7), (B, 8)):  # the first one came back
        later.finished(tp, offset)
        later.between()
    adapter.answer()
    assert adapter.asked == [{A: 6}, {A: 5, B: 5}]
    later.between()
    assert [offsets for offsets, _ in adapter.begun] == [{A: 7, B: 8}], "neither forgotten nor gone back"
    adapter.answer()
    later.between()
    later.leave()
    assert (adapter.begun, len(adapter.asked)) == ([], 3), "nothing is due"
    given_up, first, second = log.found()
    assert first["begin_ns"] <= given_up["begin_ns"] <= given_up["end_ns"] <= first["end_ns"] <= second["begin_ns"]
    assert [(e["detail"]["mode"], e["error"]) for e in (given_up, first, second)] == [
        ("on-revoke", None),
        ("async", answer or None),
        ("async", None),
    ]


def test_a_commit_of_nothing_is_asked_of_nobody_and_the_next_one_is(log):
    left_out, adapter = [A], Later()
    commits = Committer(adapter, log, lambda offsets, _: {tp: o for tp, o in offsets.items() if tp not in left_out})
    ownership = AssignmentNumbers()
    ownership.assign([A])
    later = Asynchronous(LoopConfig(commit_every_ms=0), adapter, commits, ownership)
    later.finished(A, 5)
    later.between()
    assert commits.commit({A: 5}, "sync") == {}
    assert (adapter.begun, adapter.asked, log.found()) == ([], [], [])
    left_out.clear()
    later.between()
    adapter.answer()
    assert adapter.asked == [{A: 5}]
    assert [e["partitions"] for e in log.found()] == [[["orders", 0, 5]]]


@pytest.mark.parametrize("error", ["ILLEGAL_GENERATION", "REQUEST_TIMED_OUT", "NOT_COORDINATOR"])
def test_at_most_once_repeats_a_commit_until_it_is_accepted(log, error):
    adapter = Answers(error, error)
    before = policy(BeforeProcessing, adapter, log, A)
    assert before.admit([(0, A, 4), (1, A, 5)])
    assert adapter.asked == [{A: 5}] * 3


@pytest.mark.parametrize("error", ["UNKNOWN_MEMBER_ID", "FENCED_INSTANCE_ID", "AN_ERROR_OF_THE_FUTURE"])
def test_at_most_once_drops_what_it_may_not_commit(log, error):
    before = policy(BeforeProcessing, Answers(error), log, A)
    assert not before.admit([(0, A, 4)])


def test_at_most_once_gives_up_a_commit_that_nobody_answers(log, monkeypatch):
    monkeypatch.setattr(policies, "RETRY_WITHIN_S", 0)
    assert not policy(BeforeProcessing, Answers("NOT_COORDINATOR"), log, A).admit([(0, A, 4)])


def test_at_most_once_has_nothing_to_do_with_records_it_does_not_own(log):
    adapter = Answers()
    before = policy(BeforeProcessing, adapter, log, A)
    assert before.admit([])
    assert not before.admit([(0, B, 4)])
    assert adapter.asked == []


def test_out_of_order_processes_a_poll_back_to_front(log):
    assert records.OutOfOrder(None, log, AssignmentNumbers()).arrange([(0, A, 1), (1, A, 2)]) == [(1, A, 2), (0, A, 1)]


def test_a_stale_backlog_goes_on_with_what_was_given_up_but_not_with_what_came_back(log, monkeypatch):
    monkeypatch.setattr(records, "BACKLOG_S", 60)
    ownership, adapter, committed = AssignmentNumbers(), Answers(), {A: 1, B: 1}
    adapter.committed = lambda partitions: committed
    ownership.assign([A, B])
    backlog = records.StaleBacklog(adapter, log, ownership)
    assert backlog.arrange([(0, A, 1), (1, B, 1)]) == []
    ownership.revoke([A, B])
    ownership.assign([B])
    monkeypatch.setattr(records, "BACKLOG_S", 0)
    assert backlog.arrange([]) == []  # nobody has come past it yet
    committed.update({A: 2, B: 2})
    assert backlog.arrange([]) == [(0, A, 1)]
    assert backlog.arrange([(2, B, 2)]) == [(2, B, 2)]


def test_off_by_one_commits_the_last_offset_and_says_so(log):
    adapter = Answers()
    bug = wrong_commits.OffByOne(adapter, log, AssignmentNumbers())
    Committer(adapter, log, bug.offsets).commit({A: 5}, "sync")
    assert adapter.asked == [{A: 4}]
    assert log.found()[0]["partitions"] == [["orders", 0, 4]]


def test_nobody_is_wrong_before_the_warm_up_is_over(harness, log):
    wrong = bug_trigger.BugTrigger(log.folder, 0, 1)
    harness.begin("phase", detail={"name": "warm-up"})
    assert not wrong.due
    harness.begin("phase", detail={"name": "chaos"})
    assert wrong.due
    wrong.fired()
    assert not wrong.due
    assert not bug_trigger.BugTrigger(log.folder, 60).due


def test_commit_ahead_commits_a_poll_that_it_goes_on_to_process(warm, log, monkeypatch):
    monkeypatch.setattr(wrong_commits, "EVERY_S", 0)
    ownership, adapter = AssignmentNumbers(), Answers()
    ownership.assign([A])
    work = [(0, A, 4), (1, A, 5), (2, B, 9)]
    assert wrong_commits.CommitAhead(adapter, log, ownership).arrange(work) == work
    assert adapter.asked == [{A: 5}]


def test_a_foreign_commit_is_of_a_partition_that_was_never_owned(warm, log, monkeypatch):
    monkeypatch.setattr(wrong_commits, "EVERY_S", 0)
    ownership, adapter = AssignmentNumbers(), Answers()
    adapter.partitions = lambda topics: [A, B]
    ownership.assign([A])
    bug = wrong_commits.ForeignCommit(adapter, log, ownership)
    for _ in range(5):
        bug.arrange([(0, A, 1)])
    assert adapter.asked == [{B: 0}] * bug_trigger.TIMES
    ownership.assign([B])
    assert wrong_commits.ForeignCommit(adapter, log, ownership).arrange([(0, A, 1)])
    assert len(adapter.asked) == bug_trigger.TIMES


def test_a_late_commit_is_of_a_partition_that_was_given_up(warm, log, monkeypatch):
    monkeypatch.setattr(wrong_commits, "EVERY_S", 0)
    ownership, adapter, committed = AssignmentNumbers(), Answers(), {A: 7, B: 9}
    adapter.committed = lambda partitions: committed
    ownership.assign([A, B])
    bug = wrong_commits.LateCommit(adapter, log, ownership)
    bug.arrange([(0, A, 7), (1, B, 3)])
    assert adapter.asked == []
    ownership.revoke([A])
    bug.arrange([(2, B, 4)])
    assert adapter.asked == []  # nobody has come past it yet
    committed[A] = 8
    bug.arrange([(2, B, 4)])
    assert adapter.asked == [{A: 7}]
    ownership.assign([A])
    bug.arrange([(3, B, 5)])
    assert adapter.asked == [{A: 7}]


def test_a_wrong_start_is_a_little_below_the_committed_offset_and_recorded(log):
    adapter, begun = Answers(), []
    adapter.committed = lambda partitions: {A: 25, B: 5}
    adapter.start_at = begun.append
    wrong_commits.WrongStart(adapter, log, AssignmentNumbers()).assigned([A, B])
    assert begun == [{A: 15}]
    assert [(e["kind"], e["partitions"]) for e in log.found()] == [("seek", [["orders", 0, 15]])]


class Seeking(Answers):
    """Positions can be moved, too."""

    def __init__(self, *answers):
        super().__init__(*answers)
        self.sought = []

    def seek(self, tp, offset):
        self.sought.append((tp, offset))


def transaction_of(policy, *work):
    assert policy.batch_atomic
    assert policy.admit([(0, tp, offset + 1) for tp, offset in work])
    for tp, offset in work:
        policy.finished(tp, offset + 1)
    policy.between()


def test_a_transaction_holds_what_a_poll_returned(log):
    adapter = Seeking()
    within = policy(InTransaction, adapter, log, A, B)
    transaction_of(within, (A, 4), (B, 8), (A, 5))
    transaction_of(within)
    transaction_of(within, (A, 6))
    assert adapter.asked == [{A: 6, B: 9}, {A: 7}]
    assert adapter.sought == []
    assert {e["detail"]["mode"] for e in log.found()} == {"transaction"}
    within.revoking([A], lost=False)
    within.leave()
    assert len(adapter.asked) == 2, "nothing is in hand"


def test_what_was_aborted_is_read_again_where_it_is_still_owned(log):
    adapter = Seeking("ILLEGAL_GENERATION")
    within = policy(InTransaction, adapter, log, A)
    transaction_of(within, (A, 4), (B, 8), (A, 5))
    assert adapter.sought == [(A, 4)]
    assert [(e["kind"], e["partitions"]) for e in log.found()][1:] == [("seek", [["orders", 0, 4]])]
    transaction_of(within, (A, 4))
    assert adapter.asked[1:] == [{A: 5}], "a transaction of its own"


def test_only_what_was_aborted_is_read_again(log):
    adapter = Seeking("", "ILLEGAL_GENERATION")
    within = policy(InTransaction, adapter, log, A)
    transaction_of(within, (A, 4))
    transaction_of(within, (A, 5), (A, 6))
    assert adapter.sought == [(A, 5)]


def test_every_policy_is_known_by_its_name():
    assert set(policies.POLICIES) == {*COMMIT_POLICIES, TRANSACTION}
