"""From a run folder to its verdict: a detector finds anomalies, promises rate their severity, the worst one decides.

Nothing here depends on the detector (Spark, or the oracle in tests). The promises are read from ``scenario.json``. Two
checks always run: ``faults`` (did the faults happen?) and ``history`` (is the history complete?).
"""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from heapq import nsmallest
from pathlib import Path
from typing import Any

from fencepost.checkers import certainty, faults, metrics
from fencepost.checkers.counts import Bounds, JudgedCounts
from fencepost.checkers.explanations import EXAMPLES_MAX, example
from fencepost.checkers.requirements import Requirement, requirement_of
from fencepost.checkers.tables import Tables, load
from fencepost.checkers.tables.answers import judged_as
from fencepost.checkers.tables.rows import NS, Damage
from fencepost.checkers.unobservable import explanation, hidden_kinds, unobservable
from fencepost.errors import FencepostError, ScenarioError
from fencepost.interfaces import Promise
from fencepost.model import Anomaly, Check, Finding, Severity, TopicPartition, Validity, Verdict, serialization

Detector = Callable[[Path, Tables, Bounds], tuple[list[Anomaly], JudgedCounts]]

_LOG = logging.getLogger(__name__)
ALWAYS = ("faults", "history")
_WHOLE = "every part of the history is there"
KIND_OF_DAMAGE, KIND_OF_RECORDS, KIND_OF_FILES = "history-incomplete", "unrecorded-delivery", "damaged-file"
BOUNDS = {  # option of a promise -> the bound that it sets, and the unit of its value
    "within_s": ("stuck_ns", NS),
    "recovers_within_s": ("recovers_ns", NS),
    "first_record_within_s": ("recovers_ns", NS),
    "lag_normal_within_s": ("catches_up_ns", NS),
    "duplicates_per_disruption": ("done_again", 1),
}
DAMAGE = {
    "hole": "{} deliveries of {} are missing",
    "twice": "{} deliveries of {} have the number of an earlier one",
    "early": "{} deliveries of {} are older than the assignment that they name",
    "unread": "it committed past {} records of {}, and no delivery of these assignments is recorded: either the "
    "client skipped the records, or the program reads them through calls that are not recorded",
    "effect": "{} records of {} had an effect, but no delivery of them is recorded: the program reads them through "
    "calls that are not recorded",
}


def judge(run: Path, find: Detector, only: Collection[str] = (), processed: str = "") -> Verdict:
    """Judge the history in ``run``.

    Args:
        run: a run folder; a missing or damaged part of it makes the checks that need it unknown.
        find: finds the anomalies. If it fails, every check that needs it is unknown, with the reason.
        only: names of checks (``faults``, ``history``, ``delivery``, ...); empty: all checks.
        processed: the rule by which a record counts as processed, instead of the one of the run; empty: that one.

    Raises:
        ScenarioError: ``only`` names a check that this run does not have, or the run cannot be judged by that rule.
    """
    tables = load(run, processed)
    promises, unread = _promises(tables)
    names = [*ALWAYS, *(serialization.name_of(p) for p in promises)]
    strange = sorted(set(only) - set(names))
    if strange:
        raise ScenarioError(f"there is no check {strange[0]!r} in this run; it has {', '.join(dict.fromkeys(names))}")
    found, facts, failure = _find(run, tables, find, _bounds(promises))
    blind, hidden = unobservable(tables), hidden_kinds(tables)
    anomalies = [anomaly for anomaly in found if anomaly.kind not in blind]
    read = [
        d
        for d in (*tables.damage, *facts.damage)
        if not (tables.black_box and d.part == d.file.removeprefix("history/"))
    ]
    damage = list(dict.fromkeys([*read, *unread, *_holes(anomalies)]))
    checks = [faults.check(tables), _history(tables, anomalies, facts, damage, failure)]
    for promise in promises:
        checks.append(_Judging(tables, facts, damage, failure, promise, blind, hidden).check(anomalies))
    checks += _unpromised(tables, anomalies, promises)
    chosen = [check for check in checks if not only or check.check in only]
    return Verdict(
        scenario=str(tables.asked.get("name") or run.name),
        seed=int(tables.scenario.get("seed") or tables.plan.get("seed") or 0),
        validity=Validity.worst(check.validity for check in chosen),
        checks=tuple(chosen),
        faults=faults.rows(tables),
        rebalances=(rebalances := metrics.rebalances(tables)),
        measures=metrics.measures(tables, facts, rebalances),
        versions=dict(tables.scenario.get("versions") or {}),
        unjudged={**hidden, **blind},
        owners=metrics.owners(tables) if tables.black_box else (),
    )


