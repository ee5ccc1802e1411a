"""The headline of a report: the verdict in one line, its reason, and the worst finding."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from fencepost.model import Check, Finding, Severity, Validity, Verdict
from fencepost.reports.formatting import number, plural, shortened
from fencepost.reports.glossary import CAUSES, alarm, meaning

if TYPE_CHECKING:  # a failing test prints its worst finding without importing the reader of folders
    from fencepost.reports.fault_records import FaultRecord
    from fencepost.reports.folder import Folder


@dataclass(frozen=True)
class Worst:
    """The most severe violation, with the sentence of its first example."""

    check: Check
    finding: Finding
    sentence: str


@dataclass(frozen=True)
class FaultCount:
    """The numbers of proven faults, of due faults, and of ``skipped`` faults, which found no target."""

    proven: int
    due: int
    skipped: int

    def __str__(self) -> str:
        proven = f"{number(self.proven)} of {number(self.due)}"
        return f"{proven} ({number(self.skipped)} not applicable)" if self.skipped else proven


def findings(verdict: Verdict | None, severity: Severity) -> Iterator[tuple[Check, Finding]]:
    """All findings of one severity with their checks, the worst kinds first."""
    checks = verdict.checks if verdict else ()
    pairs = [(check, f) for check in checks for f in check.findings if f.severity is severity]
    yield from sorted(pairs, key=lambda pair: (alarm(pair[1].kind), -pair[1].count))


def worst(verdict: Verdict | None) -> Worst | None:
    """The worst violation; None if there is none."""
    for check, finding in findings(verdict, Severity.VIOLATION):
        example = finding.examples[0] if finding.examples else {}
        return Worst(check, finding, sentence(finding.kind, example))
    return None


def sentence(kind: str, example: Mapping[str, Any]) -> str:
    """The example's own sentence, or else a sentence about its kind, cause and place."""
    own = example.get("sentence")
    if isinstance(own, str) and own:
        return shortened(own)
    cause = CAUSES.get(str(example.get("cause") or ""), "")
    at = place(example)
    return " ".join(part for part in (meaning(kind), f"Here {cause}." if cause else "", at and f"At {at}.") if part)


def place(example: Mapping[str, Any]) -> str:
    """``orders-3, offset 4711``, as far as the example has them."""
    parts = []
    if example.get("topic") and isinstance(example.get("partition"), int) and example["partition"] >= 0:
        parts.append(f"{example['topic']}-{example['partition']}")
    offset = example.get("offset", example.get("first_offset"))
    if isinstance(offset, int) and offset >= 0:
        parts.append(f"offset {offset}")
    return ", ".join(parts)


def count_faults(faults: Iterable[FaultRecord]) -> FaultCount:
    """The count of proven, due and skipped faults."""
    all_ = list(faults)
    due = [f for f in all_ if not f.skipped]
    return FaultCount(sum(f.took_effect for f in due), len(due), len(all_) - len(due))


def unjudged(verdict: Verdict | None) -> list[tuple[str, list[str]]]:
    """The kinds of findings that could not be judged in this run, with any promise, grouped by reason."""
    found: dict[str, list[str]] = {}
    for kind, why_not in (verdict.unjudged if verdict else {}).items():
        found.setdefault(why_not, []).append(kind)
    return list(found.items())


def about(folder: Folder) -> str:
    """The scenario's description of itself; may be empty."""
    return str(folder.asked.get("about") or "")


def validity(folder: Folder) -> Validity:
    """The verdict's validity; a run that was not judged is unknown."""
    return folder.verdict.validity if folder.verdict else Validity.UNKNOWN


def why(folder: Folder, faults: Sequence[FaultRecord]) -> str:
    """The reason of the verdict, in one line."""
    verdict = folder.verdict
    if verdict is None:
        return "The run was not judged: " + next((m for m in folder.missing if "verdict" in m), "there is no verdict.")
    broken = [c for c in verdict.checks if c.validity is Validity.INVALID]
    unclear = [c for c in verdict.checks if c.validity is Validity.UNKNOWN]
    count = count_faults(faults)
    violations = sum(f.count for _, f in findings(verdict, Severity.VIOLATION))
    if verdict.validity is Validity.INVALID:
        broke = f"{plural(len(broken), 'promise')} broken: {', '.join(c.promise or c.check for c in broken)}"
        return f"{broke}; {plural(violations, 'violation')} in all."
    if verdict.validity is Validity.UNKNOWN:
        checks: dict[str, list[str]] = {}
        for c in unclear:
            checks.setdefault(c.reason, []).append(c.check)
        reasons = [f"{', '.join(names)}: {reason}" for reason, names in checks.items() if reason]
        unproven = count.due - count.proven
        if unproven and not any("fault" in c.check for c in unclear):
            reasons.append(f"{plural(unproven, 'fault')} of {number(count.due)} without proof that it took effect")
        all_reasons = "; ".join(reason.rstrip(".") for reason in reasons)
        seen = (
            f"{plural(violations, 'violation')} {'was' if violations == 1 else 'were'} seen, but cannot be trusted yet"
        )
        none = "No violation was found, but that is not enough for valid"
        return f"{all_reasons or 'the verdict gives no reason'}. {seen if violations else none}."
    facts = max((c.facts_judged for c in verdict.checks), default=0)
    judged = "over what could be judged, up to" if verdict.unjudged else "over up to"
    kept = f"All {len(verdict.checks)} checks are valid, {judged} {plural(facts, 'fact')}; faults proven: {count}."
    return f"{kept} Not judged: {', '.join(verdict.unjudged)}." if verdict.unjudged else kept
