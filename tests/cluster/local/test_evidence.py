"""What is collected of a real group on a real cluster: requests, offsets, metadata and the audit tell one story."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import confluent_kafka as ck
import pyarrow.parquet as pq
import pytest

from fencepost.clock import clock_pair, eventually, now_ns
from fencepost.clusters.managed_cluster import ManagedCluster
from fencepost.errors import ClusterError
from fencepost.evidence import audit
from fencepost.evidence.brokers import metadata_log, offsets_topic, request_log
from fencepost.evidence.brokers.clock_conversion import WallClockConverter
from fencepost.group import running_group as groups
from fencepost.history import LOG_COLUMNS
from fencepost.model import TopicPartition, group_partition
from fencepost.model.run_names import RunNames
from fencepost.processes.owner import ProcessOwner
from fencepost.scenario import scenario
from fencepost.workloads import PollLoop
from fencepost_member import payload
from fencepost_member.recording.events import EventLog

pytestmark = pytest.mark.cluster


@dataclass(frozen=True)
class Ran:
    """A group that ran, moved its coordinator and ended cleanly, and everything collected of it."""

    group: str
    topic: str
    history: Path
    begun_ns: int
    ended_ns: int
    moved_to: int
    members: tuple[groups.MemberHandle, ...]
    committed: dict[TopicPartition, int]

    def lines(self, name: str) -> list[dict[str, Any]]:
        return [json.loads(line) for line in (self.history / name).read_text().splitlines()]


@pytest.fixture(scope="module", params=["cooperative", "consumer"])
def ran(
    request: pytest.FixtureRequest,
    session_cluster: ManagedCluster,
    session_owner: ProcessOwner,
    tmp_path_factory: pytest.TempPathFactory,
) -> Ran:
    protocol: str = request.param
    name, topic = f"evidence-{protocol}", f"evidence-{protocol}-orders"
    cluster, admin = session_cluster, session_cluster.admin
    pairs, begun_ns = [clock_pair()], now_ns()
    admin.create_topics([scenario.Topic(topic, partitions=4)])
    history = tmp_path_factory.mktemp("history")
    home = groups.RunPaths(
        session_owner, EventLog(history / "events" / "harness.jsonl", "harness"), history, history / "logs"
    )
    spec = scenario.Group(members=2, protocol=protocol, config={"session.timeout.ms": 6000})
    numbers = {topic: {p: p for p in range(4)}}
    group = groups.make(home, cluster, spec, PollLoop(rate_hz=1000), names=RunNames(name), topics=numbers, seed=1)
    partition = group_partition(name, 3)
    try:
        group.start()

        def consuming(at_least: int) -> bool:
            group.refresh()
            return sum(admin.committed(name).values()) >= at_least and all(m.owned for m in group.members)

        eventually(lambda: consuming(500), 60, "both members to consume")
        before = admin.leaders(offsets_topic.TOPIC)[partition]
        moved_to = next(b for b in admin.in_sync_replicas(offsets_topic.TOPIC)[partition] if b != before)
        admin.move_leader(TopicPartition(offsets_topic.TOPIC, partition), moved_to)
        further = sum(admin.committed(name).values()) + 500
        eventually(lambda: consuming(further), 60, "both to go on under the new one")
        assert group.stop_producers(60) == []
        assert group.stop_members(60) == []
        committed = admin.committed(name)
    finally:
        group.kill()
    pairs.append(clock_pair())
    topics = metadata_log.collect(cluster.evidence, cluster.brokers, pairs, [topic], history)
    offsets_topic.collect(cluster.evidence, partition, WallClockConverter.of(pairs), name, history, topics)
    assert request_log.collect(cluster.evidence, cluster.brokers, pairs, name, history, topics).damaged == 0
    return Ran(name, topic, history, begun_ns, now_ns(), moved_to, group.members, committed)


def test_every_request_of_the_group_is_timed_and_belongs_to_a_slot(ran: Ran) -> None:
    found = ran.lines(request_log.FILE)
    assert {r["slot"] for r in found if r["api"] == "OFFSET_COMMIT"} == {0, 1}
    assert all(ran.begun_ns < r["end_ns"] + r["uncertainty_ns"] and r["end_ns"] < ran.ended_ns for r in found)
    assert all(r["start_ns"] <= r["end_ns"] for r in found)
    assert all(r["member_id"] for r in found if r["api"] in ("HEARTBEAT", "OFFSET_COMMIT", "CONSUMER_GROUP_HEARTBEAT"))
    assert {r["broker"] for r in found if r["api"] == "OFFSET_COMMIT" and not r["error"]} > {ran.moved_to}


def test_what_was_acknowledged_is_what_the_log_of_offsets_holds(ran: Ran) -> None:
    asked = {
        ((topic, partition, offset), error)
        for r in ran.lines(request_log.FILE)
        if r["api"] == "OFFSET_COMMIT"
        for topic, partition, offset, error in r["offsets"]
    }
    acknowledged, refused = ({what for what, error in asked if bool(error) == wrong} for wrong in (False, True))
    kept = [f for f in ran.lines(offsets_topic.FILE) if f["type"] == "commit"]
    written = {(f["topic"], f["partition"], f["committed"]) for f in kept}
    assert acknowledged
    assert acknowledged <= written
    assert written - acknowledged <= refused, "only one that the move overtook may be there and not be acknowledged"
    last = {(f["topic"], f["partition"]): f["committed"] for f in kept}
    assert last == {tuple(tp): offset for tp, offset in ran.committed.items()}


def test_the_coordinators_terms_agree_with_the_metadata_log(ran: Ran) -> None:
    facts = ran.lines(offsets_topic.FILE)
    terms = sorted({f["term"] for f in facts})
    partition = group_partition(ran.group, 3)
    moves = [
        f
        for f in ran.lines(metadata_log.FILE)
        if (f.get("topic"), f.get("partition")) == (offsets_topic.TOPIC, partition) and "leader" in f["change"]
    ]
    assert moves[-1]["leader"] == ran.moved_to
    assert moves[-1]["leader_epoch"] == terms[-1]
    moved_ns, slack_ns = moves[-1]["at_ns"], 2 * moves[-1]["uncertainty_ns"]
    assert all(f["at_ns"] + slack_ns >= moved_ns for f in facts if f["term"] == terms[-1])


def test_two_members_were_given_all_partitions_by_name(ran: Ran) -> None:
    facts = ran.lines(offsets_topic.FILE)
    generations = [f["members"] for f in facts if f["type"] == "classic-group" and len(f["members"]) == 2]
    current: dict[str, dict[str, list[int]]] = {}
    shared = [[m["assignment"] for m in members] for members in generations if all(m["assignment"] for m in members)]
    for fact in facts:
        if fact["type"] == "current" and not fact["deleted"]:
            current[fact["member_id"]] = fact["assigned"]
            shared += [list(current.values())]
    split = [sorted(p for given in state for p in given.get(ran.topic, [])) for state in shared if len(state) == 2]
    assert [0, 1, 2, 3] in split


def test_a_clean_end_leaves_a_trace(ran: Ran) -> None:
    apis = [(r["api"], r["generation"]) for r in ran.lines(request_log.FILE)]
    left = [api for api, epoch in apis if api == "LEAVE_GROUP" or (api == "CONSUMER_GROUP_HEARTBEAT" and epoch == -1)]
    assert len(left) == 2


def test_the_audit_reads_what_the_producer_wrote_and_leaves_the_group_alone(ran: Ran, cluster: ManagedCluster) -> None:
    partitions = {TopicPartition(ran.topic, p): 10 + p for p in range(4)}
    entries = audit.read(cluster.bootstrap(), partitions, ran.history, ran.committed)
    assert [e["tp"] for e in entries] == [10, 11, 12, 13]
    assert {TopicPartition(e["topic"], e["partition"]): e["committed"] for e in entries} == ran.committed
    assert all(e["log_start"] == 0 and e["committed"] <= e["log_end"] for e in entries)
    table = pq.read_table(ran.history / audit.FILE)
    assert {name: str(table.schema.field(name).type) for name in LOG_COLUMNS} == LOG_COLUMNS
    rows = table.to_pylist()
    for entry in entries:
        mine = [r["offset"] for r in rows if r["tp"] == entry["tp"]]
        assert mine == list(range(entry["log_start"], entry["log_end"]))
    assert sorted(r["seq"] for r in rows) == list(range(len(rows))), "every record of the one writer, once"
    assert {r["writer"] for r in rows} == {0}
    assert all((r["key"] % 4) + 10 == r["tp"] for r in rows), "the producer chooses the partition by the key"
    assert cluster.admin.committed(ran.group) == ran.committed


def test_row_groups_of_the_audit_never_mix_partitions(ran: Ran, cluster: ManagedCluster, tmp_path: Path) -> None:
    audit.read(cluster.bootstrap(), {TopicPartition(ran.topic, p): p for p in range(4)}, tmp_path)
    file = pq.ParquetFile(tmp_path / audit.FILE)
    groups_of = [set(file.read_row_group(n, columns=["tp"])["tp"].to_pylist()) for n in range(file.num_row_groups)]
    assert all(len(tps) == 1 for tps in groups_of)


def test_foreign_records_and_empty_partitions_are_audited_too(cluster: ManagedCluster, tmp_path: Path) -> None:
    cluster.admin.create_topics([scenario.Topic("foreign", partitions=2)])
    producer = ck.Producer({"bootstrap.servers": cluster.bootstrap(), "acks": "all"})
    for key, value in ((b"k", b"short"), (None, None), (b"5", payload.pack(3, 9, 5, 100))):
        producer.produce("foreign", key=key, value=value, partition=1)
    assert producer.flush(10) == 0
    partitions = {TopicPartition("foreign", 0): 0, TopicPartition("foreign", 1): 1}
    entries = audit.read(cluster.bootstrap(), partitions, tmp_path)
    assert [(e["log_end"], e["committed"]) for e in entries] == [(0, -1), (3, -1)]
    rows = pq.read_table(tmp_path / audit.FILE).to_pylist()
    assert [(r["tp"], r["offset"], r["key"], r["writer"], r["seq"]) for r in rows] == [
        (1, 0, payload.key_hash(b"k"), -1, -1),
        (1, 1, -1, -1, -1),
        (1, 2, 5, 3, 9),
    ]
    assert all(abs(r["appended_ms"] - clock_pair()[1] / 1e6) < 60_000 for r in rows)


@pytest.mark.parametrize("left", [2, 0])
def test_what_is_deleted_while_it_is_read_is_passed_over(
    cluster: ManagedCluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, left: int
) -> None:
    """As by retention, which waits for no audit. The log begins for it where it begins in the end."""
    topic, read_all = f"deleted-{left}", audit._read_all
    cluster.admin.create_topics([scenario.Topic(topic, partitions=1)])
    producer = ck.Producer({"bootstrap.servers": cluster.bootstrap(), "acks": "all"})
    for number in range(5):
        producer.produce(topic, value=payload.pack(3, number, 5, 100), partition=0)
    assert producer.flush(10) == 0

    def reading(*args: Any) -> Any:
        cluster.admin.delete_records(topic, {0: 5 - left})
        return read_all(*args)

    monkeypatch.setattr(audit, "_read_all", reading)
    (entry,) = audit.read(cluster.bootstrap(), {TopicPartition(topic, 0): 0}, tmp_path)
    assert (entry["log_start"], entry["log_end"]) == (5 - left, 5)
    assert pq.read_table(tmp_path / audit.FILE)["offset"].to_pylist() == [3, 4][: left or -2]


def test_an_audit_of_a_topic_that_is_not_there_fails_with_its_name(cluster: ManagedCluster, tmp_path: Path) -> None:
    with pytest.raises(ClusterError, match="the audit cannot read"):
        audit.read(cluster.bootstrap(), {TopicPartition("nowhere", 0): 0}, tmp_path)


def test_a_new_leader_of_the_offsets_topic_tells_where_its_log_stood(ran: Ran) -> None:
    reported = [
        f for f in ran.lines(metadata_log.FILE) if f.get("topic") == offsets_topic.TOPIC and f["type"] == "partition"
    ]
    led = [f for f in reported if f["change"] == "created" or "leader" in f["change"]]
    assert {f["partition"] for f in led} == {0, 1, 2}
    assert all(0 <= f["high_watermark"] <= f["log_end"] for f in led)
    assert led[-1]["leader"] == ran.moved_to
    assert led[-1]["log_end"] > 0
    assert all("high_watermark" not in f for f in reported if f not in led)
