"""A hold: data waits in the proxy and every connection stays up; when it heals, all data arrives in order.

A member's old commits and heartbeats reach the coordinator after the group has continued without it. The
coordinator must refuse them by generation (KIP-62) or member epoch (KIP-848), or a zombie's commits take effect.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from fencepost.interfaces import Evidence, FaultContext, Injection, Target
from fencepost.witnesses.base import Observation, witness
from fencepost.witnesses.black_hole import BlackHoleLinks
from fencepost.witnesses.links import OnStreams

RELEASED_S = 5.0
FOR_EVER_MS = 7 * 86_400_000  # the latency of the proxy during the hold; healing sets it to 0


@dataclass(frozen=True, kw_only=True)
class Hold(OnStreams):
    """Holds all data between members and brokers; when it heals, all of it arrives.

    ``direction``: ``to`` the brokers (requests arrive late), ``from`` the brokers (requests are executed, responses
    arrive late), or ``both``. Witness: bytes went into each proxy and none left it; healed: the held bytes left it.
    """

    direction: str = "to"
    seen: ClassVar[str] = (
        "heartbeats stop, and the coordinator evicts the member after the session time-out; then the old requests of "
        "the member arrive, and the coordinator must refuse them"
    )

    def inject(self, world: FaultContext, target: Target) -> Injection:
        """Hold the links of the target.

        Raises:
            FaultError: there is no such link, or the proxy refused.
        """
        hold = _Held(world, self.links(world, target), self.streams)
        hold.cut("latency", {"latency": FOR_EVER_MS})
        return hold


class _Held(BlackHoleLinks):
    """A black hole that releases its data when it heals."""

    keeps: ClassVar[bool] = True

    def undo(self) -> None:
        """Release all data.

        The toxics are removed only once the data is out: if one is removed earlier, the proxy waits 5 s for each piece
        of data whose client has disconnected, and accepts no connection meanwhile.
        """
        self.toxics.change({"latency": 0})

    def healed(self) -> Evidence:
        """Whether data sent during the hold was answered: the harness's own requests, one for each link and direction.

        Requests to a broker that ended meanwhile are lost; if all are lost, new requests prove that the links are free.

        Raises:
            FaultError: the toxics, which have no effect any more, could not be removed.
        """
        evidence = self._released()
        self.toxics.remove()
        return evidence

    def _released(self) -> Evidence:
        held = [probe for probe in self.probes if not probe.broken]
        if not held:
            return super().healed()

        def look() -> Observation:
            late = [str(probe) for probe in held if not probe.answered()]
            longest_s = round(max(probe.age_s for probe in held), 3)
            missing = f"requests that were held are not answered yet: {', '.join(late[:3])}" if late else ""
            seen = f"{len(held)} requests of our own that were held for up to {longest_s:.1f} s were answered"
            return Observation(missing, seen, {"requests": len(held), "held_s": longest_s})

        evidence = witness(look, RELEASED_S, every_s=0.02)
        self.hang_up()
        return evidence
