"""Planted bugs in clients: they report wrong assignments to their program.

``still-owner``
    After each revocation the client reports the partitions at once as assigned again, and as revoked ``LINGER_S``
    later.
``slow-revocation``
    Revokes partitions at the beginning of the revoked callback, and stays in the callback for ``LINGER_S``.
``hung-revocation``
    Once stays in the revoked callback for ``HANGS_S``, and only then revokes the partitions.
``told-twice``
    Reports every revocation twice.
``taken-for-nothing``
    A few times reports one partition as revoked and immediately as assigned again.
``taken-for-good``
    Once reports one partition as revoked, although the group has not revoked it, and stops fetching it.
``lost-as-revoked``
    Reports lost partitions as revoked.
"""

from __future__ import annotations

import threading
import time
from typing import Callable, Dict, List

from fencepost_member.adapters import ClientListener, Record, Tp
from fencepost_member.config import MemberConfig
from fencepost_member.planted_bugs.clients import FaultyClient

LINGER_S = 3.0
HANGS_S = 14.0


def nothing() -> None:
    """The ``apply`` of a callback that changes nothing at the client."""


class StillOwner(FaultyClient):
    """The bug ``still-owner``, see the module."""

    def __init__(self, config: MemberConfig, listener: ClientListener) -> None:
        """Raises ConfigError."""
        super().__init__(config, listener)
        self._claimed_s: Dict[Tp, float] = {}

    def poll(self, most: int, timeout_s: float) -> List[Record]:
        """See ``Adapter``."""
        long_ago_s = time.monotonic() - LINGER_S
        self._no_longer([tp for tp, at_s in self._claimed_s.items() if at_s <= long_ago_s])
        return self._library.poll(most, timeout_s)  # type: ignore[no-any-return]

    def revoked(self, partitions: List[Tp], apply: Callable[[], None]) -> None:
        """See ``ClientListener``."""
        super().revoked(partitions, apply)
        self._claimed_s.update(dict.fromkeys(partitions, time.monotonic()))
        self._listener.assigned(partitions, nothing)

    def assigned(self, partitions: List[Tp], apply: Callable[[], None]) -> None:
        """See ``ClientListener``."""
        self._no_longer([tp for tp in partitions if tp in self._claimed_s])
        super().assigned(partitions, apply)

    def _no_longer(self, partitions: List[Tp]) -> None:
        if partitions:
            self._listener.revoked(partitions, nothing)
        for tp in partitions:
            del self._claimed_s[tp]


class SlowRevocation(FaultyClient):
    """The bug ``slow-revocation``, see the module."""

    def revoked(self, partitions: List[Tp], apply: Callable[[], None]) -> None:
        """See ``ClientListener``."""

        def linger() -> None:
            apply()
            threading.Event().wait(LINGER_S)

        super().revoked(partitions, linger)


class HungRevocation(FaultyClient):
    """The bug ``hung-revocation``, see the module."""

    every_s, times = 0.0, 1

    def revoked(self, partitions: List[Tp], apply: Callable[[], None]) -> None:
        """See ``ClientListener``."""
        if self._due:
            self._turns.fired()
            threading.Event().wait(HANGS_S)
        super().revoked(partitions, apply)


class ToldTwice(FaultyClient):
    """The bug ``told-twice``, see the module."""

    def revoked(self, partitions: List[Tp], apply: Callable[[], None]) -> None:
        """See ``ClientListener``."""
        super().revoked(partitions, apply)
        self._listener.revoked(partitions, nothing)


class TakenForNothing(FaultyClient):
    """The bug ``taken-for-nothing``, see the module."""

    def poll(self, most: int, timeout_s: float) -> List[Record]:
        """See ``Adapter``."""
        tp = self._one()
        if tp:
            self._turns.fired()
            self._listener.revoked([tp], nothing)
            self._listener.assigned([tp], nothing)
        return self._library.poll(most, timeout_s)  # type: ignore[no-any-return]


class TakenForGood(FaultyClient):
    """The bug ``taken-for-good``, see the module."""

    times = 1

    def poll(self, most: int, timeout_s: float) -> List[Record]:
        """See ``Adapter``."""
        tp = self._one()
        if tp:
            self._owned.remove(tp)
            self._turns.fired()
            self._library.pause(tp)
            self._listener.revoked([tp], nothing)
        return self._library.poll(most, timeout_s)  # type: ignore[no-any-return]

    def revoked(self, partitions: List[Tp], apply: Callable[[], None]) -> None:
        """See ``ClientListener``. The partition that was reported as revoked is not reported again."""
        super().revoked([tp for tp in partitions if tp in self._owned], apply)


class LostAsRevoked(FaultyClient):
    """The bug ``lost-as-revoked``, see the module."""

    def lost(self, partitions: List[Tp], apply: Callable[[], None]) -> None:
        """See ``ClientListener``."""
        self.revoked(partitions, apply)


CLIENTS = {
    "still-owner": StillOwner,
    "slow-revocation": SlowRevocation,
    "hung-revocation": HungRevocation,
    "told-twice": ToldTwice,
    "taken-for-nothing": TakenForNothing,
    "taken-for-good": TakenForGood,
    "lost-as-revoked": LostAsRevoked,
}
