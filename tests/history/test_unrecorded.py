"""What a user's program did outside of its history: such a run is never valid."""

from __future__ import annotations

from pathlib import Path

from fencepost.checkers.judge import judge
from fencepost.checkers.spark.finder import find_here
from fencepost.evidence.seal import seal
from fencepost.history import State
from fencepost.model import Severity, Validity
from fencepost_member.events import EventLog
from history.builder import HistoryBuilder
from history.test_judge import good_life

TOLD = "a consumer of process 7 subscribes to the run's topics"


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


def test_effects_that_cannot_be_read_keep_only_what_needs_them_from_being_judged(tmp_path: Path) -> None:
    promises = [{"type": "delivery"}, {"type": "effects"}, {"type": "parked", "in_order": True}]
    h = HistoryBuilder(tmp_path, promises=promises)
    member = good_life(h)
    h.harness.note("unrecorded", detail={"text": "the topic done cannot be read"})
    for seq in (1, 2):
        h.members[0].effect(3, 2, seq=seq)
    h.members[0].effect(2, 1, seq=1, key=h.content[0, 2][0], kind="dead-letter")
    h.members[0].rows[2].state = State.PARKED
    assert member is None
    verdict = judge(h.seal(), find_here)
    found = {(check.check, f.kind): (f.severity, f.reason) for check in verdict.checks for f in check.findings}
    assert found["effects", "duplicate-effect"][0] is Severity.VIOLATION, "that one is certain"
    assert found["effects", "missing-effect"][0] is Severity.NOTE
    assert found["parked", "per-entity-order"][0] is Severity.NOTE, "the letter may have been retried"
    validities = {check.check: check.validity for check in verdict.checks}
    assert validities["delivery"] is Validity.VALID
    assert validities["history"] is Validity.UNKNOWN
