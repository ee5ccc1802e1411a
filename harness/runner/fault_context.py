"""The running cluster and group as faults may touch them, and the view of both that selectors see."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from fencepost.clock import clock_pair
from fencepost.errors import NotShown
from fencepost.evidence.coordinator_log import CoordinatorLog
from fencepost.evidence.times import Timeline
from fencepost.group.running_group import Group, MemberProcess
from fencepost.interfaces import Cluster
from fencepost.interfaces.signs import MemberSigns, Signs
from fencepost.model import MemberView, TopicPartition, View, group_partition
from fencepost.model.run_names import RunNames


class World:
    """What faults may touch, and the view that selectors see. Satisfies ``interfaces.World``.

    Attributes:
        group: the group's ``group.id``.
        disturbed: members that a fault has in its hands now; the injector keeps it up to date.
    """

    def __init__(self, cluster: Cluster, group: Group, topics: Iterable[str], names: RunNames) -> None:
        """``topics``: those of the workload, as the cluster calls them."""
        self.cluster, self.group, self._handles, self._topics = cluster, names.group, group, tuple(topics)
        self._names = names
        self.disturbed: set[int] = set()
        self._log: CoordinatorLog | None = None
        self._read: dict[int, int] = dict.fromkeys(cluster.brokers, 0)  # bytes of each broker's log

    @property
    def members(self) -> Sequence[MemberProcess]:
        """Member handles by member index."""
        return self._handles.members

    @property
    def topics(self) -> Mapping[str, str]:
        """The workload's topics: as the scenario calls them, and as the cluster does."""
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

    def signs(self) -> Signs:
        """What tells of the states that members and coordinator are in, as of now.

        Raises:
            ClusterError: at the first look, nobody tells how many partitions keep groups.
        """
        self._handles.refresh()
        members = []
        for member in self._handles.members:
            live = member.life.live if member.life else None
            told = (live.open, live.lost_ns, live.ids) if live else ({}, 0, frozenset[str]())
            here = (member.index, member.actor, member.pid is not None, member.index in self.disturbed)
            members.append(MemberSigns(*here, *told, member.consumers, live.ended if live else {}))
        try:
            return Signs(tuple(members), self._coordinator_log().signs, self._handles.outside is not None)
        except NotShown:
            return Signs(tuple(members), None, self._handles.outside is not None)

    def _coordinator_log(self) -> CoordinatorLog:
        """Read on."""
        if self._log is None:
            self.cluster.evidence.text_log(next(iter(self._read)))  # not worth a question where none is shown
            partition = group_partition(self.group, len(self.cluster.admin.leaders("__consumer_offsets")))
            self._log = CoordinatorLog(self.group, partition, lambda: Timeline.of([clock_pair()]))
        for broker, start in self._read.items():
            lines, self._read[broker] = self.cluster.evidence.text_log(broker, start)
            self._log.take(broker, lines)
        return self._log

    def _known(self, tp: TopicPartition) -> TopicPartition:
        """As selectors name it."""
        return tp._replace(topic=self._names.in_scenario(tp.topic))
