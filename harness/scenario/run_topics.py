"""The topics of one run, under the names that they have in its cluster, and the numbers of their partitions."""

from __future__ import annotations

from dataclasses import replace

from fencepost.interfaces import Writes
from fencepost.interfaces.admin import ReplicaAdmin, TopicAdmin
from fencepost.model import TopicPartition
from fencepost.model.run_names import RunNames
from fencepost.scenario.scenario import Scenario
from fencepost_member.config import Numbers


class Topics:
    """The topics of a run.

    Attributes:
        made: those of the scenario.
        beside: those that members write besides; the first one is for what they write of records.
        requeued: whether they write to those that they read.
        numbers: the number ``tp`` of each partition that is read.
        by_name: the same, topic -> partition -> number, as the run begins.
    """

    def __init__(self, scenario: Scenario, names: RunNames) -> None:
        self.made, self.beside = (
            [replace(topic, name=names.in_cluster(topic.name)) for topic in those]
            for those in (scenario.topics, scenario.outputs())
        )
        self.requeued = isinstance(scenario.workload, Writes) and not self.beside
        every = [TopicPartition(topic.name, p) for topic in self.made for p in range(topic.partitions)]
        self.numbers = {tp: number for number, tp in enumerate(every)}
        self.by_name = {
            topic.name: {p: self.numbers[TopicPartition(topic.name, p)] for p in range(topic.partitions)}
            for topic in self.made
        }
        self._ids: dict[str, str] = {}

    @property
    def holding(self) -> list[str]:
        """The names of those that hold what members wrote of records."""
        return [topic.name for topic in (self.made if self.requeued else self.beside[:1])]

    @property
    def retried(self) -> str:
        """The name of the one that tells what was retried; empty: nothing is."""
        return next((topic.name for topic in self.beside[1:]), "")

    def create(self, admin: TopicAdmin) -> None:
        """Make all of them.

        Raises:
            ClusterError: the controller refused one.
            WaitTimeout: they got no leaders.
        """
        admin.create_topics([*self.made, *self.beside])
        self._ids = admin.names_by_id(self.by_name)

    def remade(self, admin: TopicAdmin) -> frozenset[str]:
        """Those that were deleted, and made again, since they were created."""
        ids = admin.names_by_id(self.by_name)
        return frozenset(name for topic_id, name in ids.items() if topic_id not in self._ids)

    def number_what_was_added(self, admin: ReplicaAdmin) -> None:
        """Partitions that came during the run have the numbers that the members gave them."""
        numbers = Numbers({topic: {str(p): tp for p, tp in had.items()} for topic, had in self.by_name.items()})
        for topic in self.by_name:
            for partition in admin.leaders(topic):
                self.numbers[TopicPartition(topic, partition)] = numbers[topic, partition]
