"""The administrator's view of a cluster, past all proxies. The only module that knows kafka-python.

A broker under test may be dead or frozen at any moment, and the library's own client sticks to whichever broker it
has a connection with. So there is one connection per broker here, every request has a time-out of its own, and one
that a broker does not answer is asked of the next.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from kafka import errors as kafka_errors
from kafka.net.inet import KafkaNetSocket
from kafka.net.manager import KafkaConnectionManager
from kafka.net.selector import NetworkSelector
from kafka.protocol.admin import AlterPartitionReassignmentsRequest, CreateTopicsRequest, ElectLeadersRequest
from kafka.protocol.consumer import ListOffsetsRequest, OffsetFetchRequest
from kafka.protocol.metadata import FindCoordinatorRequest, MetadataRequest

from fencepost.clock import eventually
from fencepost.clusters.nodes import Endpoint
from fencepost.errors import ClusterError
from fencepost.model import TopicPartition
from fencepost.scenario import Topic

OFFSETS_TOPIC = "__consumer_offsets"
ANSWER_MS = 1500
WITHIN_S = 15.0
PREFERRED, LATEST, GROUP = 0, -1, 0
_ONLY = "bootstrap-0"  # what the library calls the first (here: the only) address of a connection manager


class _Socket(KafkaNetSocket):  # type: ignore[misc]
    """A plain connection whose socket is closed when it cannot be made; the library's own is left to the collector."""

    SCHEMES = ("closing",)

    async def sock_connect(self, *arguments: Any, **options: Any) -> Any:
        """Connect, or close."""
        try:
            return await super().sock_connect(*arguments, **options)
        except BaseException:
            arguments[1].close()
            raise


class ObserverAdmin:
    """Administrates through the OBSERVER listeners. Satisfies ``Admin``; may be used from several threads."""

    def __init__(self, observers: Mapping[int, Endpoint]) -> None:
        self._net = NetworkSelector()
        self._net.start()
        self._brokers = {
            broker: KafkaConnectionManager(
                self._net,
                bootstrap_servers=str(endpoint),
                client_id="fencepost-admin",
                proxy_url="closing://",  # no proxy: how the library is told to use _Socket
                request_timeout_ms=ANSWER_MS,
                socket_connection_setup_timeout_ms=ANSWER_MS,
                socket_connection_setup_timeout_max_ms=ANSWER_MS,
                reconnect_backoff_ms=20,
                reconnect_backoff_max_ms=100,
            )
            for broker, endpoint in observers.items()
        }
        self._order = list(self._brokers)

    def close(self) -> None:
        """Close all connections. May be called twice."""
        brokers, self._brokers = self._brokers, {}
        for manager in brokers.values():
            self._net.run(manager.close)
        if brokers:
            self._net.close()

    def leaders(self, topic: str) -> dict[int, int]:
        """Leader broker of every partition of ``topic``; -1 where there is none, nothing when there is no topic."""
        return {p.partition_index: p.leader_id for p in self._partitions(topic)}

    def in_sync_replicas(self, topic: str) -> dict[int, tuple[int, ...]]:
        """In-sync replicas of every partition of ``topic``."""
        return {p.partition_index: tuple(p.isr_nodes) for p in self._partitions(topic)}

    def coordinator(self, group: str) -> int:
        """The broker that FindCoordinator names for ``group``; -1 while there is none."""
        answer = self._ask(lambda: FindCoordinatorRequest(key_type=GROUP, coordinator_keys=[group], min_version=4))
        found = answer.coordinators[0]
        return -1 if found.error_code else int(found.node_id)

    def committed(self, group: str) -> dict[TopicPartition, int]:
        """The group's committed offsets (next offset to read).

        Raises:
            WaitTimeout: no coordinator answered within 15 s.
        """

        def fetch() -> tuple[dict[TopicPartition, int]] | None:
            answer = self._ask_once(self.coordinator(group), _offset_fetch(group))
            if answer is None or answer.groups[0].error_code:
                return None
            found = [(topic.name, partition) for topic in answer.groups[0].topics for partition in topic.partitions]
            offsets = {TopicPartition(name, p.partition_index): int(p.committed_offset) for name, p in found}
            return ({tp: offset for tp, offset in offsets.items() if offset >= 0},)

        return eventually(fetch, WITHIN_S, f"the coordinator of {group} to tell its offsets")[0]

    def move_leader(self, tp: TopicPartition, to_broker: int) -> None:
        """Make ``to_broker`` the leader without a crash: same replicas in another order, then a preferred election.

        Raises:
            ClusterError: it is no replica, or the controller refused (a replica out of sync cannot lead).
        """
        replicas = {p.partition_index: tuple(p.replica_nodes) for p in self._partitions(tp.topic)}.get(tp.partition, ())
        if to_broker not in replicas:
            raise ClusterError(f"broker {to_broker} holds no replica of {tp} (they are on {list(replicas)})")
        order = [to_broker, *(replica for replica in replicas if replica != to_broker)]
        what = f"making broker {to_broker} the leader of {tp}"
        moved = self._ask(lambda: _reassignment(tp, order))
        for result in (moved, *moved.responses[0].partitions):
            _refuse(result, what)
        elected = self._ask(lambda: _election(tp))
        for result in (elected, *elected.replica_election_results[0].partition_result):
            if kafka_errors.for_code(result.error_code) is not kafka_errors.ElectionNotNeededError:
                _refuse(result, what)

    def create_topics(self, topics: Iterable[Topic]) -> None:
        """Create topics and return once every broker knows a leader for each partition.

        Raises:
            ClusterError: the controller refused one (it exists, or its settings are wrong).
            WaitTimeout: the leaders did not come.
        """
        wanted = {topic.name: topic for topic in topics}
        if not wanted:
            return
        for result in self._ask(lambda: _creation(wanted.values())).topics:
            _refuse(result, f"topic {result.name}")

        def led() -> bool:
            answers = [self._ask_once(broker, _metadata(*wanted)) for broker in self._brokers]
            return all(answer is None or _all_led(answer, wanted) for answer in answers) and any(answers)

        eventually(led, WITHIN_S, f"leaders for all partitions of {', '.join(wanted)}")

    def end_offsets(self, topic: str) -> dict[int, int]:
        """Where the log of every partition of ``topic`` ends (the next offset to be written), as its leader says.

        Raises:
            WaitTimeout: a partition had no leader that answered within 15 s.
        """

        def ends() -> dict[int, int] | None:
            found: dict[int, int] = {}
            leaders = self.leaders(topic)
            for broker in set(leaders.values()):
                mine = [partition for partition, leader in leaders.items() if leader == broker]
                answer = self._ask_once(broker, _list_offsets(topic, mine))
                if answer is None or any(p.error_code for p in answer.topics[0].partitions):
                    return None
                found |= {p.partition_index: int(p.offset) for p in answer.topics[0].partitions}
            return found

        return eventually(ends, WITHIN_S, f"the leaders of {topic} to tell where it ends")

    def _partitions(self, topic: str) -> list[Any]:
        return list(self._ask(lambda: _metadata(topic)).topics[0].partitions)

    def _ask(self, request: Callable[[], Any]) -> Any:
        """The answer of any broker; the one that answered last is asked first."""
        if not self._brokers:
            raise ClusterError("the cluster was stopped: nobody can be asked any more")

        def answer() -> Any:
            for broker in list(self._order):
                found = self._ask_once(broker, request())
                if found is not None:
                    self._order.sort(key=lambda other: other != broker)
                    return found
            return None

        return eventually(answer, WITHIN_S, "any broker to answer an administrator")

    def _ask_once(self, broker: int, request: Any) -> Any | None:
        """The answer of one broker; None when it gives none in time."""
        manager = self._brokers.get(broker)
        if manager is None:
            return None
        try:
            return self._net.run(manager.send, request, _ONLY, ANSWER_MS)
        except kafka_errors.KafkaError:
            return None


