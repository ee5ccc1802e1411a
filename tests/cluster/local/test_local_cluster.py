"""The local back-end as faults and members meet it: real brokers, proxies, and what they left in their files."""

from __future__ import annotations

import json
import signal
import socket
import uuid
from collections.abc import Iterator
from pathlib import Path

import confluent_kafka as ck
import psutil
import pytest

from fencepost.clock import clock_pair, eventually
from fencepost.clusters import local
from fencepost.clusters.admin import OFFSETS_TOPIC
from fencepost.clusters.managed_cluster import ManagedCluster
from fencepost.errors import ClusterError
from fencepost.evidence.brokers import offsets_topic
from fencepost.evidence.brokers.clock_conversion import WallClockConverter
from fencepost.interfaces import BrokerEvidence, Cluster, ClusterSpec, Links
from fencepost.interfaces.process import Node
from fencepost.model import TopicPartition, group_partition
from fencepost.model.topic import Topic
from fencepost.processes.owner import ProcessOwner

pytestmark = pytest.mark.cluster

EVERYBODY = {1, 2, 3}
LONG_S = 60  # for what comes at once on a machine that has nothing else to do


@pytest.fixture
def topic(cluster: ManagedCluster) -> str:
    """A topic of the test's own with three partitions and thirty records."""
    name = f"t-{uuid.uuid4().hex[:8]}"
    cluster.admin.create_topics([Topic(name, partitions=3)])
    producer = ck.Producer({"bootstrap.servers": cluster.bootstrap(), "acks": "all"})
    for number in range(30):
        producer.produce(name, str(number).encode(), partition=number % 3)
    assert producer.flush(LONG_S) == 0
    return name


@pytest.fixture
def group() -> str:
    return f"g-{uuid.uuid4().hex[:8]}"


def consume(cluster: ManagedCluster, slot: int, group: str, topic: str, records: int) -> None:
    """Read so many records in this slot as a member of the group, commit, and leave."""
    settings = {
        "bootstrap.servers": cluster.bootstrap(slot),
        "group.id": group,
        "auto.offset.reset": "earliest",
        "enable.auto.commit": False,
    }
    member = ck.Consumer(settings)
    member.subscribe([topic])
    seen: list[ck.Message] = []

    def enough() -> bool:
        seen.extend(m for m in member.consume(100, 0.1) if not m.error())
        return len(seen) >= records

    try:
        eventually(enough, LONG_S, f"{records} records in slot {slot}", state=lambda: f"{len(seen)} came")
        member.commit(asynchronous=False)
    finally:
        member.close()


def in_sync(cluster: ManagedCluster, topic: str) -> bool:
    return all(set(replicas) == EVERYBODY for replicas in cluster.admin.in_sync_replicas(topic).values())


def test_the_handles_satisfy_the_contract(cluster: ManagedCluster) -> None:
    everything: Cluster = cluster
    node: Node = everything.brokers[1]
    links: Links = everything.links
    evidence: BrokerEvidence = everything.evidence
    assert (node.name, sorted(everything.brokers)) == ("broker-1", [1, 2, 3])
    assert links.endpoint(0, 1) != links.upstream(0, 1)
    assert evidence is cluster.evidence


def test_a_member_learns_only_its_own_proxies(cluster: ManagedCluster) -> None:
    for slot in (0, 3):
        client = ck.Consumer({"bootstrap.servers": cluster.bootstrap(slot), "group.id": "looks-only"})
        brokers = client.list_topics(timeout=LONG_S).brokers
        client.close()
        learned = {number: (broker.host, broker.port) for number, broker in brokers.items()}
        assert learned == {number: cluster.links.endpoint(slot, number) for number in EVERYBODY}


def test_what_a_group_commits_is_seen_by_the_administrator(cluster: ManagedCluster, topic: str, group: str) -> None:
    assert cluster.admin.committed(group) == {}
    consume(cluster, 0, group, topic, 30)
    assert cluster.admin.end_offsets(topic) == {0: 10, 1: 10, 2: 10}
    assert cluster.admin.committed(group) == {TopicPartition(topic, p): 10 for p in range(3)}


def test_the_name_of_a_group_tells_its_coordinator(cluster: ManagedCluster) -> None:
    leaders = cluster.admin.leaders(OFFSETS_TOPIC)
    for name in ("orders", "a", "b", "\N{SNOWMAN}"):
        assert cluster.admin.coordinator(name) == leaders[group_partition(name, len(leaders))]


def test_a_moved_coordinator_is_seen_in_the_metadata_and_by_find_coordinator(
    cluster: ManagedCluster, topic: str, group: str
) -> None:
    consume(cluster, 0, group, topic, 30)
    place = TopicPartition(OFFSETS_TOPIC, group_partition(group, 3))
    before = cluster.admin.coordinator(group)
    wanted = min(EVERYBODY - {before})
    cluster.admin.move_leader(place, wanted)
    eventually(lambda: cluster.admin.coordinator(group) == wanted, LONG_S, f"FindCoordinator to name broker {wanted}")
    eventually(
        lambda: cluster.admin.leaders(OFFSETS_TOPIC)[place.partition] == wanted, LONG_S, "the metadata to say so"
    )
    assert cluster.admin.committed(group) == {TopicPartition(topic, p): 10 for p in range(3)}


