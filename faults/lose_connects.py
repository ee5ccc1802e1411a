"""Lost connection attempts: open connections stay up, and new ones time out, as with a full listen backlog."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from fencepost.interfaces import FaultContext, Injection, Target
from fencepost.witnesses.links import OnLinks
from fencepost.witnesses.packet_loss import losing


@dataclass(frozen=True, kw_only=True)
class LoseConnects(OnLinks):
    """Loses the first packet (SYN) of each new connection between members and brokers; open connections stay up.

    No connection is refused: the client waits for its own time-out. Witness: all SYNs of the harness's own
    connections are lost, and no other packet.
    """

    needs: ClassVar[frozenset[str]] = frozenset({"packets"})
    seen: ClassVar[str] = (
        "connected clients notice nothing; a client that opens a connection, as after a coordinator move, waits "
        "until its attempt times out"
    )

    def inject(self, world: FaultContext, target: Target) -> Injection:
        """Lose connection attempts on the links of the target.

        Raises:
            FaultError: there is no such link.
            ClusterError: the packet filter refused.
        """
        return losing(world, self.links(world, target), ("upstream",), connects=True)
