"""A reassignment of the group's offsets partition: the broker that coordinated the group loses its replica."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

from fencepost.clock import now_ns
from fencepost.errors import FaultError
from fencepost.interfaces import FaultContext, Injection, Target
from fencepost.witnesses.base import CallbackInjection, Observation, witness
from fencepost.witnesses.coordinator_location import coordinator_location, in_sync, moved
from fencepost.witnesses.processes import running

PROOF_S = 15.0  # a broker that gets a new replica copies the partition first


@dataclass(frozen=True)
class ReassignCoordinator:
    """Removes the coordinator's replica of the group's offsets partition, and adds one on another broker if possible.

    It chooses its target itself. Witness: the broker is no longer a replica of the partition, another one leads it, and
    FindCoordinator returns that one; healed: all replicas are as before and in sync, except on brokers that are stopped
    or ended. The coordinator may then be on any of them.
    """

    needs: ClassVar[frozenset[str]] = frozenset({"admin", "coordinator", "replicas"})
    hits: ClassVar[frozenset[str]] = frozenset()
    heals: ClassVar[bool] = True
    seen: ClassVar[str] = (
        "the old coordinator deletes its copy of the group's offsets, the new one loads the group from its own; "
        "members receive NOT_COORDINATOR, find it, and stay in the group; healing restores the former replicas"
    )

    def not_ready_reason(self, world: FaultContext, target: Target) -> str:
        """See ``Gated``. Two simultaneous reassignments would leave too few replicas and restore the wrong ones."""
        now = coordinator_location(world)
        kept = world.cluster.admin.replicas(now.place.topic)
        fewer = len(kept[now.place.partition]) < max(map(len, kept.values()))
        return f"{now.place} has replicas on brokers {list(kept[now.place.partition])} only" if fewer else now.fixed()

    def inject(self, world: FaultContext, target: Target) -> Injection:
        """Reassign the partition and make the next in-sync replica its leader.

        Raises:
            FaultError: there is no leader, no other in-sync replica to become leader, or fewer replicas than usual.
        """
        if why := self.not_ready_reason(world, target):
            raise FaultError(why)
        admin, before = world.cluster.admin, coordinator_location(world)
        after, replicas = before.next, admin.replicas(before.place.topic)[before.place.partition]
        stay = [after, *(broker for broker in replicas if broker not in (after, before.leader))]
        spare = sorted(set(world.cluster.brokers) - set(replicas))[:1]
        called_ns = now_ns()
        admin.reassign(before.place, [*stay, *spare])

        def look() -> Observation:
            kept = admin.replicas(before.place.topic)[before.place.partition]
            sight = moved(world, before, after, called_ns)
            missing = f"broker {before.leader} still has {before.place}" if before.leader in kept else sight.missing
            what = f"{before.place} is on brokers {list(kept)}, no longer on {before.leader}; {sight.what}"
            return replace(sight, missing=missing, what=what, data={**sight.data, "replicas": kept, "before": replicas})

        def back() -> Observation:
            kept, caught_up = admin.replicas(before.place.topic)[before.place.partition], in_sync(world, before.place)
            seen = f"{before.place} is on brokers {list(kept)}, of which {sorted(caught_up)} are in sync"
            able = running({broker: world.cluster.brokers[broker] for broker in replicas})
            whole = kept == replicas and able <= set(caught_up)
            return Observation("" if whole else f"{seen}, not all of {list(replicas)}", seen, {"replicas": kept})

        return CallbackInjection(
            proven=lambda: witness(look, PROOF_S),
            undo=lambda: admin.reassign(before.place, replicas),
            healed=lambda: witness(back, PROOF_S),
        )
