"""Schedules and plans: what was asked for, and the same with every random draw made from the seed.

A schedule is a tuple of entries made by ``at`` and ``every``; ``make_plan`` turns it into steps. Both are values:
they can be printed, stored, replayed and shrunk, and nothing here waits or looks at a clock.
"""

from __future__ import annotations

import random
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

from fencepost import codec
from fencepost.errors import PlanError
from fencepost.interfaces import Fault, Names, Selector
from fencepost.model import Inventory

# What a step may be meant to reach; the check "faults" looks for it in the history.
EXPECTATIONS = {
    "fenced": "the member was removed from the group, or told that it lost its partitions",
    "rebalanced": "the group went on to a new generation or epoch",
    "coordinator_moved": "another broker coordinates the group",
}
STEPS_MAX = 10_000  # of one entry
HEAL_AFTER_S = 5.0  # for faults that can be healed, when the schedule says nothing


@dataclass(frozen=True)
class PastSession:
    """A time measured in session time-outs of the group under test."""

    factor: float

    def __post_init__(self) -> None:
        codec.settle(self)
        if self.factor <= 0:
            raise PlanError(f"past_session wants a factor above 0, but {self.factor} came")


def past_session(factor: float = 1.5) -> PastSession:
    """``factor`` session time-outs: long enough for the group to give up on a member when factor > 1."""
    return PastSession(factor)


@dataclass(frozen=True)
class Entry:
    """One line of a schedule. Use ``at`` and ``every`` to make it.

    Attributes:
        at_s: when the (first) step fires, in seconds after the group was warm.
        every_s, until_s: period and end of repeated steps; None for one step.
        heal_after: seconds, or a PastSession, from the proof of the fault to its undo.
        expect: a key of EXPECTATIONS that the step is meant to reach, or None.
        required: a step that never finds its target makes the run unknown.
    """

    at_s: float
    fault: Fault
    target: Selector | None = None
    heal_after: float | PastSession | None = None
    expect: str | None = None
    required: bool = True
    every_s: float | None = None
    until_s: float | None = None

    def __post_init__(self) -> None:
        codec.settle(self)


def at(
    seconds: float,
    fault: Fault,
    target: Selector | None = None,
    *,
    heal_after: float | PastSession | None = None,
    expect: str | None = None,
    required: bool = True,
) -> Entry:
    """One step, ``seconds`` after the group is warm."""
    return Entry(seconds, fault, target, heal_after, expect, required)


def every(
    seconds: float,
    fault: Fault,
    target: Selector | None = None,
    *,
    until_s: float,
    heal_after: float | PastSession | None = None,
    expect: str | None = None,
    required: bool = True,
) -> Entry:
    """A step about every ``seconds`` until ``until_s``; each is moved by up to a quarter period, by the seed."""
    return Entry(seconds, fault, target, heal_after, expect, required, every_s=seconds, until_s=until_s)


@dataclass(frozen=True)
class Step:
    """One fault at one time: an entry with all draws made.

    Attributes:
        step: its number in the plan, from 0 in the order of time.
        at_s: seconds after the group is warm.
        pick: in [0, 1), for the selector.
        heal_after_s: seconds from proof to undo; None: there is nothing to heal.
    """

    step: int
    at_s: float
    fault: Fault
    target: Selector | None
    pick: float
    heal_after_s: float | None
    expect: str | None
    required: bool


@dataclass(frozen=True)
class Plan:
    """All steps of a run in the order of time; written before the cluster starts, never changed."""

    seed: int
    steps: tuple[Step, ...]


def make_plan(schedule: Sequence[Entry], seed: int, session_timeout_s: float) -> Plan:
    """Draw every random choice of ``schedule`` from ``seed``.

    Raises:
        PlanError: a step cannot do what it says; the sentence names the step.
    """
    drawn: list[tuple[float, float, Entry]] = []
    for number, entry in enumerate(schedule):
        # A generator per entry: removing one entry leaves the draws of the others as they were.
        rng = random.Random(f"{seed}/{number}")
        for at_s in _times(entry, rng):
            drawn.append((round(at_s, 3), round(rng.random(), 6), entry))
    drawn.sort(key=lambda item: item[0])
    steps = tuple(
        Step(n, at_s, e.fault, e.target, pick, _heal_after_s(e, session_timeout_s), e.expect, e.required)
        for n, (at_s, pick, e) in enumerate(drawn)
    )
    for step in steps:
        _refuse_the_impossible(step, session_timeout_s)
    return Plan(seed, steps)


