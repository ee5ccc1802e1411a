"""A separate loopback address for every node and slot of a local cluster, so that ports can be fixed.

Cluster number n uses ``127.77.n.x``. The number is held by a socket with an abstract name that every process of the
cluster inherits: it is free again exactly when the last of them is gone, however they ended. Such names, and these
addresses, belong to the network namespace, whatever the user or cache.
"""

from __future__ import annotations

import socket
import sys
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, replace
from itertools import chain

import psutil

from fencepost.clusters.kafka import server_properties
from fencepost.clusters.kafka.server_properties import Listener
from fencepost.errors import ClusterError
from fencepost.interfaces import ClusterSpec
from fencepost.model.endpoint import Endpoint

NUMBERS = 250
FIRST_SLOT = 20
PROXY, CONTROLLER = 253, 254


@dataclass(frozen=True)
class Addresses:
    """All endpoints of cluster ``number``.

    Attributes:
        lock: the file descriptor that holds the number; -1 where it is held in another way.
        prefix: the first two parts of its nodes' addresses, before the number.
        proxies: the one host of all proxies; empty: every slot has a separate host.
    """

    number: int
    lock: int = -1
    prefix: str = "127.77"
    proxies: str = ""

    @property
    def network(self) -> str:
        """The beginning of the addresses of all nodes."""
        return f"{self.prefix}.{self.number}"

    @property
    def name(self) -> str:
        """The name of the socket that holds the number."""
        return f"\0fencepost {self.network}"

    @property
    def controller(self) -> Endpoint:
        """The controller's own listener."""
        return Endpoint(self._host(CONTROLLER), 9094)

    @property
    def proxy_api(self) -> Endpoint:
        """Toxiproxy's HTTP interface."""
        return Endpoint(self._host(PROXY), 8474)

    def internal(self, node: int | None, broker: int) -> Endpoint:
        """Where a node (None: the controller) listens for only this broker, so that packet rules can name both ends."""
        return Endpoint(self._host(CONTROLLER if node is None else node), 9080 + broker)

    def observer(self, broker: int) -> Endpoint:
        """Where a broker listens for clients that do not use proxies."""
        return Endpoint(self._host(broker), 9093)

    def upstream(self, slot: int, broker: int) -> Endpoint:
        """Where a broker listens for the proxy of this slot."""
        return Endpoint(self._host(broker), 9100 + slot)

    def proxy(self, slot: int, broker: int) -> Endpoint:
        """Where the member in this slot finds this broker: every (slot, broker) has a separate address and port."""
        if self.proxies:
            return Endpoint(self.proxies, 9100 + 10 * slot + broker)
        return Endpoint(self._host(FIRST_SLOT + slot), 9100 + broker)

    def listeners(self, broker: int, spec: ClusterSpec) -> tuple[Listener, ...]:
        """The listeners of one broker."""
        others = [
            (server_properties.internal(other), self.internal(broker, other)) for other in range(1, spec.brokers + 1)
        ]
        return (
            *(Listener(name, at, at) for name, at in (*others, ("OBSERVER", self.observer(broker)))),
            *(Listener(f"SLOT{s}", self.upstream(s, broker), self.proxy(s, broker)) for s in range(spec.slots)),
        )

    def controller_listeners(self, spec: ClusterSpec) -> tuple[Listener, ...]:
        """The listeners of the controller, its own one first."""
        brokers = range(1, spec.brokers + 1)
        ends = [
            ("CONTROLLER", self.controller),
            *((server_properties.controller(b), self.internal(None, b)) for b in brokers),
        ]
        return tuple(Listener(name, at, at) for name, at in ends)

    def _host(self, last: int) -> str:
        return f"{self.network}.{last}"


def on_this_machine(endpoint: Endpoint) -> bool:
    """Whether it is an address of loopback or of another network interface of this machine. Names are not looked up."""
    own = {address.address for addresses in psutil.net_if_addrs().values() for address in addresses}
    return endpoint.loopback or endpoint.host.strip("[]") in own


def reserve(spec: ClusterSpec) -> Addresses:
    """Reserve the first number that no other cluster uses and whose ports are all free.

    Raises:
        ClusterError: this system has no such addresses, or none is free.
    """
    if sys.platform != "linux":
        raise ClusterError("the local back-end needs Linux (a loopback address per slot): use the Docker back-end")
    for number in range(1, NUMBERS + 1):
        addresses = Addresses(number)
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as lock:
            try:
                lock.bind(addresses.name)
            except OSError:
                continue
            if all(_free(endpoint) for endpoint in _endpoints(addresses, spec)):
                return replace(addresses, lock=lock.detach())
    raise ClusterError(f"no loopback address 127.77.1.x to 127.77.{NUMBERS}.x is free: are old clusters still running?")


def _endpoints(addresses: Addresses, spec: ClusterSpec) -> Iterator[Endpoint]:
    yield addresses.proxy_api
    brokers = (addresses.listeners(broker, spec) for broker in range(1, spec.brokers + 1))
    for listener in chain(addresses.controller_listeners(spec), *brokers):
        yield from {listener.listens, listener.advertised}


def _free(endpoint: Endpoint) -> bool:
    with closing(socket.socket()) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((endpoint.host, endpoint.port))
        except OSError:
            return False
    return True
