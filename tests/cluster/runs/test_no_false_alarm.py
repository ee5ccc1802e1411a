"""A correct group under plans drawn from many seeds is never accused: an alarm would be the checkers' own defect.

Seeds draw what happens, or the order in which each workload meets every fault. Each night draws other plans, from
``--chaos-seed``. Nothing of any run is left behind.
"""

from __future__ import annotations

import random
import sys
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from cluster import subscriber
from cluster.contract import History
from cluster.defects import behind
from cluster.killing import left_of
from fencepost.faults import (
    AddPartitions,
    BlackHole,
    Bounce,
    ChangeProtocol,
    ChangeSubscription,
    CutConnections,
    DeleteRecords,
    DropPackets,
    DuplicateInstance,
    Hold,
    Kill,
    Latency,
    LoseConnects,
    LosePackets,
    MoveCoordinator,
    MoveLeaders,
    PartitionBrokers,
    Pause,
    RateLimit,
    ReassignCoordinator,
    RecreateTopic,
    Refuse,
    RemoveMember,
    ScaleIn,
    ScaleOut,
    Slice,
    Stall,
)
from fencepost.model import Severity
from fencepost.model.clients import CONFLUENT
from fencepost.model.settings import PROTOCOLS
from fencepost.model.topic import Topic
from fencepost.scenario.scenario import Group, Scenario
from fencepost.schedule.combinators import together
from fencepost.schedule.entries import at, past_session
from fencepost.schedule.swarm import swarm
from fencepost.targets import coordinator, idle, one_member
from fencepost.workloads import DeadLetters, ExclusiveWrites, OwnProgram, PollLoop, Requeue, Transform, WorkerPool

pytestmark = [pytest.mark.cluster, pytest.mark.spark]


def polled(commit="after-processing"):
    return PollLoop(commit=commit, rate_hz=2000, batch=200)


@dataclass(frozen=True)
class Variant:
    """What correct groups differ in.

    Attributes:
        workload: the promises are those that it may be expected to keep.
        static: members have names of their own.
        coordinator: it may move or stand still. There this library's client is not correct when it commits by itself
            (it tries a refused commit again after a later one, and the group goes back if it dies then), nor as a
            static member (it takes itself for evicted, gives up its member id and is fenced by its own name, while the
            new coordinator began to count its session anew).
        client: the library that its members use.
        program: they are this program of their own, which is given the protocol.
        defect: what is told of members that end by a defect of the client which the other faults show as well, if
            seldom: a static member that stood still while its connections were cut commits under its former member id.
    """

    name: str
    workload: Any = field(default_factory=polled)
    static: bool = False
    coordinator: bool = True
    client: str = CONFLUENT
    program: str = ""
    defect: str = ""
    protocols: tuple[str, ...] = PROTOCOLS

    def __str__(self) -> str:
        return self.name


VARIANTS = (  # the seeds take turns
    Variant("after-processing"),
    Variant("auto", polled("auto"), coordinator=False),
    Variant("before-processing", polled("before-processing")),
    Variant(
        "static", static=True, coordinator=False, defect="its client had reported a fatal error (FENCED_INSTANCE_ID)"
    ),
    Variant("transform", Transform(rate_hz=1000)),
    Variant("dead-letters", DeadLetters(rate_hz=1000, keep_order=True)),
    Variant("requeue", Requeue(rate_hz=500, batch=5)),
)
WORKLOADS = (
    *VARIANTS,
    Variant("after-batch", polled("after-batch")),
    Variant("transform-apart", Transform(rate_hz=1000, commit="after-processing")),  # without transactions
    Variant("letters", DeadLetters(rate_hz=1000)),
    Variant("letters-in-transactions", DeadLetters(rate_hz=1000, commit="transaction")),
    # So few that three brokers can do it, of a transaction that is over before a fault although its records are slow.
    Variant("requeue-in-transactions", Requeue(rate_hz=25, batch=2, commit="transaction")),
    Variant("retried", DeadLetters(rate_hz=1000, keep_order=True, keys=5000, retried_after_ms=2000)),
    Variant("asynchronous", polled("asynchronous")),
    Variant("backpressure", PollLoop(rate_hz=1000, backpressure="pause")),
    Variant("relinquish", PollLoop(rate_hz=500, batch=20, deadline_ms=2000)),
    Variant("pool", WorkerPool(rate_hz=1000)),
    Variant("pool-that-delays", WorkerPool(rate_hz=1000, handler_ms=5, delay_revoke=True), protocols=PROTOCOLS[1:]),
    Variant("pool-of-keys", WorkerPool(rate_hz=1000, lanes="key")),
    Variant("exclusive", ExclusiveWrites(handler_ms=1)),
    Variant("supervised", ExclusiveWrites(handler_ms=1, fence="supervisor")),
    Variant("own-program", OwnProgram(rate_hz=500), program=subscriber.__file__),
    Variant("aiokafka", client="aiokafka", protocols=("eager",)),
    Variant("kafka-python", client="kafka-python==2.3.3", protocols=("eager",)),  # those of 3.0 forget more
)
OF_OUR_LOOP = (Stall, ChangeSubscription, ChangeProtocol)  # it is told to do otherwise, and programs cannot be
NEED_BROKERS = (MoveCoordinator, MoveLeaders, PartitionBrokers, ReassignCoordinator)  # and what hits a broker
MIGRATES = {"eager": "consumer", "consumer": "eager"}  # groups of the other protocol cannot be converted
FIRST_SEED = 20_261_121  # without ``--chaos-seed``
SWARMS, HANDFULS = 24, 72  # the number of plans of one night
BEGIN_S = 2.0
STEPS, WITHIN_S = 3, 6.0  # of a handful, within so short a time that they meet each other
TIMES = {"session.timeout.ms": 6000, "max.poll.interval.ms": 8000}
OF_BROKERS = "stale-offset-answer"  # a coordinator's doing, by the requests that it answered
HEARS_MS = 1000  # how often members look for new partitions


