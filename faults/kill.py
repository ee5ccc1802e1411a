"""A kill: SIGKILL ends the process at once; healing starts a new one."""

from __future__ import annotations

import signal
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from fencepost.interfaces import FaultContext, Injection, Target
from fencepost.model.impact import Impact
from fencepost.witnesses.base import CallbackInjection, Observation, witness
from fencepost.witnesses.processes import ProcessIdentity, ended, lives_of, reborn, start_again

PROOF_S = 5.0


@dataclass(frozen=True)
class Kill:
    """Kills members or brokers. Witness: they ended by this signal; healed: a new process of each runs."""

    needs: ClassVar[frozenset[str]] = frozenset({"signal"})
    hits: ClassVar[frozenset[str]] = frozenset({"members", "brokers"})
    heals: ClassVar[bool] = True
    impact: ClassVar[frozenset[Impact]] = frozenset({Impact.ENDS})
    seen: ClassVar[str] = (
        "no process shuts down cleanly: a member stays in the group until its session expires; a broker's "
        "partitions have no leader until it is fenced"
    )

    def inject(self, world: FaultContext, target: Target) -> Injection:
        """Send SIGKILL to all of them."""
        lives = lives_of(world, target)
        for life in lives:
            life.node.signal(signal.SIGKILL)
        return CallbackInjection(
            proven=lambda: witness(lambda: _killed(lives), PROOF_S),
            undo=lambda: start_again(lives),
            healed=lambda: witness(lambda: reborn(lives), PROOF_S),
        )


def _killed(lives: Sequence[ProcessIdentity]) -> Observation:
    return ended(lives, {-signal.SIGKILL: "by SIGKILL"})
