"""Brokers that are cut off from each other, on a real cluster: the effect measured by somebody else than the witness
(producers, files of replicas, the metadata log), and what the witness says without it.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import confluent_kafka as ck
import pytest

from cluster.worlds import (
    BROKER,
    LONG_S,
    MEMBERS_LINKS,
    Inject,
    Instead,
    World,
    connected,
    healed,
    nothing_to_see,
    nowhere,
    pinged_s,
    with_packets,
    with_rules,
)
from fencepost import runner
from fencepost.checkers.spark.session import Spark
from fencepost.clock import NS, eventually, now_ns
from fencepost.errors import FaultError
from fencepost.evidence.brokers import dump_parser, metadata_log
from fencepost.evidence.brokers.clock_conversion import WallClockConverter
from fencepost.faults import DropPackets, PartitionBrokers
from fencepost.interfaces import Target
from fencepost.interfaces.network import PacketLoss
from fencepost.judging import judge
from fencepost.model import TopicPartition, Validity
from fencepost.model.topic import Topic
from fencepost.network.packets import PacketFilter
from fencepost.processes.owner import ProcessOwner
from fencepost.scenario.scenario import Group, Scenario
from fencepost.schedule.entries import at
from fencepost.targets import coordinator
from fencepost.witnesses.coordinator_location import kept
from fencepost.workloads import PollLoop

pytestmark = [pytest.mark.cluster, pytest.mark.usefixtures("packets_work")]
CUT, OTHERS = 3, {1, 2}
SESSION_S = 3.0  # broker.session.timeout.ms, and replica.lag.time.max.ms


@pytest.fixture
def led(world: World) -> TopicPartition:
    """A partition that is in sync everywhere and led by the broker that is cut off."""
    place = TopicPartition(world.group, 0)
    lead(world, place, CUT)
    return place


@pytest.fixture
def elsewhere(world: World) -> TopicPartition:
    """One that is led by another broker."""
    place = TopicPartition(world.group, 1)
    lead(world, place, 1)
    return place


def lead(world: World, place: TopicPartition, broker: int) -> None:
    everybody = {CUT, *OTHERS}
    in_sync = lambda: set(kept(world)[place]) == everybody  # noqa: E731
    eventually(in_sync, LONG_S, f"all replicas of {place} to be in sync", state=lambda: str(kept(world)))
    world.cluster.admin.move_leader(place, broker)
    eventually(lambda: leader(world, place) == broker, LONG_S, f"broker {broker} to lead {place}")


def leader(world: World, place: TopicPartition) -> int:
    return int(world.cluster.admin.leaders(place.topic)[place.partition])


def taken(world: World, place: TopicPartition, acks: str, value: bytes = b"x") -> bool:
    """Whether a record of a producer that has just come is acknowledged."""
    reported: list[ck.KafkaError | None] = []
    asked = ",".join(world.cluster.bootstrap().split(",")[: len(OTHERS)])  # who is cut off may tell the old leader
    settings = {"bootstrap.servers": asked, "acks": acks, "message.timeout.ms": 4000}
    producer = ck.Producer({**settings, "error_cb": lambda error: None, "log_level": 0})
    producer.produce(place.topic, value, partition=place.partition, on_delivery=lambda error, _: reported.append(error))
    producer.flush(LONG_S)
    return len(reported) == 1 and reported[0] is None


def holds(world: World, broker: int, place: TopicPartition, value: bytes) -> bool:
    """Whether the replica's own file has these bytes."""
    folder = world.cluster.brokers[broker].home / "data" / str(place)
    return any(value in segment.read_bytes() for segment in folder.glob("*.log"))


def broker_changes(world: World) -> list[str]:
    """What the controller recorded of the broker that is cut off."""
    found = list(dump_parser.read(world.cluster.evidence.dump(metadata_log.TOPIC, 0)))
    facts = metadata_log.normalise(found, WallClockConverter(((0, 0),)), ())
    return [fact["change"] for fact in facts if fact["type"] == "broker" and fact["broker"] == CUT]