def check_fits(plan: Plan, inventory: Inventory, chaos_s: float) -> None:
    """Refuse a plan that names what the scenario does not have, or that goes on after the chaos phase.

    Raises:
        PlanError: names the step, and what it lacks.
    """
    for step in plan.steps:
        for part in (step.fault, step.target):
            if isinstance(part, Names) and (lacking := part.lacking(inventory)):
                raise PlanError(f"{_name(step)}: {lacking}")
        end_s = step.at_s + (step.heal_after_s or 0)
        if end_s > chaos_s:
            raise PlanError(
                f"{_name(step)} is over only after {end_s:g} s, but the chaos phase ends after chaos_s = {chaos_s:g}: "
                "make chaos_s longer, or the schedule shorter"
            )


def check_abilities(plan: Plan, abilities: Collection[str], backend: str) -> None:
    """Refuse a plan that needs what the back-end cannot do.

    Raises:
        PlanError: names the step, what it needs and what the back-end has.
    """
    for step in plan.steps:
        missing = step.fault.needs - set(abilities)
        if missing:
            raise PlanError(
                f"{_name(step)} needs {', '.join(sorted(missing))}, but the back-end {backend!r} offers only "
                f"{', '.join(sorted(abilities)) or 'nothing'}; choose another back-end or another fault"
            )


def _times(entry: Entry, rng: random.Random) -> list[float]:
    if entry.at_s < 0:
        raise PlanError(f"a step cannot fire {-entry.at_s:g} s before the group is warm: use a time of 0 or more")
    if (entry.every_s is None) != (entry.until_s is None):
        raise PlanError(f"every and until_s belong together, but only one of them is given for {entry.fault}")
    if entry.every_s is None or entry.until_s is None:
        return [entry.at_s]
    if entry.every_s <= 0 or entry.until_s < entry.at_s:
        raise PlanError(
            f"every({entry.every_s:g}, until_s={entry.until_s:g}) fires never: the period must be above 0 "
            f"and until_s not before the first step, at {entry.at_s:g} s"
        )
    periods = (entry.until_s - entry.at_s) / entry.every_s
    if periods >= STEPS_MAX:
        raise PlanError(f"every({entry.every_s:g}, until_s={entry.until_s:g}) fires more than {STEPS_MAX} times")
    moved = [rng.uniform(-0.25, 0.25) for _ in range(int(periods) + 1)]
    return [max(0.0, entry.at_s + (n + by) * entry.every_s) for n, by in enumerate(moved)]


def _heal_after_s(entry: Entry, session_timeout_s: float) -> float | None:
    if not entry.fault.heals:
        if entry.heal_after is not None:
            raise PlanError(f"{type(entry.fault).__name__} has nothing to heal: leave heal_after out")
        return None
    if entry.heal_after is None:
        return HEAL_AFTER_S
    if isinstance(entry.heal_after, PastSession):
        return round(entry.heal_after.factor * session_timeout_s, 3)
    if entry.heal_after < 0:
        raise PlanError(f"heal_after={entry.heal_after:g} is in the past: use 0 or more seconds")
    return float(entry.heal_after)


def _refuse_the_impossible(step: Step, session_timeout_s: float) -> None:
    name, hits = _name(step), sorted(step.fault.hits)
    if step.target is None and hits:
        raise PlanError(f"{name} needs a target: something that selects {' or '.join(hits)}")
    if step.target is not None and step.target.hits not in step.fault.hits:
        aim = f"hits {' or '.join(hits)}" if hits else "chooses what it hits by itself"
        raise PlanError(f"{name} {aim}, but its target {step.target} selects {step.target.hits}")
    if step.expect is None:
        return
    if step.expect not in EXPECTATIONS:
        raise PlanError(f"{name} expects {step.expect!r}; known expectations are {', '.join(EXPECTATIONS)}")
    if step.expect == "fenced" and (step.heal_after_s is None or step.heal_after_s <= session_timeout_s):
        raise PlanError(
            f"{name} expects its target to be fenced, but lasts only {step.heal_after_s or 0:g} s under a session "
            f"time-out of {session_timeout_s:g} s: use heal_after=past_session(1.5), or a shorter session.timeout.ms"
        )


def _name(step: Step) -> str:
    return f"step {step.step} ({type(step.fault).__name__} at {step.at_s:g} s)"


def plan_to_json(plan: Plan) -> dict[str, Any]:
    """The plan as plain values, as ``plan.json`` stores them."""
    return {
        "seed": plan.seed,
        "steps": [
            {
                **vars(s),
                "fault": codec.encode(s.fault),
                "target": None if s.target is None else codec.encode(s.target),
            }
            for s in plan.steps
        ],
    }
