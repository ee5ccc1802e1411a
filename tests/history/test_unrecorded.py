"""What a user's program did outside of its history: such a run is never valid."""

from __future__ import annotations

from pathlib import Path

import pytest

from fencepost.checkers.judge import judge
from fencepost.checkers.spark.detector import find_here
from fencepost.evidence.sealing.seal import seal
from fencepost.history import RecordState
from fencepost.model import Severity, Validity
from fencepost_member.recording.events import EventLog
from history.builder import HistoryBuilder, ns
from history.test_judge import good_life

TOLD = "a consumer of process 7 subscribes to the run's topics"
BY_EFFECT = {"type": "own_program", "processed": "effect"}


def run_of(folder: Path, *, unrecorded: bool) -> Path:
    """A member that lives well."""
    h = HistoryBuilder(folder, promises=[{"type": name} for name in ("delivery", "ownership", "commits", "progress")])
    good_life(h)
    run = h.seal(sealed=False)
    if unrecorded:
        name = "member-0.1-process-7"
        EventLog(run / "history" / "events" / f"{name}.jsonl", name).note(
            "unrecorded", actor="member-0.1", detail={"text": TOLD}
        )
    seal(run)
    return run


def test_a_history_that_does_not_tell_everything_is_never_valid(tmp_path: Path) -> None:
    assert judge(run_of(tmp_path / "whole", unrecorded=False), find_here).validity is Validity.VALID
    verdict = judge(run_of(tmp_path / "lacking", unrecorded=True), find_here)
    assert {check.check: check.validity for check in verdict.checks} == {
        "faults": Validity.VALID,
        "history": Validity.UNKNOWN,
        **dict.fromkeys(("delivery", "ownership", "commits", "progress"), Validity.UNKNOWN),
    }
    assert all(TOLD in check.reason for check in verdict.checks if check.validity is Validity.UNKNOWN)
    assert not [f for c in verdict.checks for f in c.findings if f.severity is Severity.VIOLATION]


def test_where_effects_tell_what_is_processed_nothing_of_that_is_certain_without_them(tmp_path: Path) -> None:
    h = HistoryBuilder(tmp_path, promises=[{"type": "delivery"}, {"type": "effects"}], workload=BY_EFFECT)
    good_life(h)
    h.harness.note("unrecorded", detail={"text": "no such table", "parts": ["effects", "delivered"]})
    h.members[0].rows[2].state = RecordState.BEGUN
    verdict = judge(h.seal(), find_here)
    validities = {check.check: check.validity for check in verdict.checks}
    assert {validities[name] for name in ("history", "delivery", "effects")} == {Validity.UNKNOWN}


@pytest.mark.parametrize(
    ("promise", "validity"),
    [
        ({"type": "delivery"}, Validity.VALID),
        ({"type": "ownership", "of": "assignment"}, Validity.VALID),
        ({"type": "commits"}, Validity.VALID),
        ({"type": "progress"}, Validity.VALID),
        ({"type": "effects"}, Validity.VALID),
        ({"type": "delivery", "level": "at-most-once"}, Validity.UNKNOWN),
        ({"type": "ownership", "of": "processing"}, Validity.UNKNOWN),
        ({"type": "order", "by": "key"}, Validity.UNKNOWN),
    ],
    ids=str,
)
def test_who_processed_a_record_and_when_its_effect_does_not_tell(
    tmp_path: Path, promise: dict[str, str], validity: Validity
) -> None:
    h = HistoryBuilder(tmp_path, promises=[promise], workload=BY_EFFECT)
    good_life(h)
    for offset in {row.offset for row in h.members[0].rows}:
        effect_of_nobody_known(h, offset)
    verdict = judge(h.seal(), find_here)
    (check,) = (check for check in verdict.checks if check.check == promise["type"])
    assert check.validity is validity, check.reason
    unjudged = "an effect shows neither which member processed its record nor when"
    assert (unjudged in check.reason) == (validity is Validity.UNKNOWN)


def test_a_record_that_had_two_effects_is_told_whoever_they_are_of(tmp_path: Path) -> None:
    h = HistoryBuilder(tmp_path, promises=[{"type": "effects"}], workload=BY_EFFECT)
    good_life(h)
    for offset in (*{row.offset for row in h.members[0].rows}, 3):
        effect_of_nobody_known(h, offset)
    (check,) = (check for check in judge(h.seal(), find_here).checks if check.check == "effects")
    assert check.validity is Validity.INVALID
    assert check.reason == "duplicate-effect: Offset 3 of orders-0 had more than one effect."


def effect_of_nobody_known(h: HistoryBuilder, offset: int) -> None:
    detail = {"seq": offset, "token": 0, "key": -1}
    h.harness.note("effect", partitions=[["orders", 0, offset]], detail=detail, begin_ns=ns(41), end_ns=ns(41))


def test_effects_that_cannot_be_read_keep_only_what_needs_them_from_being_judged(tmp_path: Path) -> None:
    promises = [{"type": "delivery"}, {"type": "effects"}, {"type": "parked", "in_order": True}]
    h = HistoryBuilder(tmp_path, promises=promises)
    member = good_life(h)
    h.harness.note("unrecorded", detail={"text": "the topic done cannot be read"})
    for seq in (1, 2):
        h.members[0].effect(3, 2, seq=seq)
    h.members[0].effect(2, 1, seq=1, key=h.content[0, 2][0], kind="dead-letter")
    h.members[0].rows[2].state = RecordState.PARKED
    assert member is None
    verdict = judge(h.seal(), find_here)
    found = {(check.check, f.kind): (f.severity, f.reason) for check in verdict.checks for f in check.findings}
    assert found["effects", "duplicate-effect"][0] is Severity.VIOLATION, "that one is certain"
    assert found["effects", "missing-effect"][0] is Severity.NOTE
    assert found["parked", "per-entity-order"][0] is Severity.NOTE, "the letter may have been retried"
    validities = {check.check: check.validity for check in verdict.checks}
    assert validities["delivery"] is Validity.VALID
    assert validities["history"] is Validity.UNKNOWN
