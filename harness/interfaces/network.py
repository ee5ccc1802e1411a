"""The contracts of the network between members and brokers: proxies, and rules that drop packets."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Protocol


class Links(Protocol):
    """The proxies between members and brokers: one link per (slot, broker). Back-ends with proxies have it."""

    def add_toxic(self, slot: int, broker: int, kind: str, stream: str, attributes: Mapping[str, Any]) -> str:
        """Put a toxic on one link (``stream``: upstream = towards the broker, downstream); returns its name."""

    def change_toxic(self, slot: int, broker: int, name: str, attributes: Mapping[str, Any]) -> None:
        """Change attributes of a toxic; others stay. Changing a toxic that does not exist is no error."""

    def remove_toxic(self, slot: int, broker: int, name: str) -> None:
        """Remove it again; returns once the proxy confirmed. Removing a toxic that does not exist is no error."""

    def set_enabled(self, slot: int, broker: int, enabled: bool) -> None:
        """Close the proxy of one link (all its connections are cut, new ones refused), or open it again."""

    def endpoint(self, slot: int, broker: int) -> tuple[str, int]:
        """Where the member in this slot connects to reach this broker: the proxy's listen address."""

    def upstream(self, slot: int, broker: int) -> tuple[str, int]:
        """Where the proxy connects to: the broker's listener of this slot."""


@dataclass(frozen=True)
class PacketLoss:
    """Which packets are lost on one wire: between an address and the only peer that uses this address.

    Attributes:
        wire: its two ends, in words.
        endpoint: the address, of a member's proxy or of a listener for another broker.
        stream: ``upstream`` = to the address, or ``downstream``.
        share: of the packets; the kernel draws it for each packet. 1: all.
        connects: only packets that open a connection (SYN); open connections stay up.
    """

    wire: str
    endpoint: tuple[str, int]
    stream: str
    share: float = 1.0
    connects: bool = False


class Packets(Protocol):
    """The kernel's packet filter, of back-ends with the ability ``packets``."""

    def lose(self, losses: Sequence[PacketLoss]) -> tuple[str, ...]:
        """Put one rule for each loss before all others, all or none; returns their names in this order."""

    def restore(self, names: Collection[str]) -> None:
        """Remove rules, all at once. Removing a rule that does not exist is no error."""

    def inside(self, host: str) -> AbstractContextManager[None]:
        """In the block, new sockets and processes of this thread are in the network namespace of this address."""

    def lost(self) -> Mapping[str, int]:
        """Number of packets that each present rule has dropped, by its name."""
