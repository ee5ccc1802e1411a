"""A kill: SIGKILL, so that the process does nothing any more; healing starts a new life."""

from __future__ import annotations

import signal
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from fencepost.interfaces import Injection, Target, World
from fencepost.model.impact import Impact
from fencepost.witnesses.processes import Life, ended, lives_of, reborn, start_again
from fencepost.witnesses.witness import Injected, Sight, witness

PROOF_S = 5.0


@dataclass(frozen=True)
class Kill:
    """Kills members or brokers. Witness: they ended by this very signal; healed: a new process of each runs."""

    needs: ClassVar[frozenset[str]] = frozenset({"signal"})
    hits: ClassVar[frozenset[str]] = frozenset({"members", "brokers"})
    heals: ClassVar[bool] = True
    impact: ClassVar[frozenset[Impact]] = frozenset({Impact.ENDS})
    seen: ClassVar[str] = (
        "nobody says good-bye: a member is in the group until its session is over; a broker's partitions have no "
        "leader until it is fenced"
    )

    def inject(self, world: World, target: Target) -> Injection:
        """Send SIGKILL to all of them."""
        lives = lives_of(world, target)
        for life in lives:
            life.node.signal(signal.SIGKILL)
        return Injected(
            proven=lambda: witness(lambda: _killed(lives), PROOF_S),
            undo=lambda: start_again(lives),
            healed=lambda: witness(lambda: reborn(lives), PROOF_S),
        )


def _killed(lives: Sequence[Life]) -> Sight:
    return ended(lives, {-signal.SIGKILL: "by SIGKILL"})