def _promises(tables: Tables) -> tuple[list[Promise], list[Damage]]:
    """The promises of the scenario; an unreadable promise is damage."""
    promises, damage = [], []
    for data in tables.asked.get("promises") or ():
        try:
            promises.append(serialization.decode("promise", data))
        except ScenarioError as error:
            damage.append(Damage("promises", "scenario.json", str(error)))
    if not promises and not damage and tables.asked:
        damage.append(Damage("promises", "scenario.json", "it names no promise, so there is nothing to judge"))
    return promises, damage


def _bounds(promises: Iterable[Promise]) -> Bounds:
    """The bounds that the promises set; of several, the strictest."""
    found: dict[str, list[int]] = defaultdict(list)
    for promise in promises:
        for option, (bound, unit) in BOUNDS.items():
            if (value := getattr(promise, option, None)) is not None:
                found[bound].append(round(value * unit))
    return replace(Bounds(), **{bound: min(values) for bound, values in found.items()})


def _find(run: Path, tables: Tables, find: Detector, bounds: Bounds) -> tuple[list[Anomaly], JudgedCounts, str]:
    try:
        return (*find(run, tables, bounds), "")
    except FencepostError:  # the detector could not start: this says nothing about the records
        raise
    except Exception as error:  # checks that do not need a crashed detector must still run
        _LOG.exception("the detector failed on %s", run)
        return [], JudgedCounts(), f"the records could not be judged: {type(error).__name__}: {error}"


def _holes(anomalies: Iterable[Anomaly]) -> list[Damage]:
    """Damage of a member's history: holes and contradictions in its own counters never count as lost records."""
    return [
        Damage(
            "delivered",
            f"history/delivered/{a.members[0] if a.members else 'nobody known'}.parquet",
            DAMAGE[a.cause].format(f"{a.count:,}", place := TopicPartition(a.topic, a.partition)),
            (place, range(a.first_offset, a.last_offset + 1)) if a.kind == KIND_OF_RECORDS else None,
        )
        for a in anomalies
        if a.kind in (KIND_OF_DAMAGE, KIND_OF_RECORDS)
    ]


def _history(
    tables: Tables, anomalies: Sequence[Anomaly], facts: JudgedCounts, damage: Sequence[Damage], failure: str
) -> Check:
    """Unknown if any part of the history is missing or damaged, or if nothing was recorded."""
    notes = [(a, Severity.NOTE, "") for a in anomalies if a.kind in (KIND_OF_DAMAGE, KIND_OF_RECORDS)]
    findings = list(_findings(tables, notes, ""))
    files = [str(d) for d in damage if d.file]
    if files:
        examples = tuple({"sentence": sentence, "witnesses": []} for sentence in files[:EXAMPLES_MAX])
        findings.append(Finding(KIND_OF_FILES, Severity.NOTE, len(files), "", examples))
    broken_off = ": ".join(str(d) for d in damage if not d.file)  # the phase in which the run failed, and the reason
    count, done = (facts.judged, "committed") if tables.black_box else (facts.delivered, "delivered")
    nothing = [] if count else [f"nothing was {done}"]
    reason = next(filter(None, [broken_off, failure, *files, *nothing]), "")
    validity = Validity.UNKNOWN if reason else Validity.VALID
    shown = "; ".join(str(damage) for damage in tables.not_shown)
    there = f"every part of the history that the cluster shows is there ({shown})" if shown else _WHOLE
    reason = reason or f"{there} and has no hole"
    return Check("history", "the history is whole", validity, count, reason, tuple(findings))


