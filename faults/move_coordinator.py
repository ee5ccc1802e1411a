"""A move of the group's coordinator without a crash: another in-sync replica leads the group's offsets partition."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

from fencepost.clock import now_ns
from fencepost.interfaces import FaultContext, Injection, Target
from fencepost.witnesses.base import CallbackInjection, Observation, witness
from fencepost.witnesses.coordinator_location import Elections, coordinator_location, moved

PROOF_S = 15.0


@dataclass(frozen=True)
class MoveCoordinator:
    """Moves the coordinator to the next in-sync replica, so that repeated moves visit all of them.

    It chooses its target itself and has nothing to heal. Witness: the partition's leader is the chosen broker, and
    FindCoordinator returns it.
    """

    needs: ClassVar[frozenset[str]] = frozenset({"admin", "coordinator"})
    hits: ClassVar[frozenset[str]] = frozenset()
    heals: ClassVar[bool] = False
    seen: ClassVar[str] = (
        "the new coordinator loads the group from the log; members receive NOT_COORDINATOR, find it, and "
        "stay in the group"
    )

    def not_ready_reason(self, world: FaultContext, target: Target) -> str:
        """See ``Gated``."""
        return coordinator_location(world).fixed()

    def inject(self, world: FaultContext, target: Target) -> Injection:
        """Elect another leader.

        Raises:
            FaultError: there is no leader, or no other in-sync replica to move to.
        """
        before, called_ns = coordinator_location(world), now_ns()
        after = before.next
        election = Elections(world.cluster.admin, {before.place: after})

        def look() -> Observation:
            election.request()
            sight = moved(world, before, after, called_ns)
            return replace(sight, missing=election.refused.get(before.place) or sight.missing)

        election.request()
        return CallbackInjection(proven=lambda: witness(look, PROOF_S, every_s=0.05))
