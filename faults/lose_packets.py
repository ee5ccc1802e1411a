"""Lost packets: each packet is lost by chance, and TCP retransmits it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from fencepost.errors import ScenarioError
from fencepost.interfaces import FaultContext, Injection, Target
from fencepost.witnesses.links import OnStreams
from fencepost.witnesses.packet_loss import losing

LEAST, MOST = 0.05, 0.95  # beyond these, distinguishing the share from 0 or 1 needs too many probe packets


@dataclass(frozen=True, kw_only=True)
class LosePackets(OnStreams):
    """Loses packets between members and brokers by chance. Witness: about this share of the harness's own
    packets was lost.

    Attributes:
        share: of the packets, 0.05 to 0.95, in each affected direction; the kernel draws them, not the seed.
    """

    share: float = 0.2
    needs: ClassVar[frozenset[str]] = frozenset({"packets"})
    seen: ClassVar[str] = "TCP retransmits, so requests take longer, sometimes by seconds, and no data is lost"

    def __post_init__(self) -> None:
        super().__post_init__()
        if not LEAST <= self.share <= MOST:
            raise ScenarioError(f"found share={self.share:g}; use {LEAST:g} to {MOST:g}, or drop_packets to lose all")

    def inject(self, world: FaultContext, target: Target) -> Injection:
        """Lose packets on the links of the target.

        Raises:
            FaultError: there is no such link.
            ClusterError: the packet filter refused.
        """
        return losing(world, self.links(world, target), self.streams, self.share)
