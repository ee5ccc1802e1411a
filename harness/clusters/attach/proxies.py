"""Proxies between members and the brokers of an attached cluster, invisible to both.

There is one Toxiproxy with one proxy per (slot, broker), to which the kernel redirects the connections of the slot's
member to the broker. Where the broker is on this machine, the proxy connects to an address of the link's own, which the
kernel redirects to the broker: by this address the bytes of each link are counted (``witnesses.sockets``).
"""

from __future__ import annotations

import os
import signal
import socket
import tempfile
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path

from fencepost.clusters import toxiproxy
from fencepost.clusters.addresses import Addresses, on_this_machine, reserve
from fencepost.clusters.cache import ProgressCallback
from fencepost.clusters.kafka import server_properties
from fencepost.errors import ClusterError, PlanError
from fencepost.interfaces import ClusterSpec
from fencepost.interfaces.process import Interpreter, Process
from fencepost.model.endpoint import Endpoint
from fencepost.network import proxies
from fencepost.network.chains import Chain
from fencepost.network.packets import PacketFilter
from fencepost.network.proxies import Pair, Proxies
from fencepost.network.redirects import FIRST_GROUP, Redirect, redirect
from fencepost.processes.owner import ProcessOwner, send, wait_ended

END_S = 10.0


class TransparentProxies:
    """Created by ``start``.

    Attributes:
        links: the proxies.
        packets: rules on the loopback addresses of the proxies.
        redirects: the rules that lead members to the proxies, and these to the brokers; None: there are none yet.
    """

    def __init__(
        self, owner: ProcessOwner, addresses: Addresses, ends: Mapping[Pair, tuple[Endpoint, Endpoint]]
    ) -> None:
        """Nothing runs yet."""
        self._addresses, self._ends = addresses, ends
        self._spawn = partial(owner.spawn, keep_open=(addresses.lock,))
        self._server: Process | None = None
        self.redirects: Chain | None = None
        self.links, self.packets = Proxies(addresses.proxy_api, ends), PacketFilter(owner)
        self._stopped = False

    def begin(self, server: Path, home: Path) -> None:
        """Start them with this program, and return once they serve."""
        self._server = proxies.begin(self._spawn, server, home, self._addresses.proxy_api, self._ends)
        self.links.await_serving()

    def before(self, slot: int, interpreter: Interpreter) -> Interpreter:
        """The interpreter of the member in a slot, with the group that redirects its connections to its proxies."""
        return replace(interpreter, groups=(_group(self._addresses, slot),))

    def stop(self) -> None:
        """End the proxies and the redirects, then free their addresses for other clusters. May be called twice."""
        if not self._stopped:
            self._stopped = True
            try:
                if self._server is not None:
                    send(self._server, signal.SIGKILL)
                    wait_ended(self._server, END_S)
                if self.redirects is not None:
                    self.redirects.flush()
            finally:
                os.close(self._addresses.lock)


def start(
    owner: ProcessOwner, brokers: Mapping[int, Endpoint], slots: int, progress: ProgressCallback
) -> TransparentProxies:
    """Start the proxies and redirect members to them.

    Raises:
        ProvisionError: Toxiproxy is missing and could not be built.
        PlanError: a broker has an address that is not IPv4.
        ClusterError, WaitTimeout: there are too many members, or something did not start.
    """
    if slots > server_properties.MOST_SLOTS:
        raise ClusterError(f"found {slots} members with proxies; use at most {server_properties.MOST_SLOTS}")
    at = {broker: _addresses_of(broker, endpoint) for broker, endpoint in brokers.items()}
    server, home = toxiproxy.server(progress), Path(tempfile.mkdtemp(prefix="proxies-", dir=owner.directory))
    addresses = reserve(ClusterSpec(brokers=len(brokers), slots=slots))
    ends: dict[Pair, tuple[Endpoint, Endpoint]] = {}
    hops: list[Redirect] = []
    for number, (broker, endpoint) in enumerate(brokers.items(), 1):
        near = on_this_machine(endpoint)
        for slot in range(slots):
            proxy = addresses.proxy(slot, number)
            upstream = addresses.upstream(slot, number) if near else endpoint
            ends[slot, broker] = proxy, upstream
            hops += [Redirect(_group(addresses, slot), there, proxy) for there in at[broker]]
            hops += [Redirect(None, upstream, at[broker][0])] if near else []
    before = TransparentProxies(owner, addresses, ends)
    try:
        before.redirects = redirect(owner, hops)
        before.begin(server, home)
    except BaseException:
        before.stop()
        raise
    return before


def _group(addresses: Addresses, slot: int) -> int:
    """The group id of a slot: unique on this machine, as the number of the addresses is."""
    return FIRST_GROUP + addresses.number * server_properties.MOST_SLOTS + slot


def _addresses_of(broker: int, endpoint: Endpoint) -> list[Endpoint]:
    """The addresses at which members may connect to a broker.

    Raises:
        ClusterError: it has no address.
        PlanError: one of them is not IPv4, and would bypass the proxies.
    """
    try:
        found = socket.getaddrinfo(endpoint.host.strip("[]"), endpoint.port, type=socket.SOCK_STREAM)
    except OSError as error:
        raise ClusterError(f"the address {endpoint} of broker {broker} cannot be found: {error.strerror}") from error
    if other := [address[0] for family, *_, address in found if family != socket.AF_INET]:
        raise PlanError(
            f"broker {broker} advertises {endpoint}, which is {other[0]}, and proxies do not support IPv6: "
            "remove the faults between members and brokers, or let it advertise an address of IPv4"
        )
    return list({Endpoint(str(address[0]), endpoint.port): None for *_, address in found})
