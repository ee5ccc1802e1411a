"""The partitions that a fault of topics names, as the scenario calls them and as the cluster does."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from fencepost.interfaces import World
from fencepost.model import Inventory, TopicPartition, serialization
from fencepost.schedule.selectors import partition_of


@dataclass(frozen=True)
class OnPartitions:
    """What faults of topics have in common: they name what they hit by themselves.

    Attributes:
        partitions: like ``orders-3``; empty: all of the workload's topics.
    """

    partitions: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        serialization.settle(self)
        for name in self.partitions:
            partition_of(name)

    def lacking(self, inventory: Inventory) -> str:
        """See ``Names``."""
        return next(filter(None, (inventory.lacks_partition(partition_of(name)) for name in self.partitions)), "")

    def places(self, world: World) -> list[TopicPartition]:
        """What is meant, as the cluster calls it; of all, those that there are now."""
        if self.partitions:
            named = map(partition_of, self.partitions)
            return sorted({tp._replace(topic=world.topics[tp.topic]) for tp in named})
        admin = world.cluster.admin
        return [TopicPartition(topic, p) for topic in world.topics.values() for p in sorted(admin.leaders(topic))]


def listed(places: Sequence[TopicPartition]) -> str:
    """Partitions in words, not more than a few."""
    return f"{len(places)} partitions" if len(places) > 4 else ", ".join(map(str, places))


def by_topic(offsets: Mapping[TopicPartition, int]) -> dict[str, dict[int, int]]:
    """The numbers of partitions by topic, as administrators tell them."""
    found: dict[str, dict[int, int]] = {}
    for tp, number in offsets.items():
        found.setdefault(tp.topic, {})[tp.partition] = number
    return found
