"""A scale-in: members end cleanly after SIGTERM and do not start again."""

from __future__ import annotations

import signal
from dataclasses import dataclass
from typing import ClassVar

from fencepost.interfaces import Evidence, FaultContext, Injection, Target
from fencepost.model.impact import ASKED_S, Impact
from fencepost.witnesses.base import CallbackInjection, witness
from fencepost.witnesses.processes import ended, kill_late, lives_of


@dataclass(frozen=True)
class ScaleIn:
    """Makes members leave permanently. Witness: they ended with exit code 0. A dynamic member sends LeaveGroup; a
    static one does not, and its partitions have no other owner until its session expires. A member that does not end is
    killed, as an orchestrator does, and the fault is not proven."""

    needs: ClassVar[frozenset[str]] = frozenset({"signal"})
    hits: ClassVar[frozenset[str]] = frozenset({"members"})
    heals: ClassVar[bool] = False
    impact: ClassVar[frozenset[Impact]] = frozenset({Impact.ASKS})
    seen: ClassVar[str] = (
        "a dynamic member sends LeaveGroup and the group rebalances at once; a static one does not, and its partitions "
        "have no other owner until its session expires"
    )

    def inject(self, world: FaultContext, target: Target) -> Injection:
        """Send SIGTERM to all of them."""
        lives = lives_of(world, target)
        for life in lives:
            life.node.signal(signal.SIGTERM)

        def left() -> Evidence:
            seen = witness(lambda: ended(lives, {0: "cleanly"}), ASKED_S)
            kill_late(lives)
            return seen

        return CallbackInjection(proven=left)
