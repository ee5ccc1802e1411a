"""Plans: all steps of a run, with every random draw made. Written before the cluster starts, and never changed.

A plan is made by a schedule and a seed (``planning.make_plan``), read back from a run folder, or reduced by shrinking.
``check_plan`` refuses a plan with impossible steps, from any source, and ``abilities`` one that a back-end cannot
perform.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Protocol, runtime_checkable

from fencepost.errors import PlanError, ScenarioError, refuse
from fencepost.interfaces import ChecksInventory, Fault, Selector
from fencepost.interfaces.group_snapshot import ProtocolState
from fencepost.model import Inventory, serialization
from fencepost.model.settings import SESSION

# What a step may be expected to cause; the check "faults" looks for it in the history.
EXPECTATIONS = {
    "fenced": "the member was removed from the group, or received its partitions as lost",
    "rebalanced": "the group began a new generation or epoch",
    "coordinator_moved": "another broker coordinates the group",
}
MARGIN = 1.1  # safety factor over the time-out that a fault must exceed, where its length is drawn or reduced
# The plug-ins of a step, and the family of each.
FAMILIES = {"fault": "fault", "target": "target", "when": "state", "until": "state"}


@runtime_checkable
class EvictsAfter(Protocol):
    """A fault after which the group evicts a member, but not by its session time-out."""

    outlasts: ClassVar[str]  # the client setting of the time-out that applies instead, in milliseconds


@runtime_checkable
class PermanentChange(Protocol):
    """A fault that restarts members with a change, which is undone or permanent.

    Attributes:
        stays: the change is permanent; later steps see the changed group.
    """

    stays: bool

    def leaves(self, inventory: Inventory) -> Inventory:
        """The inventory once the change is permanent in all members."""


@dataclass(frozen=True)
class Step:
    """One fault at one time: an entry with all draws made.

    Attributes:
        step: its number in the plan, from 0 in the order of time.
        at_s: seconds after the group is warm.
        pick: in [0, 1), for the selector.
        heal_after_s: seconds from proof to undo, at most where ``until`` is given; None: there is nothing to heal.
        when: it fires as soon as this state holds; without a target it hits the member or broker in the state.
        within_s: how long the state is waited for.
        until: it is healed as soon as its target has reached this state.
    """

    step: int
    at_s: float
    fault: Fault
    target: Selector | None
    pick: float
    heal_after_s: float | None
    expect: str | None
    required: bool
    when: ProtocolState | None = None
    within_s: float = 0.0
    until: ProtocolState | None = None

    def __post_init__(self) -> None:
        serialization.validate_fields(self)

    @property
    def named(self) -> str:
        """The step in words: its number, its fault and its time."""
        return f"step {self.step} ({type(self.fault).__name__} at {self.at_s:g} s)"

    @property
    def end_s(self) -> float:
        """When it is healed at the latest, if it is proven at once."""
        return self.at_s + self.within_s + (self.heal_after_s or 0)

    @property
    def hits(self) -> str | None:
        """The kind of its target: ``members``, ``brokers``, or None."""
        if self.target is not None:
            return self.target.hits
        return self.when.hits if self.when and self.fault.hits else None


@dataclass(frozen=True)
class Plan:
    """All steps of a run, numbered in the order of time. The seed also determines the group's name and the records."""

    seed: int
    steps: tuple[Step, ...]

    @classmethod
    def of(cls, seed: int, steps: Iterable[Step]) -> Plan:
        """A plan of these steps, ordered by time and renumbered."""
        ordered = sorted(steps, key=lambda step: step.at_s)
        return cls(seed, tuple(replace(step, step=number) for number, step in enumerate(ordered)))


def check_plan(plan: Plan, inventory: Inventory, times_s: Mapping[str, float], chaos_s: float) -> None:
    """Refuse a plan with a step that contradicts itself, names missing targets, or ends after the chaos phase.

    Args:
        times_s: eviction time-outs in seconds, by client setting (see ``EvictsAfter``).

    Raises:
        PlanError: lists all problems, each with its step.
    """
    refuse(map(PlanError, _wrong(plan, inventory, times_s, chaos_s)))


