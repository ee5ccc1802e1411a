"""Whether a broker is a process of this machine, and so has its clock.

An address of this machine does not show it: ssh, kubectl, docker-proxy and other programs forward ports to brokers
elsewhere. So the other end of a connection is looked up among the processes of this machine.
"""

from __future__ import annotations

import socket
from typing import Any

import psutil

from fencepost.clock import eventually
from fencepost.errors import WaitTimeout
from fencepost.model.endpoint import Endpoint

CONNECT_S = 2.0
ACCEPTED_S = 2.0
JAVA, MAIN_CLASS = "java", "kafka.Kafka"


def runs_here(broker: Endpoint) -> bool:
    """Whether all connections to a broker certainly end in a Kafka of this machine.

    It is False, too, where that cannot be seen: in containers, and, without root's rights, of other users' processes.
    """
    try:
        found = socket.getaddrinfo(broker.host.strip("[]"), broker.port, type=socket.SOCK_STREAM)
    except OSError:
        return False
    ends = [is_kafka for _, _, _, _, address in found if (is_kafka := _ends_in_kafka(address)) is not None]
    return bool(ends) and all(ends)


def _ends_in_kafka(address: Any) -> bool | None:
    """Whether a connection to an address ends in a Kafka of this machine; None: nobody accepts it."""
    try:
        ours = socket.create_connection(address[:2], CONNECT_S)
    except OSError:
        return None
    with ours:
        try:
            ends = _plain(ours.getpeername()), _plain(ours.getsockname())
            pid = eventually(lambda: _holder(*ends), ACCEPTED_S, "the other end of a connection to be seen")
            process = psutil.Process(pid)
            return process.name() == JAVA and MAIN_CLASS in process.cmdline()
        except (OSError, psutil.Error, WaitTimeout):
            return False


def _holder(local: tuple[str, int], remote: tuple[str, int]) -> int | None:
    """The process that has the end of a connection with these addresses; None: there is none, or it cannot be seen."""
    for one in psutil.net_connections("tcp"):
        if one.raddr and (_plain(one.laddr), _plain(one.raddr)) == (local, remote):
            return one.pid
    return None


def _plain(address: Any) -> tuple[str, int]:
    """Host and port; an address of IPv4 in the form of IPv6 is one of IPv4."""
    return str(address[0]).removeprefix("::ffff:").partition("%")[0], int(address[1])
