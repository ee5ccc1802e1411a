"""The story of a run: what its history tells of ownership, lives, faults and rebalances, and where findings lie."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from fencepost.model import Severity
from fencepost.reports import steps, timeline
from fencepost.reports.folder import Folder
from fencepost.reports.headline import findings, sentence
from fencepost.reports.steps import Fault
from fencepost.reports.timeline import Lifespan, Mark, Ownership, Phase

EXAMPLES_MAX = 20  # of one finding, on the page


@dataclass(frozen=True)
class Witness:
    """A violation's example as it is marked on its partition's row."""

    partition: str
    from_ns: int
    to_ns: int
    sentence: str
    href: str


@dataclass(frozen=True)
class Story:
    """All that the timeline is made of."""

    intervals: Sequence[Ownership]
    lives: Sequence[Lifespan]
    faults: Sequence[Fault]
    phases: Sequence[Phase]
    rebalances: Sequence[Mark]
    witnesses: Sequence[Witness]

    @property
    def incarnations(self) -> list[str]:
        """Every incarnation that lived or owned something."""
        return [*(life.incarnation for life in self.lives), *(i.owner for i in self.intervals)]


def tell(folder: Folder) -> Story:
    """The story of the run in ``folder``."""
    facts, verdict = folder.facts, folder.verdict
    told = verdict.faults if verdict else ()
    reached = {f.get("step"): f.get("reached") for f in told}
    seen = [replace(f, reached=reached.get(f.step)) for f in steps.faults(facts, folder.plan)]
    judged = [steps.told_fault(f, n, folder.origin_ns) for n, f in enumerate(told)]
    return Story(
        intervals=timeline.ownership(facts)
        or timeline.told_ownership(verdict.owners if verdict else (), timeline.last_ns(facts)),
        lives=timeline.lives(facts),
        faults=seen if facts or not judged else judged,
        phases=timeline.phases(facts),
        rebalances=timeline.rebalances(facts, verdict.rebalances if verdict else (), folder.origin_ns),
        witnesses=_witnesses(folder),
    )


def duration_ns(folder: Folder) -> int:
    """How long the run took, as far as its events tell; 0 when they are gone."""
    return timeline.last_ns(folder.facts) - folder.origin_ns if folder.facts else 0


def anchor(severity: Severity, index: int) -> str:
    """The name by which the page links to a finding."""
    return f"{severity}-{index + 1}"


def time_ns(example: Mapping[str, Any], name: str) -> int:
    """A time of an example, 0 when it has none."""
    value = example.get(name)
    return value if isinstance(value, int) and not isinstance(value, bool) else 0


def _witnesses(folder: Folder) -> list[Witness]:
    """The examples of violations that have a partition and a time, for the timeline."""
    found = []
    for index, (_, finding) in enumerate(findings(folder.verdict, Severity.VIOLATION)):
        for example in finding.examples[:EXAMPLES_MAX]:
            from_ns, partition = time_ns(example, "from_ns"), example.get("partition")
            if from_ns and example.get("topic") and isinstance(partition, int) and partition >= 0:
                told = f"{finding.kind}: {sentence(finding.kind, example)}"
                where = f"{example['topic']}-{partition}"
                href = f"#{anchor(Severity.VIOLATION, index)}"
                found.append(Witness(where, from_ns, time_ns(example, "to_ns") or from_ns, told, href))
    return found
