"""The running cluster and group: what faults may act on, and the view that selectors read."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from fencepost.clock import clock_pair
from fencepost.errors import NotShown
from fencepost.evidence.brokers.clock_conversion import WallClockConverter
from fencepost.evidence.brokers.coordinator_log import CoordinatorLog
from fencepost.group.running_group import MemberHandle, RunningGroup
from fencepost.interfaces import Cluster
from fencepost.interfaces.group_snapshot import GroupSnapshot, MemberStatus
from fencepost.model import MemberView, TopicPartition, View, group_partition
from fencepost.model.run_names import RunNames


class LiveFaultContext:
    """What faults may act on, and the view that selectors read. Satisfies ``interfaces.FaultContext``.

    Attributes:
        group: the group's ``group.id``.
        disturbed: members that a fault affects now; the injector keeps it up to date.
    """

    def __init__(self, cluster: Cluster, group: RunningGroup, topics: Iterable[str], names: RunNames) -> None:
        """``topics``: the workload's topics, by their names in the cluster."""
        self.cluster, self.group, self._handles, self._topics = cluster, names.group, group, tuple(topics)
        self._names = names
        self.disturbed: set[int] = set()
        self._log: CoordinatorLog | None = None
        self._read: dict[int, int] = dict.fromkeys(cluster.brokers, 0)  # how many bytes of each broker's log were read

    @property
    def members(self) -> Sequence[MemberHandle]:
        """The member handles, by member index."""
        return self._handles.members

    @property
    def topics(self) -> Mapping[str, str]:
        """The workload's topics: name in the scenario -> name in the cluster."""
        return {self._names.in_scenario(topic): topic for topic in self._topics}

    def view(self) -> View:
        """The state now."""
        self._handles.refresh()
        leaders = {
            self._known(TopicPartition(topic, p)): leader
            for topic in self._topics
            for p, leader in self.cluster.admin.leaders(topic).items()
        }
        members = tuple(
            MemberView(
                m.index,
                m.slot,
                m.actor,
                m.pid is not None,
                m.index in self.disturbed,
                frozenset(map(self._known, m.owned)),
                m.member_id,
                m.consumers,
            )
            for m in self._handles.members
        )
        coordinator = self.cluster.admin.coordinator(self.group)
        return View(members, tuple(self.cluster.brokers), leaders, coordinator)

    def signs(self) -> GroupSnapshot:
        """The current protocol states of members and coordinator.

        Raises:
            ClusterError: at the first call, no broker reports the number of partitions of ``__consumer_offsets``.
        """
        self._handles.refresh()
        members = []
        for member in self._handles.members:
            live = member.life.live if member.life else None
            reported = (live.open, live.lost_ns, live.ids) if live else ({}, 0, frozenset[str]())
            here = (member.index, member.actor, member.pid is not None, member.index in self.disturbed)
            members.append(MemberStatus(*here, *reported, member.consumers, live.ended if live else {}))
        try:
            return GroupSnapshot(tuple(members), self._coordinator_log().signs, self._handles.outside is not None)
        except NotShown:
            return GroupSnapshot(tuple(members), None, self._handles.outside is not None)

    def _coordinator_log(self) -> CoordinatorLog:
        """The coordinator's log, read up to now."""
        if self._log is None:
            self.cluster.evidence.text_log(next(iter(self._read)))  # raises NotShown before the next line asks a broker
            partition = group_partition(self.group, len(self.cluster.admin.leaders("__consumer_offsets")))
            self._log = CoordinatorLog(self.group, partition, lambda: WallClockConverter.of([clock_pair()]))
        for broker, start in self._read.items():
            lines, self._read[broker] = self.cluster.evidence.text_log(broker, start)
            self._log.feed(broker, lines)
        return self._log

    def _known(self, tp: TopicPartition) -> TopicPartition:
        """The partition under the topic's name in the scenario, as selectors use it."""
        return tp._replace(topic=self._names.in_scenario(tp.topic))
