"""A pause: the process is stopped (SIGSTOP; a container is frozen) and later continued, and never hears of either.

A paused member sends no heartbeats; past its session time-out it wakes up as a zombie. Of pauses of one process that
overlap, the last one to end continues it.
"""

from __future__ import annotations

import signal
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar
from weakref import WeakSet

from fencepost.evidence.processes import GONE, STOPPED, Life, lives_of, pids
from fencepost.evidence.witness import Injected, Sight, witness
from fencepost.interfaces import Injection, Target, World

PROOF_S = 2.0


class _Hold:
    """Keeps a process stopped for as long as somebody has it."""


_holds: defaultdict[tuple[int | None, float], WeakSet[_Hold]] = defaultdict(WeakSet)  # by pid and birth


@dataclass(frozen=True)
class Pause:
    """Stops members or brokers. Witness: the kernel has stopped or frozen just these; healed: they live on."""

    needs: ClassVar[frozenset[str]] = frozenset({"signal"})
    hits: ClassVar[frozenset[str]] = frozenset({"members", "brokers"})
    heals: ClassVar[bool] = True
    seen: ClassVar[str] = (
        "no heartbeats: past the session time-out the coordinator puts the member out, and it wakes up as a zombie; "
        "a broker is fenced and leads nothing"
    )

    def inject(self, world: World, target: Target) -> Injection:
        """Send SIGSTOP to all of them."""
        lives, hold = lives_of(world, target), _Hold()
        for life in lives:
            _holds[life.pid, life.born].add(hold)
            life.node.signal(signal.SIGSTOP)

        def undo() -> None:
            for life in lives:
                _holds[life.pid, life.born].discard(hold)
                if not _held(life):
                    life.node.signal(signal.SIGCONT)

        return Injected(
            proven=lambda: witness(lambda: _stopped(lives), PROOF_S),
            undo=undo,
            healed=lambda: witness(lambda: _running(lives), PROOF_S),
        )


def _stopped(lives: Sequence[Life]) -> Sight:
    states = {life: life.state() for life in lives}
    awake = [f"{life} is {state}, not stopped" for life, state in states.items() if state != STOPPED]
    seen = f"stopped (in state T, or its control group is frozen): {', '.join(map(str, lives))}"
    return Sight(
        "; ".join(awake) or ("" if lives else "nothing was hit"), seen, {"pids": pids(lives), "state": STOPPED}
    )


def _held(life: Life) -> bool:
    """Whether another pause keeps it stopped."""
    return bool(_holds[life.pid, life.born])


def _running(lives: Sequence[Life]) -> Sight:
    """A process that was killed while it was stopped is healed by its next life."""
    now = {life: Life.of(life.node) if life.state() == GONE else life for life in lives}
    states = {life: present.state() for life, present in now.items()}
    ill = [f"{life} is {state}" for life, state in states.items() if state in (STOPPED, GONE) and not _held(life)]
    data = {"pids": pids(now.values()), "states": {life.node.name: state for life, state in states.items()}}
    healed = [f"{life} is left to another pause" if _held(life) else f"{life} runs again" for life in now.values()]
    return Sight("; ".join(ill), "; ".join(healed), data)
