"""The check that is always made: every fault of the plan was proven begun and healed, and reached what it was meant to.

Nothing is believed without evidence: a fault without a witness makes the run unknown, never valid.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from fencepost.checkers.tables import Tables
from fencepost.checkers.tables.rows import FOREVER, NS, Step
from fencepost.model import Check, Finding, Severity, Validity

PROMISE = "every fault happened and was undone"


def check(tables: Tables) -> Check:
    """Unknown when a step is unproven, not healed, missing though required, or without its expected consequence."""
    doubts = [doubt for step in tables.steps for doubt in _doubts(tables, step)]
    notes = [f"step {s.step} ({s.fault}) was not applicable: {s.skipped}" for s in tables.steps if _skippable(s)]
    findings = []
    for kind, sentences in (("unproven-fault", doubts), ("fault-not-applicable", notes)):
        if sentences:
            examples = tuple({"sentence": f"{s[0].upper()}{s[1:]}.", "witnesses": []} for s in sentences)
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


def _skippable(step: Step) -> bool:
    return bool(step.skipped) and not step.required


def _doubts(tables: Tables, step: Step) -> Iterator[str]:
    name = f"step {step.step} ({step.fault}{f' of {step.target}' if step.target else ''})"
    if not step.begun_ns:
        if step.required:
            yield f"{name} never fired: {step.skipped or 'the chaos ended before its time'}"
        return
    if not step.proven_ns:
        yield f"nothing proves that {name} took effect: {step.evidence or 'it has no evidence'}"
    if step.heals and not step.healed_ns:
        yield f"nothing proves that {name} was healed: {step.heal_evidence or 'it was never undone'}"
    if step.expect and not reached(tables, step):
        yield f"{name} was meant to reach {step.expect!r}, and nothing in the history shows it"


def reached(tables: Tables, step: Step) -> bool:
    """Whether the consequence that the step expects was seen after it began.

    ``fenced``: every member that it hit lost a partition, or the coordinator's records show it gone. ``rebalanced``: a
    new generation or epoch, or an assignment, came. ``coordinator_moved``: the offsets log went on in another term.
    Unknown expectations are never reached.
    """
    since = step.begun_ns
    if step.expect == "fenced":
        return bool(step.members) and all(_fenced(tables, step, name) for name in step.members)
    if step.expect == "rebalanced":
        return any(r.end_ns >= since for r in tables.rounds) or any(
            i.assigned_begin_ns > since for i in tables.intervals
        )
    if step.expect == "coordinator_moved":
        before = max((term for term, at_ns, _ in tables.terms if at_ns < since), default=-1)
        return any(term > before for term, _, _ in tables.terms)
    return False


def _fenced(tables: Tables, step: Step, incarnation: str) -> bool:
    """Told that it lost a partition, or gone from the coordinator's records: while it was hit or owned a partition, or
    before it was assigned one again (under another member id; who leaves by itself does not come back)."""
    own = [i for i in tables.intervals if i.incarnation == incarnation]
    if any(i.how == "lost" and i.given_up_begin_ns >= step.begun_ns for i in own):
        return True
    gone = [g for g in tables.gone if g.incarnation == incarnation and g.at_ns + g.uncertainty_ns >= step.begun_ns]
    held = any(g.at_ns <= (step.undone_ns or FOREVER) for g in gone)
    back = any(i.assigned_begin_ns >= g.at_ns - g.uncertainty_ns for i in own for g in gone)
    return held or back or any(tables.removed(i, i.given_up_begin_ns if i.how else FOREVER) in gone for i in own)


def rows(tables: Tables) -> tuple[dict[str, Any], ...]:
    """The table of faults as the verdict holds it; times are seconds since the run's start, None = never."""

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
