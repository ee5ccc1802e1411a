"""A swarm: random faults on random targets, in phases that each use only some of the faults.

Omitting features at random finds more than always using all of them: some prevent others from happening (Groce, Zhang,
Eide, Chen and Regehr, *Swarm Testing*, ISSTA 2012).
"""

from __future__ import annotations

import random
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from fencepost.errors import PlanError
from fencepost.interfaces import ChecksInventory, Fault, Selector
from fencepost.interfaces.group_snapshot import ProtocolState
from fencepost.model import Inventory, serialization
from fencepost.model.settings import SESSION
from fencepost.schedule.entries import ScheduledFault
from fencepost.schedule.fault_tolerance import back_s, conflicts, ends_for_good, lost_guarantees
from fencepost.schedule.plan import Step, min_duration_s
from fencepost.schedule.planning import STEPS_MAX, PlanningContext
from fencepost.schedule.protocol_states import LASTING
from fencepost.schedule.selectors import Brokers, Coordinator, Idle, OneMember

# The abilities that faults may need without being named in a scenario. Not here: removing replicas, as it costs a
# broker that may be spared only once; deleting records or topics, as the deleted part is not judged; and resetting
# offsets, as it needs an empty group.
ABILITIES = frozenset({"signal", "links", "admin", "leaders", "partitions", "coordinator"})
LASTS_S = 0.5  # the shortest length drawn, unless its expectation needs a longer one
LASTS_SESSIONS = 1.5  # the longest: about a third of the drawn lengths exceed the session time-out
TRIES = 50  # to draw a step that fits; after that it is dropped
STEERED = 0.5  # the share of steps that are drawn for uncovered pairs, while there are any
# The faults that cause a state, and the target that they need. Not here: commits, which are always in flight.
_REBALANCES: tuple[Collection[str], Selector] = ({"bounce", "kill", "remove_member"}, OneMember())
STIRRED_BY = {
    **dict.fromkeys(("joining", "syncing", "assigning", "revoking"), _REBALANCES),
    "coordinator_loading": ({"bounce", "kill"}, Coordinator()),
}

Span = tuple[float, float]  # from when until when, in seconds


