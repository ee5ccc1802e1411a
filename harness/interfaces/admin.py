"""The contracts of an administrator of replicas, topics, logs and groups, past all proxies (OBSERVER listeners)."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Protocol

from fencepost.interfaces.described import Described
from fencepost.model import TopicPartition

if TYPE_CHECKING:
    from fencepost.model.topic import Topic


class ReplicaAdmin(Protocol):
    """Who keeps a partition, and who leads it."""

    def leaders(self, topic: str) -> dict[int, int]:
        """Leader broker of every partition of ``topic``; -1 where there is none."""

    def in_sync_replicas(self, topic: str) -> dict[int, tuple[int, ...]]:
        """In-sync replicas of every partition of ``topic``."""

    def replicas(self, topic: str) -> dict[int, tuple[int, ...]]:
        """Replicas of every partition of ``topic``, the preferred leader first."""

    def move_leader(self, tp: TopicPartition, to_broker: int) -> None:
        """Make ``to_broker`` (a replica) the leader without a crash; returns when that is accepted, to be proven."""

    def reassign(self, tp: TopicPartition, replicas: Sequence[int]) -> None:
        """Have these brokers keep a partition, in this order; returns when that is accepted, to be proven."""


class TopicAdmin(Protocol):
    """What topics there are, of how many partitions, and whose word is taken for it."""

    def create_topics(self, topics: Iterable[Topic]) -> None:
        """Create topics and return once every broker knows a leader for each partition."""

    def recreate_topic(self, topic: str) -> None:
        """Delete a topic and make it again, as it was at first; returns once every broker knows the new one."""

    def add_partitions(self, topic: str, count: int) -> None:
        """Have ``topic`` have ``count`` partitions, which are more; returns when that is accepted, to be proven."""

    def names_by_id(self, topics: Collection[str]) -> dict[str, str]:
        """These topics by their ids, as Kafka's tools write ids."""

    def doubt(self, brokers: Collection[int]) -> Callable[[], None]:
        """Ask these brokers last, as they may know only what was once so. Returns what takes it back."""


class LogAdmin(Protocol):
    """What partitions hold, and by which settings."""

    def start_offsets(self, topic: str) -> dict[int, int]:
        """Where the log of every partition of ``topic`` begins."""

    def end_offsets(self, topic: str) -> dict[int, int]:
        """Where the log of every partition of ``topic`` ends."""

    def delete_records(self, topic: str, before: Mapping[int, int]) -> None:
        """Delete the records of partitions before an offset each; returns when that is accepted, to be proven."""

    def topic_settings(self, topic: str, names: Collection[str]) -> dict[str, str]:
        """Some settings that are in force for ``topic``; those that brokers do not tell are left out."""

    def settings(self, broker: int, names: Collection[str]) -> dict[str, str]:
        """Some settings of a broker; those that it does not tell are left out."""


class GroupAdmin(Protocol):
    """Groups, as their coordinators know them."""

    def coordinator(self, group: str) -> int:
        """The broker that FindCoordinator names for ``group``; -1 while there is none."""

    def committed(self, group: str) -> dict[TopicPartition, int]:
        """The group's committed offsets (next offset to read)."""

    def describe(self, group: str) -> Described:
        """What the coordinator tells of the group, whatever its protocol."""

    def alter_offsets(self, group: str, offsets: Mapping[TopicPartition, int]) -> None:
        """Set committed offsets of a group without members; returns when that is in the coordinator's log."""

    def remove_member(self, group: str, member_id: str) -> str:
        """Have the coordinator remove a member from the group; the id that it says it removed."""


class ClusterAdmin(ReplicaAdmin, TopicAdmin, LogAdmin, GroupAdmin, Protocol):
    """All of them."""