def test_a_broker_without_a_replica_cannot_be_made_leader(cluster: ManagedCluster) -> None:
    with pytest.raises(ClusterError, match=r"broker 9 has no replica of __consumer_offsets-0 \(they are on"):
        cluster.admin.move_leader(TopicPartition(OFFSETS_TOPIC, 0), 9)


def test_a_topic_that_is_there_is_refused_with_its_name(cluster: ManagedCluster, topic: str) -> None:
    with pytest.raises(ClusterError, match=f"topic {topic} was refused: TopicAlreadyExistsError"):
        cluster.admin.create_topics([Topic(topic, partitions=3)])


def test_what_was_done_without_an_answer_is_not_refused_the_second_time(
    cluster: ManagedCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    brokers = cluster.admin._brokers  # type: ignore[attr-defined]
    ask = brokers.request
    monkeypatch.setattr(brokers, "request", lambda request: [ask(request), ask(request)][1])
    cluster.admin.create_topics([Topic("asked-twice", partitions=1)])
    cluster.admin.add_partitions("asked-twice", 3)
    cluster.admin.recreate_topic("asked-twice")
    assert cluster.admin.end_offsets("asked-twice") == {0: 0, 1: 0, 2: 0}


@pytest.mark.parametrize(("how", "code"), [(signal.SIGTERM, 143), (signal.SIGKILL, -signal.SIGKILL)])
def test_a_broker_that_ended_comes_back_with_its_data(cluster: ManagedCluster, topic: str, how: int, code: int) -> None:
    broker = cluster.brokers[2]
    before = broker.pid
    broker.signal(how)
    assert broker.wait_ended(LONG_S) == code
    assert broker.pid is None
    eventually(lambda: not in_sync(cluster, topic), LONG_S, "the controller to notice")
    eventually(lambda: 2 not in cluster.admin.leaders(topic).values(), LONG_S, "others to lead")
    broker.start()
    assert broker.pid not in (None, before)
    eventually(lambda: in_sync(cluster, topic), LONG_S, "broker 2 to catch up")
    cluster.admin.move_leader(TopicPartition(topic, 0), 2)
    eventually(lambda: cluster.admin.leaders(topic)[0] == 2, LONG_S, "broker 2 to lead")
    assert cluster.admin.end_offsets(topic) == {0: 10, 1: 10, 2: 10}


def test_a_paused_broker_is_fenced_and_does_not_hold_up_the_administrator(cluster: ManagedCluster, topic: str) -> None:
    broker = cluster.brokers[1]
    pid = broker.pid
    broker.signal(signal.SIGSTOP)
    eventually(lambda: psutil.Process(pid).status() == psutil.STATUS_STOPPED, LONG_S, "state T")
    eventually(lambda: 1 not in cluster.admin.leaders(topic).values(), LONG_S, "the controller to fence broker 1")
    assert cluster.admin.coordinator("anybody") >= -1
    broker.signal(signal.SIGCONT)
    eventually(lambda: in_sync(cluster, topic), LONG_S, "broker 1 to be in sync again")
    assert broker.pid == pid


def connection(cluster: ManagedCluster, slot: int, broker: int) -> socket.socket:
    return socket.create_connection(cluster.links.endpoint(slot, broker), timeout=LONG_S)


# ApiVersions, version 0, correlation 7, no client id: what any broker answers at once.
ASK = bytes.fromhex("0000000a00120000 00000007ffff")


def answers(cluster: ManagedCluster, slot: int, broker: int, within_s: float = LONG_S) -> bool:
    try:
        with connection(cluster, slot, broker) as link:
            link.settimeout(within_s)
            link.sendall(ASK)
            return link.recv(8)[4:8] == ASK[8:12]
    except OSError:
        return False


def test_a_black_hole_swallows_one_link_until_it_is_removed(cluster: ManagedCluster) -> None:
    assert answers(cluster, 1, 2)
    name = cluster.links.add_toxic(1, 2, "timeout", "upstream", {"timeout": 0})
    assert cluster.links.toxics(1, 2) == (name,)
    assert not answers(cluster, 1, 2, within_s=1)
    assert answers(cluster, 1, 3)
    assert answers(cluster, 2, 2)
    cluster.links.remove_toxic(1, 2, name)
    cluster.links.remove_toxic(1, 2, name)  # what is not there is no error
    assert answers(cluster, 1, 2)


def test_a_reset_takes_everything_away(cluster: ManagedCluster) -> None:
    cluster.links.add_toxic(0, 1, "timeout", "upstream", {"timeout": 0})
    cluster.links.add_toxic(2, 3, "timeout", "downstream", {"timeout": 0})
    cluster.links.reset()
    assert answers(cluster, 0, 1)
    assert answers(cluster, 2, 3)


def test_a_toxic_that_does_not_exist_is_refused_with_a_sentence(cluster: ManagedCluster) -> None:
    with pytest.raises(ClusterError, match=r"Toxiproxy refused post .*invalid toxic type"):
        cluster.links.add_toxic(0, 1, "poison", "upstream", {})
    with pytest.raises(ClusterError, match="no link between slot 99 and broker 1"):
        cluster.links.add_toxic(99, 1, "timeout", "upstream", {})


def test_the_request_log_names_the_slot_and_begins_with_the_time(
    cluster: ManagedCluster, topic: str, group: str
) -> None:
    consume(cluster, 3, group, topic, 30)

    def joins() -> list[str]:
        lines = (line for broker in EVERYBODY for line in cluster.evidence.request_log(broker))
        return [line for line in lines if '"JOIN_GROUP"' in line and f'"{group}"' in line]

    found = eventually(joins, LONG_S, "the request log to hold the JoinGroup")
    assert all('"listener":"SLOT3"' in line for line in found)
    assert all(line.split(" ", 1)[0].isdecimal() and "Completed request:{" in line for line in found)


def test_the_dump_holds_commits_and_leader_changes(cluster: ManagedCluster, topic: str, group: str) -> None:
    consume(cluster, 0, group, topic, 30)
    commits = [line for line in cluster.evidence.dump(OFFSETS_TOPIC, group_partition(group, 3)) if f'"{group}"' in line]
    assert any('"topic":"' + topic in line and '"offset":10' in line for line in commits)
    assert any("PARTITION_RECORD" in line for line in cluster.evidence.dump("__cluster_metadata", 0))
    with pytest.raises(ClusterError, match="orders cannot be decoded"):
        list(cluster.evidence.dump("orders", 0))


def test_the_dump_holds_the_ends_of_transactions(
    cluster: ManagedCluster, topic: str, group: str, tmp_path: Path
) -> None:
    producer = ck.Producer({"bootstrap.servers": cluster.bootstrap(), "transactional.id": group})
    consumer = ck.Consumer({"bootstrap.servers": cluster.bootstrap(), "group.id": group})
    producer.init_transactions(30)
    for offset, end in ((3, producer.commit_transaction), (7, producer.abort_transaction)):
        producer.begin_transaction()
        place = ck.TopicPartition(topic, 0, offset)
        producer.send_offsets_to_transaction([place], consumer.consumer_group_metadata(), 30)
        end(30)
    consumer.close()
    clock = WallClockConverter.of([clock_pair()])
    offsets_topic.collect(cluster.evidence, group_partition(group, 3), clock, group, tmp_path)
    facts = [json.loads(line) for line in (tmp_path / offsets_topic.FILE).read_text().splitlines()]
    reported = [(fact["type"], fact.get("committed")) for fact in facts]
    assert reported == [("commit", 3), ("transaction-end", True), ("commit", 7), ("transaction-end", False)]


def test_the_logs_of_every_process_are_collected(cluster: ManagedCluster, tmp_path: Path) -> None:
    cluster.evidence.collect_logs(tmp_path / "logs")
    names = {path.name for path in (tmp_path / "logs").iterdir()}
    wanted = {"controller.log", "toxiproxy.log", *(f"broker-{broker}.log" for broker in EVERYBODY)}
    assert wanted <= names
    assert "broker-1-kafka-request.log" in names


@pytest.fixture
def owner() -> Iterator[ProcessOwner]:
    with ProcessOwner.open() as owner:
        yield owner


def test_two_clusters_live_side_by_side_and_stopping_frees_the_addresses(
    cluster: ManagedCluster, owner: ProcessOwner
) -> None:
    second = local.start(ClusterSpec(brokers=1, slots=1), owner)
    address = second.links.endpoint(0, 1)
    try:
        assert address[0] not in {cluster.links.endpoint(slot, 1)[0] for slot in range(4)}
        assert answers(second, 0, 1)
    finally:
        second.stop()
        second.stop()
    assert second.processes == ()
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(address, timeout=1)
    assert list(second.evidence.dump("__cluster_metadata", 0))  # its files stay until the owner is closed


def test_a_cluster_that_cannot_start_says_why_and_leaves_nothing_running(owner: ProcessOwner) -> None:
    spec = ClusterSpec(brokers=1, slots=1, broker_config={"log.retention.ms": "for ever"})
    with pytest.raises(ClusterError, match=r"(?s)ended before it served.*Invalid value for ever"):
        local.start(spec, owner)
    carried = [p for p in psutil.process_iter(["environ"]) if (p.info["environ"] or {}).get("FENCEPOST_OWNER")]
    assert owner.token not in {p.info["environ"]["FENCEPOST_OWNER"] for p in carried}
