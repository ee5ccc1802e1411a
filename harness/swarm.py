"""A swarm: random faults on random targets, in phases that each use some of the faults only.

Leaving features out at random finds more than always having all of them: some keep others from happening (Groce, Zhang,
Eide, Chen and Regehr, *Swarm Testing*, ISSTA 2012).
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass, replace

from fencepost import codec
from fencepost.errors import PlanError
from fencepost.interfaces import Fault, Names, Selector
from fencepost.model import Inventory
from fencepost.plan import Step
from fencepost.schedule import STEPS_MAX, Setting
from fencepost.single import At
from fencepost.survival import back_s, ends_for_good, given_up, in_the_way
from fencepost.targets import Brokers, Coordinator, Idle, OneMember

# What faults may need that were not asked for by name. Not here: who takes replicas away takes a broker that may be
# spared only once, and of deleted records nothing is judged any more.
ABILITIES = frozenset({"signal", "links", "admin", "coordinator"})
LASTS_S = 0.5  # the shortest length drawn
LASTS_SESSIONS = 1.5  # the longest: a third of those that fit in outlast the session
PAST_SESSION = 1.1  # the shortest of a step that expects its target to be fenced
TRIES = 50  # to draw a step that fits in; after that it is left out


@dataclass(frozen=True)
class Swarm:
    """Random steps. Use ``swarm`` to make it.

    Attributes:
        intensity: steps a minute, without quiet spans.
        until_s: when the last step has healed, as planned.
        parts: what is drawn from; the target and the length that a part leaves out are drawn for each step. Empty:
            every fault that needs no more than ``ABILITIES``, as it comes.
        at_s: when the first phase begins; see ``Entry``.
        phase_s, quiet_s: how long a phase is, and the quiet span after it.
        survivable: whether what would give up a guarantee (see ``survival``) is left out.
    """

    intensity: float
    until_s: float
    parts: tuple[At, ...] = ()
    at_s: float = 0.0
    phase_s: float = 30.0
    quiet_s: float = 10.0
    survivable: bool = True

    def __post_init__(self) -> None:
        codec.settle(self)
        if self.intensity <= 0 or self.phase_s <= 0 or self.quiet_s < 0:
            raise PlanError(
                f"a swarm wants an intensity and a phase_s above 0 and a quiet_s of 0 or more, but {self.intensity:g}, "
                f"{self.phase_s:g} and {self.quiet_s:g} came"
            )
        if not 0 <= self.at_s < self.until_s:
            raise PlanError(
                f"a swarm from {self.at_s:g} s until {self.until_s:g} s has no time: it begins at 0 or later"
            )
        if any(part.at_s or part.every_s is not None for part in self.parts):
            raise PlanError("a swarm draws the times of its parts: write them as at(0, ...)")
        if self.intensity * (self.until_s - self.at_s) / 60 > STEPS_MAX:
            raise PlanError(f"a swarm of {self.intensity:g} steps a minute has more than {STEPS_MAX} of them")

    def draw(self, rng: random.Random, setting: Setting) -> Iterator[Step]:
        """See ``Entry``."""
        parts, done = self.parts or _everything(setting.inventory), list[Step]()
        due = 0.0
        for begin_s, end_s in self._phases():
            used = [part for part in parts if rng.random() < 0.5] or [rng.choice(parts)]
            near = [step for step in done if back_s(step) > begin_s]
            before, due = due, due + self.intensity * (end_s - begin_s) / 60
            for _ in range(round(due) - round(before)):
                tries = (_drawn(rng, rng.choice(used), begin_s, end_s, setting) for _ in range(TRIES))
                step = next((step for step in tries if step and self._goes_with(near, step, setting.inventory)), None)
                if step:
                    near.append(step)
                    done.append(step)
        if not done:
            raise PlanError(
                f"a swarm of {self.intensity:g} steps a minute from {self.at_s:g} s until {self.until_s:g} s has no "
                "step: none is due, or none of its parts fits in"
            )
        yield from done

    def _phases(self) -> Iterator[tuple[float, float]]:
        begin_s = self.at_s
        while begin_s < self.until_s:
            yield begin_s, min(begin_s + self.phase_s, self.until_s)
            begin_s += self.phase_s + self.quiet_s

    def _goes_with(self, near: list[Step], step: Step, inventory: Inventory) -> bool:
        if any(in_the_way(step, other, inventory) for other in near):
            return False
        return not self.survivable or not given_up([*near, step], inventory)


def swarm(
    intensity: float,
    *parts: At,
    until_s: float,
    at_s: float = 0.0,
    phase_s: float = 30.0,
    quiet_s: float = 10.0,
    survivable: bool = True,
) -> Swarm:
    """``intensity`` random steps a minute from ``at_s`` until ``until_s``, when all of them are healed, as planned.

    Each phase of ``phase_s`` uses a subset of the parts that is drawn for it, and is followed by ``quiet_s`` without
    any step. What a part leaves out is drawn: ``at(0, Kill())`` has its target and its length drawn, ``at(0, Pause(),
    member(1), heal_after=2)`` neither. Without parts, every fault is used as it comes, but for those that need more
    than signals, links and the administrator, want something of the scenario, or end members for good.

    Steps that could have the same process or link in their hands do not meet. A step that would give up a guarantee is
    left out, unless ``survivable`` is false: no more brokers are down at a time than ``min.insync.replicas`` spares,
    and one member is always left. This holds among the steps of one swarm, by their planned times; the printed plan
    says what all steps together give up.

    Raises:
        PlanError: it has no time, no intensity, or parts with times of their own.
    """
    return Swarm(intensity, until_s, parts, at_s, phase_s, quiet_s, survivable)


def _everything(inventory: Inventory) -> tuple[At, ...]:
    there = {"members", "brokers", *(["idle members"] if inventory.spare_members else ())}
    faults = [fault() for fault in codec.known("fault").values() if fault.needs <= ABILITIES]
    others = replace(inventory, spare_members=0)  # idle members are for who starts them
    plain = (f for f in faults if not isinstance(f, Names) or not f.lacking(others))
    return tuple(At(0, f, required=False) for f in plain if f.hits <= there and not ends_for_good(f))


def _drawn(rng: random.Random, part: At, begin_s: float, end_s: float, setting: Setting) -> Step | None:
    """A step with everything drawn that ``part`` leaves out; None: it is too long."""
    lasts_s = part.lasts_s(setting)
    if part.heal_after is None and lasts_s is not None:
        least_s = PAST_SESSION * setting.session_timeout_s if part.expect == "fenced" else LASTS_S
        most_s = min(LASTS_SESSIONS * setting.session_timeout_s, end_s - begin_s)
        lasts_s = round(rng.uniform(least_s, max(least_s, most_s)), 3)
    latest_s = end_s - (lasts_s or 0)
    if latest_s < begin_s:
        return None
    at_s = int(rng.uniform(begin_s, latest_s) * 1000) / 1000  # rounded down: it heals in time
    target = part.target or _target(rng, part.fault, setting.inventory)
    return next(replace(part, at_s=at_s, target=target, heal_after=lasts_s).draw(rng, setting))


def _target(rng: random.Random, fault: Fault, inventory: Inventory) -> Selector | None:
    """One member (an idle one for who starts them), or one broker: a certain one, or the coordinator."""
    certain = [Brokers((broker,)) for broker in range(1, inventory.brokers + 1)]
    choices: dict[str, list[Selector]] = {
        "members": [OneMember()],
        "idle members": [Idle()],
        "brokers": [Coordinator(), *certain],
    }
    return rng.choice(choices[rng.choice(sorted(fault.hits))]) if fault.hits else None
