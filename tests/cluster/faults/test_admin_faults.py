"""Faults that an administrator makes, on a real cluster under a real group: the effect measured at the brokers and at
the members, and what the witness says without it.
"""

from __future__ import annotations

import json
import re
import signal
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from typing import Any

import confluent_kafka as ck
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
from confluent_kafka.admin import AdminClient, ConfigResource, ConfigSource

from cluster.plans import topic
from cluster.worlds import LONG_S, MEMBER, ON_CLUSTER, Inject, Instead, World, nothing_to_see, requests_by
from fencepost.checkers import oracle
from fencepost.checkers.counts import Bounds
from fencepost.checkers.tables import load
from fencepost.checkers.tables.records import load_records
from fencepost.checkers.tables.transactions import settled
from fencepost.clock import eventually, now_ns
from fencepost.errors import ClusterError, FaultError
from fencepost.faults import (
    AddPartitions,
    DeleteRecords,
    MoveCoordinator,
    MoveLeaders,
    Pause,
    ReassignCoordinator,
    RecreateTopic,
    RemoveMember,
    ResetOffsets,
)
from fencepost.history import SendOutcome
from fencepost.interfaces import Fault, Target, Workload
from fencepost.model import Severity, TopicPartition, Validity
from fencepost.model.topic import Topic
from fencepost.plugin import Chaos
from fencepost.scenario.scenario import Group, Scenario
from fencepost.schedule.entries import at, past_session
from fencepost.targets import all_members, member
from fencepost.workloads import DeadLetters, PollLoop, Transform

pytestmark = ON_CLUSTER

NOBODY = Target()
OFFSETS = "__consumer_offsets"
EXCUSE = "declared act: reset_offsets"


def with_admin(world: World, **methods: Any) -> World:
    """The same world, but for some methods of its administrator."""
    return replace(world, cluster=Instead(world.cluster, admin=Instead(world.cluster.admin, **methods)))


def nothing(*_: Any) -> None:
    """What an administrator does who is not heard."""


def progress(world: World) -> int:
    """How far the group's commits have got, of all partitions."""
    return sum(world.cluster.admin.committed(world.group).values())


def goes_on(world: World) -> None:
    """The group commits what it reads from now on."""
    before = progress(world)
    eventually(lambda: progress(world) > before + 100, LONG_S, "the group to commit more")


def test_moved_leaders_are_others_and_the_group_stays_and_goes_on(world: World, inject: Inject) -> None:
    admin = world.cluster.admin
    before, joined = admin.leaders(world.group), [m.member_id for m in world.view().members]
    proven = inject(MoveLeaders(), world, NOBODY).proven()
    assert proven.took_effect, proven.what
    after = admin.leaders(world.group)
    assert all(after[p] != before[p] for p in before)
    assert {name: tuple(move) for name, move in proven.data["moves"].items()} == {
        f"{world.group}-{p}": (before[p], after[p]) for p in before
    }
    assert proven.data["seconds"] > 0
    goes_on(world)
    assert [m.member_id for m in world.view().members] == joined


def test_moves_of_one_partition_visit_every_replica_and_leave_the_others(world: World, inject: Inject) -> None:
    admin, seen = world.cluster.admin, []
    others = {p: leader for p, leader in admin.leaders(world.group).items() if p != 2}
    for _ in range(3):
        proven = inject(MoveLeaders((f"{world.group}-2",)), world, NOBODY).proven()
        assert proven.took_effect, proven.what
        seen.append(admin.leaders(world.group)[2])
    assert sorted(seen) == [1, 2, 3]
    assert {p: leader for p, leader in admin.leaders(world.group).items() if p != 2} == others


