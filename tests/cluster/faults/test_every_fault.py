"""Every fault once, several in a run: each takes effect, each heals, and a correct group keeps its promises.

What a witness says where the effect is missing is in the tests of each family; what every workload makes of all faults,
in ``test_no_false_alarm``.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from cluster.plans import topic
from fencepost import faults
from fencepost.faults import (
    AddPartitions,
    BlackHole,
    Bounce,
    ChangeAssignor,
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
    ResetOffsets,
    ScaleIn,
    ScaleOut,
    Slice,
    Stall,
)
from fencepost.model.topic import Topic
from fencepost.plugin import Chaos
from fencepost.scenario.scenario import Group, Scenario
from fencepost.schedule.entries import at, past_session
from fencepost.targets import all_members, coordinator, idle, member
from fencepost.workloads import PollLoop

pytestmark = [pytest.mark.cluster, pytest.mark.spark, pytest.mark.core]

CONFIG = {"session.timeout.ms": 6000, "heartbeat.interval.ms": 500, "topic.metadata.refresh.interval.ms": 1000}
# Each of four members is hit by one fault at a time.
LINKS = Scenario(
    name="faults of links",
    topics=[topic("orders", 8)],
    brokers=1,
    group=Group(members=4, protocol="consumer", config=CONFIG),
    workload=PollLoop(rate_hz=500),
    schedule=[
        at(1, Latency(), member(0), heal_after=2),
        at(1, RateLimit(), member(1), heal_after=2),
        at(1, Slice(), member(2), heal_after=2),
        at(1, Refuse(), member(3), heal_after=2),
        at(6, CutConnections(), member(0)),
        at(6, Hold(), member(1), heal_after=2),
        at(6, BlackHole(), member(2), heal_after=2),
    ],
)
PROCESSES = replace(
    LINKS,
    name="faults of members",
    group=Group(members=4, spare=1, config=CONFIG),
    schedule=[
        at(1, Kill(), member(0), heal_after=1),
        at(1, Stall(), member(1), heal_after=3),
        at(4, Pause(), member(2), heal_after=past_session(1.5), expect="fenced"),
        at(4, Bounce(), member(3), heal_after=1),
        at(14, RemoveMember(), member(1)),
        at(16, ScaleOut(), idle()),
        at(19, ScaleIn(), member(0)),
    ],
)
ADMINISTRATOR = replace(
    LINKS,
    name="faults of an administrator",
    topics=[Topic("orders", partitions=8)],
    brokers=3,
    group=Group(members=3, config=CONFIG),
    schedule=[
        at(1, MoveCoordinator()),
        at(2, MoveLeaders()),
        at(4, AddPartitions()),
        at(6, DeleteRecords(keep=200)),
        at(8, ReassignCoordinator(), heal_after=2),
    ],
)
PACKETS = replace(
    ADMINISTRATOR,
    name="faults of packets",
    schedule=[
        at(1, DropPackets(), member(0), heal_after=2),
        at(1, LosePackets(), member(1), heal_after=2),
        at(1, LoseConnects(), member(2), heal_after=2),
        at(8, PartitionBrokers(), coordinator(), heal_after=4),
    ],
)
CHANGES = replace(
    LINKS,
    name="members that change, and what they read is made again",
    topics=[topic("orders", 6), topic("refunds", 2)],
    group=Group(members=3, protocol="eager", config=CONFIG),
    schedule=[
        at(1, ChangeAssignor(), member(0), heal_after=2),
        at(6, ChangeSubscription(), member(1), heal_after=2),
        at(10, RecreateTopic(("refunds",))),
        at(13, ChangeProtocol("consumer"), member(2), heal_after=3),
        at(20, Pause(), all_members(), heal_after=past_session(2)),
        at(27, ResetOffsets()),
    ],
)
NAMES = replace(
    LINKS,
    name="two with one name",
    group=Group(members=2, spare=1, static=True, config=CONFIG),
    schedule=[at(1, DuplicateInstance(), member(0), heal_after=2)],
)
SCENARIOS = (LINKS, PROCESSES, ADMINISTRATOR, PACKETS, CHANGES, NAMES)


def test_no_fault_is_left_out() -> None:
    assert {type(step.fault).__name__ for scenario in SCENARIOS for step in scenario.schedule} == {*faults.__all__}


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.name)
def test_faults_take_effect_and_heal_and_nobody_is_accused(
    chaos: Chaos, scenario: Scenario, lacking_packets: str
) -> None:
    if scenario is PACKETS and lacking_packets:
        pytest.skip(f"packets cannot be lost here: {lacking_packets}")
    run = chaos.run(scenario)
    run.must_keep_its_promises()
    assert len(run.verdict.faults) == len(scenario.schedule)
    assert not [fault for fault in run.verdict.faults if not fault["took_effect"]]
