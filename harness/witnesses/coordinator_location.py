"""The location of the group's coordinator: the leader of the group's partition of ``__consumer_offsets``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from fencepost.clock import NS, now_ns
from fencepost.errors import ClusterError, FaultError
from fencepost.evidence.brokers.offsets_topic import TOPIC
from fencepost.interfaces import FaultContext
from fencepost.interfaces.admin import ReplicaAdmin
from fencepost.model import TopicPartition, group_partition
from fencepost.witnesses.base import Observation


@dataclass(frozen=True)
class CoordinatorLocation:
    """The group's offsets partition, and its leader.

    Attributes:
        others: the other in-sync replicas, the next one after the leader first, so that repeated moves to the first
            of them visit all.
    """

    place: TopicPartition
    leader: int
    others: tuple[int, ...]

    @property
    def next(self) -> int:
        """The first of the others.

        Raises:
            FaultError: there is none.
        """
        if fixed := self.fixed():
            raise FaultError(fixed)
        return self.others[0]

    def fixed(self) -> str:
        """A clause that says why the coordinator cannot be moved; empty: it can."""
        return "" if self.others else f"{self.place} is led by broker {self.leader} and has no other in-sync replica"


def coordinator_location(world: FaultContext) -> CoordinatorLocation:
    """The present location.

    Raises:
        FaultError: there is no coordinator yet.
    """
    admin, group = world.cluster.admin, world.group
    leaders = admin.leaders(TOPIC)
    if not leaders:
        raise FaultError(f"the group {group} has no coordinator yet: {TOPIC} does not exist")
    place = TopicPartition(TOPIC, group_partition(group, len(leaders)))
    return CoordinatorLocation(
        place, leaders[place.partition], in_turn(leaders[place.partition], in_sync(world, place))
    )


def in_sync(world: FaultContext, place: TopicPartition) -> tuple[int, ...]:
    """The in-sync replicas of a partition."""
    return world.cluster.admin.in_sync_replicas(place.topic).get(place.partition, ())


def kept(world: FaultContext) -> dict[TopicPartition, tuple[int, ...]]:
    """The in-sync replicas of all partitions of the workload and of the offsets topic."""
    in_sync = {topic: world.cluster.admin.in_sync_replicas(topic) for topic in (*world.topics.values(), TOPIC)}
    return {TopicPartition(topic, p): brokers for topic, found in in_sync.items() for p, brokers in found.items()}


def out_of_sync(world: FaultContext, broker: int) -> list[TopicPartition]:
    """Partitions of the workload and of the offsets topic of which a broker has a replica that is not in sync."""
    admin, in_sync = world.cluster.admin, kept(world)
    keeps = [
        TopicPartition(topic, partition)
        for topic in (*world.topics.values(), TOPIC)
        for partition, replicas in admin.replicas(topic).items()
        if broker in replicas
    ]
    return [place for place in keeps if broker not in in_sync.get(place, ())]


def in_turn(leader: int, replicas: tuple[int, ...]) -> tuple[int, ...]:
    """The replicas except the leader, the next one after it first; none while there is no leader."""
    others = sorted(set(replicas) - {leader}) if leader >= 0 else []
    return tuple(sorted(others, key=lambda broker: (broker < leader, broker)))


class Elections:
    """Leader elections, each requested until the controller agrees: a broker that was paused just now is out of sync
    until it has caught up.

    Attributes:
        refused: per partition that is not yet elected, why it was refused (empty: not yet requested).
    """

    def __init__(self, admin: ReplicaAdmin, leaders: Mapping[TopicPartition, int]) -> None:
        self._admin, self._leaders = admin, leaders
        self.refused = dict.fromkeys(leaders, "")

    def request(self) -> None:
        """Request the elections that are still open."""
        for place in list(self.refused):
            try:
                self._admin.move_leader(place, self._leaders[place])
                del self.refused[place]
            except ClusterError as error:
                self.refused[place] = str(error)


def moved(world: FaultContext, before: CoordinatorLocation, to_broker: int, called_ns: int) -> Observation:
    """Whether the leader is ``to_broker`` *and* FindCoordinator returns it; the move was requested at ``called_ns``."""
    admin = world.cluster.admin
    leader = admin.leaders(TOPIC).get(before.place.partition, -1)
    coordinator = admin.coordinator(world.group)
    seconds = round((now_ns() - called_ns) / NS, 4)
    data = {
        "topic": before.place.topic,
        "partition": before.place.partition,
        "from_broker": before.leader,
        "to_broker": to_broker,
        "leader": leader,
        "coordinator": coordinator,
        "seconds": seconds,
    }
    seen = f"{before.place} is led by broker {leader}, and FindCoordinator names broker {coordinator}"
    missing = "" if leader == coordinator == to_broker else f"{seen}, not broker {to_broker}"
    return Observation(missing, f"{seen}, broker {before.leader} before: moved in {seconds:.3f} s", data)
