"""The contracts of what is between members and brokers: the proxies, and rules by which packets are lost."""

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
        """Give it other attributes; those that are not named stay. Changing what is not there is no error."""

    def remove_toxic(self, slot: int, broker: int, name: str) -> None:
        """Take it away again; returns once the proxy confirmed. Removing what is not there is no error."""

    def set_enabled(self, slot: int, broker: int, enabled: bool) -> None:
        """Close the proxy of one link (all its connections are cut, new ones refused), or open it again."""

    def endpoint(self, slot: int, broker: int) -> tuple[str, int]:
        """Where the member in this slot connects to reach this broker: the proxy's listen address."""

    def upstream(self, slot: int, broker: int) -> tuple[str, int]:
        """Where the proxy connects to: the broker's listener of this slot."""


@dataclass(frozen=True)
class Loss:
    """Which packets are lost on one wire: between an address at which one peer alone is heard, and this peer.

    Attributes:
        wire: its two ends, in words.
        endpoint: the address, of a member's proxy or of a listener for another broker.
        stream: ``upstream`` = to the address, or ``downstream``.
        share: of them; the kernel draws it for each packet. 1: all.
        connects: only those that ask for a new connection (SYN); what is connected stays so.
    """

    wire: str
    endpoint: tuple[str, int]
    stream: str
    share: float = 1.0
    connects: bool = False


class Packets(Protocol):
    """The kernel's packet filter. Back-ends with the ability ``packets`` have it."""

    def lose(self, losses: Sequence[Loss]) -> tuple[str, ...]:
        """Put a rule for each ahead of all that are there, all at once or none; returns their names in this order."""

    def restore(self, names: Collection[str]) -> None:
        """Take rules away, all at once. Removing what is not there is no error."""

    def inside(self, host: str) -> AbstractContextManager[None]:
        """In here, what this thread opens and starts is in the network where the rules of this address are."""

    def lost(self) -> Mapping[str, int]:
        """How many packets each rule has lost, by its name: all rules that are there."""