@pytest.fixture(autouse=True)
def nothing_left(owners):
    """No process, packet rule or temporary file of what owned a run is left after it."""
    yield
    assert owners
    assert not [left for owner in owners for left in left_of(owner.token)]
    assert not [owner.directory for owner in owners if owner.directory.exists()]


def variant_of(seed):
    """Whose turn it is."""
    return VARIANTS[seed % len(VARIANTS)]


def may_happen(variant, packets=True):
    """Steps, each at no time: what a correct group of this variant goes through unharmed."""
    # Until its session is over, nobody may come back under the name of a static member that was killed (KIP-848).
    reborn = past_session(1.2) if variant.static else 2
    # Longer than members may go without a poll, but for static ones: this library's client forgets its member id then,
    # commits without it, and is fenced by its own name.
    stalled = 3 if variant.static else past_session(1.5)
    members = [
        (BlackHole(), one_member(), 3),
        (Pause(), one_member(), past_session(1.2)),
        (Kill(), one_member(), reborn),
        (Bounce(), one_member(), 1),
        (Hold(), one_member(), past_session(1.2)),
        (Hold(direction="from"), one_member(), 3),
        (CutConnections(), one_member(), None),
        (Refuse(), one_member(), 3),
        (Latency(delay_ms=300), one_member(), 3),
        (RateLimit(), one_member(), 3),
        (Slice(), one_member(), 3),
        *([] if variant.static else [(RemoveMember(), one_member(), None)]),  # which has not been tried often yet
        (Stall(), one_member(), stalled),
        (ScaleOut(), idle(), None),
        *([] if variant.static else [(ScaleIn(), one_member(), None)]),
    ]
    topics = [(MoveLeaders(), None, None), (AddPartitions(), None, None)]
    if not isinstance(variant.workload, Requeue):  # of whose copies nothing might be left to judge
        topics.append((DeleteRecords(keep=200), None, None))
    lost = [(DropPackets(), one_member(), 3), (LosePackets(), one_member(), 3), (LoseConnects(), one_member(), 3)]
    brokers = [(MoveCoordinator(), None, None), (ReassignCoordinator(), None, 3), (Pause(), coordinator(), 2)]
    kinds = [*members, *topics, *(brokers if variant.coordinator else ()), *(lost if packets else ())]
    return steps_of(kinds)


def lasting(variant):
    """Likewise, what takes too long to be drawn by swarms.

    Not resets of offsets, for which nobody may be in the group, nor the wrong way to another assignor, which does harm.
    """
    if variant.static:
        return steps_of([(ChangeSubscription(), one_member(), 3), (DuplicateInstance(), one_member(), 3)])
    migrations = [(ChangeProtocol(to), one_member(), 4) for to in MIGRATES.values() if to in variant.protocols]
    return steps_of([(ChangeSubscription(), one_member(), 3), *migrations])


def alone(variant):
    """Likewise, what meets nothing else: nothing is done at a coordinator that is cut off, and this library's client,
    told of a topic that was made again after its leaders had moved, may never fetch from it (an open defect)."""
    cut_off = [(PartitionBrokers(), coordinator(), 4)] if variant.coordinator else []
    by_offset = isinstance(variant.workload, (Requeue, ExclusiveWrites))  # so their copies, or stores, know records
    return steps_of([*cut_off, *([] if by_offset else [(RecreateTopic(("refunds",)), None, None)])])


def steps_of(kinds):
    """Each at no time, and not required."""
    return [at(0, fault, target, heal_after=heal_after, required=False) for fault, target, heal_after in kinds]


