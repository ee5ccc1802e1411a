"""Entries of one fault: at a moment, repeatedly, or when the group or a member is in a state."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass

from fencepost.errors import PlanError
from fencepost.interfaces import Fault, Selector
from fencepost.interfaces.group_snapshot import ProtocolState
from fencepost.model import serialization
from fencepost.model.settings import SESSION
from fencepost.schedule.plan import Plan, Step
from fencepost.schedule.planning import STEPS_MAX, Entry, PlanningContext

HEAL_AFTER_S = 5.0  # the default for faults that can be healed
WITHIN_S = 20.0  # the default time to wait for a state


@dataclass(frozen=True)
class PastSession:
    """A time measured in session time-outs of the group under test."""

    factor: float

    def __post_init__(self) -> None:
        serialization.validate_fields(self)
        if self.factor <= 0:
            raise PlanError(f"found past_session({self.factor}); use a factor above 0")


def past_session(factor: float = 1.5) -> PastSession:
    """``factor`` session time-outs: long enough for the group to evict a member when factor > 1."""
    return PastSession(factor)


@dataclass(frozen=True)
class Until:
    """A time that ends when the target of the fault has reached a state, and after ``at_most`` in any case."""

    state: ProtocolState
    at_most: float | PastSession = PastSession(3)

    def __post_init__(self) -> None:
        serialization.validate_fields(self)


def until(state: ProtocolState, at_most: float | PastSession = PastSession(3)) -> Until:
    """Until the target reaches ``state``, as ``heal_after=until(fenced())``. ``at_most``: seconds or sessions."""
    return Until(state, at_most)


@dataclass(frozen=True)
class ScheduledFault:
    """A fault on a target, once, repeatedly, or in a state. Created by ``at``, ``every``, ``flap`` and ``when``.

    Attributes:
        at_s: when the (first) step fires; see ``Entry``.
        every_s, until_s: period and end of repeated steps; None for one step.
        regular: repeated steps are not moved, and share one draw for their selector.
        heal_after: seconds, a PastSession, or an Until, from the proof of the fault to its undo; None: 5 s, or half a
            period of regular steps, where there is something to heal.
        expect: a key of ``plan.EXPECTATIONS`` that the step should cause, or None.
        required: a step that never finds its target, or its state, makes the run unknown.
        when, within_s: the state that it waits for from its moment on, and for how long.
    """

    at_s: float
    fault: Fault
    target: Selector | None = None
    heal_after: float | PastSession | Until | None = None
    expect: str | None = None
    required: bool = True
    every_s: float | None = None
    until_s: float | None = None
    regular: bool = False
    when: ProtocolState | None = None
    within_s: float = 0.0

    def __post_init__(self) -> None:
        serialization.validate_fields(self)

    def draw(self, rng: random.Random, setting: PlanningContext) -> Iterator[Step]:
        """See ``Entry``."""
        lasts_s = self.lasts_s(setting)
        times = fire_times(rng, self.at_s, self.every_s, self.until_s, regular=self.regular)
        if self.regular and self.every_s is not None and (lasts_s or 0) >= self.every_s:
            raise PlanError(f"{self.fault} would never be off: it is on for {lasts_s:g} s of every {self.every_s:g} s")
        pick = rng.random() if self.regular else None
        ends = self.heal_after.state if isinstance(self.heal_after, Until) else None
        for at_s in times:
            drawn = round(rng.random() if pick is None else pick, 6)
            yield Step(
                0,
                at_s,
                self.fault,
                self.target,
                drawn,
                lasts_s,
                self.expect,
                self.required,
                self.when,
                self.within_s,
                ends,
            )

    def lasts_s(self, setting: PlanningContext) -> float | None:
        """Longest time from its proof to its undo, in seconds; None: there is nothing to heal."""
        after = self.heal_after.at_most if isinstance(self.heal_after, Until) else self.heal_after
        if after is None:
            usual_s = self.every_s / 2 if self.regular and self.every_s else HEAL_AFTER_S
            return usual_s if self.fault.heals else None
        if isinstance(after, PastSession):
            return round(after.factor * setting.times_s[SESSION], 3)
        return float(after)


def at(
    seconds: float,
    fault: Fault,
    target: Selector | None = None,
    *,
    heal_after: float | PastSession | Until | None = None,
    expect: str | None = None,
    required: bool = True,
) -> ScheduledFault:
    """One step, ``seconds`` after the group is warm; in another entry, after its turn."""
    return ScheduledFault(seconds, fault, target, heal_after, expect, required)


def every(
    seconds: float,
    fault: Fault,
    target: Selector | None = None,
    *,
    until_s: float,
    heal_after: float | PastSession | Until | None = None,
    expect: str | None = None,
    required: bool = True,
) -> ScheduledFault:
    """A step about every ``seconds`` until ``until_s``; each is moved by up to a quarter period, by the seed."""
    return ScheduledFault(seconds, fault, target, heal_after, expect, required, every_s=seconds, until_s=until_s)


def flap(
    seconds: float,
    fault: Fault,
    target: Selector | None = None,
    *,
    until_s: float,
    at_s: float | None = None,
    heal_after: float | None = None,
    expect: str | None = None,
    required: bool = True,
) -> ScheduledFault:
    """A fault that begins at ``at_s`` (by default after one period) and then every ``seconds``, exactly, until
    ``until_s``, and ends each time after ``heal_after`` (by default half a period). All have the same target.
    """
    begin_s = seconds if at_s is None else at_s
    return ScheduledFault(begin_s, fault, target, heal_after, expect, required, seconds, until_s, regular=True)


def when(
    state: ProtocolState,
    fault: Fault,
    target: Selector | None = None,
    *,
    at_s: float = 0.0,
    within_s: float = WITHIN_S,
    heal_after: float | PastSession | Until | None = None,
    expect: str | None = None,
    required: bool = True,
) -> ScheduledFault:
    """One step as soon as ``state`` holds, checked from ``at_s`` on for ``within_s``; without a target it hits the
    member or broker in the state: the member in its callback, the broker that coordinates.
    """
    return ScheduledFault(at_s, fault, target, heal_after, expect, required, when=state, within_s=within_s)


def fire_times(
    rng: random.Random,
    at_s: float,
    every_s: float | None = None,
    until_s: float | None = None,
    *,
    regular: bool = False,
) -> list[float]:
    """The times of an entry: once, or about (``regular``: exactly) every ``every_s``.

    Raises:
        PlanError: it fires never, too often, or before the group is warm.
    """
    if at_s < 0:
        raise PlanError(f"a step cannot fire {-at_s:g} s before the group is warm: use a time of 0 or more")
    if (every_s is None) != (until_s is None):
        raise PlanError("every and until_s belong together, but only one of them is given")
    if every_s is None or until_s is None:
        return [round(at_s, 3)]
    if every_s <= 0 or until_s < at_s:
        raise PlanError(
            f"every({every_s:g}, until_s={until_s:g}) never fires: the period must be above 0 "
            f"and until_s not before the first step, at {at_s:g} s"
        )
    periods = (until_s - at_s) / every_s
    if periods >= STEPS_MAX:
        raise PlanError(f"every({every_s:g}, until_s={until_s:g}) fires more than {STEPS_MAX} times")
    moved = [0.0 if regular else rng.uniform(-0.25, 0.25) for _ in range(int(periods) + 1)]
    return [round(max(0.0, at_s + (n + by) * every_s), 3) for n, by in enumerate(moved)]


def as_schedule(plan: Plan) -> tuple[Entry, ...]:
    """A schedule with exactly the steps of ``plan``; only the numbers for selectors are drawn again."""
    return tuple(
        ScheduledFault(
            s.at_s,
            s.fault,
            s.target,
            Until(s.until, s.heal_after_s) if s.until and s.heal_after_s is not None else s.heal_after_s,
            s.expect,
            s.required,
            when=s.when,
            within_s=s.within_s,
        )
        for s in plan.steps
    )
