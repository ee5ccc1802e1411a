"""The check of the faults: one without a witness, or without the consequence it was meant to have, is never valid."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from fencepost.checkers import faults
from fencepost.checkers.tables import load
from fencepost.model import Check, Validity
from history.builder import HistoryBuilder, MemberTeller


def told(folder: Path, *tell: Callable[[HistoryBuilder, MemberTeller], None]) -> Check:
    """The check of a run with one member that owns partition 0 from 1 s on."""
    h = HistoryBuilder(folder)
    a = h.member(0)
    a.assigned(1)
    for story in tell:
        story(h, a)
    return faults.check(load(h.seal()))


def paused(**options: object) -> Callable[[HistoryBuilder, MemberTeller], None]:
    return lambda h, a: a.pause(3, 12, **options)  # type: ignore[arg-type]


def evicted(at: float) -> Callable[[HistoryBuilder, MemberTeller], None]:
    return lambda h, a: a.evicted(at)


def lost(at: float) -> Callable[[HistoryBuilder, MemberTeller], None]:
    return lambda h, a: a.lost(at)


def left(at: float) -> Callable[[HistoryBuilder, MemberTeller], None]:
    def tell(h: HistoryBuilder, a: MemberTeller) -> None:
        a.revoked(at)
        a.close(at + 0.1)

    return tell


def lost_and_closed(at: float) -> Callable[[HistoryBuilder, MemberTeller], None]:
    """Hears only in the drain that it was removed, and is not in the group again before the drain is over."""

    def tell(h: HistoryBuilder, a: MemberTeller) -> None:
        a.lost(at)
        a.close(39)

    return tell


def idle_and_back(gone: float | None) -> Callable[[HistoryBuilder, MemberTeller], None]:
    """Owns nothing when it is hit; is gone from the records only after it woke, and comes back at 12.5 s."""

    def tell(h: HistoryBuilder, a: MemberTeller) -> None:
        a.revoked(2)
        if gone:
            a.evicted(gone)
        a.assigned(12.5)

    return tell


def test_a_fault_that_is_proven_and_healed_is_valid(tmp_path: Path) -> None:
    check = told(tmp_path, paused())
    assert (check.validity, check.facts_judged) == (Validity.VALID, 1)
    assert check.reason == "1 of 1 steps took effect, with evidence"


def test_no_fault_at_all_is_valid(tmp_path: Path) -> None:
    assert told(tmp_path).validity == Validity.VALID


@pytest.mark.parametrize("required", [True, False])
def test_a_fault_without_a_witness_is_unknown(tmp_path: Path, required: bool) -> None:
    check = told(tmp_path, paused(proven=False, required=required))
    assert check.validity == Validity.UNKNOWN
    assert check.reason == "nothing proves that step 0 (pause of member-0) took effect: fault as told"


def test_a_fault_that_was_not_healed_is_unknown(tmp_path: Path) -> None:
    check = told(tmp_path, paused(healed=False))
    assert check.validity == Validity.UNKNOWN
    assert "was healed: healed as told" in check.reason


def test_a_required_step_that_never_fired_is_unknown(tmp_path: Path) -> None:
    check = told(tmp_path, lambda h, a: h.plan_step("kill", 5))
    assert check.validity == Validity.UNKNOWN
    assert check.reason == "step 0 (kill) never fired: the chaos phase ended before its time"


@pytest.mark.parametrize(("required", "expected"), [(True, Validity.UNKNOWN), (False, Validity.VALID)])
def test_a_step_that_found_no_target_matters_only_when_required(
    tmp_path: Path, required: bool, expected: Validity
) -> None:
    def tell(h: HistoryBuilder, a: MemberTeller) -> None:
        h.plan_step("kill", 5, required=required)
        h.skipped(0, 5)

    check = told(tmp_path, tell)
    assert check.validity == expected
    assert "nothing matched" in check.findings[0].examples[0]["sentence"]


@pytest.mark.parametrize(
    ("stories", "expected"),
    [
        ([], Validity.UNKNOWN),
        ([lost(12.1)], Validity.VALID),
        ([lost(2)], Validity.UNKNOWN),
        ([evicted(9)], Validity.VALID),
        ([evicted(12.5)], Validity.VALID),
        ([lost_and_closed(20.2)], Validity.VALID),
        ([left(20)], Validity.UNKNOWN),
        ([idle_and_back(12.3)], Validity.VALID),
        ([idle_and_back(None)], Validity.UNKNOWN),
    ],
    ids=[
        "nothing",
        "lost",
        "lost before",
        "removed",
        "removed after it woke, still owning",
        "lost in the drain, then closed",
        "left by itself later",
        "idle, removed, back",
        "idle, never removed",
    ],
)
def test_a_member_is_fenced_when_it_lost_or_was_removed(
    tmp_path: Path, stories: list[Callable[[HistoryBuilder, MemberTeller], None]], expected: Validity
) -> None:
    check = told(tmp_path, paused(expect="fenced"), *stories)
    assert check.validity == expected
    if expected == Validity.UNKNOWN:
        sentence = "step 0 (pause of member-0) was expected to reach 'fenced', and nothing in the history shows it"
        assert check.reason == sentence


@pytest.mark.parametrize(("term", "expected"), [(1, Validity.UNKNOWN), (2, Validity.VALID)])
def test_a_coordinator_has_moved_when_the_offsets_log_goes_on_in_another_term(
    tmp_path: Path, term: int, expected: Validity
) -> None:
    def tell(h: HistoryBuilder, a: MemberTeller) -> None:
        h.fault("move_coordinator", 3, brokers=(1,), expect="coordinator_moved")
        h.term = term
        a.commit(1, 4)

    assert told(tmp_path, tell).validity == expected


def test_times_of_faults_are_told_in_milliseconds(tmp_path: Path) -> None:
    h = HistoryBuilder(tmp_path)
    h.fault("pause", 3.00049, 5.00061, members=("member-0.1",))
    (fault,) = faults.rows(load(h.seal()))
    assert (fault["begun_s"], fault["proven_s"], fault["healed_s"]) == (3.0, 3.0, 5.011)


NOT_REBALANCED = "was expected to reach 'rebalanced', and nothing in the history shows it"


def judged(folder: Path, tell: Callable[[HistoryBuilder], None], **options: Any) -> Check:
    h = HistoryBuilder(folder, partitions=2, **options)
    tell(h)
    return faults.check(load(h.seal()))


@pytest.mark.parametrize("classic", [False, True])
@pytest.mark.parametrize(("at", "expected"), [(2.0, Validity.UNKNOWN), (4.0, Validity.VALID)])
def test_a_group_has_rebalanced_when_somebody_is_assigned_after_it(
    tmp_path: Path, at: float, expected: Validity, classic: bool
) -> None:
    def tell(h: HistoryBuilder) -> None:
        h.member(0).assigned(1)
        h.fault("bounce", 3, 3.5, members=("member-0.1",), expect="rebalanced")
        h.member(1).assigned(at)

    assert judged(tmp_path, tell, classic=classic).validity == expected


@pytest.mark.parametrize("classic", [False, True])
@pytest.mark.parametrize(
    ("at", "expected"),
    [(3.5, Validity.VALID), (5.9, Validity.VALID), (6.2, Validity.UNKNOWN)],
    ids=["at once", "just before the next step", "by the next step"],
)
def test_a_rebalance_counts_for_the_step_that_fired_last(
    tmp_path: Path, at: float, expected: Validity, classic: bool
) -> None:
    def tell(h: HistoryBuilder) -> None:
        a, b, c = (h.member(n) for n in range(3))
        a.assigned(1)
        h.fault("pause", 3, 4, step=0, members=(a.name,), expect="rebalanced")
        h.fault("bounce", 6, 7, step=1, members=(b.name,))
        c.assigned(at, tp=1)

    check = judged(tmp_path, tell, classic=classic)
    assert check.validity == expected
    assert (NOT_REBALANCED in check.reason) == (expected == Validity.UNKNOWN)


@pytest.mark.parametrize(
    ("hit", "expected"), [(1, Validity.VALID), (0, Validity.UNKNOWN)], ids=["another member", "the same member"]
)
def test_in_shared_time_a_group_has_rebalanced_when_a_member_that_was_hit_is_gone(
    tmp_path: Path, hit: int, expected: Validity
) -> None:
    def tell(h: HistoryBuilder) -> None:
        a, b = h.member(0), h.member(1)
        a.assigned(1)
        b.assigned(1, tp=1)
        h.fault("pause", 3, 12, step=0, members=(a.name,), expect="rebalanced")
        h.fault("pause", 5, 6, step=1, members=((a, b)[hit].name,))
        a.evicted(9)

    assert judged(tmp_path, tell, classic=True).validity == expected


@pytest.mark.parametrize(("at", "expected"), [(6.0, Validity.UNKNOWN), (12.5, Validity.VALID)])
def test_a_rebalance_while_an_earlier_step_is_in_effect_may_be_that_ones(
    tmp_path: Path, at: float, expected: Validity
) -> None:
    def tell(h: HistoryBuilder) -> None:
        a, b, c = (h.member(n) for n in range(3))
        a.assigned(1)
        h.fault("pause", 3, 12, step=0, members=(a.name,))
        h.fault("bounce", 5, 5.5, step=1, members=(b.name,), expect="rebalanced")
        c.assigned(at, tp=1)

    assert judged(tmp_path, tell, classic=True).validity == expected


@pytest.mark.parametrize(("begun", "expected"), [(2.9, Validity.UNKNOWN), (3.1, Validity.VALID)])
def test_a_rebalance_counts_by_its_begin(tmp_path: Path, begun: float, expected: Validity) -> None:
    def tell(h: HistoryBuilder) -> None:
        a, b = h.member(0), h.member(1)
        a.assigned(1)
        h.fault("bounce", 3, 3.5, members=(a.name,), expect="rebalanced")
        h.join(b, begun)
        b.assigned(5, tp=1)

    assert judged(tmp_path, tell, classic=True).validity == expected


@pytest.mark.parametrize(("at", "expected"), [(14.5, Validity.VALID), (15.5, Validity.UNKNOWN)])
def test_a_step_has_settled_a_session_and_five_seconds_after_it_healed(
    tmp_path: Path, at: float, expected: Validity
) -> None:
    def tell(h: HistoryBuilder) -> None:
        a, b = h.member(0), h.member(1)
        a.assigned(1)
        h.fault("pause", 3, 4, members=(a.name,), expect="rebalanced")  # healed at 4.01
        b.assigned(at, tp=1)

    assert judged(tmp_path, tell, classic=True, config={"session.timeout.ms": "6000"}).validity == expected


@pytest.mark.parametrize(("begun", "expected"), [(24.0, Validity.VALID), (39.5, Validity.UNKNOWN)])
def test_members_that_leave_after_the_drain_rebalance_for_no_step(
    tmp_path: Path, begun: float, expected: Validity
) -> None:
    def tell(h: HistoryBuilder) -> None:
        a, b = h.member(0), h.member(1)
        a.assigned(1)
        b.assigned(1.5, tp=1)
        h.fault("pause", 15, 19, members=(a.name,), expect="rebalanced")
        h.join(b, begun)
        a.revoked(39, reported=False)
        a.close(39.2)
        b.assigned(39.8)
        b.revoked(39.9)
        b.close(39.95)

    assert judged(tmp_path, tell, classic=True).validity == expected


def moved(h: HistoryBuilder, a: MemberTeller, term: int, at: float) -> None:
    """The coordinator of this term writes its first record."""
    h.term = term
    a.commit(term, at)


@pytest.mark.parametrize(
    ("rival", "at", "expected"),
    [
        ("move_coordinator", 4, Validity.VALID),
        ("move_coordinator", 6.2, Validity.UNKNOWN),
        ("pause", 6.2, Validity.VALID),
    ],
    ids=["before the next move", "by the next move", "beside a step that moves no coordinator"],
)
def test_a_coordinator_is_moved_by_the_step_that_fired_last_and_hits_no_member(
    tmp_path: Path, rival: str, at: float, expected: Validity
) -> None:
    def tell(h: HistoryBuilder) -> None:
        a = h.member(0)
        a.assigned(1)
        h.fault("move_coordinator", 3, step=0, expect="coordinator_moved")
        h.fault(rival, 6, step=1, members=(a.name,) if rival == "pause" else ())
        moved(h, a, 2, at)

    assert judged(tmp_path, tell).validity == expected


def test_a_record_of_about_the_time_of_the_step_is_of_the_coordinator_before_it(tmp_path: Path) -> None:
    def tell(h: HistoryBuilder) -> None:
        a = h.member(0)
        a.assigned(1, reported=False)
        h.fault("move_coordinator", 3, step=0, expect="coordinator_moved")
        moved(h, a, 1, 2.9992)
        moved(h, a, 2, 4)

    assert judged(tmp_path, tell).validity == Validity.VALID


@pytest.mark.parametrize(
    ("hit", "lost_at", "expected"),
    [
        (0, 12.5, Validity.VALID),
        (0, 20.5, Validity.UNKNOWN),
        (1, 20.5, Validity.VALID),
        (None, 20.5, Validity.UNKNOWN),
    ],
    ids=["before the next step", "by the next step", "beside a step on another", "by a step on no member"],
)
def test_a_member_is_fenced_by_the_step_that_hit_it_last(
    tmp_path: Path, hit: int | None, lost_at: float, expected: Validity
) -> None:
    def tell(h: HistoryBuilder) -> None:
        members = [h.member(0), h.member(1)]
        members[0].assigned(1)
        h.fault("pause", 3, 12, step=0, members=(members[0].name,), expect="fenced")
        h.fault("black_hole", 20, 30, step=1, members=() if hit is None else (members[hit].name,))
        members[0].lost(lost_at)

    assert judged(tmp_path, tell).validity == expected


def interrupted(h: HistoryBuilder) -> None:
    """The harness ended in the middle of chaos: step 0 is in effect, steps 1 and 2 were still to come."""
    h.member(0).assigned(1)
    h.phases = {"warm-up": (0.0, 1.0), "chaos": (1.0, None)}
    detail = {"step": 0, "fault": "pause", "target": "member-0", "members": ["member-0.1"], "brokers": []}
    h.plan_step("pause", 3, step=0, heal_after_s=9.0, expect="fenced")
    h._proof("fault", detail, 3, 3, True)
    h.plan_step("kill", 5, step=1)
    h.plan_step("kill", 7, step=2, required=False)


@pytest.mark.parametrize("sealed", [True, False])
def test_an_interrupted_run_says_so_and_claims_nothing_of_steps_that_it_does_not_tell_of(
    tmp_path: Path, sealed: bool
) -> None:
    h = HistoryBuilder(tmp_path)
    interrupted(h)
    check = faults.check(load(h.seal(sealed=sealed)))
    assert check.validity == Validity.UNKNOWN
    (finding,) = check.findings
    told = [example["sentence"] for example in finding.examples]
    assert not [sentence for sentence in told if "never" in sentence]
    assert all("the run ended in phase chaos" in sentence for sentence in told)
    assert [sentence.partition(": the run ended in phase chaos")[0] for sentence in told] == [
        "Nothing proves that step 0 (pause of member-0) was healed",
        "Step 0 (pause of member-0) was expected to reach 'fenced', and nothing in the history shows it",
        "The history has no record of step 1 (kill)",
        "The history has no record of step 2 (kill)",
    ]


@pytest.mark.parametrize("name", ["history/events.parquet", "plan.json"])
def test_without_the_events_or_the_plan_nothing_is_known_of_the_faults(tmp_path: Path, name: str) -> None:
    h = HistoryBuilder(tmp_path)
    a = h.member(0)
    a.assigned(1)
    h.fault("kill", 3)
    check = faults.check(load(h.seal(without=[name])))
    assert check.validity == Validity.UNKNOWN
    assert "never fired" not in check.reason
    assert f"{name}: it is missing" in check.reason
