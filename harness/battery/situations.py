"""The situations of a battery: each is a schedule of real faults, sized by the program's own time-outs. Pure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from fencepost.battery.program import Program
from fencepost.battery.request import BatteryRequest
from fencepost.battery.scenario import AFTER_S, FIRST_S, build, faults_end_s
from fencepost.battery.speed import BatteryLoad
from fencepost.errors import ScenarioError
from fencepost.faults import (
    AddPartitions,
    BlackHole,
    Bounce,
    Kill,
    Latency,
    MoveCoordinator,
    MoveLeaders,
    Pause,
    ScaleIn,
    ScaleOut,
)
from fencepost.scenario.scenario import Scenario
from fencepost.schedule.combinators import sequence
from fencepost.schedule.entries import at
from fencepost.schedule.planning import Entry
from fencepost.schedule.selectors import AllMembers, Coordinator, Idle, OneMember

PAST = 1.5  # sessions
BURST_EVERY_S = 2.0
AROUND_S = 21.0  # a run without its chaos phase: cluster, members, drain, audit, verdict


@dataclass(frozen=True)
class Situation:
    """One row of the card.

    Attributes:
        name: as ``--only`` has it.
        title: what happens, as a clause.
        faults: its schedule for a program, from second 0 on.
        quick: whether it belongs to the short battery: the situations that find most.
        spare: the members that it adds.
        bursts: whether records come in bursts.
        adds_partitions: whether it adds partitions, to which producers write at once.
        brokers: whether it disturbs brokers, which a cluster of another owner may not permit.
    """

    name: str
    title: str
    faults: Callable[[Program], Sequence[Entry]]
    quick: bool = False
    spare: int = 0
    bursts: bool = True
    adds_partitions: bool = False
    brokers: bool = False


def _past_s(program: Program) -> float:
    return round(PAST * program.session_timeout_s, 3)


SITUATIONS = (
    Situation("steady", "nothing happens, records come steadily", lambda _: (), bursts=False),
    Situation("burst", "nothing happens, records come in bursts", lambda _: ()),
    Situation(
        "restart",
        "a member is restarted under load",
        lambda _: (at(0, Bounce(), OneMember(), heal_after=1),),
        quick=True,
    ),
    Situation(
        "crash",
        "a member crashes with records in hand",
        lambda _: (at(0, Kill(), OneMember(), heal_after=1), at(3, Kill(), OneMember(), heal_after=1)),
        quick=True,
    ),
    Situation(
        "short-freeze",
        "a member freezes for half of its session",
        lambda program: (at(0, Pause(), OneMember(), heal_after=round(program.session_timeout_s / 2, 3)),),
    ),
    Situation(
        "long-freeze",
        "a member freezes past its session, and wakes up",
        lambda program: (at(0, Pause(), OneMember(), heal_after=_past_s(program), expect="fenced"),),
        quick=True,
    ),
    Situation(
        "scale",
        "a member is added, and another one leaves",
        lambda _: (at(0, ScaleOut(), Idle()), at(4, ScaleIn(), OneMember())),
        quick=True,
        spare=1,
    ),
    Situation(
        "coordinator",
        "the coordinator of the group moves twice",
        lambda _: (at(0, MoveCoordinator()), at(3, MoveCoordinator())),
        quick=True,
        brokers=True,
    ),
    Situation(
        "broker-restart",
        "a broker is restarted",
        lambda _: (at(0, Bounce(in_sync=True), Coordinator(), heal_after=2),),
        brokers=True,
    ),
    Situation(
        "broker-freeze",
        "a broker freezes",
        lambda _: (at(0, Pause(), Coordinator(), heal_after=5),),
        brokers=True,
    ),
    Situation(
        "leaders",
        "the leaders of all partitions move",
        lambda _: (at(0, MoveLeaders()),),
        brokers=True,
    ),
    Situation(
        "cut-off",
        "a member is cut off from all brokers past its session",
        lambda program: (at(0, BlackHole(), OneMember(), heal_after=_past_s(program), expect="fenced"),),
    ),
    Situation(
        "slow-network",
        "the network of all members is slow",
        lambda _: (at(0, Latency(delay_ms=200), AllMembers(), heal_after=5),),
    ),
    Situation(
        "partitions",
        "partitions are added to the topics",
        lambda _: (at(0, AddPartitions()),),
        adds_partitions=True,
        brokers=True,
    ),
    Situation(
        "all-down",
        "the whole group is down while records go on",
        lambda _: (at(0, Kill(), AllMembers(), heal_after=3),),
        quick=True,
    ),
)


def chosen(only: Sequence[str] = (), quick: bool = False) -> tuple[Situation, ...]:
    """The situations with these names, or those of the short battery, or all, in the order of the battery.

    Raises:
        ScenarioError: there is no situation of such a name; lists them.
    """
    known = [one.name for one in SITUATIONS]
    if strange := sorted({*only} - {*known}):
        raise ScenarioError(f"there is no situation {strange[0]!r}; there are {', '.join(known)}")
    return tuple(one for one in SITUATIONS if (one.name in only if only else one.quick or not quick))


def scenario(situation: Situation, request: BatteryRequest, program: Program, load: BatteryLoad) -> Scenario:
    """A situation as a scenario."""
    faults = situation.faults(program)
    return build(
        request,
        program,
        f"try {situation.name}",
        f"{situation.title[0].upper()}{situation.title[1:]}.",
        rate_hz=load.rate_hz,
        burst_every_s=BURST_EVERY_S if situation.bursts else 0,
        schedule=(sequence(FIRST_S, *faults),) if faults else (),
        spare=situation.spare,
        added_partitions=situation.adds_partitions,
    )


def together(situations: Sequence[Situation], request: BatteryRequest, program: Program, load: BatteryLoad) -> Scenario:
    """All situations one after the other, as one scenario, with rest between them."""
    parts = [sequence(0, *faults) for situation in situations if (faults := situation.faults(program))]
    return build(
        request,
        program,
        "my program",
        f"{'; '.join(situation.title for situation in situations)}.",
        rate_hz=load.rate_hz,
        burst_every_s=BURST_EVERY_S,
        schedule=(sequence(FIRST_S, *parts, pause_s=AFTER_S + program.session_timeout_s),) if parts else (),
        spare=max(situation.spare for situation in situations),
        added_partitions=any(situation.adds_partitions for situation in situations),
    )


def estimate_s(situations: Sequence[Situation], request: BatteryRequest, program: Program) -> float:
    """About how long a battery takes, in seconds."""
    load = BatteryLoad(1.0, "")
    lasting = (faults_end_s(scenario(one, request, program, load)) + AFTER_S for one in situations)
    return sum(lasting) + AROUND_S * len(situations)
