"""A black hole between members and brokers: what is sent vanishes in the proxy, and every connection stays up."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from fencepost.faults.drop_packets import DropPackets
from fencepost.interfaces import Injection, Target, World
from fencepost.witnesses.holes import Hole
from fencepost.witnesses.links import OnStreams


@dataclass(frozen=True, kw_only=True)
class BlackHole(OnStreams):
    """Swallows what members and brokers send each other.

    ``direction``: ``to`` the brokers (requests vanish), ``from`` the brokers (requests arrive and are carried out, the
    answers vanish), or ``both``. Witness: bytes went into each proxy and none came out.
    """

    seen: ClassVar[str] = (
        "requests, or their answers, never arrive and time out, and no connection ends; a member whose heartbeats "
        "vanish is put out by the coordinator past its session time-out"
    )

    def inject(self, world: World, target: Target) -> Injection:
        """Cut the links of the target.

        Raises:
            FaultError: there is no such link, or the proxy refused.
        """
        hole = Hole(world, self.links(world, target), self.streams)
        hole.cut("timeout", {"timeout": 0})
        return hole

    def by_packets(self) -> DropPackets:
        """Dropped packets. What was sent meanwhile arrives when these heal, unless its connection ended."""
        return DropPackets(brokers=self.brokers, peers=self.peers, direction=self.direction)
