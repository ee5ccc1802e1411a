"""A scale-in: members are asked to end cleanly (SIGTERM), do so, and stay away."""

from __future__ import annotations

import signal
from dataclasses import dataclass
from typing import ClassVar

from fencepost.interfaces import Injection, Target, World
from fencepost.witnesses.processes import ended, lives_of
from fencepost.witnesses.witness import Injected, witness

STOP_S = 15.0  # a member finishes, commits and leaves


@dataclass(frozen=True)
class ScaleIn:
    """Makes members leave for good. Witness: they ended with exit code 0. A dynamic member says that it leaves; a
    static one does not, and what it owned waits until its session is over."""

    needs: ClassVar[frozenset[str]] = frozenset({"signal"})
    hits: ClassVar[frozenset[str]] = frozenset({"members"})
    heals: ClassVar[bool] = False
    seen: ClassVar[str] = (
        "a dynamic member says good-bye and the group rebalances at once; a static one does not, and its partitions "
        "wait until its session is over"
    )

    def inject(self, world: World, target: Target) -> Injection:
        """Send SIGTERM to all of them."""
        lives = lives_of(world, target)
        for life in lives:
            life.node.signal(signal.SIGTERM)
        return Injected(proven=lambda: witness(lambda: ended(lives, {0: "cleanly"}), STOP_S))
