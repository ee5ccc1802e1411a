"""The check of the faults: one without a witness, or without the consequence it was meant to have, is never valid."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

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
    assert check.reason == "step 0 (kill) never fired: the chaos ended before its time"


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
        assert "was meant to reach 'fenced'" in check.reason


@pytest.mark.parametrize(("term", "expected"), [(1, Validity.UNKNOWN), (2, Validity.VALID)])
def test_a_coordinator_has_moved_when_the_offsets_log_goes_on_in_another_term(
    tmp_path: Path, term: int, expected: Validity
) -> None:
    def tell(h: HistoryBuilder, a: MemberTeller) -> None:
        h.fault("move_coordinator", 3, brokers=(1,), expect="coordinator_moved")
        h.term = term
        a.commit(1, 4)

    assert told(tmp_path, tell).validity == expected


@pytest.mark.parametrize(("at", "expected"), [(2.0, Validity.UNKNOWN), (4.0, Validity.VALID)])
def test_a_group_has_rebalanced_when_somebody_is_assigned_after_it(
    tmp_path: Path, at: float, expected: Validity
) -> None:
    def tell(h: HistoryBuilder, a: MemberTeller) -> None:
        h.fault("bounce", 3, 3.5, members=(a.name,), expect="rebalanced")
        h.member(1).assigned(at)

    assert told(tmp_path, tell).validity == expected
