"""The check that always runs: every fault of the plan provably began, was healed, and had its expected effect.

A fault without evidence makes the run unknown, never valid.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from fencepost.checkers import certainty
from fencepost.checkers.expectations import reached
from fencepost.checkers.explanations import EXAMPLES_MAX
from fencepost.checkers.tables import Tables
from fencepost.checkers.tables.rows import NS, Damage, PerformedStep
from fencepost.history import HARNESS
from fencepost.model import Check, Finding, Severity, Validity

KINDS = UNPROVEN, NOT_APPLICABLE = "unproven-fault", "fault-not-applicable"
PROMISE = "every fault happened and was undone"


def check(tables: Tables) -> Check:
    """Unknown if a step is unproven, not healed, missing though required, or did not have its expected effect."""
    missing = _missing_events(tables)
    doubts = [doubt for step in tables.steps for doubt in _doubts(tables, step, missing)]
    if missing and missing.part != "run" and not doubts:  # damage of "run" shows only where the run ended
        doubts = [f"there may have been more faults than the history records: {missing}"]
    notes = [f"step {s.step} ({s.fault}) was not applicable: {s.skipped}" for s in tables.steps if _skippable(s)]
    findings = []
    for kind, sentences in ((UNPROVEN, doubts), (NOT_APPLICABLE, notes)):
        if sentences:
            first = sentences[:EXAMPLES_MAX]
            examples = tuple({"sentence": f"{s[0].upper()}{s[1:]}.", "witnesses": []} for s in first)
            findings.append(Finding(kind, Severity.NOTE, len(sentences), "", examples))
    fired = sum(bool(step.begun_ns) for step in tables.steps)
    reason = (
        f"{fired} of {len(tables.steps)} steps took effect, with evidence" if tables.steps else "no fault was planned"
    )
    return Check(
        "faults",
        PROMISE,
        Validity.UNKNOWN if doubts else Validity.VALID,
        fired,
        doubts[0] if doubts else reason,
        tuple(findings),
    )


def _missing_events(tables: Tables) -> Damage | None:
    """The damage because of which steps, or the harness's events about them, may be missing; None: there is none."""
    for damage in tables.damage:
        of_harness = damage.part == "events" and certainty.whose(damage.file) in ("", HARNESS)
        if of_harness or damage.part in ("run", "plan"):
            return damage
    return None


def _skippable(step: PerformedStep) -> bool:
    return bool(step.skipped) and not step.required


def _doubts(tables: Tables, step: PerformedStep, missing: Damage | None) -> Iterator[str]:
    """The reasons why a step does not count as proven.

    ``missing``: the damage because of which events may be missing; then an unrecorded step may have happened anyway.
    """
    name = f"step {step.step} ({step.fault}{f' of {step.target}' if step.target else ''})"
    if not step.begun_ns:
        if missing and not step.skipped:
            yield f"the history has no record of {name}: {missing}"
        elif step.required:
            yield f"{name} never fired: {step.skipped or 'the chaos phase ended before its time'}"
        return
    if not step.proven_ns:
        yield f"nothing proves that {name} took effect: {step.evidence or missing or 'it has no evidence'}"
    if step.heals and not step.healed_ns:
        yield f"nothing proves that {name} was healed: {step.heal_evidence or missing or 'it was never undone'}"
    if step.expect and not reached(tables, step):
        why = f": {missing}" if missing else ""
        yield f"{name} was expected to reach {step.expect!r}, and nothing in the history shows it{why}"


def rows(tables: Tables) -> tuple[dict[str, Any], ...]:
    """The verdict's table of faults; times are seconds since the run's start, None means never."""

    def second(at_ns: int) -> float | None:
        return round((at_ns - tables.origin_ns) / NS, 3) if at_ns else None

    return tuple(
        {
            "step": step.step,
            "fault": step.fault,
            "target": step.target,
            "members": list(step.members),
            "brokers": list(step.brokers),
            "begun_s": second(step.begun_ns),
            "proven_s": second(step.proven_ns),
            "healed_s": second(step.healed_ns),
            "took_effect": bool(step.proven_ns),
            "evidence": step.skipped or step.evidence,
            "heal_evidence": step.heal_evidence,
            "expect": step.expect,
            "reached": reached(tables, step) if step.expect and step.begun_ns else None,
        }
        for step in tables.steps
    )
