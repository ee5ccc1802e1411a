"""A verdict in three lines, for places where a report does not fit: a failing test, a terminal."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fencepost.model import Check, Finding, Severity, Validity, Verdict


def worst(verdict: Verdict) -> list[str]:
    """The worst finding: what and how often, an example, its place. Where nothing was violated: why it is as it is."""
    checks = [check for check in verdict.checks if check.validity is verdict.validity]
    violations = [(c, f) for c in checks for f in c.findings if f.severity is Severity.VIOLATION]
    if verdict.validity is Validity.INVALID and violations:
        return _told(*max(violations, key=lambda pair: pair[1].count))
    reasons = [f"{check.check}: {check.reason}" for check in checks] or ["no check judged anything"]
    return [f"{verdict.scenario}: {verdict.validity}", *reasons[:2]]


def every_check(verdict: Verdict) -> list[str]:
    """A line for every check."""
    return [f"{c.validity:<8}  {c.promise or c.check}: {c.reason} ({c.facts_judged:,} facts)" for c in verdict.checks]


def _told(check: Check, finding: Finding) -> list[str]:
    example = finding.examples[0] if finding.examples else {}
    place = _place(example)
    return [
        f"{finding.kind}: {finding.count:,} × against {check.promise}",
        str(example.get("sentence") or finding.reason),
        f"for example {place}" if place else check.reason,
    ]


def _place(example: Mapping[str, Any]) -> str:
    parts = []
    if example.get("topic"):
        parts.append(f"{example['topic']}-{example['partition']}")
    if example.get("offset") is not None:
        parts.append(f"offset {example['offset']}")
    if example.get("members"):
        parts.append(f"by {', '.join(example['members'])}")
    return ", ".join(parts)
