"""Dropped packets: nothing that is sent arrives, and TCP notices: it sends again, and nobody new gets in."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from fencepost.interfaces import Injection, Target, World
from fencepost.witnesses.links import OnStreams
from fencepost.witnesses.losses import losing


@dataclass(frozen=True, kw_only=True)
class DropPackets(OnStreams):
    """Drops all packets between members and brokers, as an unplugged cable does. Witness: the kernel dropped our own.

    Aimed at a broker, it isolates it from all members, and from nobody else (see ``partition_brokers``).

    ``direction``: ``to`` the brokers, ``from`` the brokers, or ``both``. What was sent meanwhile arrives when it heals,
    on every connection that nobody gave up.
    """

    needs: ClassVar[frozenset[str]] = frozenset({"packets"})
    seen: ClassVar[str] = (
        "as with a pulled cable, TCP sends again and new connections time out; a member whose heartbeats do not "
        "arrive is put out by the coordinator past its session time-out; a broker that is hit leads on, in sync, "
        "and no member reaches it"
    )

    def inject(self, world: World, target: Target) -> Injection:
        """Drop the packets on the links of the target.

        Raises:
            FaultError: there is no such link.
            ClusterError: the packet filter refused.
        """
        return losing(world, self.links(world, target), self.streams)
