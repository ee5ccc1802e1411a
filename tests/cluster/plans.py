"""The plans under which planted bugs are looked for. Correct members keep what is promised there."""

from __future__ import annotations

from dataclasses import replace

import pytest

from fencepost.checkers import Commits, Delivery, Order, Ownership, Progress, Rebalances, Recovers
from fencepost.faults import Bounce, Kill, Pause, ScaleOut, Stall
from fencepost.model.topic import Topic
from fencepost.scenario.scenario import Group, Scenario
from fencepost.schedule.entries import at, past_session
from fencepost.targets import idle, member
from fencepost.workloads import DeadLetters, ExclusiveWrites, PollLoop, Requeue, Transform, WorkerPool

SUSPECT = 1
EVERYBODY = ("member-0", "member-1", "member-2")
ALL = (0, 1, 2)
GIVES_UP_S = 8.0  # longer than CALM promises progress within
SESSION = {"session.timeout.ms": 6000, "heartbeat.interval.ms": 500}
STRICT = Delivery("at-least-once", duplicates="only-after-failure")
PROMISES = (Delivery("at-least-once"), Order(by="key"), Ownership(of="processing"), Progress(within_s=30), Commits())


def topic(name, partitions):
    """One of which there is one replica: what is looked for here is members' doing, and one broker starts sooner."""
    return Topic(name, partitions, replication_factor=1)


# Others come back and take partitions over, and nobody is paused: a correct member keeps even the strictest promise.
MOVES = Scenario(
    name="partitions move",
    topics=[topic("orders", 6)],
    brokers=1,
    group=Group(members=3, config=SESSION),
    workload=PollLoop(rate_hz=1000, batch=100, keys=60),
    schedule=[at(1, Bounce(), member(0), heal_after=1)],
    promises=PROMISES,
    min_records=11_000,
    chaos_s=90,  # a ceiling that only a slow machine comes near
)

# Handlers as slow as they may be keep the victim in the middle of a poll's records nearly all the time, and seldom in
# the middle of a commit, of which nothing would be left to do again.
DEATH = replace(
    MOVES,
    name="a member dies at work",
    workload=PollLoop(rate_hz=600, batch=100, handler_ms=4.8, commit_every_ms=1000),
    schedule=[at(3, Kill(), member(SUSPECT), heal_after=1)],
    min_records=3_000,
)

# Who commits first does nothing twice, and loses what it has in hand.
AT_MOST_ONCE = replace(
    DEATH,
    name="a member dies that commits first",
    workload=replace(DEATH.workload, commit="before-processing"),
    promises=tuple(PollLoop(commit="before-processing").promises()),
)

# The client commits by itself, soon after a record is done.
AUTOMATIC = replace(
    DEATH,
    name="a member dies whose client commits by itself",
    workload=replace(DEATH.workload, commit="auto", commit_every_ms=50),
)

# Nobody waits for commits, and there is one on its way nearly always.
ASYNCHRONOUS = replace(
    DEATH,
    name="a member dies that does not wait for commits",
    workload=replace(DEATH.workload, commit="asynchronous", commit_every_ms=20),
)

# Members hand records to threads, which have some in hand nearly always.
HANDED_OVER = replace(
    MOVES,
    name="partitions move while threads are at work",
    workload=WorkerPool(workers=4, handler_ms=8, rate_hz=600, batch=100, keys=60),
    min_records=5_000,
)

# Five keys of a partition share its records, so one of them is often behind the others; and each is slow, so a member
# dies with such a one in hand.
SIDE_BY_SIDE = replace(
    DEATH,
    name="a member dies while threads are at work",
    workload=WorkerPool(lanes="key", handler_ms=200, rate_hz=90, batch=20, keys=30, commit_every_ms=1),
    min_records=600,
)

