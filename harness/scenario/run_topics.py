"""The topics of one run, by their names in its cluster, and the numbers of their partitions."""

from __future__ import annotations

from dataclasses import replace

from fencepost.interfaces import WritesOutput
from fencepost.interfaces.admin import ReplicaAdmin, TopicAdmin
from fencepost.model import TopicPartition
from fencepost.model.run_names import RunNames
from fencepost.model.topic import REPLICAS
from fencepost.scenario.scenario import Scenario
from fencepost_member.config import PartitionNumbers


class RunTopics:
    """The topics of a run.

    Attributes:
        inputs: the topics of the scenario, which the group reads.
        outputs: other topics that members write; the first one is for their outputs.
        requeued: whether members write their outputs to the topics that they read.
        numbers: the number ``tp`` of each partition that the group reads.
        by_name: the same, topic -> partition -> number, at the start of the run.
    """

    def __init__(self, scenario: Scenario, names: RunNames) -> None:
        self.inputs, self.outputs = (
            [replace(topic, name=names.in_cluster(topic.name)) for topic in topics]
            for topics in (scenario.topics, scenario.outputs())
        )
        self.requeued = isinstance(scenario.workload, WritesOutput) and not self.outputs
        every = [TopicPartition(topic.name, p) for topic in self.inputs for p in range(topic.partitions)]
        self.numbers = {tp: number for number, tp in enumerate(every)}
        self.by_name = {
            topic.name: {p: self.numbers[TopicPartition(topic.name, p)] for p in range(topic.partitions)}
            for topic in self.inputs
        }
        self._ids: dict[str, str] = {}

    @property
    def effect_topics(self) -> list[str]:
        """The names of the topics that hold the members' outputs."""
        return [topic.name for topic in (self.inputs if self.requeued else self.outputs[:1])]

    @property
    def retried(self) -> str:
        """The name of the topic that lists retried records; empty if there is none."""
        return next((topic.name for topic in self.outputs[1:]), "")

    def create(self, admin: TopicAdmin, brokers: int) -> None:
        """Create all topics; with the default number of replicas only where there are as many ``brokers``.

        Raises:
            ClusterError: the controller rejected one.
            WaitTimeout: they got no leaders.
        """
        admin.create_topics(
            replace(topic, replication_factor=min(REPLICAS, brokers)) if topic.replication_factor == REPLICAS else topic
            for topic in (*self.inputs, *self.outputs)
        )
        self._ids = admin.names_by_id(self.by_name)

    def recreated(self, admin: TopicAdmin) -> frozenset[str]:
        """The topics that were deleted and recreated during the run."""
        ids = admin.names_by_id(self.by_name)
        return frozenset(name for topic_id, name in ids.items() if topic_id not in self._ids)

    def number_what_was_added(self, admin: ReplicaAdmin) -> None:
        """Add the partitions that were created during the run, with the same numbers that members gave them."""
        numbers = PartitionNumbers(
            {topic: {str(p): tp for p, tp in had.items()} for topic, had in self.by_name.items()}
        )
        for topic in self.by_name:
            for partition in admin.leaders(topic):
                self.numbers[TopicPartition(topic, partition)] = numbers[topic, partition]
