"""The timeline of a run: ownership, lives, faults, phases and rebalances of its history, and the places of findings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from fencepost.model import Severity
from fencepost.reports import fault_records
from fencepost.reports.fault_records import FaultRecord
from fencepost.reports.folder import Folder
from fencepost.reports.timeline import intervals
from fencepost.reports.timeline.intervals import Lifespan, Mark, OwnershipInterval, Phase
from fencepost.reports.verdict_summary import findings, sentence

EXAMPLES_MAX = 20  # of one finding, on the page


@dataclass(frozen=True)
class FindingMark:
    """An example of a violation, as it is marked on the row of its partition."""

    partition: str
    from_ns: int
    to_ns: int
    sentence: str
    href: str


@dataclass(frozen=True)
class RunTimeline:
    """Everything that the timeline shows."""

    intervals: Sequence[OwnershipInterval]
    lives: Sequence[Lifespan]
    faults: Sequence[FaultRecord]
    phases: Sequence[Phase]
    rebalances: Sequence[Mark]
    witnesses: Sequence[FindingMark]

    @property
    def incarnations(self) -> list[str]:
        """Every incarnation that ran or owned a partition; may repeat."""
        return [*(life.incarnation for life in self.lives), *(i.owner for i in self.intervals)]


def build(folder: Folder) -> RunTimeline:
    """The timeline of the run in ``folder``."""
    facts, verdict = folder.facts, folder.verdict
    rows = verdict.faults if verdict else ()
    reached = {f.get("step"): f.get("reached") for f in rows}
    seen = [replace(f, reached=reached.get(f.step)) for f in fault_records.faults(facts, folder.plan)]
    judged = [fault_records.fault_of_verdict(f, n, folder.origin_ns) for n, f in enumerate(rows)]
    return RunTimeline(
        intervals=intervals.ownership(facts)
        or intervals.ownership_of_verdict(verdict.owners if verdict else (), intervals.last_ns(facts)),
        lives=intervals.lives(facts),
        faults=seen if facts or not judged else judged,
        phases=intervals.phases(facts),
        rebalances=intervals.rebalances(facts, verdict.rebalances if verdict else (), folder.origin_ns),
        witnesses=_witnesses(folder),
    )


def duration_ns(folder: Folder) -> int:
    """The duration of the run by its events; 0 if they are missing."""
    return intervals.last_ns(folder.facts) - folder.origin_ns if folder.facts else 0


def anchor(severity: Severity, index: int) -> str:
    """The anchor of a finding on the page."""
    return f"{severity}-{index + 1}"


def time_ns(example: Mapping[str, Any], name: str) -> int:
    """A time of an example; 0 if it has none."""
    value = example.get(name)
    return value if isinstance(value, int) and not isinstance(value, bool) else 0


def _witnesses(folder: Folder) -> list[FindingMark]:
    """The examples of violations that have a partition and a time, for the timeline."""
    found = []
    for index, (_, finding) in enumerate(findings(folder.verdict, Severity.VIOLATION)):
        for example in finding.examples[:EXAMPLES_MAX]:
            from_ns, partition = time_ns(example, "from_ns"), example.get("partition")
            if from_ns and example.get("topic") and isinstance(partition, int) and partition >= 0:
                title = f"{finding.kind}: {sentence(finding.kind, example)}"
                where = f"{example['topic']}-{partition}"
                href = f"#{anchor(Severity.VIOLATION, index)}"
                found.append(FindingMark(where, from_ns, time_ns(example, "to_ns") or from_ns, title, href))
    return found
