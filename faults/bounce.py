"""A bounce: the process is asked to end cleanly (SIGTERM), does so, and is started again when the fault heals."""

from __future__ import annotations

import signal
from dataclasses import dataclass
from typing import ClassVar

from fencepost.evidence.processes import ended, lives_of, reborn, start_again
from fencepost.evidence.witness import Injected, witness
from fencepost.interfaces import Injection, Target, World

STOP_S = 15.0  # a member finishes, commits and leaves; a broker hands over its partitions
START_S = 5.0
# A JVM that shut down in order after SIGTERM ends with 128 + 15.
CLEAN = {0: "cleanly", 128 + signal.SIGTERM: "cleanly, by its shutdown hook"}


@dataclass(frozen=True)
class Bounce:
    """Stops members or brokers cleanly. Witness: they ended with a clean exit code; healed: a new process runs."""

    needs: ClassVar[frozenset[str]] = frozenset({"signal"})
    hits: ClassVar[frozenset[str]] = frozenset({"members", "brokers"})
    heals: ClassVar[bool] = True
    seen: ClassVar[str] = (
        "members leave the group (static ones keep their place) and join again; a broker hands its partitions and "
        "groups over, and leads none until somebody gives it some"
    )

    def inject(self, world: World, target: Target) -> Injection:
        """Send SIGTERM to all of them."""
        lives = lives_of(world, target)
        for life in lives:
            life.node.signal(signal.SIGTERM)
        return Injected(
            proven=lambda: witness(lambda: ended(lives, CLEAN), STOP_S),
            undo=lambda: start_again(lives),
            healed=lambda: witness(lambda: reborn(lives), START_S),
        )