def test_deleted_records_are_gone_and_the_group_goes_on(world: World, inject: Inject) -> None:
    admin = world.cluster.admin
    goes_on(world)
    before, ends = admin.start_offsets(world.group), admin.end_offsets(world.group)
    proven = inject(DeleteRecords(keep=5), world, NOBODY).proven()
    assert proven.took_effect, proven.what
    after = admin.start_offsets(world.group)
    assert all(after[p] >= ends[p] - 5 > before[p] for p in ends)
    assert proven.data["begins"] == {f"{world.group}-{p}": [before[p], after[p]] for p in ends}
    goes_on(world)


def test_a_removed_member_is_told_so_and_joins_again_under_another_id(world: World, inject: Inject) -> None:
    old, bystander = (member.member_id for member in reversed(world.view().members) if member.alive)
    removed(world, inject)
    assert old not in members_of(world)
    assert bystander in members_of(world)
    eventually(lambda: world.view().members[1].member_id != old, LONG_S, "the member to tell another id")
    assert world.view().members[1].member_id in members_of(world)
    goes_on(world)


def test_a_member_of_the_consumer_protocol_is_removed_as_well(world_of_consumers: World, inject: Inject) -> None:
    there = [one.member_id for one in world_of_consumers.view().members if one.alive]
    assert len(there) == 2
    assert members_of(world_of_consumers) == dict.fromkeys(there, "consumer")
    removed(world_of_consumers, inject)
    goes_on(world_of_consumers)


def members_of(world: World) -> dict[str, str]:
    """By member id, the protocol of each, as the coordinator describes them."""
    return {name: reported.protocol for name, reported in world.cluster.admin.describe(world.group).members.items()}


def removed(world: World, inject: Inject) -> None:
    """Member 1 is removed, a broker tells it so, and both own partitions again."""
    since_ns, name = now_ns(), world.view().members[1].member_id
    proven = inject(RemoveMember(), world, MEMBER).proven()
    assert proven.took_effect, proven.what
    assert proven.data["member_ids"] == {"member-1": name}

    def told() -> bool:
        heard = [one for one in requests_by(world, world.members[1].slot) if one["start_ns"] > since_ns]
        return "UNKNOWN_MEMBER_ID" in {one["error"] for one in heard}

    eventually(told, LONG_S, "a broker to tell the member that it is none")
    eventually(
        lambda: all(one.owned for one in world.view().members if one.alive), LONG_S, "both members to own partitions"
    )


def test_offsets_are_reset_once_nobody_is_in_the_group_and_members_that_wake_start_there(
    world: World, inject: Inject
) -> None:
    admin, since_ns = world.cluster.admin, now_ns()
    goes_on(world)
    with standing_still(world):
        eventually(lambda: not ResetOffsets().not_ready_reason(world, NOBODY), LONG_S, "the group to be empty")
        unheard = ResetOffsets().inject(with_admin(world, alter_offsets=nothing), NOBODY)
        with nothing_to_see():
            evidence = unheard.proven()
        assert not evidence.took_effect
        assert "is committed at" in evidence.what
        before, begins = admin.committed(world.group), admin.start_offsets(world.group)
        proven = inject(ResetOffsets(), world, NOBODY).proven()
        assert proven.took_effect, proven.what
        after = admin.committed(world.group)
        assert after == {TopicPartition(world.group, p): begin for p, begin in begins.items()}
        moves = {str(tp): [before.get(tp, -1), to] for tp, to in after.items() if before.get(tp, -1) != to}
        assert proven.data["offsets"] == moves
        assert "all committed offsets are where" in ResetOffsets().not_ready_reason(world, NOBODY)
    goes_on(world)
    heard = {one["error"] for m in world.members[:2] for one in requests_by(world, m.slot) if one["end_ns"] > since_ns}
    assert "UNKNOWN_MEMBER_ID" in heard
    eventually(world.owning, LONG_S, "both members to own partitions")


@contextmanager
def standing_still(world: World) -> Iterator[None]:
    """No member does anything in here."""
    try:
        for one in world.members[:2]:
            one.signal(signal.SIGSTOP)
        yield
    finally:
        for one in world.members[:2]:
            one.signal(signal.SIGCONT)


