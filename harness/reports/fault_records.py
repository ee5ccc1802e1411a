"""The steps of the plan, as they were performed: whether each fired, its evidence, and when it was healed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from fencepost.model import impact
from fencepost.reports.folder import Fact, mapping
from fencepost.reports.formatting import span


@dataclass(frozen=True)
class FaultRecord:
    """One step of the plan; ``begin_ns`` is 0 if it did not fire. A time of 0 means "never".

    ``expected`` is its expected consequence, ``reached`` whether that was observed (None: not judged).
    ``skipped``: the step found no target, and is not required. ``trigger`` describes the state for which it waited.
    ``states``: by name of a protocol state, whether a member or the coordinator was in that state at the injection
    (None: unknown). ``impact``: see ``model.impact``.
    """

    step: int
    fault: str
    target: str
    members: tuple[str, ...]
    begin_ns: int
    proven_ns: int
    healed_ns: int
    heal_proven: bool | None
    took_effect: bool
    evidence: str
    healing: str = ""
    expected: str = ""
    reached: bool | None = None
    skipped: bool = False
    trigger: str = ""
    states: Mapping[str, bool | None] = field(default_factory=dict)
    impact: frozenset[str] = frozenset()

    @property
    def name(self) -> str:
        """``pause on member-2``; only the name of the fault if it has no target."""
        return f"{self.fault} on {self.target}" if self.target else self.fault

    @property
    def end_ns(self) -> int:
        """When it ended: healed, or proven if it needs no healing."""
        return self.healed_ns or self.proven_ns or self.begin_ns


def faults(facts: Sequence[Fact], plan: Mapping[str, Any]) -> list[FaultRecord]:
    """Every step of the plan, in its order, whether it fired or not."""
    found: dict[tuple[int, str], FaultRecord] = {}
    for fact in facts:
        step, target = fact.detail.get("step"), str(fact.detail.get("target") or "")
        evidence = mapping(fact.detail.get("evidence"))
        sentence = str(evidence.get("what") or "")
        if not isinstance(step, int):
            continue
        if fact.kind == "fault":
            members = fact.detail.get("members")
            proven = fact.outcome == "ok"
            found[step, target] = FaultRecord(
                step=step,
                fault=str(fact.detail.get("fault") or "?"),
                target=target,
                members=tuple(str(m) for m in members) if isinstance(members, list) else (),
                begin_ns=fact.begin_ns,
                proven_ns=(fact.end_ns or fact.begin_ns) if proven else 0,
                healed_ns=0,
                heal_proven=None,
                took_effect=proven,
                evidence=sentence,
                expected=str(fact.detail.get("expect") or ""),
                trigger=_trigger(mapping(fact.detail.get("when")), fact.begin_ns),
                states=mapping(fact.detail.get("states")),
                impact=impact.recorded(fact.detail),
            )
        elif fact.kind == "healed" and (step, target) in found:
            found[step, target] = replace(
                found[step, target],
                healed_ns=fact.end_ns or fact.begin_ns,
                heal_proven=fact.outcome == "ok",
                healing=sentence + _until(mapping(fact.detail.get("until"))),
            )
        elif fact.kind == "skipped":
            reason = str(fact.detail.get("reason") or "the step found no target")
            name = str(fact.detail.get("fault") or "?")
            required = fact.detail.get("required") is True
            found[step, target] = _never(step, name, "no target", reason, skipped=not required)
    fired = {step for step, _ in found}
    steps = plan.get("steps")
    for planned in steps if isinstance(steps, list) else []:
        step = mapping(planned).get("step")
        if isinstance(step, int) and step not in fired:
            name = str(mapping(planned.get("fault")).get("type") or "?")
            target = str(mapping(planned.get("target")).get("type") or "")
            found[step, ""] = _never(step, name, target, "The history has no trace of this step of the plan.")
    return sorted(found.values(), key=lambda f: f.step)


def fault_of_verdict(row: Mapping[str, Any], number: int, origin_ns: int) -> FaultRecord:
    """A fault from the verdict, for a folder whose events are missing."""

    def at_ns(name: str) -> int:
        seconds = row.get(name)
        return origin_ns + int(seconds * 1e9) if isinstance(seconds, (int, float)) else 0

    step, evidence = row.get("step"), row.get("evidence")
    return FaultRecord(
        step=step if isinstance(step, int) else number,
        fault=str(row.get("fault") or "?"),
        target=str(row.get("target") or ""),
        members=(),
        begin_ns=at_ns("begun_s"),
        proven_ns=at_ns("proven_s"),
        healed_ns=at_ns("healed_s"),
        heal_proven=None,
        took_effect=row.get("took_effect") is True,
        evidence=str(mapping(evidence).get("what") or evidence or ""),
        healing=str(row.get("heal_evidence") or ""),
        expected=str(row.get("expect") or ""),
        reached=row.get("reached"),
    )


def _trigger(when: Mapping[str, Any], begin_ns: int) -> str:
    since_ns = when.get("since_ns")
    if not isinstance(since_ns, int):
        return ""
    met = "still in it at the injection" if when.get("met") is True else "no longer in it at the injection"
    return f"{when.get('state')}, {span(max(0, begin_ns - since_ns))} after it had begun; {met}"


def _until(until: Mapping[str, Any]) -> str:
    if not until:
        return ""
    state = until.get("state")
    return (
        f", because the state {state} was reached" if until.get("since_ns") else f"; the state {state} was not reached"
    )


def _never(step: int, fault: str, target: str, reason: str, skipped: bool = False) -> FaultRecord:
    return FaultRecord(step, fault, target, (), 0, 0, 0, None, False, reason, skipped=skipped)
