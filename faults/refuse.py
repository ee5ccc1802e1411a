"""Refused connections: open connections are cut, and new ones are refused at once, as if there were no listener."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from fencepost.interfaces import FaultContext, Injection, Target
from fencepost.witnesses.base import CallbackInjection
from fencepost.witnesses.links import OnLinks, answering
from fencepost.witnesses.proxy_gate import ProxyGate


@dataclass(frozen=True, kw_only=True)
class Refuse(OnLinks):
    """Cuts connections between members and brokers and refuses new ones, as when the address has no listener.

    Witness: the kernel has none of the former connections any more, and refuses the harness's own.
    """

    seen: ClassVar[str] = (
        "clients are disconnected, and each new connection is refused; after the session time-out the coordinator "
        "evicts the member"
    )

    def inject(self, world: FaultContext, target: Target) -> Injection:
        """Close the links of the target.

        Raises:
            FaultError: there is no such link, or the proxy refused.
        """
        doors = ProxyGate(world, self.links(world, target))

        def undo() -> None:
            doors.hang_up()
            doors.open()

        try:
            doors.close()
        except BaseException:
            undo()
            raise
        return CallbackInjection(
            proven=lambda: doors.proven(doors.refusing), undo=undo, healed=lambda: answering(world, doors.links)
        )