def test_a_reassigned_coordinator_keeps_nothing_until_it_heals(world: World, inject: Inject) -> None:
    admin = world.cluster.admin
    before = admin.coordinator(world.group)
    injection = inject(ReassignCoordinator(), world, NOBODY)
    proven = injection.proven()
    assert proven.took_effect, proven.what
    partition = proven.data["partition"]
    assert before not in admin.replicas(OFFSETS)[partition]
    assert admin.coordinator(world.group) == proven.data["to_broker"] != before
    with pytest.raises(FaultError, match="has replicas on brokers"):
        ReassignCoordinator().inject(world, NOBODY)
    goes_on(world)
    injection.undo()
    healed = injection.healed()
    assert healed.took_effect, healed.what
    assert admin.replicas(OFFSETS)[partition] == proven.data["before"]
    assert set(admin.in_sync_replicas(OFFSETS)[partition]) == {1, 2, 3}


def test_added_partitions_are_there_and_led(world: World, inject: Inject) -> None:
    admin = world.cluster.admin
    before = len(admin.leaders(world.group))
    proven = inject(AddPartitions(count=2), world, NOBODY).proven()
    assert proven.took_effect, proven.what
    after = admin.leaders(world.group)
    assert len(after) == before + 2
    assert min(after.values()) > 0
    goes_on(world)


def test_a_topic_that_is_made_again_has_another_id_and_no_record_of_before_and_the_group_goes_on(
    world: World, inject: Inject
) -> None:
    admin, topic = world.cluster.admin, world.group
    goes_on(world)
    (before,) = admin.names_by_id([topic])
    ends, writers = admin.end_offsets(topic), first_records(world, topic)
    proven = inject(RecreateTopic(), world, NOBODY).proven()
    assert proven.took_effect, proven.what
    (after,) = admin.names_by_id([topic])
    assert proven.data["ids"] == {topic: [before, after]}
    assert before != after
    assert proven.data["ends"].keys() == {f"{topic}-{p}" for p in ends}
    assert set(admin.start_offsets(topic).values()) == {0}

    def read_anew() -> bool:
        committed, now = admin.committed(topic), admin.end_offsets(topic)
        return all(0 < committed.get(TopicPartition(topic, p), 0) <= now[p] for p, end in ends.items() if end)

    eventually(read_anew, LONG_S, "the group to commit what the new topic holds")
    assert writers.isdisjoint(first_records(world, topic))
    eventually(world.owning, LONG_S, "both members to own partitions")


def first_records(world: World, topic: str) -> set[bytes]:
    """The first record of each partition that has one (those that were added may have none yet)."""
    ends = world.cluster.admin.end_offsets(topic)
    starts = {p: start for p, start in world.cluster.admin.start_offsets(topic).items() if start < ends[p]}
    found: dict[int, bytes] = {}
    reader = ck.Consumer({"bootstrap.servers": world.cluster.bootstrap(), "group.id": "a reader"})
    reader.assign([ck.TopicPartition(topic, p, start) for p, start in starts.items()])

    def read_all() -> bool:
        for message in reader.consume(100, timeout=0.5):
            found.setdefault(message.partition(), message.value())
        return found.keys() == starts.keys()

    try:
        eventually(read_all, LONG_S, "a record of each partition to be read")
    finally:
        reader.close()
    return set(found.values())


def test_a_topic_that_is_made_again_has_the_replicas_and_settings_of_before(world: World) -> None:
    admin = world.cluster.admin
    topic = Topic(f"{world.group}-kept", partitions=3, replication_factor=2, config={"retention.ms": 12_345_000})
    admin.create_topics([topic])
    before = admin.replicas(topic.name), settings_of(world, topic.name)
    assert before[1] == {"retention.ms": "12345000"}
    (old,) = admin.names_by_id([topic.name])
    admin.recreate_topic(topic.name)
    assert (admin.replicas(topic.name), settings_of(world, topic.name)) == before
    assert admin.names_by_id([topic.name]).keys() != {old}


