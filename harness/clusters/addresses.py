"""A loopback address of its own for every node and slot of a local cluster, so that ports can be fixed.

Cluster number n lives on ``127.77.n.x``. The number is held by a file lock that every process of the cluster
inherits: it is free again exactly when the last of them is gone, however they ended.
"""

from __future__ import annotations

import fcntl
import os
import socket
import sys
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass

from fencepost.clusters import cache
from fencepost.clusters.nodes import Endpoint, Listener
from fencepost.errors import ClusterError
from fencepost.interfaces import ClusterSpec

NUMBERS = 250
FIRST_SLOT = 20
PROXY = 253


@dataclass(frozen=True)
class Addresses:
    """All endpoints of cluster ``number``.

    Attributes:
        lock: the file descriptor that holds the number; none where others see to it.
        prefix: the first two parts of its nodes' addresses, ahead of the number.
        proxies: the one host of all proxies; empty: every slot has a host of its own.
    """

    number: int
    lock: int = -1
    prefix: str = "127.77"
    proxies: str = ""

    @property
    def network(self) -> str:
        """What the addresses of all nodes begin with."""
        return f"{self.prefix}.{self.number}"

    @property
    def controller(self) -> Endpoint:
        """Where the controller listens."""
        return Endpoint(self._host(254), 9094)

    @property
    def proxy_api(self) -> Endpoint:
        """Where Toxiproxy takes orders."""
        return Endpoint(self._host(PROXY), 8474)

    def internal(self, broker: int) -> Endpoint:
        """Where a broker listens for the other brokers."""
        return Endpoint(self._host(broker), 9092)

    def observer(self, broker: int) -> Endpoint:
        """Where a broker listens for everybody who is past the proxies."""
        return Endpoint(self._host(broker), 9093)

    def upstream(self, slot: int, broker: int) -> Endpoint:
        """Where a broker listens for the proxy of this slot."""
        return Endpoint(self._host(broker), 9100 + slot)

    def proxy(self, slot: int, broker: int) -> Endpoint:
        """Where the member in this slot finds this broker: every (slot, broker) has an address and port of its own."""
        if self.proxies:
            return Endpoint(self.proxies, 9100 + 10 * slot + broker)
        return Endpoint(self._host(FIRST_SLOT + slot), 9100 + broker)

    def listeners(self, broker: int, slots: int) -> tuple[Listener, ...]:
        """The listeners of one broker."""
        plain = (("INTERNAL", self.internal(broker)), ("OBSERVER", self.observer(broker)))
        return (
            *(Listener(name, endpoint, endpoint) for name, endpoint in plain),
            *(Listener(f"SLOT{s}", self.upstream(s, broker), self.proxy(s, broker)) for s in range(slots)),
        )

    def _host(self, last: int) -> str:
        return f"{self.network}.{last}"


def reserve(spec: ClusterSpec) -> Addresses:
    """Take the first number that no other cluster of this user has and whose ports nobody listens on.

    Raises:
        ClusterError: this system has no such addresses, or none is free.
    """
    if sys.platform != "linux":
        raise ClusterError("the local back-end needs Linux (a loopback address per slot): use the Docker back-end")
    folder = cache.directory() / "addresses"
    folder.mkdir(parents=True, exist_ok=True)
    for number in range(1, NUMBERS + 1):
        lock = os.open(folder / str(number), os.O_RDWR | os.O_CREAT, 0o600)
        addresses = Addresses(number, lock)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(lock)
            continue
        if all(_free(endpoint) for endpoint in _endpoints(addresses, spec)):
            return addresses
        os.close(lock)
    raise ClusterError(f"no loopback address 127.77.1.x to 127.77.{NUMBERS}.x is free: are old clusters still running?")


def _endpoints(addresses: Addresses, spec: ClusterSpec) -> Iterator[Endpoint]:
    yield from (addresses.controller, addresses.proxy_api)
    for broker in range(1, spec.brokers + 1):
        for listener in addresses.listeners(broker, spec.slots):
            yield from {listener.listens, listener.advertised}


def _free(endpoint: Endpoint) -> bool:
    with closing(socket.socket()) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((endpoint.host, endpoint.port))
        except OSError:
            return False
    return True
