"""A verdict in a few lines, for places where a report does not fit: a failing test, a check of some promises."""

from __future__ import annotations

from fencepost.model import Verdict
from fencepost.reports import headline
from fencepost.reports.words import visible


def worst(verdict: Verdict) -> list[str]:
    """The worst finding in three lines: what and how often, an example, its place. Without one: why it is as it is."""
    found = headline.worst(verdict)
    if found is None:
        reasons = [f"{check.check}: {check.reason}" for check in verdict.checks if check.validity is verdict.validity]
        told = [f"{verdict.scenario}: {verdict.validity}", *(reasons or ["no check judged anything"])[:2]]
        return [visible(line) for line in told]
    example = found.finding.examples[0] if found.finding.examples else {}
    members = ", ".join(example.get("members", ()))
    place = ", ".join(part for part in (headline.place(example), members and f"by {members}") if part)
    told = [
        f"{found.finding.kind}: {found.finding.count:,} × against {found.check.promise or found.check.check}",
        found.sentence,
        f"for example {place}" if place else found.check.reason,
    ]
    return [visible(line) for line in told]


def every_check(verdict: Verdict) -> list[str]:
    """A line for every check."""
    return [f"{c.validity:<8}  {c.promise or c.check}: {c.reason} ({c.facts_judged:,} facts)" for c in verdict.checks]
