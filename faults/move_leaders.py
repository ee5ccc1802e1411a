"""A move of partition leaders without a crash, as an administrator drains brokers: in-sync replicas become leaders."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from fencepost.clock import NS, now_ns
from fencepost.errors import FaultError
from fencepost.interfaces import FaultContext, Injection, Target
from fencepost.model import TopicPartition
from fencepost.witnesses.base import CallbackInjection, Observation, witness
from fencepost.witnesses.coordinator_location import Elections, in_turn
from fencepost.witnesses.topics import OnPartitions, listed

PROOF_S = 15.0


@dataclass(frozen=True)
class MoveLeaders(OnPartitions):
    """Moves the leader of each partition to its next in-sync replica, so that repeated moves visit all of them.

    It chooses its targets itself and has nothing to heal. Witness: the chosen broker leads each partition.

    Attributes:
        partitions: like ``orders-3``; empty: all of the workload's partitions that have another in-sync replica.
    """

    needs: ClassVar[frozenset[str]] = frozenset({"admin", "leaders"})
    hits: ClassVar[frozenset[str]] = frozenset()
    heals: ClassVar[bool] = False
    seen: ClassVar[str] = (
        "brokers answer fetch and produce requests with NOT_LEADER_OR_FOLLOWER until clients refresh metadata; no "
        "member leaves the group"
    )

    def not_ready_reason(self, world: FaultContext, target: Target) -> str:
        """See ``Gated``."""
        moves = self._moves(world)
        fixed = [place for place in self.places(world) if place not in moves] if self.partitions or not moves else []
        return f"no leader, or no other in-sync replica, of {listed(fixed)}" if fixed else ""

    def inject(self, world: FaultContext, target: Target) -> Injection:
        """Elect other leaders.

        Raises:
            FaultError: a named partition, or every partition, has no leader or no other in-sync replica to move to.
        """
        if fixed := self.not_ready_reason(world, target):
            raise FaultError(f"there is {fixed}")
        admin, moves, called_ns = world.cluster.admin, self._moves(world), now_ns()
        elections = Elections(admin, {place: after for place, (_, after) in moves.items()})

        def look() -> Observation:
            elections.request()
            leaders = {topic: admin.leaders(topic) for topic in {place.topic for place in moves}}
            now = {place: leaders[place.topic].get(place.partition, -1) for place in moves}
            wrong = [
                elections.refused.get(place) or f"{place} is led by broker {now[place]}, not broker {after}"
                for place, (_, after) in moves.items()
                if now[place] != after
            ]
            seconds = round((now_ns() - called_ns) / NS, 4)
            data = {"moves": {str(place): move for place, move in moves.items()}, "seconds": seconds}
            return Observation(
                "; ".join(wrong), f"other brokers lead {listed(list(moves))}: moved in {seconds:.3f} s", data
            )

        elections.request()
        return CallbackInjection(proven=lambda: witness(look, PROOF_S, every_s=0.2))

    def _moves(self, world: FaultContext) -> dict[TopicPartition, tuple[int, int]]:
        """Present and next leader of each partition that can be moved."""
        admin, found = world.cluster.admin, {}
        places = self.places(world)
        leaders = {topic: admin.leaders(topic) for topic in {place.topic for place in places}}
        in_sync = {topic: admin.in_sync_replicas(topic) for topic in leaders}
        for place in places:
            leader = leaders[place.topic].get(place.partition, -1)
            others = in_turn(leader, in_sync[place.topic].get(place.partition, ()))
            if others:
                found[place] = (leader, others[0])
        return found
