"""Packet loss of containers, in their own network namespaces: each rule is in the namespace of its address."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import AbstractContextManager

from fencepost.interfaces.network import PacketLoss
from fencepost.interfaces.process import Process
from fencepost.network import namespaces, packets
from fencepost.network.namespaces import Namespace
from fencepost.network.packets import PacketFilter
from fencepost.processes.owner import ProcessOwner


class ContainerPackets:
    """Rules in the containers of one owner. Satisfies ``Packets``; the rules of a container end with it."""

    def __init__(self, owner: ProcessOwner, living: Callable[[str], Process]) -> None:
        """``living``: returns the present process at an address."""
        self._owner, self._living = owner, living
        self._filters: dict[str, tuple[Process, PacketFilter]] = {}

    def lose(self, losses: Sequence[PacketLoss]) -> tuple[str, ...]:
        """See ``Packets``.

        Raises:
            ClusterError: no container has such an address, or iptables refused.
        """
        names: dict[int, str] = {}
        try:
            for host in dict.fromkeys(loss.endpoint[0] for loss in losses):
                mine = {at: loss for at, loss in enumerate(losses) if loss.endpoint[0] == host}
                names |= zip(mine, self._at(host).lose(list(mine.values())), strict=True)
        except BaseException:
            self.restore(names.values())
            raise
        return tuple(names[at] for at in range(len(losses)))

    def restore(self, names: Collection[str]) -> None:
        """See ``Packets``."""
        for rules in self._there():
            rules.restore(names)

    def inside(self, host: str) -> AbstractContextManager[None]:
        """See ``Packets``."""
        return self._at(host).inside(host)

    def lost(self) -> Mapping[str, int]:
        """See ``Packets``."""
        return {name: count for rules in self._there() for name, count in rules.lost().items()}

    def _there(self) -> list[PacketFilter]:
        return [rules for life, rules in self._filters.values() if life.poll() is None]

    def _at(self, host: str) -> PacketFilter:
        life = self._living(host)
        if self._filters.get(host, (None,))[0] is not life:
            rules = PacketFilter(self._owner, Namespace(life.pid, host))
            self._filters[host] = (life, rules)
        return self._filters[host][1]


def missing_reason() -> str:
    """Why packets of containers cannot be dropped, as a clause with the remedy; empty: they can."""
    return namespaces.missing_reason() or packets.missing_reason()