def settings_of(world: World, topic: str) -> dict[str, str]:
    """What a topic has of its own."""
    resource = ConfigResource(ConfigResource.Type.TOPIC, topic)
    client = AdminClient({"bootstrap.servers": world.cluster.bootstrap()})
    reported, own = (
        client.describe_configs([resource])[resource].result(LONG_S),
        ConfigSource.DYNAMIC_TOPIC_CONFIG.value,
    )
    return {name: entry.value for name, entry in reported.items() if entry.source == own}


# --- what a correct group makes of them, and what is judged --------------------------------------------------------


@pytest.mark.spark
def test_who_finds_its_next_records_deleted_goes_on_behind_them_and_is_not_accused(chaos: Chaos) -> None:
    scenario = Scenario(
        name="records are deleted under a member that stands still",
        topics=[topic("orders", 4)],
        brokers=1,
        group=Group(members=2, config={"session.timeout.ms": 45_000}),
        workload=PollLoop(rate_hz=1000),
        schedule=[at(1, Pause(), member(0), heal_after=6), at(4, DeleteRecords())],
        min_records=300,  # what was deleted is not judged, so that many must come later
    )
    run = chaos.run(scenario)
    assert run.verdict.validity is Validity.VALID, run.verdict
    deletion = next(fault for fault in run.verdict.faults if fault["fault"] == "delete_records")
    unread = re.search(r"of which the group had not committed (\d+)", deletion["evidence"])
    assert unread is not None
    assert int(unread[1]) > 100, "the member that stood still had read and committed what was deleted"
    partitions = json.loads((run.folder / "history/partitions.json").read_text())["partitions"]
    assert all(0 < partition["log_start"] <= partition["committed"] for partition in partitions)
    table = ds.dataset(run.folder / "history/delivered").to_table(columns=["tp", "offset"])
    delivered = {(row["tp"], row["offset"]) for row in table.to_pylist()}
    never = [(p["tp"], offset) for p in partitions for offset in range(p["log_start"])]
    assert sum(place not in delivered for place in never) > 100, "nobody got what was deleted unread"


@pytest.mark.spark
@pytest.mark.parametrize(
    "reset",
    [
        (ResetOffsets(), "cooperative", "commit-regression"),
        (ResetOffsets("latest"), "consumer", "unseen"),
        (ResetOffsets(shift_by=-150), "consumer", "commit-regression"),
        (ResetOffsets(shift_by=150), "eager", "unseen"),
    ],
    ids=["earliest", "latest", "back", "on"],
)
def test_members_that_wake_go_on_where_offsets_were_reset_to_and_are_accused_only_if_nobody_did_that(
    chaos: Chaos, reset: tuple[ResetOffsets, str, str]
) -> None:
    fault, protocol, kind = reset
    scenario = Scenario(
        name=f"offsets are reset, {fault}, while all members stand still",
        topics=[topic("orders", 4)],
        brokers=1,
        group=Group(members=2, protocol=protocol, config={"session.timeout.ms": 6000}),
        workload=PollLoop(rate_hz=300),
        schedule=[at(3, Pause(), all_members(), heal_after=past_session(2)), at(10, fault)],
    )
    run = chaos.run(scenario)
    assert run.verdict.validity is Validity.VALID, run.verdict
    found = (finding for check in run.verdict.checks for finding in check.findings)
    assert kind in {f.kind for f in found if {example.get("excuse") for example in f.examples} == {EXCUSE}}
    tables = load(run.folder)
    act_ns = min(act.begin_ns for act in tables.acts)
    later = {(i.incarnation, i.tp, i.number) for i in tables.intervals if i.assigned_begin_ns > act_ns}
    firsts: dict[str, int] = {}
    for row in load_records(run.folder).delivered:
        if (row.incarnation, row.tp, row.interval) in later:
            name = str(tables.partitions[row.tp].name)
            firsts[name] = min(row.offset, firsts.get(name, row.offset))
    events = pq.read_table(run.folder / "history/events.parquet").to_pylist()
    (reset,) = [row for row in events if row["kind"] == "fault" and "reset_offsets" in row["detail"]]
    moves = json.loads(reset["detail"])["evidence"]["data"]["offsets"]
    assert firsts == {name: offset for name, (_, offset) in moves.items()}
    assert all(abs(after - before) > 100 for before, after in moves.values())
    assert not fault.shift_by or {after - before for before, after in moves.values()} == {fault.shift_by}

    accused, _ = oracle.detect(run.folder, replace(tables, acts=()), Bounds())
    assert kind in {anomaly.kind for anomaly in accused if not anomaly.excuse}


