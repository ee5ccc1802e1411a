"""The plans under which planted bugs are looked for. Correct members keep what is promised there."""

from __future__ import annotations

from dataclasses import replace

from fencepost.checkers import Commits, Delivery, Order, Ownership, Progress
from fencepost.faults import Bounce, Kill, Pause
from fencepost.scenario import Group, Scenario, Topic
from fencepost.schedule import at, past_session
from fencepost.targets import member
from fencepost.workloads import PollLoop

SUSPECT = 1
EVERYBODY = ("member-0", "member-1", "member-2")
NOBODY = ("",)
ALL = (0, 1, 2)
GIVES_UP_S = 8.0  # longer than CALM promises progress within
SESSION = {"session.timeout.ms": 6000, "heartbeat.interval.ms": 500}
STRICT = Delivery("at-least-once", duplicates="only-after-failure")
PROMISES = (Delivery("at-least-once"), Order(by="key"), Ownership(of="processing"), Progress(within_s=30), Commits())

# Others come back and take partitions over, and nobody is paused: a correct member keeps even the strictest promise.
MOVES = Scenario(
    name="partitions move",
    topics=[Topic("orders", partitions=6)],
    group=Group(members=3, config=SESSION),
    workload=PollLoop(rate_hz=1000, batch=100, keys=60),
    schedule=[at(1, Bounce(), member(0), heal_after=1)],
    promises=PROMISES,
    min_records=11_000,
    chaos_s=90,  # a ceiling that only a slow machine comes near
)

# Slow handlers keep the victim in the middle of a poll's records nearly all the time.
DEATH = replace(
    MOVES,
    name="a member dies at work",
    workload=PollLoop(rate_hz=600, batch=100, handler_ms=4),
    schedule=[at(3, Kill(), member(SUSPECT), heal_after=1)],
    min_records=3_000,
)

# Nothing happens, so what is seen is the bug's own doing; and progress is promised within so short a time as a drain
# takes in which a group gets nowhere.
CALM = replace(
    MOVES,
    name="nothing happens",
    topics=[Topic("orders", partitions=6), Topic("refunds", partitions=2)],
    schedule=[],
    promises=(*PROMISES[:3], Progress(within_s=5), Commits()),
    min_records=8_000,
)

# Who takes over what a member had, or has it again, is at work on it soon.
RECOVERS = replace(
    MOVES,
    name="a member comes back",
    promises=(*PROMISES[:3], Progress(within_s=30, recovers_within_s=6), Commits()),
)

# One member stands still for long, but not for so long that it is put out of the group: nobody else has to stop.
FROZEN = replace(
    CALM,
    name="a member is frozen for a while",
    group=Group(members=3, config={**SESSION, "session.timeout.ms": 30_000}),
    schedule=[at(0.5, Pause(), member(0), heal_after=14)],
    promises=(*PROMISES[:3], Progress(within_s=6), Commits()),
    min_records=3_000,
)

CALM_FOR_LONG = replace(CALM, min_records=12_000)

# Who works for longer on one poll than members may is put out of the group.
BOUNDED = replace(
    CALM,
    name="members have to poll in time",
    group=Group(members=3, config={**SESSION, "session.timeout.ms": 3000, "max.poll.interval.ms": 3000}),
    promises=PROMISES,
    min_records=11_000,
)

# A member is put out of the group while it cannot hear of it; with work in hand, so that it commits first.
ZOMBIE = replace(
    DEATH,
    name="a member wakes late",
    group=Group(members=3, config={**SESSION, "session.timeout.ms": 3000}),
    schedule=[at(1, Pause(), member(SUSPECT), heal_after=past_session(1.5), expect="fenced")],
    promises=(*PROMISES[:2], Ownership(of="assignment"), *PROMISES[3:]),
)


def under(protocol: str, scenario: Scenario) -> Scenario:
    """A scenario with another protocol of the group."""
    return replace(scenario, group=replace(scenario.group, protocol=protocol))
