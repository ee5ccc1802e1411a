"""Members that subscribe to other topics while they live: the effect measured at the coordinator, at the members and in
what is committed, and what the witness says without it.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from cluster.conftest import consuming
from cluster.plans import topic
from cluster.worlds import LONG_S, MEMBER, ON_CLUSTER, Inject, Instead, World, bounded, nothing_to_see, requests_by
from fencepost import Group, Scenario, at, when
from fencepost.clock import eventually
from fencepost.clusters.managed_cluster import ManagedCluster
from fencepost.faults import AddPartitions, ChangeSubscription, ScaleOut
from fencepost.interfaces import Target
from fencepost.model import TopicPartition, Validity
from fencepost.model.settings import PROTOCOLS
from fencepost.processes.owner import ProcessOwner
from fencepost.states import joining, revoking
from fencepost.targets import all_members, idle, member
from fencepost.workloads import PollLoop

pytestmark = ON_CLUSTER

BOTH = Target(members=(0, 1))


@pytest.fixture(params=["eager", "cooperative", "consumer"])
def world(
    cluster: ManagedCluster,
    session_owner: ProcessOwner,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    request: pytest.FixtureRequest,
) -> Iterator[World]:
    """A group of two topics, for one test, once it rests.

    (With the consumer protocol librdkafka 2.16 may never give up what it drops while an assignment is being applied.)
    """
    bounded(monkeypatch, LONG_S)
    name = f"subscribed-{tmp_path.name}"
    with consuming(cluster, session_owner, tmp_path, name, request.param, more=(f"{name}-more",)) as world:
        rest(world)
        yield world


def rest(world: World) -> None:
    """Wait until no rebalance is under way: during one, a coordinator tells nothing of subscriptions."""
    since_ns = time.time_ns()  # as the brokers' logs tell it
    eventually(lambda: all(rests(world, slot, since_ns) for slot in (0, 1)), LONG_S, "the group to rest")


def rests(world: World, slot: int, since_ns: int) -> bool:
    """Whether the last three heartbeats of a member since then neither told of partitions nor were told of any."""
    beats = [one for one in requests_by(world, slot) if "HEARTBEAT" in one["api"] and one["start_ns"] > since_ns][-3:]
    return len(beats) == 3 and not any(one["error"] or one["owned"] or one["assignment"] for one in beats)


def partitions(topic: str) -> set[TopicPartition]:
    return {TopicPartition(topic, p) for p in range(4)}


def owned(world: World, number: int) -> frozenset[TopicPartition]:
    world.view()
    found: frozenset[TopicPartition] = world.members[number].owned
    return found


def committed(world: World, topic: str) -> int:
    return sum(offset for tp, offset in world.cluster.admin.committed(world.group).items() if tp.topic == topic)


def goes_on(world: World, topic: str) -> None:
    before = committed(world, topic)
    eventually(lambda: committed(world, topic) > before + 50, LONG_S, f"the group to commit more of {topic}")


def test_who_drops_a_topic_lives_on_without_it_and_another_one_takes_over(world: World, inject: Inject) -> None:
    (dropped,) = world.more
    life, pid = world.members[1].life, world.members[1].pid
    injection = inject(ChangeSubscription(), world, MEMBER)
    proven = injection.proven()
    assert proven.took_effect, proven.what
    assert proven.data == {"topics": {"member-1": [world.group]}}
    eventually(lambda: partitions(dropped) <= owned(world, 0), LONG_S, "the other one to own what was dropped")
    assert {tp.topic for tp in owned(world, 1)} <= {world.group}
    goes_on(world, dropped)
    injection.undo()
    injection.undo()
    healed = injection.healed()
    assert healed.took_effect, healed.what
    assert healed.data == {"topics": {"member-1": sorted((world.group, dropped))}}
    goes_on(world, dropped)  # whoever owns it now: a sticky assignor need not move anything back
    assert (life, pid) == (world.members[1].life, world.members[1].pid)
    assert [e["detail"]["topics"] for e in world.members[1].reported("subscribed")] == [
        [world.group],
        sorted((world.group, dropped)),
    ]


def test_what_nobody_wants_waits_and_is_consumed_later(world: World, inject: Inject) -> None:
    (dropped,) = world.more
    goes_on(world, dropped)
    injection = inject(ChangeSubscription((dropped,)), world, BOTH)
    proven = injection.proven()
    assert proven.took_effect, proven.what
    eventually(lambda: not {dropped} & {tp.topic for m in (0, 1) for tp in owned(world, m)}, LONG_S, "nobody to own it")
    goes_on(world, world.group)  # commits of the revoked callbacks are over
    before = committed(world, dropped)
    goes_on(world, world.group)
    assert committed(world, dropped) == before
    injection.undo()
    healed = injection.healed()
    assert healed.took_effect, healed.what
    goes_on(world, dropped)


@pytest.mark.parametrize("world", ["cooperative", "consumer"], indirect=True)
def test_who_was_not_told_subscribes_as_before(world: World, inject: Inject) -> None:
    deaf = Instead(world.members[1], reconfigure=lambda **changes: None)
    injection = inject(ChangeSubscription(), replace(world, members=[world.members[0], deaf]), MEMBER)
    with nothing_to_see():
        evidence = injection.proven()
    assert not evidence.took_effect
    assert f"member-1 subscribes to {', '.join(sorted(world.topics))}" in evidence.what


@pytest.mark.parametrize("world", ["cooperative", "consumer"], indirect=True)
def test_who_does_not_take_it_back_is_not_healed_unless_it_ended(world: World, inject: Inject) -> None:
    reported = iter([world.members[1].reconfigure])
    deaf = Instead(world.members[1], reconfigure=lambda **changes: next(reported, lambda **_: None)(**changes))
    injection = inject(ChangeSubscription(), replace(world, members=[world.members[0], deaf]), MEMBER)
    assert injection.proven().took_effect
    injection.undo()
    rest(world)
    with nothing_to_see():
        evidence = injection.healed()
    assert not evidence.took_effect
    assert f"member-1 subscribes to {world.group}" in evidence.what
    world.members[1].signal(9)
    world.members[1].wait_ended(LONG_S)
    assert injection.healed().took_effect


@pytest.mark.parametrize("world", ["consumer"], indirect=True)
def test_nothing_is_proven_of_who_has_just_died(world: World, inject: Inject) -> None:
    world.members[1].signal(9)
    world.members[1].wait_ended(LONG_S)
    with nothing_to_see():
        assert not inject(ChangeSubscription(), world, MEMBER).proven().took_effect


def events(run: Any, kind: str) -> list[dict[str, Any]]:
    rows = pq.read_table(run.folder / "history" / "events.parquet").to_pylist()
    return [{**row, "detail": json.loads(row["detail"])} for row in rows if row["kind"] == kind]


def scenario(protocol: str, *schedule: Any, spare: int = 0, **config: Any) -> Scenario:
    return Scenario(
        name=f"subscriptions, {protocol}",
        topics=[topic("orders", 6), topic("payments", 6)],
        brokers=1,
        group=Group(members=3, spare=spare, protocol=protocol, config={"session.timeout.ms": 6000, **config}),
        workload=PollLoop(rate_hz=1000, commit_every_ms=50),
        schedule=schedule,
    )


@pytest.mark.spark
@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_nobody_is_accused_when_a_topic_is_dropped_and_taken_back(chaos: Any, protocol: str) -> None:
    run = chaos.run(
        scenario(
            protocol,
            at(1, ChangeSubscription(), member(1), heal_after=2),
            at(6, ChangeSubscription(("orders",)), all_members(), heal_after=4),
        )
    )
    run.must_keep_its_promises()
    assert len(events(run, "subscribed")) == 8


@pytest.mark.spark
def test_subscription_and_partition_count_change_in_the_middle_of_a_rebalance(chaos: Any) -> None:
    """Members come; whoever makes room for them is in its revoked callback, and is told to subscribe again."""
    run = chaos.run(
        scenario(
            "cooperative",
            when(revoking(), ChangeSubscription(), within_s=40, heal_after=2),
            *(at(at_s, ScaleOut(), idle()) for at_s in (1, 8, 15)),
            when(joining(), AddPartitions(), at_s=8, within_s=40),
            spare=3,
            **{"topic.metadata.refresh.interval.ms": 500},
        )
    )
    assert run.verdict.validity is Validity.VALID, run.verdict
    faults = {e["detail"]["fault"]: e["detail"]["when"] for e in events(run, "fault") if "when" in e["detail"]}
    assert {name: when["state"] for name, when in faults.items()} == {
        "change_subscription": "revoking",
        "add_partitions": "joining",
    }
    assert any(when["met"] for when in faults.values()), faults
