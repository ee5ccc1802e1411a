"""A pause: the process is stopped (SIGSTOP; a container is frozen) and later continued, and is notified of neither.

A paused member sends no heartbeats; if the pause exceeds its session time-out, it resumes as a zombie. If pauses of
one process overlap, it continues when the last one ends.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from fencepost.interfaces import FaultContext, Injection, Target
from fencepost.model.impact import Impact
from fencepost.witnesses.base import CallbackInjection, Observation, witness
from fencepost.witnesses.processes import GONE, STOPPED, ProcessIdentity, SuspendHold, kept_stopped, lives_of, pids

PROOF_S = 2.0


@dataclass(frozen=True)
class Pause:
    """Stops members or brokers. Witness: the kernel has stopped or frozen exactly these; healed: they run again."""

    needs: ClassVar[frozenset[str]] = frozenset({"signal"})
    hits: ClassVar[frozenset[str]] = frozenset({"members", "brokers"})
    heals: ClassVar[bool] = True
    impact: ClassVar[frozenset[Impact]] = frozenset({Impact.FREEZES, Impact.DELAYS})
    seen: ClassVar[str] = (
        "a member sends no heartbeats: after the session time-out the coordinator evicts it, and it resumes as a "
        "zombie; the controller fences a broker, which then leads no partition"
    )

    def inject(self, world: FaultContext, target: Target) -> Injection:
        """Send SIGSTOP to all of them."""
        lives = lives_of(world, target)
        stops = [SuspendHold(life) for life in lives]

        def undo() -> None:
            for stop in stops:
                stop.let_go()

        return CallbackInjection(
            proven=lambda: witness(lambda: _stopped(lives), PROOF_S),
            undo=undo,
            healed=lambda: witness(lambda: _running(lives), PROOF_S),
        )


def _stopped(lives: Sequence[ProcessIdentity]) -> Observation:
    states = {life: life.state() for life in lives}
    awake = [f"{life} is {state}, not stopped" for life, state in states.items() if state != STOPPED]
    seen = f"stopped (in state T, or its control group is frozen): {', '.join(map(str, lives))}"
    return Observation(
        "; ".join(awake) or ("" if lives else "nothing was hit"), seen, {"pids": pids(lives), "state": STOPPED}
    )


def _running(lives: Sequence[ProcessIdentity]) -> Observation:
    """Whether all run again; a process that was killed during the pause is healed by its next incarnation."""
    now = {life: ProcessIdentity.of(life.node) if life.state() == GONE else life for life in lives}
    states = {life: present.state() for life, present in now.items()}
    ill = [
        f"{life} is {state}" for life, state in states.items() if state in (STOPPED, GONE) and not kept_stopped(life)
    ]
    data = {"pids": pids(now.values()), "states": {life.node.name: state for life, state in states.items()}}
    ways = {True: "is still held by another pause", False: "runs again"}
    healed = "; ".join(f"{life} {ways[kept_stopped(life)]}" for life in now.values())
    return Observation("; ".join(ill), healed, data)
