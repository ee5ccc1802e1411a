"""The card: for each situation whether the program kept its promises, what it cost, and what to change.

``card.json`` is exactly this value.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from enum import StrEnum
from pathlib import Path
from typing import Any

from fencepost.battery.service_times import measure
from fencepost.errors import BrokenPromises, UnknownVerdict
from fencepost.model import Finding, Severity, Validity, Verdict
from fencepost.reports import folder as folders
from fencepost.reports import verdict_summary
from fencepost.reports.glossary import alarm, remedy
from fencepost.reports.run_timeline import build

FORMAT_VERSION = 1
LOST = ("unseen", "lost-write", "delivered-then-lost")
REMEDIES_MAX = 2
WITHOUT_EFFECT = "missing-effect"  # such a record may be ``unseen``, too
BLIND_SPOTS = {
    "next-poll": (
        "A record counts as processed once the program polls again, commits past it, or closes its consumer, unless it "
        "was left in the list that a poll returned. A record that the program took and dropped is not seen as lost."
    ),
    "commit": (
        "A record counts as processed once the program commits past it or stores such an offset. A record that the "
        "program dropped before it committed past it is not seen as lost."
    ),
    "told": "A record counts as processed when the program reports it. What it reports too early is not seen.",
    "effect": (
        "A record counts as processed if its effect exists in the end. An effect shows neither when it happened nor "
        "which member caused it, so order and double work at the same time are not seen."
    ),
    "unknown": (
        "The program reports nothing, and brokers do not know what was delivered and processed: a record that was "
        "committed and not processed is not seen as lost."
    ),
}


class Result(StrEnum):
    """Of a situation."""

    KEPT = "kept"
    BROKEN = "broken"
    NOT_SEEN = "not seen"


@dataclass(frozen=True)
class CardRow:
    """One situation. Times are seconds, None means that they could not be measured.

    Attributes:
        situation, title: see ``Situation``.
        result: kept, broken, or not seen; ``reason`` says why.
        lost: records that were committed and not processed, or have no effect.
        again: records that were processed more than once; disruptions: how many disruptions there were.
        standstill_s, first_record_s, normal_after_s: see ``ServiceTimes``.
        latency: see ``ServiceTimes``; before, during, after -> records, p50_s, p99_s.
        rebalances: after the first disruption.
        records: how many records this rests on.
        kind, finding: the worst violation, and its sentence.
        advice: what to change.
        folder: the run folder, by its name beside the card.
    """

    situation: str
    title: str
    result: Result
    reason: str
    lost: int = 0
    again: int = 0
    disruptions: int = 0
    standstill_s: float | None = None
    first_record_s: float | None = None
    normal_after_s: float | None = None
    latency: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    rebalances: int | None = None
    records: int = 0
    kind: str = ""
    finding: str = ""
    advice: tuple[str, ...] = ()
    folder: str = ""

    def to_json(self) -> dict[str, Any]:
        """Plain values."""
        return asdict(self)

    def must_be_kept(self) -> None:
        """Pass only when the program kept its promises.

        Raises:
            BrokenPromises: it broke one; has the worst finding.
            UnknownVerdict: the situation was not seen; has the reason.
        """
        if self.complaint:
            raise (BrokenPromises if self.result is Result.BROKEN else UnknownVerdict)(self.complaint)

    @property
    def complaint(self) -> str:
        """Why it is not kept, in a line; empty: it is."""
        if self.result is Result.KEPT:
            return ""
        return f"{self.situation} ({self.title}): {self.result}: {self.finding or self.reason}"


@dataclass(frozen=True)
class Card:
    """All situations of a program.

    Attributes:
        command: of the program. program: what it was learned to be, by name.
        load: the records that were written, as a sentence.
        rule, blind_spots: when a record counts as processed, and what that rule cannot see.
        notes: what was changed in its settings, and the like.
        rows: by situation, in the order of the battery.
    """

    command: tuple[str, ...]
    program: Mapping[str, str]
    load: str
    rule: str
    blind_spots: str
    notes: tuple[str, ...] = ()
    rows: tuple[CardRow, ...] = ()
    format_version: int = FORMAT_VERSION

    @property
    def validity(self) -> Validity:
        """Invalid if a promise was broken, unknown if a situation was not seen."""
        of = {Result.KEPT: Validity.VALID, Result.BROKEN: Validity.INVALID, Result.NOT_SEEN: Validity.UNKNOWN}
        return Validity.worst(of[row.result] for row in self.rows)

    def must_keep_its_promises(self) -> None:
        """Pass only when the program kept its promises in every situation; the message has a line for each other one.

        Raises:
            BrokenPromises: it broke one.
            UnknownVerdict: a situation was not seen.
        """
        lines = [line for row in self.rows if (line := row.complaint)]
        if lines:
            raise (BrokenPromises if self.validity is Validity.INVALID else UnknownVerdict)("\n".join(lines))

    def __getitem__(self, situation: str) -> CardRow:
        """The row of a situation. Raises KeyError."""
        found = {row.situation: row for row in self.rows}
        return found[situation]

    def to_json(self) -> dict[str, Any]:
        """Plain values."""
        return asdict(self)

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Card:
        """The inverse of ``to_json``."""
        rows = tuple(
            CardRow(**{**row, "result": Result(row["result"]), "advice": tuple(row["advice"])}) for row in data["rows"]
        )
        return cls(**{**data, "command": tuple(data["command"]), "notes": tuple(data["notes"]), "rows": rows})


def remedies(violations: Iterable[Finding]) -> list[str]:
    """What to change, the remedy of the worst kind first; most of several kinds are consequences of it."""
    kinds = sorted({one.kind for one in violations}, key=alarm)
    return [*filter(None, map(remedy, kinds))][:REMEDIES_MAX]


RESULTS = {Validity.VALID: Result.KEPT, Validity.INVALID: Result.BROKEN, Validity.UNKNOWN: Result.NOT_SEEN}


def judged(row: CardRow, run: Path, verdict: Verdict, prefix: str = "") -> CardRow:
    """A row with the result of its run, and with what was measured in its history; ``prefix``: of the names of the run,
    which the card leaves out."""
    folder = folders.read(run)
    story = build(folder)
    disrupted = sorted((fault.begin_ns, fault.end_ns) for fault in story.faults if fault.took_effect)
    phases = {phase.name: phase for phase in story.phases}
    violations = [f for c in verdict.checks for f in c.findings if f.severity is Severity.VIOLATION]
    counts = {f.kind: f.count for f in violations}
    worst = verdict_summary.worst(verdict)
    seen = replace(
        row,
        result=RESULTS[verdict.validity],
        reason=verdict_summary.why(folder, story.faults).replace(prefix, ""),
        lost=max(sum(counts.get(kind, 0) for kind in LOST), counts.get(WITHOUT_EFFECT, 0)),
        disruptions=len(disrupted),
        rebalances=sum(one["begin_ns"] >= disrupted[0][0] for one in verdict.rebalances) if disrupted else None,
        records=int(verdict.measures.get("records_acknowledged") or 0),
        kind=worst.finding.kind if worst else "",
        finding=worst.sentence.replace(prefix, "") if worst else "",
        advice=tuple(remedies(violations)),
        folder=run.name,
    )
    if "chaos" not in phases or "delivered" not in {path.parent.name for path in run.glob("history/*/*.parquet")}:
        return seen
    times = measure(run, disrupted, phases["chaos"].begin_ns, phases["chaos"].end_ns)
    latency = {period: found._asdict() for period, found in times.latency.items()}
    return replace(seen, **{**times._asdict(), "latency": latency})
