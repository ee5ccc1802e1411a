"""Attached as a stranger to a cluster that others run: what is judged. ``test_attach_ends`` has what is refused."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import confluent_kafka as ck
import pytest
from confluent_kafka.admin import AdminClient, ConfigEntry, ConfigResource, ConsumerGroupDescription

from cluster.conftest import consuming
from cluster.plans import WRITING, under
from cluster.planted import BUGS
from cluster.worlds import LONG_S, World
from fencepost import runner
from fencepost.checkers.spark.session import Spark
from fencepost.clock import eventually
from fencepost.clusters.admin import OFFSETS_TOPIC
from fencepost.clusters.attach.backend import Attachment
from fencepost.clusters.attach.examination import TRANSACTIONS_TOPIC
from fencepost.clusters.cache import quiet
from fencepost.clusters.managed_cluster import ManagedCluster
from fencepost.evidence.brokers import dump_parser, offsets_topic
from fencepost.evidence.brokers.clock_conversion import WallClockConverter
from fencepost.faults import (
    AddPartitions,
    Bounce,
    DeleteRecords,
    DropPackets,
    Kill,
    MoveCoordinator,
    MoveLeaders,
    Pause,
    RemoveMember,
)
from fencepost.judging import judge
from fencepost.model import Finding, Severity, Validity, Verdict, group_partition
from fencepost.model.findings import FINDINGS
from fencepost.model.topic import Topic
from fencepost.processes.owner import ProcessOwner
from fencepost.scenario.scenario import Group, Scenario
from fencepost.schedule.entries import at, past_session
from fencepost.targets import member
from fencepost.workloads import PollLoop

pytestmark = [pytest.mark.cluster, pytest.mark.spark]

SCENARIO = Scenario(
    name="a guest",
    topics=[Topic("orders", partitions=6)],
    group=Group(members=3, config={"session.timeout.ms": 6000, "heartbeat.interval.ms": 500}),
    workload=PollLoop(rate_hz=500),
    schedule=[
        at(1, MoveCoordinator()),
        at(2, Pause(), member(1), heal_after=past_session(1.5), expect="fenced"),
        at(3, Kill(), member(0), heal_after=1),
        at(4, MoveCoordinator()),
        at(5, Bounce(), member(2), heal_after=1),
    ],
    min_records=3000,
)
FOREIGN_TOPICS = ("not-ours", "fencepost-0badcafe-orders")  # the second one is another run's
FOREIGN_GROUP, FOREIGN_LIVE_GROUP = "not-ours", "not-ours-and-alive"


def address(cluster: ManagedCluster, slot: int | None = None) -> str:
    """Of all, or of the listeners of a slot."""
    return "attach:" + cluster.bootstrap(slot).split(",")[0]


def there(cluster: ManagedCluster) -> dict[str, Any]:
    """A snapshot of a cluster: topics with their ids, replicas, settings and ends; groups with their members,
    assignments and offsets; and the settings of brokers. (Brokers make the topic of transactions for the first one.)"""
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap()})
    topics = sorted(admin.list_topics(timeout=LONG_S).topics.keys() - {TRANSACTIONS_TOPIC})
    groups = sorted(group.group_id for group in admin.list_consumer_groups().result(LONG_S).valid)
    described = admin.describe_topics(ck.TopicCollection(topics))
    ids = {topic: str(future.result(LONG_S).topic_id) for topic, future in described.items()}
    members = admin.describe_consumer_groups(groups) if groups else {}
    of_brokers = [ConfigResource(ConfigResource.Type.BROKER, str(broker)) for broker in cluster.brokers]
    of_topics = [ConfigResource(ConfigResource.Type.TOPIC, topic) for topic in topics]
    settings = [admin.describe_configs(some) for some in (of_topics, *([one] for one in of_brokers))]
    return {
        "topics": {t: (ids[t], cluster.admin.end_offsets(t)) for t in topics if not t.startswith("__")},
        "groups": {group: cluster.admin.committed(group) for group in groups},
        "members": {group: assigned(future.result(LONG_S)) for group, future in members.items()},
        "replicas": {topic: cluster.admin.replicas(topic) for topic in topics},
        "settings": {r.name: changed(f.result(LONG_S)) for some in settings for r, f in some.items()},
    }


def assigned(group: ConsumerGroupDescription) -> dict[str, set[tuple[str, int]]]:
    """The partitions of each member."""
    return {
        member.member_id: {(tp.topic, tp.partition) for tp in member.assignment.topic_partitions}
        for member in group.members
    }


def changed(settings: dict[str, ConfigEntry]) -> dict[str, str | None]:
    """The settings that are no defaults."""
    return {name: entry.value for name, entry in settings.items() if not entry.is_default}


@contextmanager
def guesting(
    cluster: ManagedCluster, history: Path, static: bool = False, more: tuple[str, ...] = ()
) -> Iterator[World]:
    """A group in the same cluster, which knows it by an address alone; packets can be lost where this machine can."""
    attachment = Attachment.of(address(cluster))
    losing = () if attachment.abilities["packets"]() else [at(1, DropPackets(), member(0), heal_after=1)]
    # As many members as there are in the world.
    wanted = replace(SCENARIO, group=replace(SCENARIO.group, spare=1), schedule=losing)
    name = f"{attachment.prefix}guests"
    topics = tuple(f"{name}-{topic}" for topic in more)
    with ProcessOwner.open() as owner, ExitStack() as stack:  # not the cluster's, which has rules of its own
        attached = attachment.start(wanted, wanted.plan(1), owner, quiet)
        stack.callback(attached.stop)
        yield stack.enter_context(consuming(attached, owner, history, name, "cooperative", static, topics, "attach"))


@pytest.fixture(scope="module")
def foreign(session_cluster: ManagedCluster) -> Iterator[None]:
    """What others have in the cluster: topics with records, a group that committed, and a group with a member."""
    missing = [topic for topic in FOREIGN_TOPICS if not session_cluster.admin.leaders(topic)]  # of two files
    session_cluster.admin.create_topics([Topic(topic, partitions=1) for topic in missing])
    producer = ck.Producer({"bootstrap.servers": session_cluster.bootstrap()})
    for topic in FOREIGN_TOPICS:
        producer.produce(topic, b"value")
    assert producer.flush(LONG_S) == 0
    consumer = ck.Consumer({"bootstrap.servers": session_cluster.bootstrap(), "group.id": FOREIGN_GROUP})
    consumer.commit(offsets=[ck.TopicPartition(FOREIGN_TOPICS[0], 0, 1)], asynchronous=False)
    consumer.close()
    live = ck.Consumer(
        {
            "bootstrap.servers": session_cluster.bootstrap(),
            "group.id": FOREIGN_LIVE_GROUP,
            "enable.auto.commit": False,
            "auto.offset.reset": "earliest",
        }
    )
    live.subscribe([FOREIGN_TOPICS[0]])
    eventually(lambda: live.poll(0.1), LONG_S, "the member of another group to receive a record")
    yield
    live.close()


@pytest.fixture
def unchanged(cluster: ManagedCluster, foreign: None) -> Iterator[None]:
    """After the test the cluster is as it was before."""
    before = there(cluster)
    yield
    assert there(cluster) == before


def violations(verdict: Verdict) -> list[Finding]:
    return [f for check in verdict.checks for f in check.findings if f.severity is Severity.VIOLATION]


@pytest.mark.core
@pytest.mark.usefixtures("unchanged")
def test_a_correct_group_is_valid_and_the_verdict_lists_what_was_not_judged(
    cluster: ManagedCluster, chaos_spark: Spark, tmp_path: Path
) -> None:
    run = runner.run(SCENARIO, plan=SCENARIO.plan(1), runs=tmp_path, backend=Attachment.of(address(cluster)))
    verdict = judge(run, chaos_spark)
    assert verdict.validity is Validity.VALID, [(check.check, check.reason) for check in verdict.checks]
    assert all(fault["took_effect"] for fault in verdict.faults)
    assert verdict.unjudged == dict.fromkeys(
        (kind.name for kind in FINDINGS.values() if "requests" in kind.hidden_without),
        "the request log of an attached cluster's brokers cannot be read by a client",
    )
    found = {check.check: check for check in verdict.checks}
    assert "not judged: " in found["commits"].reason
    assert "__cluster_metadata" in found["history"].reason
    assert "offsets.jsonl" not in found["history"].reason, (
        "brokers on this machine's clock: their log of the group is part of the history"
    )
    asked = json.loads((run / "scenario.json").read_text())
    assert asked["scenario"]["topics"][0]["name"] == "orders", "so that it can be performed anywhere again"
    settings = json.loads((run / "history" / "settings.json").read_text())
    (kept,) = settings["topics"].values()
    assert (kept["cleanup.policy"], settings["broker"]["offsets.retention.minutes"]) == ("delete", "10080")
    assert asked["backend"] == address(cluster)
    written, kept = as_written(run), as_brokers_keep_it(cluster, asked["group"])
    assert len(written) > 10
    assert written == kept[: len(written)]
    assert not any(fact.get("members") or "committed" in fact for fact in kept[len(written) :]), "only its end is later"


@pytest.mark.usefixtures("unchanged")
def test_what_an_administrator_does_hits_the_runs_own_topics_and_group(
    cluster: ManagedCluster, chaos_spark: Spark, tmp_path: Path
) -> None:
    steps = [
        at(1, MoveLeaders(("orders-1",))),
        at(2, RemoveMember(), member(1)),
        at(3, AddPartitions()),
        at(4, DeleteRecords(keep=10)),
    ]
    scenario = replace(SCENARIO, schedule=steps)
    run = runner.run(scenario, plan=scenario.plan(1), runs=tmp_path, backend=Attachment.of(address(cluster)))
    verdict = judge(run, chaos_spark)
    assert [fault["took_effect"] for fault in verdict.faults] == [True] * len(steps), verdict.faults
    assert not violations(verdict)
    partitions = json.loads((run / "history/partitions.json").read_text())["partitions"]
    assert len(partitions) == SCENARIO.topics[0].partitions + 1
    assert all(partition["log_start"] > 0 for partition in partitions[:-1])


def as_written(run: Path) -> list[dict[str, Any]]:
    lines = (run / "history/coordinator/offsets.jsonl").read_text().splitlines()
    return [timeless(json.loads(line)) for line in lines]


def as_brokers_keep_it(cluster: ManagedCluster, group: str) -> list[dict[str, Any]]:
    """The same from their files."""
    dump = cluster.evidence.dump(OFFSETS_TOPIC, group_partition(group, len(cluster.admin.leaders(OFFSETS_TOPIC))))
    return [
        timeless(fact)
        for fact in offsets_topic.normalise(dump_parser.read(dump), WallClockConverter.of([(0, 0)]), group, {})
    ]


def timeless(fact: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in fact.items() if name not in ("at_ns", "uncertainty_ns")}


@pytest.mark.usefixtures("unchanged")
@pytest.mark.parametrize("name", ["off-by-one", "seek-back"])
def test_a_planted_bug_is_found_under_its_kind(
    cluster: ManagedCluster, chaos_spark: Spark, tmp_path: Path, name: str
) -> None:
    bug = BUGS[name]
    wrong = bug.scenario("cooperative")
    run = runner.run(wrong, plan=wrong.plan(2), runs=tmp_path, backend=Attachment.of(address(cluster)))
    verdict = judge(run, chaos_spark)
    assert verdict.validity is Validity.INVALID
    assert {f.kind for f in violations(verdict)} == set(bug.kinds)


@pytest.mark.usefixtures("unchanged")
@pytest.mark.parametrize("scenario", WRITING, ids=lambda scenario: scenario.name)
def test_what_members_write_is_judged_and_goes_with_the_rest(
    cluster: ManagedCluster, chaos_spark: Spark, tmp_path: Path, scenario: Scenario
) -> None:
    asked = under("cooperative", scenario)
    run = runner.run(asked, plan=asked.plan(1), runs=tmp_path, backend=Attachment.of(address(cluster)))
    verdict = judge(run, chaos_spark)
    assert not violations(verdict)
    assert verdict.validity is Validity.VALID, [(check.check, check.reason) for check in verdict.checks]
