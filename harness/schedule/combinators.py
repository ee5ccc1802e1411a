"""Entries made of entries: in sequence, at one moment, one of several, for every member. They nest.

The times of a part count from its turn: ``sequence(5, at(0, ...), at(2, ...))``.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from fencepost.errors import PlanError
from fencepost.model import serialization
from fencepost.schedule.entries import ScheduledFault, fire_times
from fencepost.schedule.fault_tolerance import BACK_S
from fencepost.schedule.plan import Step
from fencepost.schedule.planning import Entry, PlanningContext
from fencepost.schedule.selectors import Brokers, Idle, Member

JOINED_WITHIN_S = 60.0  # a new member waits for a rebalance, which waits until all others have polled


@dataclass(frozen=True)
class Sequence:
    """Parts one after the other. Created by ``sequence``.

    Attributes:
        at_s: the turn of the first part; see ``Entry``.
        pause_s: between the end of a part and the turn of the next.
    """

    parts: tuple[Entry, ...]
    at_s: float = 0.0
    pause_s: float = 0.0

    def __post_init__(self) -> None:
        serialization.validate_fields(self)
        _some(self.parts, "sequence")
        if self.pause_s < 0:
            raise PlanError(f"found a sequence with pause_s={self.pause_s:g}; use 0 or more")

    def draw(self, rng: random.Random, setting: PlanningContext) -> Iterator[Step]:
        """See ``Entry``."""
        (free_s,) = fire_times(rng, self.at_s)
        for part in self.parts:
            steps = [*_later(part.draw(rng, setting), free_s)]
            yield from steps
            free_s = max((step.end_s for step in steps), default=free_s) + self.pause_s


@dataclass(frozen=True)
class Together:
    """Parts that all have their turn at one moment. Created by ``together``."""

    parts: tuple[Entry, ...]
    at_s: float = 0.0

    def __post_init__(self) -> None:
        serialization.validate_fields(self)
        _some(self.parts, "together")

    def draw(self, rng: random.Random, setting: PlanningContext) -> Iterator[Step]:
        """See ``Entry``."""
        (at_s,) = fire_times(rng, self.at_s)
        for part in self.parts:
            yield from _later(part.draw(rng, setting), at_s)


@dataclass(frozen=True)
class Mix:
    """One of the parts at each of several times. Created by ``mix``.

    Attributes:
        at_s, every_s, until_s: the times of the turns, as for a repeated ``ScheduledFault``.
        weights: of the parts, in their order; empty: all have the same weight.
    """

    parts: tuple[Entry, ...]
    at_s: float
    every_s: float
    until_s: float
    weights: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        serialization.validate_fields(self)
        _some(self.parts, "mix")
        if self.weights and (len(self.weights) != len(self.parts) or min(self.weights) < 0 or not any(self.weights)):
            expected = f"{len(self.parts)} weights of 0 or more, not all 0"
            raise PlanError(f"found a mix of {len(self.parts)} parts with the weights {self.weights}; use {expected}")

    def draw(self, rng: random.Random, setting: PlanningContext) -> Iterator[Step]:
        """See ``Entry``."""
        for at_s in fire_times(rng, self.at_s, self.every_s, self.until_s):
            (part,) = rng.choices(self.parts, self.weights or None)
            yield from _later(part.draw(rng, setting), at_s)


@dataclass(frozen=True)
class RollingDeploy:
    """Replaces all members, one after the other. Created by ``rolling_deploy``.

    Attributes:
        at_s: the time of the first replacement; see ``Entry``.
        pause_s: between the end of one replacement and the next.
        start_first: a new member joins before an old one leaves; this needs a spare member.
        down_s: how long each member is down if the old one stops first.
    """

    at_s: float = 0.0
    pause_s: float = 1.0
    start_first: bool = False
    down_s: float = 1.0

    def __post_init__(self) -> None:
        serialization.validate_fields(self)
        _lasting("deploy", self.pause_s, self.down_s)

    def draw(self, rng: random.Random, setting: PlanningContext) -> Iterator[Step]:
        """See ``Entry``."""
        parts = [self._replaced(Member(index)) for index in range(setting.inventory.members)]
        return Sequence(tuple(parts), self.at_s, self.pause_s).draw(rng, setting)

    def _replaced(self, old: Member) -> Entry:
        faults = serialization.registry("fault")
        if not self.start_first:
            return ScheduledFault(0, faults["bounce"](), old, heal_after=self.down_s)
        new = ScheduledFault(0, faults["scale_out"](joined_within_s=JOINED_WITHIN_S), Idle())
        return Sequence((new, ScheduledFault(0, faults["scale_in"](), old)))


@dataclass(frozen=True)
class RollingBounce:
    """Bounces all brokers, one after the other. Created by ``rolling_bounce``.

    Attributes:
        at_s: the time of the first bounce; see ``Entry``.
        pause_s: the least time between the start of a broker and the end of the next.
        down_s: how long each is down.
    """

    at_s: float = 0.0
    pause_s: float = BACK_S
    down_s: float = 1.0

    def __post_init__(self) -> None:
        serialization.validate_fields(self)
        _lasting("bounce", self.pause_s, self.down_s)

    def draw(self, rng: random.Random, setting: PlanningContext) -> Iterator[Step]:
        """See ``Entry``."""
        bounce = serialization.registry("fault")["bounce"](in_sync=True)
        numbers = range(1, setting.inventory.brokers + 1)
        parts = [ScheduledFault(0, bounce, Brokers((number,)), heal_after=self.down_s) for number in numbers]
        return Sequence(tuple(parts), self.at_s, self.pause_s).draw(rng, setting)


def sequence(seconds: float, *parts: Entry, pause_s: float = 0.0) -> Sequence:
    """``parts`` one after the other, the first at ``seconds``, each ``pause_s`` after the previous one is healed.

    Planned with the planned lengths of faults: a fault lasts from its proof on, so one that is proven late is healed
    late, too, and the pause after it shrinks, in the worst case to nothing.

    Raises:
        PlanError: it has no parts, or its pause is negative.
    """
    return Sequence(parts, seconds, pause_s)


def together(seconds: float, *parts: Entry) -> Together:
    """``parts`` at one moment; they are injected in their order, each once the previous one is proven.

    Raises:
        PlanError: it has no parts.
    """
    return Together(parts, seconds)


def mix(seconds: float, *parts: Entry, until_s: float, weights: Iterable[float] = (), at_s: float | None = None) -> Mix:
    """One of ``parts`` about every ``seconds``, drawn by ``weights``, from ``at_s`` (by default after one period) until
    ``until_s``; as with ``every``, each time is moved by up to a quarter period.

    Raises:
        PlanError: it has no parts, or its weights do not fit them.
    """
    return Mix(parts, seconds if at_s is None else at_s, seconds, until_s, tuple(weights))


def rolling_deploy(
    seconds: float, *, start_first: bool = False, pause_s: float = 1.0, down_s: float = 1.0
) -> RollingDeploy:
    """Replace every member of the group, one after the other, the first at ``seconds``, each ``pause_s`` after the
    previous one. Stop-first: a bounce that lasts ``down_s``. Start-first: an idle member joins, and is proven to have
    its assignment, before the old one leaves; the next new member uses the slot that becomes free.

    Raises:
        PlanError: a time is negative. ``plan.check_plan`` checks that start-first has a spare member.
    """
    return RollingDeploy(seconds, pause_s, start_first, down_s)


def rolling_bounce(seconds: float, *, pause_s: float = BACK_S, down_s: float = 1.0) -> RollingBounce:
    """Bounce every broker, one after the other, as in an upgrade, the first at ``seconds``: each is down for ``down_s``
    and in sync again before the next one ends, however long that takes; ``pause_s`` is the least time in between.

    Raises:
        PlanError: a time is negative.
    """
    return RollingBounce(seconds, pause_s, down_s)


def _lasting(what: str, *times_s: float) -> None:
    if min(times_s) < 0:
        raise PlanError(f"found a rolling {what} that lasts {min(times_s):g} s; use 0 or more")


def _some(parts: tuple[Entry, ...], what: str) -> None:
    if not parts:
        raise PlanError(f"found a {what} without parts; give it some, as in {what}(..., at(0, Pause(), one_member()))")


def _later(steps: Iterable[Step], by_s: float) -> Iterator[Step]:
    return (replace(step, at_s=round(step.at_s + by_s, 3)) for step in steps)
