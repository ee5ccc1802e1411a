"""The running cluster and group as faults may touch them, and the view of both that selectors see."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from fencepost.group import Group, MemberProcess
from fencepost.interfaces import Cluster
from fencepost.model import MemberView, TopicPartition, View


class World:
    """What faults may touch, and the view that selectors see. Satisfies ``interfaces.World``.

    Attributes:
        disturbed: members that a fault has in its hands now; the injector keeps it up to date.
    """

    def __init__(self, cluster: Cluster, group: Group, topics: Iterable[str], name: str) -> None:
        """``topics``: those of the workload; ``name``: ``group.id``."""
        self.cluster, self._group, self._topics, self._name = cluster, group, tuple(topics), name
        self.disturbed: set[int] = set()

    @property
    def members(self) -> Sequence[MemberProcess]:
        """Member handles by member index."""
        return self._group.members

    def slot_of(self, member: int) -> int:
        """The slot in which this member lives."""
        return self._group.members[member].slot

    def view(self) -> View:
        """The state now."""
        self._group.refresh()
        leaders = {
            TopicPartition(topic, p): leader
            for topic in self._topics
            for p, leader in self.cluster.admin.leaders(topic).items()
        }
        members = tuple(
            MemberView(m.index, m.slot, m.actor, m.pid is not None, m.index in self.disturbed, m.owned)
            for m in self._group.members
        )
        coordinator = self.cluster.admin.coordinator(self._name)
        return View(members, tuple(self.cluster.brokers), leaders, coordinator, self._name)