def _metadata(*topics: str) -> Any:
    wanted = [MetadataRequest.MetadataRequestTopic(name=topic) for topic in topics]
    return MetadataRequest(topics=wanted, allow_auto_topic_creation=False)


def _all_led(answer: Any, wanted: Mapping[str, Topic]) -> bool:
    led = {t.name: [p for p in t.partitions if p.leader_id >= 0] for t in answer.topics}
    return all(len(led.get(name, [])) == topic.partitions for name, topic in wanted.items())


def _offset_fetch(group: str) -> Any:
    wanted = [OffsetFetchRequest.OffsetFetchRequestGroup(group_id=group, topics=None)]
    return OffsetFetchRequest(groups=wanted, require_stable=False, min_version=8, max_version=9)


def _reassignment(tp: TopicPartition, replicas: list[int]) -> Any:
    topic = AlterPartitionReassignmentsRequest.ReassignableTopic
    partition = topic.ReassignablePartition(partition_index=tp.partition, replicas=replicas)
    wanted = [topic(name=tp.topic, partitions=[partition])]
    return AlterPartitionReassignmentsRequest(timeout_ms=ANSWER_MS, topics=wanted)


def _election(tp: TopicPartition) -> Any:
    return ElectLeadersRequest(
        election_type=PREFERRED, topic_partitions=[(tp.topic, [tp.partition])], timeout_ms=ANSWER_MS, min_version=1
    )


def _creation(topics: Iterable[Topic]) -> Any:
    new = CreateTopicsRequest.CreatableTopic
    wanted = [
        new(
            name=topic.name,
            num_partitions=topic.partitions,
            replication_factor=topic.replication_factor,
            assignments=[],
            configs=[new.CreatableTopicConfig(name=name, value=str(value)) for name, value in topic.config.items()],
        )
        for topic in topics
    ]
    return CreateTopicsRequest(topics=wanted, timeout_ms=ANSWER_MS)


def _list_offsets(topic: str, partitions: Iterable[int]) -> Any:
    wanted = ListOffsetsRequest.ListOffsetsTopic
    asked = [wanted.ListOffsetsPartition(partition_index=partition, timestamp=LATEST) for partition in partitions]
    return ListOffsetsRequest(replica_id=-1, isolation_level=0, topics=[wanted(name=topic, partitions=asked)])


def _refuse(result: Any, what: str) -> None:
    error = kafka_errors.for_code(result.error_code)
    if error is not kafka_errors.NoError:
        told = getattr(result, "error_message", None)
        raise ClusterError(f"{what} was refused: {error.__name__}{f' ({told})' if told else ''}")