@dataclass(frozen=True)
class Swarm:
    """Random steps. Created by ``swarm``.

    Attributes:
        intensity: steps per minute, without quiet spans.
        until_s: when the last step has healed, as planned.
        parts: what is drawn from; a target or length that a part omits is drawn for each step. Empty: every fault that
            needs only ``ABILITIES``, with its default options.
        at_s: when the first phase begins; see ``Entry``.
        phase_s, quiet_s: the length of a phase, and of the quiet span after it.
        survivable: whether steps that would break a guarantee (see ``fault_tolerance``) are dropped.
        towards: by fault, the protocol states that steps should meet. Half of the steps are drawn for them: one waits
            for such a state, each at most once, near a step that causes the state, if a part can.
    """

    intensity: float
    until_s: float
    parts: tuple[ScheduledFault, ...] = ()
    at_s: float = 0.0
    phase_s: float = 30.0
    quiet_s: float = 10.0
    survivable: bool = True
    towards: Mapping[str, tuple[str, ...]] = field(default_factory=dict, repr=False, hash=False)

    def __post_init__(self) -> None:
        serialization.validate_fields(self)
        if self.intensity <= 0 or self.phase_s <= 0 or self.quiet_s < 0:
            raise PlanError(
                f"found a swarm with intensity={self.intensity:g}, phase_s={self.phase_s:g} and "
                f"quiet_s={self.quiet_s:g}; use an intensity and a phase_s above 0, and a quiet_s of 0 or more"
            )
        if not 0 <= self.at_s < self.until_s:
            raise PlanError(
                f"found a swarm from {self.at_s:g} s until {self.until_s:g} s; use a beginning of 0 or more, and a "
                "later end"
            )
        if any(part.at_s or part.every_s is not None for part in self.parts):
            raise PlanError("a swarm draws the times of its parts: write them as at(0, ...)")
        if self.intensity * (self.until_s - self.at_s) / 60 > STEPS_MAX:
            raise PlanError(f"a swarm of {self.intensity:g} steps a minute has more than {STEPS_MAX} of them")
        for fault, states in self.towards.items():
            serialization.decode("fault", fault)
            for state in states:
                serialization.decode("state", state)

    def draw(self, rng: random.Random, setting: PlanningContext) -> Iterator[Step]:
        """See ``Entry``."""
        parts, done = self.parts or _everything(setting.inventory), list[Step]()
        aims = self._aims(parts)
        due = 0.0
        for begin_s, end_s in self._phases():
            used = [part for part in parts if rng.random() < 0.5] or [rng.choice(parts)]
            near = [step for step in done if back_s(step) > begin_s]
            before, due = due, due + self.intensity * (end_s - begin_s) / 60
            for _ in range(round(due) - round(before)):
                aim = rng.choice(aims) if aims and rng.random() < STEERED else None
                step = self._steered(rng, aim, parts, near, (begin_s, end_s), setting) if aim else None
                aims = [other for other in aims if not (other is aim and step and step.when)]
                step = step or self._fitting(rng, used, near, (begin_s, end_s), setting)
                if step:
                    near.append(step)
                    done.append(step)
        if not done:
            raise PlanError(
                f"a swarm of {self.intensity:g} steps a minute from {self.at_s:g} s until {self.until_s:g} s has no "
                "step: none is due, or none of its parts fits"
            )
        yield from done

    def reachable_cells(self, inventory: Inventory, abilities: Collection[str]) -> dict[str, tuple[str, ...]]:
        """By fault, the lasting states that it could meet in such a group, on a back-end with these abilities."""
        there = [
            s
            for s in LASTING
            if s.needs <= set(abilities) and not (isinstance(s, ChecksInventory) and s.inventory_problem(inventory))
        ]
        faults = (_name(part) for part in self.parts or _everything(inventory) if part.when is None)
        return dict.fromkeys(faults, tuple(serialization.name_of(state) for state in there))

    def _aims(self, parts: Sequence[ScheduledFault]) -> list[ScheduledFault]:
        """The parts, each with a wait for each of the states that they should meet."""
        return [
            replace(part, when=serialization.decode("state", state), within_s=self.phase_s / 3, required=False)
            for part in parts
            for state in self.towards.get(_name(part), ())
            if part.when is None
        ]

    def _steered(
        self,
        rng: random.Random,
        aim: ScheduledFault,
        parts: Sequence[ScheduledFault],
        near: list[Step],
        span_s: Span,
        setting: PlanningContext,
    ) -> Step | None:
        """``aim`` from the moment on at which a step near it causes its state, or first such a step."""
        begin_s, end_s = span_s[0], span_s[1] - aim.within_s
        stirring = _stirring(parts, aim)
        hits = {(part.fault, part.target.hits) for part in stirring if part.target}
        moments_s = [s.at_s for s in near if (s.fault, s.hits) in hits and begin_s <= s.at_s < end_s]
        if stirring and not moments_s:
            return self._fitting(rng, stirring, near, (begin_s, end_s), setting)
        return self._fitting(rng, [aim], near, span_s, setting, moments_s)

    def _fitting(
        self,
        rng: random.Random,
        parts: Sequence[ScheduledFault],
        near: list[Step],
        span_s: Span,
        setting: PlanningContext,
        moments_s: Sequence[float] = (),
    ) -> Step | None:
        """A step of one of these parts that is compatible with the steps near it; None: none was drawn."""
        tries = (_drawn(rng, rng.choice(parts), span_s, setting, moments_s) for _ in range(TRIES))
        return next((step for step in tries if step and self._goes_with(near, step, setting.inventory)), None)

    def _phases(self) -> Iterator[tuple[float, float]]:
        begin_s = self.at_s
        while begin_s < self.until_s:
            yield begin_s, min(begin_s + self.phase_s, self.until_s)
            begin_s += self.phase_s + self.quiet_s

    def _goes_with(self, near: list[Step], step: Step, inventory: Inventory) -> bool:
        if any(conflicts(step, other, inventory) for other in near):
            return False
        return not self.survivable or not lost_guarantees([*near, step], inventory)