def test_a_leader_without_followers_takes_what_need_not_be_replicated_and_the_others_go_on(
    world: World, inject: Inject, led: TopicPartition, elsewhere: TopicPartition
) -> None:
    before, value = broker_changes(world), b"nobody else may have it"
    injection = inject(PartitionBrokers(), world, BROKER)
    proven = injection.proven()
    assert proven.took_effect, proven.what
    assert not taken(world, led, "all")
    assert taken(world, led, "1", value)
    assert holds(world, CUT, led, value)
    assert not any(holds(world, broker, led, value) for broker in OTHERS)
    assert taken(world, elsewhere, "all")
    assert set(kept(world)[elsewhere]) == OTHERS
    assert leader(world, led) == CUT
    assert all(pinged_s(world, *link) < LONG_S for link in MEMBERS_LINKS)
    healed(injection)
    eventually(lambda: all(holds(world, broker, led, value) for broker in OTHERS), LONG_S, "the record to be copied")
    assert broker_changes(world) == before  # the controller had it all the time
    assert len(proven.data["links"]) == 8  # two brokers, a connection of each to the other, two directions
    assert all(one["counted"] >= one["lost"] == 20 > one["control_lost"] == 0 for one in proven.data["links"])


def test_cut_off_from_the_controller_a_broker_is_fenced_and_others_lead(
    world: World, inject: Inject, led: TopicPartition
) -> None:
    before = broker_changes(world)
    injection = inject(PartitionBrokers(controller=True), world, BROKER)
    proven = injection.proven()
    assert proven.took_effect, proven.what
    assert broker_changes(world) == [*before, "fenced"]
    assert leader(world, led) in OTHERS
    assert taken(world, led, "all")
    assert all(set(in_sync) <= OTHERS for in_sync in kept(world).values())
    healed(injection)
    assert broker_changes(world) == [*before, "fenced", "unfenced"]
    assert "broker 3 to the controller" in {one["wire"] for one in proven.data["links"]}


@pytest.mark.timeout(600)  # minutes on a slow machine
def test_a_broker_that_is_isolated_from_members_only_leads_on_in_sync(
    world: World, inject: Inject, led: TopicPartition
) -> None:
    before = broker_changes(world)
    injection = inject(DropPackets(), world, BROKER)
    proven = injection.proven()
    assert proven.took_effect, proven.what
    begun_ns = now_ns()
    eventually(lambda: now_ns() - begun_ns > 1.5 * SESSION_S * NS, LONG_S, "longer than a broker's session")
    assert taken(world, led, "all")
    assert set(kept(world)[led]) == {CUT, *OTHERS}
    assert leader(world, led) == CUT
    assert broker_changes(world) == before
    for slot in (0, 1):
        with pytest.raises(TimeoutError):
            connected(world, slot, CUT)
    healed(injection)


RUN = Scenario(
    name="parted brokers",
    topics=[Topic("orders", partitions=6)],
    group=Group(members=3, protocol="consumer", config={"session.timeout.ms": 6000}),
    workload=PollLoop(rate_hz=500),
    schedule=[
        at(2, PartitionBrokers(), coordinator(), heal_after=5),
        at(20, PartitionBrokers(controller=True), coordinator(), heal_after=5),
    ],
    min_records=5_000,
)


@pytest.mark.timeout(600)  # minutes on a slow machine
@pytest.mark.timeout(600)
def test_a_group_whose_coordinator_is_cut_off_twice_keeps_its_promises(tmp_path: Path, chaos_spark: Spark) -> None:
    folder = runner.run(RUN, plan=RUN.plan(3), runs=tmp_path)
    verdict = judge(folder, chaos_spark)
    assert verdict.validity is Validity.VALID, [(c.check, c.reason) for c in verdict.checks]
    reported = [json.loads(line) for line in (folder / "history" / metadata_log.FILE).read_text().splitlines()]
    changes = [fact["change"] for fact in reported if fact["type"] == "broker"]
    assert changes.count("fenced") == 1
    assert any(len(fact["isr"]) == 1 for fact in reported if fact["type"] == "partition")  # a leader without followers


