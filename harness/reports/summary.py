"""A verdict in a few lines, for places without room for a report: a failing test, a check of some promises."""

from __future__ import annotations

from fencepost.model import Verdict
from fencepost.reports import verdict_summary
from fencepost.reports.formatting import visible


def worst(verdict: Verdict) -> list[str]:
    """The worst finding in three lines: kind and count, example, place. Without one: the verdict and its reasons."""
    found = verdict_summary.worst(verdict)
    if found is None:
        reasons = [f"{check.check}: {check.reason}" for check in verdict.checks if check.validity is verdict.validity]
        lines = [f"{verdict.scenario}: {verdict.validity}", *(reasons or ["no check judged anything"])[:2]]
        return [visible(line) for line in lines]
    example = found.finding.examples[0] if found.finding.examples else {}
    members = ", ".join(example.get("members", ()))
    place = ", ".join(part for part in (verdict_summary.place(example), members and f"by {members}") if part)
    lines = [
        f"{found.finding.kind}: {found.finding.count:,} × against {found.check.promise or found.check.check}",
        found.sentence,
        f"for example {place}" if place else found.check.reason,
    ]
    return [visible(line) for line in lines]


def every_check(verdict: Verdict) -> list[str]:
    """One line for each check."""
    return [f"{c.validity:<8}  {c.promise or c.check}: {c.reason} ({c.facts_judged:,} facts)" for c in verdict.checks]