# Nothing happens, so what is seen is the bug's own doing; and progress is promised within so short a time as a drain
# takes in which a group gets nowhere.
CALM = replace(
    MOVES,
    name="nothing happens",
    topics=[topic("orders", 6), topic("refunds", 2)],
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

# The same, and it catches up soon: records of its partitions wait for no longer than others did before.
CATCHES_UP = replace(
    MOVES,
    name="a member comes back and catches up",
    promises=(*PROMISES, Recovers(first_record_within_s=30, lag_normal_within_s=6)),
    min_records=14_000,
)

# A member that commits each second, or after the records of a poll, loses what it did in about 1.5 s, or 300 records.
LITTLE_TWICE = replace(
    DEATH,
    name="a member dies, and little is done twice",
    schedule=[at(6, Kill(), member(SUSPECT), heal_after=1)],
    promises=(*PROMISES, Recovers(duplicates_per_disruption=600)),
    min_records=6_000,
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

# One of four transactions is aborted: members are given the other three.
ABORTS = replace(
    CALM,
    name="some of what is written is aborted",
    workload=PollLoop(rate_hz=1000, batch=100, keys=60, transaction_records=200, abort_every=4),
    promises=PROMISES,
    min_records=5_000,
)

# What assignors deal. The drain is rest enough.
NARROW = replace(
    CALM,
    name="many narrow topics",
    topics=[topic(f"narrow-{number}", 2) for number in range(4)],
    promises=(*PROMISES, Rebalances(balanced=True)),
    min_records=14_000,
)

# Nobody dies: a rebalance lasts for as long as members take for it.
SOON = replace(
    MOVES, name="rebalances are over soon", promises=(*PROMISES, Rebalances(pause_within_s=10)), min_records=18_000
)

# The group rests for 5 s before a static member goes, and after it is back.
STATIC = replace(
    CALM,
    name="a static member is soon back",
    group=Group(members=3, static=True, config=SESSION),
    schedule=[at(8, Bounce(), member(SUSPECT), heal_after=1)],
    promises=(*PROMISES, Rebalances(static=True)),
    min_records=24_000,
)

# The group rests for 5 s before another member comes, and after it.
GROWS = replace(
    CALM,
    name="a member comes",
    topics=[topic("orders", 8)],
    group=Group(members=3, spare=1, config=SESSION),
    schedule=[at(9, ScaleOut(), idle())],
    promises=(*PROMISES, Rebalances(balanced=True, sticky=True)),
    min_records=26_000,
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

# A burst is more than members can do between two polls, and a poll brings no more of it than they can.
STORM_S = 20.0  # longer than progress is promised within
BURSTS = replace(
    BOUNDED,
    name="load comes in bursts",
    workload=PollLoop(commit="after-batch", rate_hz=150, handler_ms=15, batch=50, burst_every_s=6),
    promises=(*PROMISES[:2], Ownership(of="assignment"), Progress(within_s=10), Commits()),
    min_records=2_000,
)

# What one member cannot do in time comes again, behind all that is there, and again if it is not over by then.
COMES_AGAIN = replace(
    BOUNDED,
    name="records take too long, and are re-queued",
    workload=Requeue(rate_hz=300, handler_ms=2, batch=4),
    schedule=[at(1, Stall(), member(SUSPECT), heal_after=6)],
    promises=tuple(Requeue().promises()),
    min_records=4_000,
)

# A member is slow in a critical section: it is put out of the group, and its lease is over, long before it writes. All
# others are quick, for a busy member of the consumer protocol may lose what it has (docs/limits.md).
CRITICAL = replace(
    BOUNDED,
    name="a member is slow in a critical section",
    workload=ExclusiveWrites(rate_hz=100, handler_ms=1, batch=20),
    schedule=[at(1, Stall(), member(SUSPECT), heal_after=16, expect="fenced")],
    promises=tuple(ExclusiveWrites().promises()),
    min_records=1_200,
)

# A member is put out of the group while it cannot hear of it, and commits what it has in hand as it wakes, before it
# hears. It has work in hand nearly always, and commits each record: it may be put to sleep in the middle of a commit,
# and that one is answered as if nothing were.
ZOMBIE = replace(
    DEATH,
    name="a member wakes late",
    group=Group(members=3, config={**SESSION, "session.timeout.ms": 3000}),
    workload=PollLoop(rate_hz=42, batch=20, handler_ms=70, commit_every_ms=1),
    schedule=[at(2, Pause(), member(SUSPECT), heal_after=past_session(1.5), expect="fenced")],  # with a record in hand
    promises=(*PROMISES[:2], Ownership(of="assignment"), *PROMISES[3:]),
    min_records=300,
)

# A member stands still with a record in hand, long enough for others to come to that; a supervisor ends it before. It
# has one in hand nearly always, so it happens twice.
WATCHED = replace(
    ZOMBIE,
    name="a member stands still, and a supervisor kills it",
    workload=ExclusiveWrites(fence="supervisor", overdue_ms=1700, rate_hz=40, handler_ms=70, batch=10),
    schedule=[at(s, Pause(), member(SUSPECT), heal_after=past_session(3)) for s in (1, 13)],
    promises=tuple(ExclusiveWrites().promises()),
    min_records=600,
)

# Nobody kills it: it wakes in the middle of a critical section, when others have long had its lease.
ASLEEP = replace(
    WATCHED,
    name="a member stands still in a critical section",
    workload=ExclusiveWrites(rate_hz=40, handler_ms=70, batch=10),
    schedule=[replace(step, expect="fenced") for step in WATCHED.schedule],
)

# A member is put out of the group and comes back; then another one makes room, and takes partitions from it again.
RETURNS = replace(
    MOVES,
    name="a member is put out, then partitions move",
    schedule=[
        at(1, Pause(), member(SUSPECT), heal_after=past_session(1.5), expect="fenced"),
        at(15, Bounce(), member(0), heal_after=1),
    ],
    promises=(*PROMISES[:2], Ownership(of="assignment"), *PROMISES[3:]),
    min_records=26_000,
)


# Two members die, each of them nearly always with something written that is not committed yet.
WRITTEN = replace(
    DEATH,
    name="members die that write to another topic",
    group=Group(members=3, config={**SESSION, "session.timeout.ms": 3000}),  # the group is at work again soon
    workload=Transform(rate_hz=100, handler_ms=1, batch=100),
    schedule=[at(2, Kill(), member(SUSPECT), heal_after=1), at(10, Kill(), member(2), heal_after=1)],
    promises=tuple(Transform().promises()),
    min_records=1_500,
)

# Rebalances at the start abort transactions, and what was processed in these counts until it is judged.
PEACEFUL_WRITES = replace(WRITTEN, name="nothing happens to members that write", schedule=[], min_records=3_000)


def hopeless(name, **options):
    """The same where one of fifty records cannot be processed."""
    letters = DeadLetters(rate_hz=300, handler_ms=1, batch=50, **options)
    return replace(WRITTEN, name=name, workload=letters, promises=tuple(letters.promises()), min_records=4_000)


HOPELESS = hopeless("members die that write dead letters")

# The coordinator waits for everybody: who was given a partition twice is not known to have had it all the time.
PEACEFUL_LETTERS = replace(
    HOPELESS,
    name="nothing happens to members that write dead letters",
    schedule=[],
    broker_config={"group.initial.rebalance.delay.ms": 3000},
)

# What comes after a record that was parked, under its key, is parked behind it, by whoever has the partition then.
HOPELESS_KEYS = hopeless("members die that keep the order of dead letters", keep_order=True)

# Likewise, until what was parked was retried. That takes longer than the group without a member.
HOPELESS_FOR_NOW = replace(
    hopeless("members die that keep the order of what is retried", keep_order=True, keys=1500, retried_after_ms=8000),
    min_records=7_000,  # keys are free again, too
)

# Dead letters and offsets in one transaction: whoever dies, a record has one letter. That is retried, in no order.
HOPELESS_ONCE = hopeless(
    "members die that write dead letters in transactions", commit="transaction", retried_after_ms=2000
)

# A member is put out of the group in the middle of a transaction, and ends it as it wakes, before it hears. Members are
# never done with what there is, so they are in one nearly always; not when they commit, so it happens twice. A poll
# takes 1.2 s, and the next owner comes to what it was given only with the one after it: hence its length.
LATE_WRITES = replace(
    ZOMBIE,
    name="a member wakes late in a transaction",
    workload=Transform(rate_hz=48, handler_ms=60, batch=20),
    schedule=[at(s, Pause(), member(SUSPECT), heal_after=past_session(3), expect="fenced") for s in (1, 13)],
    promises=tuple(Transform().promises()),
)

WRITING = (WRITTEN, HOPELESS_KEYS, HOPELESS_FOR_NOW, HOPELESS_ONCE, COMES_AGAIN, CRITICAL)


def under(protocol: str, scenario: Scenario) -> Scenario:
    """A scenario with another protocol of the group."""
    return replace(scenario, group=replace(scenario.group, protocol=protocol))


def with_core(values, core):
    """Values as parameters, of which those of ``core`` belong to ``make test``; a tuple is several parameters."""
    assert set(core) <= set(values), set(core) - set(values)
    several = {value: value if isinstance(value, tuple) else (value,) for value in values}
    return [pytest.param(*several[value], marks=pytest.mark.core if value in core else ()) for value in values]
