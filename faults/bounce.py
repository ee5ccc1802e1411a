"""A bounce: the process ends cleanly after SIGTERM, and starts again when the fault heals."""

from __future__ import annotations

import signal
from dataclasses import dataclass, replace
from typing import ClassVar

from fencepost.interfaces import FaultContext, Injection, Target
from fencepost.model.impact import ASKED_S, Impact
from fencepost.witnesses.base import CallbackInjection, Observation, witness
from fencepost.witnesses.coordinator_location import out_of_sync
from fencepost.witnesses.processes import ended, lives_of, reborn, start_again

START_S = 5.0
SYNC_S = 60.0  # a broker starts and copies the records written meanwhile
# A JVM that shut down cleanly after SIGTERM ends with 128 + 15.
CLEAN = {0: "cleanly", 128 + signal.SIGTERM: "cleanly, by its shutdown hook"}


@dataclass(frozen=True)
class Bounce:
    """Stops members or brokers cleanly. Witness: they ended with a clean exit code; healed: a new process runs.

    Attributes:
        in_sync: for brokers only: the fault counts as healed once all their replicas of the workload's partitions and
            of the offsets topic are in sync again.
    """

    in_sync: bool = False
    needs: ClassVar[frozenset[str]] = frozenset({"signal"})
    heals: ClassVar[bool] = True
    impact: ClassVar[frozenset[Impact]] = frozenset({Impact.ENDS, Impact.ASKS})
    seen: ClassVar[str] = (
        "members leave the group (static ones keep their assignment) and rejoin; a broker hands its partitions and "
        "groups over, and leads none until it is elected again"
    )

    @property
    def hits(self) -> frozenset[str]:
        """Members or brokers; with ``in_sync`` only brokers."""
        return frozenset({"brokers"} if self.in_sync else {"members", "brokers"})

    def inject(self, world: FaultContext, target: Target) -> Injection:
        """Send SIGTERM to all of them."""
        lives = lives_of(world, target)
        for life in lives:
            life.node.signal(signal.SIGTERM)

        def back() -> Observation:
            born = reborn(lives)
            if born.missing or not self.in_sync:
                return born
            behind = [str(place) for broker in target.brokers for place in out_of_sync(world, broker)]
            return replace(born, missing=f"not in sync: {', '.join(behind)}" if behind else "")

        return CallbackInjection(
            proven=lambda: witness(lambda: ended(lives, CLEAN), ASKED_S),
            undo=lambda: start_again(lives),
            healed=lambda: witness(back, SYNC_S if self.in_sync else START_S),
        )
