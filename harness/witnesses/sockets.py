"""Bytes into and out of a proxy, as the kernel counts them per TCP connection (``ss -tinHO``).

The proxy adds up its own counters only when a connection closes, so they cannot prove a hole while it lasts. The
kernel's can, and they are independent of both the fault and the proxy.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from fencepost.errors import FaultError
from fencepost.interfaces import Cluster

Address = tuple[str, int]
_COUNTER = re.compile(r"\b(bytes_sent|bytes_received):(\d+)")
SS_S = 5.0
COMMAND = ("ss", "-tinHO")


class Counted(NamedTuple):
    """Bytes of one connection, seen from its local end; ``up``: neither end has ended it."""

    received: int
    sent: int
    up: bool = True


# (local address, peer address) of a connection -> its counters.
Snapshot = Mapping[tuple[Address, Address], Counted]


@dataclass(frozen=True)
class BytesPassed:
    """Bytes over one link since a snapshot, over all its connections.

    ``*_in`` went into the proxy, ``*_out`` came out of it; up is towards the broker, down towards the member.
    """

    up_in: int = 0
    up_out: int = 0
    down_in: int = 0
    down_out: int = 0


def snapshot(cluster: Cluster) -> Snapshot:
    """The counters of all TCP connections where the cluster's proxies are, now.

    Raises:
        FaultError: ``ss`` is missing or fails.
    """
    return dict(parse(cluster.sockets().splitlines()))


def shown() -> str:
    """The output of ``ss -tinHO`` on this host.

    Raises:
        FaultError: ``ss`` is missing or fails.
    """
    try:
        shown = subprocess.run(COMMAND, capture_output=True, text=True, timeout=SS_S, check=True)
    except FileNotFoundError as error:
        raise FaultError("ss, which shows what passes a proxy, is missing here: install iproute2") from error
    except (OSError, subprocess.SubprocessError) as error:
        raise FaultError(f"ss, which shows what passes a proxy, failed: {error}") from error
    return shown.stdout


def parse(lines: Iterable[str]) -> Iterator[tuple[tuple[Address, Address], Counted]]:
    """The connections of an ``ss -tinHO`` output. A counter that is not shown is 0; other lines are omitted."""
    for line in lines:
        fields = line.split(None, 5)
        if len(fields) < 5:
            continue
        local, peer = _address(fields[3]), _address(fields[4])
        if local and peer:
            counts = dict(_COUNTER.findall(line))
            received, sent = (int(counts.get(name, 0)) for name in ("bytes_received", "bytes_sent"))
            yield (local, peer), Counted(received, sent, fields[0] == "ESTAB")


def passed(before: Snapshot, after: Snapshot, endpoint: Address, upstream: Address) -> BytesPassed:
    """Bytes over the link between ``endpoint`` (where members connect) and ``upstream`` (the broker's listener).

    The member's side of the proxy is every connection whose local address is the endpoint, the broker's side every
    one whose peer is the upstream. Connections that closed in between are not counted.
    """
    members = _grown(before, after, lambda local, peer: local == endpoint)
    broker = _grown(before, after, lambda local, peer: peer == upstream)
    return BytesPassed(up_in=members.received, up_out=broker.sent, down_in=broker.received, down_out=members.sent)


def _grown(before: Snapshot, after: Snapshot, is_ours: Callable[[Address, Address], bool]) -> Counted:
    received = sent = 0
    for ends, now in after.items():
        if is_ours(*ends):
            then = before.get(ends, Counted(0, 0))
            if then.received > now.received or then.sent > now.sent:
                then = Counted(0, 0)  # another connection between the same ports
            received += now.received - then.received
            sent += now.sent - then.sent
    return Counted(received, sent)


def _address(text: str) -> Address | None:
    host, colon, port = text.rpartition(":")
    host = host.strip("[]").removeprefix("::ffff:").partition("%")[0]
    return (host, int(port)) if colon and port.isdecimal() else None
