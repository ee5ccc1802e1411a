"""Added partitions: topics get more partitions, which Kafka cannot remove again."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from fencepost.errors import ScenarioError
from fencepost.interfaces import FaultContext, Injection, Target
from fencepost.model import Inventory, TopicPartition, serialization
from fencepost.witnesses.base import CallbackInjection, Observation, witness

PROOF_S = 10.0


@dataclass(frozen=True)
class AddPartitions:
    """Adds partitions to topics. Witness: the new partitions exist, and each has a leader.

    It chooses its targets itself and has nothing to heal. Producers write to the new partitions only with
    ``added_partitions`` of the workload; otherwise members are assigned partitions that stay empty.

    Attributes:
        topics: empty: all topics of the workload.
        count: the number of partitions to add to each topic.
    """

    topics: tuple[str, ...] = ()
    count: int = 1
    needs: ClassVar[frozenset[str]] = frozenset({"admin", "partitions"})
    hits: ClassVar[frozenset[str]] = frozenset()
    heals: ClassVar[bool] = False
    seen: ClassVar[str] = (
        "with the consumer protocol the coordinator reassigns by itself; with the classic one members rejoin when "
        "they refresh their metadata (topic.metadata.refresh.interval.ms, 5 min by default)"
    )

    def __post_init__(self) -> None:
        serialization.validate_fields(self)
        if self.count < 1:
            raise ScenarioError(f"found count={self.count}; use 1 or more: Kafka cannot remove a partition")

    def inventory_problem(self, inventory: Inventory) -> str:
        """See ``ChecksInventory``."""
        return next(filter(None, (inventory.lacks_partition(TopicPartition(topic, 0)) for topic in self.topics)), "")

    def inject(self, world: FaultContext, target: Target) -> Injection:
        """Create the partitions.

        Raises:
            ClusterError: the controller refused.
        """
        admin, topics = world.cluster.admin, [world.topics[topic] for topic in self.topics or world.topics]
        before = {topic: len(admin.leaders(topic)) for topic in topics}
        for topic, had in before.items():
            admin.add_partitions(topic, had + self.count)
        added = [TopicPartition(topic, had + n) for topic, had in before.items() for n in range(self.count)]

        def look() -> Observation:
            leaders = {topic: admin.leaders(topic) for topic in topics}
            missing = [str(tp) for tp in added if leaders[tp.topic].get(tp.partition, -1) < 0]
            data = {"before": before, "now": {topic: len(led) for topic, led in leaders.items()}}
            names = ", ".join(map(str, added))
            return Observation(
                f"no leader of {', '.join(missing)}" if missing else "", f"there are leaders of {names}", data
            )

        return CallbackInjection(proven=lambda: witness(look, PROOF_S))