def _wrong(plan: Plan, inventory: Inventory, times_s: Mapping[str, float], chaos_s: float) -> Iterator[str]:
    there = [inventory]  # possible inventories by then: a permanent change applies to some members, or to all
    for step in plan.steps:
        yield from _senseless(step, times_s)
        for part in (step.fault, step.target, step.when, step.until):
            if isinstance(part, ChecksInventory) and all(problems := [part.inventory_problem(one) for one in there]):
                yield f"{step.named}: {problems[0]}"
        if isinstance(step.fault, PermanentChange) and step.fault.stays:
            there.append(step.fault.leaves(inventory))
        if step.end_s > chaos_s:
            yield (
                f"{step.named} is over only after {step.end_s:g} s, but the chaos phase ends after chaos_s = "
                f"{chaos_s:g}: make chaos_s longer, or the schedule shorter"
            )


def min_duration_s(fault: Fault, expect: str | None, times_s: Mapping[str, float]) -> float:
    """The least length of a step for its expectation, in seconds; 0: any. ``times_s``: see ``check_plan``."""
    setting = _outlasted(fault) if expect == "fenced" else None
    return MARGIN * times_s[setting] if setting else 0.0


def _outlasted(fault: Fault) -> str | None:
    """The setting of the time-out that it must exceed for its target to be fenced; None: an administrator fences it at
    once."""
    if "admin" in fault.needs and "members" in fault.hits:
        return None
    return fault.outlasts if isinstance(fault, EvictsAfter) else SESSION


def _senseless(step: Step, times_s: Mapping[str, float]) -> Iterator[str]:
    name, hits = step.named, sorted(step.fault.hits)
    if step.heal_after_s is not None and not step.fault.heals:
        yield f"{name} has nothing to heal: leave heal_after out"
    if step.heal_after_s is None and step.fault.heals:
        yield f"{name} must be healed: add heal_after, in seconds"
    if step.heal_after_s is not None and step.heal_after_s < 0:
        yield f"{name} has a negative heal_after: use 0 or more seconds"
    if step.hits is None and hits:
        yield f"{name} needs a target: add one that selects {' or '.join(hits)}"
    if step.hits is not None and step.hits not in step.fault.hits:
        aim = f"hits {' or '.join(hits)}" if hits else "chooses its target itself"
        whose = f"its target {step.target} selects" if step.target else f"without a target {step.when} is a state of"
        yield f"{name} {aim}, but {whose} {step.hits}"
    if step.when and step.within_s <= 0:
        yield f"{name} fires when {step.when}: add within_s, more than 0 seconds"
    if step.until and step.heal_after_s is None:
        yield f"{name} is healed when {step.until}: add at_most, the longest time in seconds"
    if step.expect is None:
        return
    if step.expect not in EXPECTATIONS:
        yield f"{name} expects {step.expect!r}; known expectations are {', '.join(EXPECTATIONS)}"
    setting = _outlasted(step.fault)
    if step.expect == "fenced" and setting and (step.heal_after_s or 0) <= times_s[setting]:
        longer = "heal_after=past_session(1.5)" if setting == SESSION else "a longer heal_after"
        yield (
            f"{name} expects its target to be fenced, but lasts only {step.heal_after_s or 0:g} s under a {setting} "
            f"of {times_s[setting]:g} s: use {longer}, or a shorter {setting}"
        )


def plan_to_json(plan: Plan) -> dict[str, Any]:
    """The plan as plain values, in the form of ``plan.json``."""
    return {
        "seed": plan.seed,
        "steps": [
            {**vars(s), **{name: serialization.encode(part) for name in FAMILIES if (part := getattr(s, name))}}
            for s in plan.steps
        ],
    }


def plan_from_json(data: Any) -> Plan:
    """The inverse of ``plan_to_json``; also for a plan that was edited by hand, whose steps are sorted by time.

    Raises:
        ScenarioError: it is no plan; says what was found and what was expected.
    """
    parts = serialization.check_type(data, Mapping[str, Any], "a plan")
    if missing := [name for name in ("seed", "steps") if name not in parts]:
        raise ScenarioError(f"a plan needs its {missing[0]}")
    steps = serialization.check_type(parts["steps"], tuple[Any, ...], "the plan: steps")
    return Plan.of(serialization.check_type(parts["seed"], int, "the plan: seed"), map(_step_from_json, steps))


def _step_from_json(data: Any) -> Step:
    parts = dict(serialization.check_type(data, Mapping[str, Any], "a step of the plan"))
    for name, family in FAMILIES.items():
        if parts.get(name) is not None:
            parts[name] = serialization.decode(family, parts[name])
    step: Step = serialization.from_mapping(Step, parts, "a step of the plan")
    return step
