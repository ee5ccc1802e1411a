"""The only admin client; it bypasses the proxies.

It sends requests of kafka-python, which has Kafka's whole protocol. confluent-kafka's AdminClient reassigns no
partitions, removes no members of a group and does not ask a chosen broker (who coordinates, who leads). What is used of
kafka-python is below its public interface, so ``pyproject.toml`` has the range of releases that were tried.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from fencepost.clusters.admin import groups, requests
from fencepost.clusters.admin import topics as made
from fencepost.clusters.admin.connections import Connections, already_leader, late, refuse
from fencepost.errors import ClusterError
from fencepost.interfaces.group_description import GroupDescription
from fencepost.model import TopicPartition
from fencepost.model.endpoint import Endpoint
from fencepost.model.topic import Topic

OFFSETS_TOPIC = "__consumer_offsets"


class Leadership(NamedTuple):
    """The leader of a partition since the leader epoch ``term``, and its replicas, which alone may lead it."""

    term: int
    leader: int
    replicas: tuple[int, ...]


class ObserverAdmin:
    """Administrates by the OBSERVER listeners. Satisfies ``ClusterAdmin``; may be used from several threads."""

    def __init__(self, observers: Mapping[int, Endpoint], access: Mapping[str, str] | None = None) -> None:
        """``access``: settings of SASL and TLS, see ``Connections``."""
        self._brokers = Connections(observers, access)

    def close(self) -> None:
        """Close all connections. May be called twice."""
        self._brokers.close()

    def deprioritize(self, brokers: Collection[int]) -> Callable[[], None]:
        """Query these brokers last: their metadata may be stale. Returns the function that ends this."""
        return self._brokers.deprioritize(brokers)

    def leaders(self, topic: str) -> dict[int, int]:
        """Leader broker of every partition of ``topic``; -1 where there is none, nothing when there is no topic."""
        return {p.partition_index: p.leader_id for p in self._partitions(topic)}

    def in_sync_replicas(self, topic: str) -> dict[int, tuple[int, ...]]:
        """In-sync replicas of every partition of ``topic``."""
        return {p.partition_index: tuple(p.isr_nodes) for p in self._partitions(topic)}

    def coordinator(self, group: str) -> int:
        """The broker that FindCoordinator returns for ``group``; -1 while there is none."""
        return groups.coordinator(self._brokers, group)

    def committed(self, group: str) -> dict[TopicPartition, int]:
        """The group's committed offsets (next offset to read).

        Raises:
            ClusterError: the right to ask is missing.
            WaitTimeout: no coordinator answered within 15 s.
        """
        return groups.committed(self._brokers, group)

    def describe(self, group: str) -> GroupDescription:
        """The coordinator's description of the group, whatever its protocol.

        Raises:
            ClusterError, WaitTimeout: the right to ask is missing; no coordinator answered within 15 s.
        """
        return groups.describe(self._brokers, group)

    def alter_offsets(self, group: str, offsets: Mapping[TopicPartition, int]) -> None:
        """Set committed offsets of a group without members; returns once they are in the coordinator's log.

        Raises:
            ClusterError: it refused, as when there are members.
        """
        groups.alter_offsets(self._brokers, group, offsets)

    def remove_member(self, group: str, member_id: str) -> str:
        """Make the coordinator remove a member; returns the id that it reports as removed, once that is in its log.

        Raises:
            ClusterError: it refused, as when there is no such member.
            WaitTimeout: no coordinator answered within 15 s.
        """
        return groups.remove_member(self._brokers, group, member_id)

    def move_leader(self, tp: TopicPartition, to_broker: int) -> None:
        """Make ``to_broker`` the leader without a crash: same replicas in another order, then a preferred election.

        Raises:
            ClusterError: it is no replica, or the controller refused (a replica out of sync cannot lead).
        """
        replicas = self.replicas(tp.topic).get(tp.partition, ())
        if to_broker not in replicas:
            raise ClusterError(f"broker {to_broker} has no replica of {tp} (they are on {list(replicas)})")
        self.elect_leader(tp, [to_broker, *(replica for replica in replicas if replica != to_broker)])

    def replicas(self, topic: str) -> dict[int, tuple[int, ...]]:
        """Replicas of every partition of ``topic``, the preferred leader first."""
        return {p.partition_index: tuple(p.replica_nodes) for p in self._partitions(topic)}

    def elect_leader(self, tp: TopicPartition, replicas: Sequence[int]) -> None:
        """Put the replicas of a partition into this order, and make the first of them its leader.

        Raises:
            ClusterError: the controller refused (a replica out of sync cannot lead).
        """
        self.reassign(tp, replicas)
        what = f"making broker {replicas[0]} the leader of {tp}"
        elected = self._brokers.request(lambda: requests.election(tp))
        for result in (elected, *elected.replica_election_results[0].partition_result):
            if not already_leader(result):
                refuse(result, what)

    def reassign(self, tp: TopicPartition, replicas: Sequence[int]) -> None:
        """Make these brokers the replicas of a partition, in this order; a leader among the removed ones is replaced.

        Raises:
            ClusterError: the controller refused.
        """
        answer = self._brokers.request(lambda: requests.reassignment(tp, list(replicas)))
        for result in (answer, *answer.responses[0].partitions):
            refuse(result, f"making brokers {list(replicas)} the replicas of {tp}")

    def create_topics(self, topics: Iterable[Topic]) -> None:
        """Create topics and return once every broker knows a leader for each partition.

        Raises:
            ClusterError: the controller refused one (it exists, or its settings are wrong).
            WaitTimeout: there were no leaders in time.
        """
        made.create(self._brokers, topics)

    def create_topic_on(self, topic: str, replicas: Mapping[int, list[int]], config: Mapping[str, str]) -> None:
        """Create a topic with given brokers for the replicas of each partition; see ``create_topics``.

        Raises:
            ClusterError, WaitTimeout: see ``create_topics``.
        """
        made.create_on(self._brokers, topic, replicas, config)

    def recreate_topic(self, topic: str) -> None:
        """Delete a topic and create it again: as many partitions, on the same brokers, with the same settings.

        Raises:
            ClusterError: the controller refused to delete it; it is unchanged.
            WaitTimeout: it did not disappear, or was not back in time; it may be gone.
        """
        made.recreate(self._brokers, topic)

    def add_partitions(self, topic: str, count: int) -> None:
        """Raise the number of partitions of ``topic`` to ``count``.

        Raises:
            ClusterError: the controller refused (there are as many, or no such topic).
        """
        made.grow(self._brokers, topic, count)

    def start_offsets(self, topic: str) -> dict[int, int]:
        """Where the log of every partition of ``topic`` begins (its first offset), by its leader.

        Raises:
            WaitTimeout: a partition had no leader that answered within 15 s.
        """
        return self._offsets(topic, requests.EARLIEST, "begins")

    def end_offsets(self, topic: str) -> dict[int, int]:
        """Where the log of every partition of ``topic`` ends (the next offset to be written), by its leader.

        Raises:
            WaitTimeout: a partition had no leader that answered within 15 s.
        """
        return self._offsets(topic, requests.LATEST, "ends")

    def delete_records(self, topic: str, before: Mapping[int, int]) -> None:
        """Delete the records of each partition below its offset; followers may do so later.

        Raises:
            ClusterError: a leader refused.
            WaitTimeout: a partition had no leader that answered within 15 s.
        """
        left = dict(before)

        def deleted() -> bool:
            for broker, mine in self._led(topic, left).items():
                answer = self._brokers.request_once(broker, requests.deletion(topic, {p: left[p] for p in mine}))
                for result in answer.topics[0].partitions if answer else ():
                    put_off = self._brokers.is_retriable(broker, result)
                    if not put_off or late(result):
                        left.pop(result.partition_index)
                    if not put_off:
                        refuse(result, f"deleting records of {topic}-{result.partition_index}")
            return not left

        self._brokers.wait(deleted, f"the leaders of {topic} to delete records")

    def batches(self, tp: TopicPartition, offset: int) -> bytes:
        """Batches of a partition as its leader stores them, from the one with ``offset`` on; the last may be cut.

        Raises:
            ClusterError: the right to read it is missing, or there are no records from there on.
            WaitTimeout: no leader answered within 15 s.
        """

        def fetched() -> bytes | None:
            leader = self.leaders(tp.topic).get(tp.partition, -1)
            answer = self._brokers.request_once(leader, requests.fetch(tp, offset))
            if answer is None:
                return None
            found = answer.responses[0].partitions[0]
            if self._brokers.is_retriable(leader, found):
                return None
            refuse(found, f"reading {tp}")
            return bytes(found.records or b"")

        return self._brokers.wait(fetched, f"the leader of {tp} to return the records from {offset} on")

    def append(self, broker: int, tp: TopicPartition, value: bytes) -> int | None:
        """Append a record to a partition that ``broker`` leads, which stamps it by its clock; returns the stamp in ms.

        It is -1 if the topic's records have their producers' times, and None if the broker did not answer.

        Raises:
            ClusterError: the broker refused.
        """
        answer = self._brokers.request_once(broker, requests.append(tp, value))
        if answer is None:
            return None
        result = answer.responses[0].partition_responses[0]
        refuse(result, f"writing to {tp} at broker {broker}")
        return int(result.log_append_time_ms)

    def leaderships(self, topic: str) -> dict[int, Leadership]:
        """The leadership of every partition of ``topic`` that has a leader."""
        return {
            p.partition_index: Leadership(p.leader_epoch, p.leader_id, tuple(p.replica_nodes))
            for p in self._partitions(topic)
            if p.leader_id >= 0
        }

    def why_silent(self, broker: int) -> str:
        """The last error of a broker's connection; empty if it answered."""
        return self._brokers.refusals.get(broker, "")

    def settings(self, broker: int, names: Collection[str]) -> dict[str, str]:
        """These settings of a broker; settings that it does not return are omitted."""
        asked = f"broker {broker} to return its settings"
        answer = self._brokers.wait(lambda: self._brokers.request_once(broker, requests.settings(broker, names)), asked)
        return {one.name: one.value for result in answer.results for one in result.configs or () if one.value}

    def log_level(self, broker: int, logger: str) -> str:
        """The level of a logger of a broker, its own or an inherited one; empty: there is no such logger.

        Raises:
            ClusterError: the right to ask is missing.
            WaitTimeout: the broker did not answer within 15 s.
        """
        what = f"reading the log level of {logger} of broker {broker}"
        asked = f"broker {broker} to return a log level"
        answer = self._brokers.wait(
            lambda: self._brokers.request_once(broker, requests.log_levels(broker, [logger])), asked
        ).results[0]
        refuse(answer, what)
        return next((str(one.value) for one in answer.configs or () if one.name == logger), "")

    def set_log_level(self, broker: int, logger: str, level: str) -> None:
        """Change the level of a logger of a broker (KIP-412); a broker that restarts has its configured level again.

        Raises:
            ClusterError: the broker refused, as without the right to alter the cluster's configuration.
            WaitTimeout: it did not answer within 15 s.
        """
        asked = f"broker {broker} to change a log level"
        answer = self._brokers.wait(
            lambda: self._brokers.request_once(broker, requests.log_level(broker, logger, level)), asked
        )
        refuse(answer.responses[0], f"setting the log level of {logger} of broker {broker} to {level}")

    def answers(self, broker: int) -> bool:
        """Whether a broker answers now."""
        return self._brokers.request_once(broker, requests.metadata()) is not None

    def topic_settings(self, topic: str, names: Collection[str]) -> dict[str, str]:
        """These settings as they apply to ``topic``; settings that brokers do not return are omitted."""
        answer = self._brokers.request(lambda: requests.topic_settings(topic)).results[0]
        return {one.name: one.value for one in answer.configs or () if one.name in names and one.value}

    def names_by_id(self, topics: Collection[str]) -> dict[str, str]:
        """Names of these topics by topic id, in the format of Kafka's tools; without missing topics."""
        return made.names_by_id(self._brokers, topics)

    def _offsets(self, topic: str, which: int, does: str) -> dict[int, int]:
        def answered() -> dict[int, int] | None:
            found: dict[int, int] = {}
            for broker, mine in self._led(topic, self.leaders(topic)).items():
                answer = self._brokers.request_once(broker, requests.list_offsets(topic, mine, which))
                if answer is None:
                    return None
                for one in answer.topics[0].partitions:
                    if self._brokers.is_retriable(broker, one):
                        return None
                    refuse(one, f"asking where {topic}-{one.partition_index} {does}")
                    found[one.partition_index] = int(one.offset)
            return found

        return self._brokers.wait(answered, f"the leaders of {topic} to report where it {does}")

    def _led(self, topic: str, partitions: Collection[int]) -> dict[int, list[int]]:
        """The given partitions by their leaders."""
        found: dict[int, list[int]] = {}
        for partition, leader in self.leaders(topic).items():
            if partition in partitions:
                found.setdefault(leader, []).append(partition)
        return found

    def _partitions(self, topic: str) -> list[Any]:
        return list(self._brokers.request(lambda: requests.metadata(topic)).topics[0].partitions)
