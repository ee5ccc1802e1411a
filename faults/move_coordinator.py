"""A move of the group's coordinator without a crash: another in-sync replica leads its offsets partition."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from fencepost.clock import NS, now_ns
from fencepost.errors import FaultError
from fencepost.evidence.offsets import TOPIC
from fencepost.evidence.wire import group_partition
from fencepost.evidence.witness import Injected, Sight, witness
from fencepost.interfaces import Evidence, Injection, Target, World
from fencepost.model import TopicPartition

PROOF_S = 5.0


@dataclass(frozen=True)
class MoveCoordinator:
    """Moves the coordinator to the next in-sync replica, so that repeated moves visit all of them.

    It chooses what it hits by itself and has nothing to heal. Witness: the partition's leader is the chosen broker
    *and* FindCoordinator names it.
    """

    needs: ClassVar[frozenset[str]] = frozenset({"admin"})
    hits: ClassVar[frozenset[str]] = frozenset()
    heals: ClassVar[bool] = False

    def inject(self, world: World, target: Target) -> Injection:
        """Elect another leader.

        Raises:
            FaultError: there is no leader, or no other in-sync replica to move to.
        """
        admin, group = world.cluster.admin, world.view().group
        leaders = admin.leaders(TOPIC)
        if not leaders:
            raise FaultError(f"the group {group} has no coordinator yet: {TOPIC} does not exist")
        where = TopicPartition(TOPIC, group_partition(group, len(leaders)))
        before = leaders[where.partition]
        others = sorted(set(admin.in_sync_replicas(TOPIC)[where.partition]) - {before})
        if before < 0 or not others:
            raise FaultError(f"{where} is led by broker {before} and has no other in-sync replica to move to")
        after = next((b for b in others if b > before), others[0])
        called_ns = now_ns()
        admin.move_leader(where, after)

        def look() -> Sight:
            leader, coordinator = admin.leaders(TOPIC).get(where.partition, -1), admin.coordinator(group)
            seconds = round((now_ns() - called_ns) / NS, 4)
            data = {
                "topic": where.topic,
                "partition": where.partition,
                "from_broker": before,
                "to_broker": after,
                "leader": leader,
                "coordinator": coordinator,
                "seconds": seconds,
            }
            seen = f"{where} is led by broker {leader}, and FindCoordinator names broker {coordinator}"
            missing = "" if leader == coordinator == after else f"{seen}, not broker {after}"
            return Sight(missing, f"{seen}, broker {before} before: moved in {seconds:.3f} s", data)

        return Injected(
            proven=lambda: witness(look, PROOF_S),
            undo=lambda: None,
            healed=lambda: Evidence(True, now_ns(), "a moved coordinator has nothing to heal"),
        )
