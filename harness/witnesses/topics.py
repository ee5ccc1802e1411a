"""The partitions that a fault of topics names: names of the scenario, and names of the cluster."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from fencepost.interfaces import FaultContext
from fencepost.model import Inventory, TopicPartition, serialization
from fencepost.schedule.selectors import partition_of


@dataclass(frozen=True)
class OnPartitions:
    """Shared by faults of topics, whose options name their targets.

    Attributes:
        partitions: like ``orders-3``; empty: all of the workload's topics.
    """

    partitions: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        serialization.validate_fields(self)
        for name in self.partitions:
            partition_of(name)

    def inventory_problem(self, inventory: Inventory) -> str:
        """See ``ChecksInventory``."""
        return next(filter(None, (inventory.lacks_partition(partition_of(name)) for name in self.partitions)), "")

    def places(self, world: FaultContext) -> list[TopicPartition]:
        """The partitions by the cluster's names; without ``partitions`` all that exist now."""
        if self.partitions:
            named = map(partition_of, self.partitions)
            return sorted({tp._replace(topic=world.topics[tp.topic]) for tp in named})
        admin = world.cluster.admin
        return [TopicPartition(topic, p) for topic in world.topics.values() for p in sorted(admin.leaders(topic))]


def listed(places: Sequence[TopicPartition]) -> str:
    """Partitions in words: their names, or their number if there are more than four."""
    return f"{len(places)} partitions" if len(places) > 4 else ", ".join(map(str, places))


def by_topic(offsets: Mapping[TopicPartition, int]) -> dict[str, dict[int, int]]:
    """The numbers of partitions by topic, as administrators expect them."""
    found: dict[str, dict[int, int]] = {}
    for tp, number in offsets.items():
        found.setdefault(tp.topic, {})[tp.partition] = number
    return found
