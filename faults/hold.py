"""A hold: what is sent waits in the proxy, every connection stays up, and when it heals all of it arrives, in order.

So a member's commits and heartbeats of the past reach the coordinator after the group went on without it: whether they
are refused is what keeps a zombie from harm (the fencing by generation and member epoch of KIP-62 and KIP-848).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from fencepost.interfaces import Evidence, Injection, Target, World
from fencepost.witnesses.holes import Hole
from fencepost.witnesses.links import OnStreams
from fencepost.witnesses.witness import Sight, witness

RELEASED_S = 5.0
FOR_EVER_MS = 7 * 86_400_000  # what the proxy would wait if nobody took its latency away


@dataclass(frozen=True, kw_only=True)
class Hold(OnStreams):
    """Holds what members and brokers send each other; when it heals, all of it arrives.

    ``direction``: ``to`` the brokers (requests come late), ``from`` the brokers (requests are carried out, the answers
    come late), or ``both``. Witness: bytes went into each proxy and none came out; healed: they did.
    """

    direction: str = "to"
    seen: ClassVar[str] = (
        "heartbeats stop, and past the session time-out the member is put out; then its old requests arrive, and "
        "are to be refused"
    )

    def inject(self, world: World, target: Target) -> Injection:
        """Hold the links of the target.

        Raises:
            FaultError: there is no such link, or the proxy refused.
        """
        hold = _Held(world, self.links(world, target), self.streams)
        hold.cut("latency", {"latency": FOR_EVER_MS})
        return hold


class _Held(Hole):
    """A hole that gives back what went into it."""

    keeps: ClassVar[bool] = True

    def undo(self) -> None:
        """Let everything out.

        The toxics stay until it is seen to be out: of one that is taken away sooner, the proxy waits for clients that
        have gone, 5 s for each piece, and nobody can connect meanwhile.
        """
        self.toxics.change({"latency": 0})

    def healed(self) -> Evidence:
        """What was sent during the hold was answered: requests of our own, one a link and direction.

        Those to a broker that ended meanwhile are lost; where all are, new ones tell that the links are free.

        Raises:
            FaultError: the toxics, which do nothing any more, could not be taken away.
        """
        evidence = self._given_back()
        self.toxics.remove()
        return evidence

    def _given_back(self) -> Evidence:
        held = [probe for probe in self.probes if not probe.broken]
        if not held:
            return super().healed()

        def look() -> Sight:
            late = [str(probe) for probe in held if not probe.answered()]
            longest_s = round(max(probe.age_s for probe in held), 3)
            missing = f"what was held for {', '.join(late[:3])} has not been answered" if late else ""
            seen = f"{len(held)} requests of our own that were held for up to {longest_s:.1f} s were answered"
            return Sight(missing, seen, {"requests": len(held), "held_s": longest_s})

        evidence = witness(look, RELEASED_S, every_s=0.02)
        self.hang_up()
        return evidence
