"""Cut connections: every connection between members and brokers ends at once, and new ones are accepted."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from fencepost.interfaces import FaultContext, Injection, Target
from fencepost.witnesses.base import CallbackInjection
from fencepost.witnesses.links import OnLinks
from fencepost.witnesses.proxy_gate import ProxyGate


@dataclass(frozen=True, kw_only=True)
class CutConnections(OnLinks):
    """Ends all connections between members and brokers at once; new ones are accepted.

    There is nothing to heal. Witness: the kernel has none of the former connections any more.
    """

    heals: ClassVar[bool] = False
    seen: ClassVar[str] = "clients are disconnected, connect again at once, and send the requests in flight again"

    def inject(self, world: FaultContext, target: Target) -> Injection:
        """Cut the links of the target.

        Raises:
            FaultError: there is no such link, or the proxy refused.
        """
        doors = ProxyGate(world, self.links(world, target))
        try:
            doors.close()
        finally:
            doors.open()
        return CallbackInjection(proven=lambda: doors.proven(doors.cut), undo=doors.hang_up)