@pytest.mark.spark
@pytest.mark.parametrize(
    "reset",
    [
        (Transform(rate_hz=300), "", ResetOffsets(), "duplicate-effect"),
        (DeadLetters(rate_hz=300, keep_order=True), "", ResetOffsets(), "dead-letter-twice"),
        (PollLoop(rate_hz=300), "3.9.1", ResetOffsets(), "redelivery"),
        (DeadLetters(rate_hz=300), "3.9.1", ResetOffsets("latest"), "dead-letter-missing"),
        (Transform(rate_hz=300), "", ResetOffsets("latest"), "unseen"),
        (Transform(rate_hz=300), "3.9.1", ResetOffsets(shift_by=-150), "duplicate-effect"),
    ],
    ids=lambda reset: "-".join((type(reset[0]).__name__, *map(str, reset[1:]))),
)
def test_what_members_write_elsewhere_twice_or_not_at_all_after_a_reset_is_permitted(
    chaos: Chaos, reset: tuple[Workload, str, ResetOffsets, str]
) -> None:
    workload, kafka, fault, kind = reset
    scenario = Scenario(
        name=f"offsets are reset, {fault}, under {type(workload).__name__}, Kafka {kafka or 'as it comes'}",
        topics=[topic("orders", 4)],
        brokers=1,
        group=Group(members=2, config={"session.timeout.ms": 6000}),
        workload=workload,
        schedule=[at(3, Pause(), all_members(), heal_after=past_session(2)), at(10, fault)],
        kafka=kafka,
    )
    run = chaos.run(scenario)
    assert run.verdict.validity is Validity.VALID, run.verdict
    found = [finding for check in run.verdict.checks for finding in check.findings]
    assert kind in {f.kind for f in found if {example.get("excuse") for example in f.examples} == {EXCUSE}}
    accused, _ = oracle.detect(run.folder, replace(load(run.folder), acts=()), Bounds())
    assert kind in {anomaly.kind for anomaly in accused if not anomaly.excuse.startswith("declared act")}


REMADE = "declared act: recreate_topic"
GONE = "orders (deleted)"


def remade(name: str, group: Group, workload: Workload, until_s: float = 10) -> Scenario:
    return Scenario(
        name=f"a topic is deleted and made again, {name}",
        topics=[Topic("orders", partitions=4)],
        group=group,
        workload=workload,
        schedule=[at(2, RecreateTopic()), at(until_s, MoveCoordinator())],
        min_records=300,  # what was deleted is not judged, so that many must come later
    )