def asked(protocol, variant, *schedule, brokers=3):
    """A group of this variant, to which this is done from ``BEGIN_S`` on; what re-queues has something slow before."""
    topics = [
        Topic(name, partitions, replication_factor=brokers) for name, partitions in (("orders", 8), ("refunds", 3))
    ]
    own = variant.client == CONFLUENT  # which has a name of its own for it
    slow = [at(0, Stall(), one_member(), heal_after=BEGIN_S)] if isinstance(variant.workload, Requeue) else []
    return Scenario(
        name=f"no false alarm, {protocol}, {variant}",
        topics=topics,
        brokers=brokers,
        group=Group(
            members=4,
            spare=1,
            client=variant.client,
            command=[sys.executable, variant.program, protocol] if variant.program else (),
            protocol=protocol,
            static=variant.static,
            config=TIMES | {"topic.metadata.refresh.interval.ms" if own else "metadata.max.age.ms": HEARS_MS},
        ),
        workload=variant.workload,
        schedule=[*slow, *schedule],
        chaos_s=60,
    )


def scenario(protocol, variant, packets):
    """Two phases of three or four steps, each of some kinds only; the seed says what is done when, and to whom.

    ``packets``: whether they can be lost on this machine; where they cannot, the seed says something else.
    """
    steps = may_happen(variant, packets)
    return asked(protocol, variant, swarm(20, *steps, at_s=BEGIN_S, until_s=24, phase_s=10, quiet_s=2))


def fits(step, variant, protocol):
    """Whether groups of this variant and protocol can be hit by it."""
    if variant.program and isinstance(step.fault, OF_OUR_LOOP):
        return False
    return not isinstance(step.fault, ChangeProtocol) or step.fault.to == MIGRATES.get(protocol)


def brokers_for(steps, number):
    """One where nothing asks for others, which takes half of the time; but for each fifth plan."""
    others = any(isinstance(step.fault, NEED_BROKERS) or step.target == coordinator() for step in steps)
    return 3 if others or number % 5 == 0 else 1


def handfuls(variant, seed):
    """All that may happen, in an order that the seed says, so many steps at a time and each of them at some moment:
    a protocol, and steps that groups of it can be hit by."""
    chance = random.Random(f"{variant}, {seed}")
    steps = [*may_happen(variant), *lasting(variant)]
    chance.shuffle(steps)
    moved = [replace(step, at_s=round(chance.uniform(0, WITHIN_S), 1)) for step in steps]
    taken = [moved[first : first + STEPS] for first in range(0, len(moved), STEPS)]
    taken += [[step] for step in alone(variant)]
    protocols = [variant.protocols[(seed + number) % len(variant.protocols)] for number in range(len(taken))]
    return [(one, [s for s in steps if fits(s, variant, one)]) for one, steps in zip(protocols, taken, strict=True)]


def every_handful(seed):
    """Variant, seed and number of all handfuls that hit somebody."""
    return [
        (variant, seed, number)
        for variant in WORKLOADS
        for number, (_, steps) in enumerate(handfuls(variant, seed))
        if steps
    ]


def pytest_generate_tests(metafunc):
    """Draw the plans of this night."""
    first = int(metafunc.config.getoption("--chaos-seed") or FIRST_SEED)
    if "number" in metafunc.fixturenames:
        drawn = random.Random(first).sample(every_handful(first), HANDFULS)
        metafunc.parametrize(("variant", "seed", "number"), drawn, ids=str)
    elif "protocol" in metafunc.fixturenames:
        plans = [(PROTOCOLS[number % len(PROTOCOLS)], first + number) for number in range(SWARMS)]
        metafunc.parametrize(("protocol", "seed"), plans)


def must_be_valid(chaos, scenario, seed, defect):
    """A run of it, which must be valid; but for what members are accused of that had ended by a defect of their client,
    for what the history shows to be the doing of another one, and for what brokers are accused of."""
    run = chaos.run(scenario, seed=seed)
    found = [f for check in run.verdict.checks for f in check.findings if f.severity is Severity.VIOLATION]
    if found:
        history = History.of(run.folder, protocol=scenario.group.protocol)
        assert all(sum(example["count"] for example in f.examples) == f.count for f in found), run.verdict
        reasons = [
            f.kind
            if f.kind == OF_BROKERS
            else defect
            if defect and defect in example["sentence"]
            else behind(history, f.kind, example)
            for f in found
            for example in f.examples
        ]
        assert all(reasons), run.verdict
        pytest.xfail("; ".join(dict.fromkeys(reasons)))
    run.must_keep_its_promises()


def test_a_correct_group_is_never_accused(chaos, protocol, seed, lacking_packets):
    variant = variant_of(seed)
    must_be_valid(chaos, scenario(protocol, variant, packets=not lacking_packets), seed, variant.defect)


@pytest.mark.usefixtures("packets_work")
def test_every_workload_meets_every_fault_and_is_never_accused(chaos, variant, seed, number):
    protocol, steps = handfuls(variant, seed)[number]
    brokers = brokers_for(steps, number)
    must_be_valid(chaos, asked(protocol, variant, together(BEGIN_S, *steps), brokers=brokers), seed, variant.defect)
