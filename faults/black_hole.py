"""A black hole between members and brokers: the proxy discards all data, and every connection stays up."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from fencepost.faults.drop_packets import DropPackets
from fencepost.interfaces import FaultContext, Injection, Target
from fencepost.witnesses.black_hole import BlackHoleLinks
from fencepost.witnesses.links import OnStreams


@dataclass(frozen=True, kw_only=True)
class BlackHole(OnStreams):
    """Discards all data between members and brokers.

    ``direction``: ``to`` the brokers (requests vanish), ``from`` the brokers (requests are executed, responses
    vanish), or ``both``. Witness: bytes went into each proxy and none left it.
    """

    seen: ClassVar[str] = (
        "requests or their responses never arrive, and the requests time out; no connection ends; the coordinator "
        "evicts a member whose heartbeats do not arrive within its session time-out"
    )

    def inject(self, world: FaultContext, target: Target) -> Injection:
        """Cut the links of the target.

        Raises:
            FaultError: there is no such link, or the proxy refused.
        """
        hole = BlackHoleLinks(world, self.links(world, target), self.streams)
        hole.cut("timeout", {"timeout": 0})
        return hole

    def by_packets(self) -> DropPackets:
        """The same fault by dropped packets. Data sent meanwhile arrives when it heals, unless its connection ended."""
        return DropPackets(brokers=self.brokers, peers=self.peers, direction=self.direction)
