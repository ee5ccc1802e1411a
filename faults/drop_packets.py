"""Dropped packets: nothing that is sent arrives; TCP retransmits, and new connections time out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from fencepost.interfaces import FaultContext, Injection, Target
from fencepost.witnesses.links import OnStreams
from fencepost.witnesses.packet_loss import losing


@dataclass(frozen=True, kw_only=True)
class DropPackets(OnStreams):
    """Drops all packets between members and brokers, like an unplugged cable. Witness: the kernel
    dropped the harness's own packets.

    With a broker as its target it isolates the broker from all members only (see ``partition_brokers`` for brokers).

    ``direction``: ``to`` the brokers, ``from`` the brokers, or ``both``. Data sent meanwhile arrives when it heals, on
    every connection that neither side has closed.
    """

    needs: ClassVar[frozenset[str]] = frozenset({"packets"})
    seen: ClassVar[str] = (
        "as with an unplugged cable, TCP retransmits and new connections time out; the coordinator evicts a member "
        "whose heartbeats do not arrive within its session time-out; a targeted broker stays leader and in sync, and "
        "no member reaches it"
    )

    def inject(self, world: FaultContext, target: Target) -> Injection:
        """Drop the packets on the links of the target.

        Raises:
            FaultError: there is no such link.
            ClusterError: the packet filter refused.
        """
        return losing(world, self.links(world, target), self.streams)