@pytest.mark.spark
@pytest.mark.parametrize(
    "asked",
    [
        ("confluent-kafka", "cooperative", 2, PollLoop(rate_hz=600)),
        ("confluent-kafka", "consumer", 2, PollLoop(rate_hz=600)),
        ("kafka-python", "cooperative", 2, PollLoop(rate_hz=600)),
        # A member works on what is gone, while another one has the new one already.
        ("confluent-kafka", "consumer", 3, PollLoop(rate_hz=250, handler_ms=10, batch=200, commit_every_ms=500)),
        ("confluent-kafka", "cooperative", 2, Transform(rate_hz=300)),
    ],
    ids=lambda asked: f"{asked[0]}-{asked[1]}-{type(asked[3]).__name__}-{asked[3].rate_hz:g}",
)
def test_what_comes_of_a_topic_that_was_made_again_is_permitted_and_the_new_one_is_judged(
    chaos: Chaos, asked: tuple[str, str, int, Workload]
) -> None:
    client, protocol, members, workload = asked
    group = Group(members, client=client, protocol=protocol)
    run = chaos.run(remade(f"{client}, {protocol}, {type(workload).__name__}", group, workload))
    assert run.verdict.validity is Validity.VALID, run.verdict
    lost = [f for check in run.verdict.checks for f in check.findings if f.kind == "lost-write"]
    assert {example["topic"] for f in lost for example in f.examples} == {GONE}
    assert {example["excuse"] for f in lost for example in f.examples} == {REMADE}
    partitions = json.loads((run.folder / "history/partitions.json").read_text())["partitions"]
    assert [p["tp"] for p in partitions] == [*range(8)]
    (act,) = {(p["renewed"]["begin_ns"], p["renewed"]["end_ns"]) for p in partitions[4:]}
    records = load_records(run.folder)
    assert all(p.sent_ns <= act[1] for p in records.produced if p.tp >= 4)
    assert all(p.sent_ns > act[1] for p in records.produced if p.tp < 4 and p.outcome != SendOutcome.OK)
    offsets = [json.loads(line) for line in (run.folder / "history/coordinator/offsets.jsonl").read_text().splitlines()]
    deleted = [line for line in offsets if line["type"] == "commit" and line["deleted"]]
    before = [line for line in offsets if line["order"] < deleted[0]["order"]]
    # Of a partition of which nothing was committed by then there is nothing to delete.
    assert {one.line["partition"] for one in settled(before) if one.in_force} == {line["partition"] for line in deleted}
    tables = load(run.folder)
    accused, _ = oracle.detect(run.folder, replace(tables, acts=()), Bounds())
    assert {"lost-write", "delivered-then-lost"} <= {anomaly.kind for anomaly in accused if not anomaly.excuse}


@pytest.mark.spark
def test_members_that_are_wrong_are_found_in_the_topic_that_was_made_again(chaos: Chaos) -> None:
    wrong = PollLoop(rate_hz=600, planted_bug="seek-back")
    # As they commit only forward, the first commit of the new one is above all of before.
    run = chaos.run(remade("members are wrong", Group(members=2), wrong, until_s=20))
    found = [f for check in run.verdict.checks for f in check.findings if f.severity is Severity.VIOLATION]
    later = {example["topic"] for f in found if f.kind == "rewind" for example in f.examples}
    assert run.verdict.validity is Validity.INVALID
    assert "orders" in later


# --- the effect taken away, or not to be had -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("fault", "target", "method", "why"),
    [
        (MoveLeaders(), NOBODY, "move_leader", "not broker"),
        (DeleteRecords(), NOBODY, "delete_records", "begins at"),
        (RemoveMember(), MEMBER, "remove_member", "does not confirm the removal of member-1"),
        (ReassignCoordinator(), NOBODY, "reassign", "still has"),
        (AddPartitions(), NOBODY, "add_partitions", "no leader of"),
        (RecreateTopic(), NOBODY, "recreate_topic", "as before"),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Fault) else "",
)
def test_what_an_administrator_did_not_do_is_no_fault(
    world: World, fault: Fault, target: Target, method: str, why: str
) -> None:
    injection = fault.inject(with_admin(world, **{method: nothing}), target)
    with nothing_to_see():
        evidence = injection.proven()
    assert not evidence.took_effect
    assert why in evidence.what


