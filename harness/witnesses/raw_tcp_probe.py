"""TCP segments of our own to and from a proxy, which belong to no connection: how many are lost on the way?

They use raw sockets, so they do not wait, however idle or stuck all connections are. Their checksum is wrong, so that
only we notice them: no connection, no proxy, no broker does. The packet filter ignores checksums.
"""

from __future__ import annotations

import secrets
import socket
import struct
from collections import Counter
from contextlib import suppress
from typing import NamedTuple

from fencepost.clock import eventually
from fencepost.errors import FaultError, WaitTimeout

Address = tuple[str, int]
OURS: Address = ("127.77.254.253", 9)  # no member uses it
CONTROL_PORT = 9  # no link uses it
ACK, SYN = 0x10, 0x02
IP_BYTES, SEGMENT_BYTES = 20, 20
ARRIVE_S = 1.0


class SegmentCounts(NamedTuple):
    """``sent``: segments that should meet a rule; ``lost``: how many of them were lost.

    ``control_lost``: how many control segments were lost. As many were sent, and no rule should meet them.
    """

    sent: int
    lost: int
    control_lost: int


def lost(endpoint: Address, stream: str, count: int, connects: bool = False) -> SegmentCounts:
    """Send ``count`` segments ``upstream`` (to the endpoint) or ``downstream`` (from it), and as many control segments.

    Args:
        connects: the segments open a connection (SYN), and control segments do not; else control segments use another
            port.

    Raises:
        FaultError: the right to send them is missing.
    """
    host, port = endpoint
    asks, control = (SYN, port) if connects else (ACK, CONTROL_PORT)
    number = secrets.randbits(32)  # distinguishes them from segments of other harnesses
    pair = _segment(stream, port, asks, number), _segment(stream, control, ACK, number)
    arrived: Counter[bytes] = Counter()
    with _raw(OURS[0], host) as ours, _raw(host, OURS[0]) as theirs:
        source, drain = (ours, theirs) if stream == "upstream" else (theirs, ours)

        def all_control() -> bool:
            with suppress(BlockingIOError):
                while True:
                    arrived[drain.recv(IP_BYTES + SEGMENT_BYTES)[IP_BYTES:]] += 1
            return arrived[pair[1]] >= count

        for _ in range(count):
            for segment in pair:
                with suppress(PermissionError, BlockingIOError):  # the error of a raw send that a rule dropped
                    source.send(segment)
            all_control()
        with suppress(WaitTimeout):
            eventually(all_control, ARRIVE_S, "the control segments", every_s=0.01)
    return SegmentCounts(count, count - arrived[pair[0]], count - arrived[pair[1]])


def _segment(stream: str, port: int, flags: int, number: int) -> bytes:
    ports = (OURS[1], port) if stream == "upstream" else (port, OURS[1])
    return struct.pack(">HHIIBBHHH", *ports, number, 0, SEGMENT_BYTES // 4 << 4, flags, 0, 1, 0)


def _raw(mine: str, peer: str) -> socket.socket:
    """A socket that sends to ``peer``, and receives a copy of what arrives from there."""
    try:
        raw = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_TCP)
    except PermissionError as error:
        raise FaultError("probe packets cannot be sent: run as root, or give CAP_NET_RAW") from error
    raw.bind((mine, 0))
    raw.connect((peer, 0))
    raw.setblocking(False)
    return raw
