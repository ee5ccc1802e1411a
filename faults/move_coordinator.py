"""A move of the group's coordinator without a crash: another in-sync replica leads its offsets partition."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from fencepost.clock import now_ns
from fencepost.evidence.seats import moved, seat
from fencepost.evidence.witness import Injected, witness
from fencepost.interfaces import Injection, Target, World

PROOF_S = 5.0


@dataclass(frozen=True)
class MoveCoordinator:
    """Moves the coordinator to the next in-sync replica, so that repeated moves visit all of them.

    It chooses what it hits by itself and has nothing to heal. Witness: the partition's leader is the chosen broker
    and FindCoordinator names it.
    """

    needs: ClassVar[frozenset[str]] = frozenset({"admin", "coordinator"})
    hits: ClassVar[frozenset[str]] = frozenset()
    heals: ClassVar[bool] = False
    seen: ClassVar[str] = (
        "the new coordinator loads the group from the log; members are told NOT_COORDINATOR, find it, and stay in"
    )

    def awaits(self, world: World, target: Target) -> str:
        """See ``Awaits``."""
        return seat(world).fixed()

    def inject(self, world: World, target: Target) -> Injection:
        """Elect another leader.

        Raises:
            FaultError: there is no leader, or no other in-sync replica to move to.
        """
        before = seat(world)
        after, called_ns = before.next, now_ns()
        world.cluster.admin.move_leader(before.place, after)
        return Injected(proven=lambda: witness(lambda: moved(world, before, after, called_ns), PROOF_S))
