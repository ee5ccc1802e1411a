"""The contracts of an administrator of replicas, topics, logs and groups. It connects without proxies (OBSERVER)."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Protocol

from fencepost.interfaces.group_description import GroupDescription
from fencepost.model import TopicPartition

if TYPE_CHECKING:
    from fencepost.model.topic import Topic


class ReplicaAdmin(Protocol):
    """Replicas and leaders of partitions."""

    def leaders(self, topic: str) -> dict[int, int]:
        """Leader broker of every partition of ``topic``; -1 where there is none."""

    def in_sync_replicas(self, topic: str) -> dict[int, tuple[int, ...]]:
        """In-sync replicas of every partition of ``topic``."""

    def replicas(self, topic: str) -> dict[int, tuple[int, ...]]:
        """Replicas of every partition of ``topic``, the preferred leader first."""

    def move_leader(self, tp: TopicPartition, to_broker: int) -> None:
        """Make ``to_broker`` (a replica) the leader without a crash; returns when accepted, not yet proven."""

    def reassign(self, tp: TopicPartition, replicas: Sequence[int]) -> None:
        """Make these brokers the replicas of a partition, in this order; returns when accepted, not yet proven."""


class TopicAdmin(Protocol):
    """Topics, their numbers of partitions, and which brokers to trust about them."""

    def create_topics(self, topics: Iterable[Topic]) -> None:
        """Create topics and return once every broker knows a leader for each partition."""

    def recreate_topic(self, topic: str) -> None:
        """Delete a topic and create it again with its settings; returns once every broker knows the new one."""

    def add_partitions(self, topic: str, count: int) -> None:
        """Raise the number of partitions of ``topic`` to ``count``; returns when accepted, not yet proven."""

    def names_by_id(self, topics: Collection[str]) -> dict[str, str]:
        """Names of these topics by topic id, in the format of Kafka's tools."""

    def deprioritize(self, brokers: Collection[int]) -> Callable[[], None]:
        """Query these brokers last: their metadata may be stale. Returns the function that ends this."""


class LogAdmin(Protocol):
    """The logs of partitions, and settings of topics and brokers."""

    def start_offsets(self, topic: str) -> dict[int, int]:
        """Where the log of every partition of ``topic`` begins."""

    def end_offsets(self, topic: str) -> dict[int, int]:
        """Where the log of every partition of ``topic`` ends."""

    def delete_records(self, topic: str, before: Mapping[int, int]) -> None:
        """Delete the records of each partition below its offset; returns when accepted, not yet proven."""

    def topic_settings(self, topic: str, names: Collection[str]) -> dict[str, str]:
        """These settings as they apply to ``topic``; settings that brokers do not return are omitted."""

    def settings(self, broker: int, names: Collection[str]) -> dict[str, str]:
        """These settings of a broker; settings that it does not return are omitted."""


class GroupAdmin(Protocol):
    """Groups, as their coordinators describe them."""

    def coordinator(self, group: str) -> int:
        """The broker that FindCoordinator returns for ``group``; -1 while there is none."""

    def committed(self, group: str) -> dict[TopicPartition, int]:
        """The group's committed offsets (next offset to read)."""

    def describe(self, group: str) -> GroupDescription:
        """The coordinator's description of the group, whatever its protocol."""

    def alter_offsets(self, group: str, offsets: Mapping[TopicPartition, int]) -> None:
        """Set committed offsets of a group without members; returns when they are in the coordinator's log."""

    def remove_member(self, group: str, member_id: str) -> str:
        """Make the coordinator remove a member from the group; returns the id that it reports as removed."""


class ClusterAdmin(ReplicaAdmin, TopicAdmin, LogAdmin, GroupAdmin, Protocol):
    """All of them."""
