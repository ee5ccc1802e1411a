"""Schedules: the faults of a run and their times, as values.

They consist of three ideas. An ``Entry`` draws steps from random numbers (``single``); entries combine into others
(``combinators``, ``swarm``); and a plan contains the steps of all entries, except in ``quiet`` spans. ``make_plan``
makes every draw from the seed; nothing here waits or reads a clock, so a fault is assumed to begin at its moment and to
last as long as planned.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Protocol, runtime_checkable

from fencepost.errors import Complaints, PlanError
from fencepost.model import Inventory, serialization
from fencepost.schedule.plan import Plan, Step

STEPS_MAX = 10_000  # of one entry
ALONE = Inventory(members=1, brokers=1, topics={})


@dataclass(frozen=True)
class PlanningContext:
    """The context of a draw: eviction time-outs in seconds, by client setting; and the inventory of possible
    targets."""

    times_s: Mapping[str, float]
    inventory: Inventory


@runtime_checkable
class Entry(Protocol):
    """A line of a schedule, or a part of one: a frozen dataclass that draws steps."""

    @property
    def at_s(self) -> float:
        """When it begins: seconds after the group is warm, or as a part of another entry, after its turn."""

    def draw(self, rng: random.Random, setting: PlanningContext) -> Iterator[Step]:
        """Its steps, all numbered 0, with times that count as ``at_s`` does.

        Raises:
            PlanError: it has no times. ``plan.check_plan`` checks whether its steps are possible.
        """


@dataclass(frozen=True)
class Quiet:
    """A span without faults. Created by ``quiet``."""

    from_s: float
    until_s: float

    def __post_init__(self) -> None:
        serialization.validate_fields(self)
        if not 0 <= self.from_s < self.until_s:
            raise PlanError(
                f"found quiet({self.from_s:g}, {self.until_s:g}); use a beginning of 0 or more, and a later end"
            )

    def allows(self, step: Step) -> bool:
        """Whether ``step`` ends before the span, or begins after it."""
        return step.end_s < self.from_s or step.at_s >= self.until_s


def quiet(from_s: float, until_s: float) -> Quiet:
    """From ``from_s`` to ``until_s``, seconds after the group is warm, no step of the schedule begins or is in effect:
    steps that would, as planned, are dropped. Raises PlanError: it is no span.
    """
    return Quiet(from_s, until_s)


def make_plan(
    schedule: Sequence[Entry | Quiet], seed: int, times_s: Mapping[str, float], inventory: Inventory = ALONE
) -> Plan:
    """Draw every random choice of ``schedule`` from ``seed``, for such a group and cluster (see ``PlanningContext``).

    Raises:
        PlanError: entries have no times. ``plan.check_plan`` checks whether their steps are possible.
    """
    setting, seen, drawn, complaints = PlanningContext(times_s, inventory), Counter[str](), list[Step](), Complaints()
    quiets = [line for line in schedule if isinstance(line, Quiet)]
    for entry in schedule:
        if isinstance(entry, Quiet):
            continue
        # A generator per entry, seeded by its text and not its place: removing one does not change the others' draws.
        text = repr(entry)
        rng = random.Random(f"{seed}/{seen[text]}/{text}")
        seen[text] += 1
        with complaints.gather(PlanError):
            steps = list(islice(entry.draw(rng, setting), STEPS_MAX + 1))
            if len(steps) > STEPS_MAX:
                raise PlanError(f"an entry of the schedule fires more than {STEPS_MAX} times: {text:.100}")
            drawn += steps
    complaints.refuse()
    return Plan.of(seed, (step for step in drawn if all(span.allows(step) for span in quiets)))