def swarm(
    intensity: float,
    *parts: ScheduledFault,
    until_s: float,
    at_s: float = 0.0,
    phase_s: float = 30.0,
    quiet_s: float = 10.0,
    survivable: bool = True,
) -> Swarm:
    """``intensity`` random steps a minute from ``at_s`` until ``until_s``, when all of them are healed, as planned.

    Each phase of ``phase_s`` uses a random subset of the parts, and is followed by ``quiet_s`` without steps. Omitted
    options of a part are drawn: for ``at(0, Kill())`` the target and the length, for ``at(0, Pause(), member(1),
    heal_after=2)`` neither. Without parts, every fault is used with its default options, except faults that need more
    than signals, links and the administrator, that need something of the scenario, or that end members permanently.

    Steps that could act on the same process or link do not overlap. A step that would break a guarantee is dropped,
    unless ``survivable`` is false: no more brokers are down at a time than ``min.insync.replicas`` allows, and one
    member is always left. This holds among the steps of one swarm, by their planned times; the printed plan says which
    guarantees all steps together break.

    Raises:
        PlanError: it has no time, no intensity, or parts with times of their own.
    """
    return Swarm(intensity, until_s, parts, at_s, phase_s, quiet_s, survivable)


def _everything(inventory: Inventory) -> tuple[ScheduledFault, ...]:
    there = {"members", "brokers", *(["idle members"] if inventory.spare_members else ())}
    faults = [fault() for fault in serialization.registry("fault").values() if fault.needs <= ABILITIES]
    others = replace(inventory, spare_members=0)  # idle members are reserved for faults that start them
    plain = (f for f in faults if not isinstance(f, ChecksInventory) or not f.inventory_problem(others))
    return tuple(ScheduledFault(0, f, required=False) for f in plain if f.hits <= there and not ends_for_good(f))


def _name(part: ScheduledFault) -> str:
    return serialization.name_of(part.fault)


def _stirring(parts: Sequence[ScheduledFault], aim: ScheduledFault) -> list[ScheduledFault]:
    """The parts that can cause the state of ``aim``, with the targets that they need."""
    faults, whom = STIRRED_BY.get(serialization.name_of(aim.when) if aim.when else "", ((), None))
    aimed = (replace(part, target=part.target or whom) for part in parts if _name(part) in faults and not part.when)
    return [part for part in aimed if part.target and whom and part.target.hits == whom.hits]


def _drawn(
    rng: random.Random, part: ScheduledFault, span_s: Span, setting: PlanningContext, moments_s: Sequence[float] = ()
) -> Step | None:
    """A step with everything drawn that ``part`` omits, at one of the moments if given; None: it is too long."""
    begin_s, end_s = span_s
    lasts_s = part.lasts_s(setting)
    if part.heal_after is None and lasts_s is not None:
        shortest_s = max(LASTS_S, min_duration_s(part.fault, part.expect, setting.times_s))
        longest_s = min(LASTS_SESSIONS * setting.times_s[SESSION], end_s - begin_s)
        lasts_s = round(rng.uniform(shortest_s, max(shortest_s, longest_s)), 3)
    latest_s = end_s - (lasts_s or 0) - part.within_s
    in_time_s = [moment_s for moment_s in moments_s if moment_s <= latest_s]
    if latest_s < begin_s or (moments_s and not in_time_s):
        return None
    at_s = int(rng.uniform(begin_s, latest_s) * 1000) / 1000  # rounded down, so that it heals in time
    target = part.target or _target(rng, part.fault, part.when, setting.inventory)
    timed = replace(part, at_s=rng.choice(in_time_s) if in_time_s else at_s, target=target, heal_after=lasts_s)
    return next(timed.draw(rng, setting))


def _target(rng: random.Random, fault: Fault, when: ProtocolState | None, inventory: Inventory) -> Selector | None:
    """One member (an idle one for faults that start members), or one broker: a fixed one, or the coordinator.

    None: the member or broker in the state that is waited for, or a target that the fault chooses itself.
    """
    certain = [Brokers((broker,)) for broker in range(1, inventory.brokers + 1)]
    choices: dict[str, list[Selector]] = {
        "members": [OneMember()],
        "idle members": [Idle()],
        "brokers": [Coordinator(), *certain],
    }
    kind = rng.choice(sorted(fault.hits)) if fault.hits else None
    return None if kind is None or (when and when.hits == kind) else rng.choice(choices[kind])
