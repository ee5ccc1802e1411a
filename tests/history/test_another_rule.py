"""A stored run of a program, judged by another rule for when a record counts as processed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from fencepost.checkers.counts import Bounds
from fencepost.checkers.judge import judge
from fencepost.checkers.tables import load
from fencepost.errors import ScenarioError
from fencepost.history import DELIVERED_VERSION
from fencepost.model import Severity
from history import random_histories
from history.builder import HistoryBuilder, MemberTeller, ns
from history.test_kernel_equals_oracle import agreed, check_each, detector

SEEDS = 20
A = "member-0.1"


def program(folder: Path, processed: str = "next-poll", **reported: Any) -> tuple[HistoryBuilder, MemberTeller]:
    """A program by a rule, and its first member, which owns the partition from 1 s on."""
    workload = {"type": "own_program", "processed": processed}
    h = HistoryBuilder(folder, promises=[{"type": "delivery", "level": "at-least-once"}], workload=workload)
    h.delivered_version = DELIVERED_VERSION
    h.write(6)
    a = h.member(0, **reported)
    a.assigned(1)
    return h, a


def goes_on(h: HistoryBuilder, first: int) -> None:
    """The first member dies, and another one processes and commits the rest."""
    h.members[0].die(3.3)
    h.members[0].evicted(9)
    b = h.member(1)
    b.assigned(10)
    b.process(range(first, 6), 11)
    b.commit(6, 12)
    b.close(39)


def story(folder: Path, processed: str = "next-poll", **reported: Any) -> HistoryBuilder:
    """The program polls again after five records, of which it has committed four; then it dies."""
    h, a = program(folder, processed, **reported)
    a.process(range(5), 2)
    a.commit(4, 2.5)
    goes_on(h, 4)
    return h


def found(run: Path, processed: str = "") -> dict[str, list[int]]:
    """What both finders find by a rule: the first offsets by kind."""
    anomalies, _ = agreed(run, Bounds(), processed)
    by_kind: dict[str, list[int]] = {}
    for anomaly in anomalies:
        by_kind.setdefault(anomaly.kind, []).append(anomaly.first_offset)
    return by_kind


def done_s(run: Path, incarnation: str = A) -> list[float]:
    """When each delivery of a member was processed by the rule ``commit``, in seconds; 0: never."""
    (times,) = (one.done_ns for one in load(run, "commit").inferred if one.incarnation == incarnation)
    return [round((at - ns(0)) / 1e9, 3) if at else 0 for at in times.tolist()]


def test_a_record_that_the_program_did_not_commit_was_not_processed(tmp_path: Path) -> None:
    run = story(tmp_path).seal()
    assert found(run) == {"redelivery": [4]}, "the fifth record was processed twice, as it is permitted"
    assert found(run, "commit") == {}, "the member that died had not processed it"
    assert found(run) == {"redelivery": [4]}
    assert done_s(run) == [2.5, 2.5, 2.5, 2.5, 0]


def test_a_record_that_was_in_flight_when_it_was_committed_counts_as_processed(tmp_path: Path) -> None:
    """The program kept it over several polls, so the rule of polls could not say."""
    h, a = program(tmp_path)
    a.process(range(3), 2)
    a.poll([3], 2.2)
    a.commit(4, 2.5)
    goes_on(h, 4)
    run = h.seal()
    assert found(run)["unseen"] == [3]
    assert "unseen" not in found(run, "commit")


def test_a_refused_commit_shows_what_the_program_had_processed_all_the_same(tmp_path: Path) -> None:
    h, a = program(tmp_path)
    a.process(range(3), 2)
    a.commit(3, 2.5, outcome="fail", error="REBALANCE_IN_PROGRESS")
    goes_on(h, 0)
    assert done_s(h.seal()) == [2.5, 2.5, 2.5]


def test_the_first_commit_after_the_delivery_counts(tmp_path: Path) -> None:
    """Also if the program commits a lower offset than before."""
    h, a = program(tmp_path)
    a.process(range(2), 1.5)
    a.commit(2, 1.7)
    a.seek(0, 1.8)
    a.process(range(4), 2)
    a.commit(1, 2.5)
    a.commit(4, 2.7)
    goes_on(h, 4)
    assert done_s(h.seal()) == [1.7, 1.7, 2.5, 2.7, 2.7, 2.7]


def test_a_delivery_before_a_move_of_the_position_is_not_processed_by_a_later_commit(tmp_path: Path) -> None:
    h, a = program(tmp_path)
    a.process(range(4), 1.5)
    a.seek(2, 1.8)
    a.process(range(2, 4), 2)
    a.commit(4, 2.5)
    goes_on(h, 4)
    run = h.seal()
    assert done_s(run) == [2.5, 2.5, 0, 0, 2.5, 2.5]
    assert found(run, "commit") == {"rewind": [2]}, "which the program chose itself"


def test_a_delivery_of_a_former_assignment_is_not_processed_by_a_later_commit(tmp_path: Path) -> None:
    h, a = program(tmp_path)
    a.process(range(3), 1.5)
    a.revoked(1.8)
    a.assigned(2)
    a.process(range(3), 2.2)
    a.commit(3, 2.5)
    goes_on(h, 3)
    run = h.seal()
    assert done_s(run) == [0, 0, 0, 2.5, 2.5, 2.5]
    assert found(run, "commit") == {}


def test_a_record_begins_when_the_one_before_it_is_processed(tmp_path: Path) -> None:
    """So the records of a poll were not all at work when another member had them."""
    h, a = program(tmp_path)
    a.process(range(4), 2)
    a.commit(2, 2.5)
    goes_on(h, 2)
    _, facts = agreed(h.seal(), Bounds(), "commit")
    assert (facts.begun, facts.finished) == (7, 6)


@pytest.mark.parametrize("first", range(0, SEEDS, 10))
def test_finders_agree_on_fuzzed_histories(tmp_path: Path, first: int) -> None:
    asked: list[Path] = []

    def by_commits(run: Path) -> None:
        commits = load(run).commits
        if commits and not any(commit.mode == "auto" for commit in commits):
            asked.append(run)
            agreed(run, processed="commit")

    check_each(random_histories.programs, tmp_path, range(first, first + 10), by_commits)
    assert len(asked) > 2


def test_the_rule_of_the_run_is_no_other_rule(tmp_path: Path) -> None:
    run = story(tmp_path, "commit").seal()
    assert load(run, "commit").inferred == ()
    assert found(run, "commit") == found(run)


def test_effects_are_not_asked_for_by_the_rule_of_commits(tmp_path: Path) -> None:
    h = story(tmp_path, "effect")
    h.affected(0, *range(5))
    run = h.seal()
    assert found(run)["unseen"] == [5]
    assert "unseen" not in found(run, "commit")


def test_the_severity_is_that_of_the_promise(tmp_path: Path) -> None:
    h, a = program(tmp_path, "effect")
    h.affected(0, *range(6))
    a.process(range(3), 2)
    a.commit(3, 2.5)
    h.members[0].die(3.3)
    h.members[0].evicted(9)
    b = h.member(1)
    b.assigned(10)
    b.process([4, 5], 11)
    b.commit(6, 12)
    b.close(39)
    verdict = judge(h.seal(), detector.find_here, processed="commit")
    assert "unseen" in {f.kind for c in verdict.checks for f in c.findings if f.severity is Severity.VIOLATION}


@pytest.mark.parametrize(
    ("rule", "sentence"),
    [
        ("whim", "the rule is 'whim'; known rules are next-poll, commit, told, effect"),
        ("effect", "by the rule 'effect': effects are listed only by that rule. Run the scenario again with it"),
        ("told", "the reports of a program are recorded only by that rule"),
        ("next-poll", "the poll after a record is recorded only by that rule"),
    ],
)
def test_a_rule_whose_facts_were_not_recorded_is_refused(tmp_path: Path, rule: str, sentence: str) -> None:
    with pytest.raises(ScenarioError, match=sentence):
        judge(story(tmp_path, "commit").seal(), detector.find_here, processed=rule)


def test_members_of_our_own_are_not_judged_by_such_rules(tmp_path: Path) -> None:
    h = HistoryBuilder(tmp_path, promises=[{"type": "delivery"}])
    with pytest.raises(ScenarioError, match="its members do not run a program of yours"):
        judge(h.seal(), detector.find_here, processed="commit")


def test_a_client_that_commits_by_itself_does_not_show_what_was_processed(tmp_path: Path) -> None:
    h, a = program(tmp_path)
    a.process(range(3), 2)
    a.commit(2, 2.4, mode="auto")
    a.commit(3, 2.5)
    goes_on(h, 3)
    with pytest.raises(ScenarioError, match=r"the client of member-0\.1 commits by itself, which"):
        judge(h.seal(), detector.find_here, processed="commit")


@pytest.mark.parametrize("stores", [True, False])
def test_offsets_that_a_program_stores_are_not_recorded_by_other_rules(tmp_path: Path, stores: bool) -> None:
    run = story(tmp_path, config={"enable.auto.offset.store": not stores}).seal()
    if stores:
        with pytest.raises(ScenarioError, match=r"the program of member-0\.1 stores offsets"):
            judge(run, detector.find_here, processed="commit")
    else:
        assert found(run, "commit") == {}


def test_a_program_that_committed_nothing_is_refused(tmp_path: Path) -> None:
    h, a = program(tmp_path)
    a.process(range(6), 2)
    a.close(39)
    with pytest.raises(ScenarioError, match="no member committed anything"):
        judge(h.seal(), detector.find_here, processed="commit")