@pytest.mark.parametrize("refusals", [1, 1000])
def test_a_leader_that_is_refused_is_asked_for_again_and_keeps_no_other_one_back(world: World, refusals: int) -> None:
    """As where a broker stood still until it was no longer in sync."""
    admin, asked = world.cluster.admin, []
    before = admin.leaders(world.group)

    def refused(tp: TopicPartition, to_broker: int) -> None:
        asked.append(tp.partition)
        if tp.partition == 0 and asked.count(0) <= refusals:
            raise ClusterError("the preferred leader is not available")
        admin.move_leader(tp, to_broker)

    injection = MoveLeaders().inject(with_admin(world, move_leader=refused), NOBODY)
    with nothing_to_see() if refusals > 1 else nullcontext():
        evidence = injection.proven()
    assert evidence.took_effect == (refusals == 1), evidence.what
    assert ("is not available" in evidence.what) == (refusals > 1)
    now = admin.leaders(world.group)
    assert {p for p in now if now[p] != before[p]} == {*now} - ({0} if refusals > 1 else set())
    assert all(asked.count(p) == 1 for p in now if p)


def test_replicas_that_are_not_put_back_are_not_healed(world: World, inject: Inject) -> None:
    admin, calls = world.cluster.admin, []

    def once(*arguments: Any) -> None:
        calls.append(arguments)
        if len(calls) == 1:
            admin.reassign(*arguments)

    injection = ReassignCoordinator().inject(with_admin(world, reassign=once), NOBODY)
    try:
        assert injection.proven().took_effect
        injection.undo()
        with nothing_to_see():
            evidence = injection.healed()
        assert not evidence.took_effect
        assert "not all of" in evidence.what
    finally:
        admin.reassign(*calls[1])
    assert injection.healed().took_effect


def test_what_cannot_be_now_is_awaited_and_refused(world: World) -> None:
    first = world.cluster.admin.leaders(world.group)
    alone = with_admin(world, in_sync_replicas=lambda topic: {p: (leader,) for p, leader in first.items()})
    stranger = Instead(world.members[1], member_id="nobody")
    unknown = replace(world, members=[world.members[0], stranger])
    for there, fault, target, why in (
        (alone, MoveLeaders(), NOBODY, "no other in-sync replica"),
        (world, DeleteRecords(keep=10**9), NOBODY, "no more than 1000000000 records"),
        (unknown, RemoveMember(), MEMBER, "member-1 is not in the group"),
        (world, ResetOffsets(), NOBODY, "the group has 2 members"),
    ):
        assert why in fault.not_ready_reason(there, target)
        with pytest.raises(FaultError, match=why):
            fault.inject(there, target)
        assert not fault.not_ready_reason(world, target) or there is world


def test_what_kafka_refuses_is_told(world: World) -> None:
    admin = world.cluster.admin
    with pytest.raises(ClusterError, match="UnknownMemberIdError"):
        admin.remove_member(world.group, "nobody")
    with pytest.raises(ClusterError, match=r"altering the committed offsets .* was refused: UnknownMemberIdError"):
        admin.alter_offsets(world.group, {TopicPartition(world.group, 0): 0})
    with pytest.raises(ClusterError, match="InvalidPartitionsError"):
        admin.add_partitions(world.group, 1)
    with pytest.raises(ClusterError, match="OffsetOutOfRangeError"):
        admin.delete_records(world.group, {0: 10**12})
    with pytest.raises(ClusterError, match="UnknownTopicOrPartitionError"):
        admin.recreate_topic("nobody-made-it")


def test_replicas_are_put_back_although_a_broker_stands_still(world: World, inject: Inject) -> None:
    """It cannot be in sync, and goes on only later: nobody does that while this is being proven."""
    injection = inject(ReassignCoordinator(), world, NOBODY)
    proven = injection.proven()
    assert proven.took_effect, proven.what
    stopped = proven.data["to_broker"]
    world.cluster.brokers[stopped].signal(signal.SIGSTOP)
    try:
        injection.undo()
        healed = injection.healed()
    finally:
        world.cluster.brokers[stopped].signal(signal.SIGCONT)
    assert healed.took_effect, healed.what
    assert world.cluster.admin.replicas(OFFSETS)[proven.data["partition"]] == proven.data["before"]