# --- the effect taken away ---------------------------------------------------------------------------------------


def with_in_sync(world: World, reported: dict[int, tuple[int, ...]]) -> World:
    """The administrator tells this of each topic."""
    admin = Instead(world.cluster.admin, in_sync_replicas=lambda topic: reported)
    return replace(world, cluster=Instead(world.cluster, admin=admin))


RULES = {
    "none": (nowhere, "0 of 20 probe packets were lost"),
    "one way is missed": (lambda loss: nowhere(loss) if loss.wire.startswith("broker 1") else loss, "0 of 20"),
    "one direction": (lambda loss: replace(loss, stream="upstream"), "downstream: 0 of 20"),
    "connects only": (lambda loss: replace(loss, connects=True), "0 of 20"),
}


@pytest.mark.parametrize(("change", "reported"), RULES.values(), ids=RULES)
def test_other_rules_are_no_partition(
    world: World, inject: Inject, change: Callable[[PacketLoss], PacketLoss], reported: str
) -> None:
    injection = inject(PartitionBrokers(), with_rules(world, change), BROKER)
    with nothing_to_see():
        evidence = injection.proven()
    assert not evidence.took_effect
    assert reported in evidence.what
    healed(injection)


@pytest.mark.parametrize(
    ("controller", "reported"),
    [(False, {0: (1, 2, 3), 1: (1, 3)}), (True, {0: (1, 2, 3), 1: (1, 2)})],
    ids=["all are in sync across", "one still is"],
)
def test_lost_packets_are_no_partition_while_replicas_are_in_sync_across(
    world: World, inject: Inject, controller: bool, reported: dict[int, tuple[int, ...]]
) -> None:
    injection = inject(PartitionBrokers(controller=controller), with_in_sync(world, reported), BROKER)
    with nothing_to_see():
        evidence = injection.proven()
    assert not evidence.took_effect
    assert "are in sync on both sides" in evidence.what
    assert evidence.data["links"]
    injection.undo()


@pytest.mark.parametrize("reported", [{}, {0: (1, 2)}, {0: (3,), 1: ()}], ids=["nothing", "without it", "it alone"])
def test_where_nothing_is_in_sync_across_there_is_nothing_to_part(
    world: World, reported: dict[int, tuple[int, ...]]
) -> None:
    with pytest.raises(FaultError, match="nothing is in sync between broker-3 and another broker"):
        PartitionBrokers().inject(with_in_sync(world, reported), BROKER)
    assert not world.cluster.packets.lost()


def test_all_brokers_together_have_nobody_to_be_cut_off_from(world: World) -> None:
    with pytest.raises(FaultError, match="nothing is in sync between broker-1, broker-2, broker-3 and another"):
        PartitionBrokers().inject(world, Target(brokers=(1, 2, 3)))


def test_rules_that_stay_are_not_healed(world: World, inject: Inject) -> None:
    injection = inject(PartitionBrokers(), with_packets(world, restore=lambda names: None), BROKER)
    injection.undo()
    with nothing_to_see():
        evidence = injection.healed()
    world.cluster.packets.restore(world.cluster.packets.lost())
    assert not evidence.took_effect
    assert "8 rules are still there" in evidence.what


def test_brokers_that_others_keep_apart_are_not_healed(world: World, inject: Inject) -> None:
    injection = inject(PartitionBrokers(controller=True), world, BROKER)
    assert injection.proven().took_effect
    with ProcessOwner.open() as owner:
        theirs = PacketFilter(owner)
        theirs.lose([PacketLoss("theirs", world.cluster.internal(None, CUT), "upstream")])
        injection.undo()
        with nothing_to_see():
            evidence = injection.healed()
        theirs.restore(theirs.lost())
    assert not evidence.took_effect
    assert "are not in sync as before" in evidence.what
    again = injection.healed()
    assert again.took_effect, again.what