class _Judging:
    """The judgement of one promise."""

    def __init__(
        self,
        tables: Tables,
        facts: JudgedCounts,
        damage: Sequence[Damage],
        failure: str,
        promise: Promise,
        blind: Mapping[str, str],
        hidden: Mapping[str, str],
    ) -> None:
        """``blind``, ``hidden``: the kinds that cannot be judged, see ``unobservable``; hidden ones are only listed."""
        self.tables, self.facts, self.promise = tables, facts, promise
        self.name = serialization.name_of(promise)
        self.damage = [*damage, *tables.not_shown]
        self.needs: Requirement = requirement_of(self.name)
        hurt = [str(d) for d in damage if d.part in self.needs.parts]
        failed = [why for kind, why in facts.failed.items() if kind in promise.kinds]
        promised = [kind for kind in promise.kinds if promise.severity(kind, "", "") == Severity.VIOLATION]
        self.hidden = [kind for kind in promised if kind in hidden]
        nothing_left = explanation(promised, hidden) if promised and len(self.hidden) == len(promised) else ""
        unseen = filter(None, [explanation(promised, blind), nothing_left])
        self.doubts = [failure] if failure else [*hurt, *failed, *unseen]

    def check(self, anomalies: Iterable[Anomaly]) -> Check:
        """The check of this promise, from the anomalies of its kinds.

        A certain violation counts, whatever else is in doubt.
        """
        own = [a for a in anomalies if judged_as(a.kind, a.cause) in self.promise.kinds and self._beyond_bound(a)]
        doubted = {a: doubt for a in own if self._severity(a) == Severity.VIOLATION and (doubt := self._doubt(a))}
        judged = [(a, Severity.NOTE if a in doubted else self._severity(a), doubted.get(a, "")) for a in own]
        findings = tuple(_findings(self.tables, judged, str(self.promise)))
        facts, minimum = self.needs.facts(self.tables, self.facts), self.needs.minimum(self.tables)
        violations = [f for f in findings if f.severity == Severity.VIOLATION]
        doubts = [*self.doubts, *doubted.values()]
        if violations:
            validity, reason = Validity.INVALID, _broken(violations)
        elif doubts:
            validity, reason = Validity.UNKNOWN, doubts[0]
        elif facts < minimum:
            validity = Validity.UNKNOWN
            reason = f"{facts:,} {self.needs.unit} were judged, and {minimum:,} are needed: {self.needs.remedy}"
        else:
            without = f"; not judged: {', '.join(self.hidden)}" if self.hidden else ""
            validity, reason = Validity.VALID, f"kept over {facts:,} {self.needs.unit}{without}"
        return Check(self.name, str(self.promise), validity, facts, reason, findings)

    def _beyond_bound(self, anomaly: Anomaly) -> bool:
        """Whether an anomaly lasted for longer than this promise permits: another one may have a stricter bound."""
        if anomaly.kind != "slow-recovery":
            return True
        own = (getattr(self.promise, option, None) for option, (bound, _) in BOUNDS.items() if bound == "recovers_ns")
        within_s = next((value for value in own if value is not None), 0)
        return anomaly.to_ns - anomaly.from_ns > within_s * NS

    def _severity(self, anomaly: Anomaly) -> Severity:
        kind = judged_as(anomaly.kind, anomaly.cause)
        cause = anomaly.cause if kind == anomaly.kind else ""
        return Severity(self.promise.severity(kind, cause, anomaly.excuse))

    def _doubt(self, anomaly: Anomaly) -> str:
        """Why a violation is not certain; empty if it is certain."""
        by_effect = self.tables.by_effect and getattr(self.promise, "level", "") != "at-most-once"
        if doubt := certainty.doubt_of_kind(anomaly):
            return f"{anomaly.kind} was seen, but {doubt}"
        if damage := certainty.missing_evidence(anomaly, self.damage, self.tables.black_box, by_effect):
            return f"{anomaly.kind} was seen, but missing evidence may explain it: {damage}"
        if self.promise.kinds[judged_as(anomaly.kind, anomaly.cause)] == "liveness" and metrics.stalled(
            self.tables, anomaly
        ):
            return f"{anomaly.kind} was seen while the host itself stood still: look at its load and run again"
        return ""


def _broken(violations: Sequence[Finding]) -> str:
    worst = max(violations, key=lambda f: f.count)
    sentence = worst.examples[0]["sentence"] if worst.examples else worst.kind
    return f"{worst.kind}: {sentence}"


def _findings(tables: Tables, judged: Iterable[tuple[Anomaly, Severity, str]], promise: str) -> Iterable[Finding]:
    """One finding for each kind, severity, cause, excuse and doubt; violations first, then by count."""
    groups: dict[tuple[str, Severity, str, str, str], list[Anomaly]] = defaultdict(list)
    for anomaly, severity, doubt in judged:
        groups[anomaly.kind, severity, anomaly.cause, anomaly.excuse, doubt].append(anomaly)
    order = list(Severity)
    found = []
    for (kind, severity, cause, excuse, doubt), group in groups.items():
        permitted = f"permitted by {promise}" if severity == Severity.PERMITTED and promise else ""
        reason = doubt or ", ".join(filter(None, (cause, excuse))) or permitted
        shown = nsmallest(EXAMPLES_MAX, group, key=lambda a: (-a.count, a.from_ns, a))
        examples: tuple[Mapping[str, Any], ...] = tuple(example(tables, a) for a in shown)
        found.append(Finding(kind, severity, sum(a.count for a in group), reason, examples))
    return sorted(found, key=lambda f: (order.index(f.severity), -f.count, f.kind, f.reason))


def _unpromised(tables: Tables, anomalies: Iterable[Anomaly], promises: Iterable[Promise]) -> list[Check]:
    """Anomalies of kinds that no promise covers, as notes."""
    kinds = {KIND_OF_DAMAGE, KIND_OF_RECORDS, *(kind for promise in promises for kind in promise.kinds)}
    notes = [(a, Severity.NOTE, "") for a in anomalies if judged_as(a.kind, a.cause) not in kinds]
    if not notes:
        return []
    findings = tuple(_findings(tables, notes, ""))
    count = sum(f.count for f in findings)
    return [Check("other", "nothing was promised", Validity.VALID, count, "seen, and no promise covers it", findings)]
