"""A connection of our own through a proxy, which asks the broker behind it something that any broker answers."""

from __future__ import annotations

import contextlib
import socket

from fencepost.clock import NS, now_ns
from fencepost.evidence.wire import PROBE

CONNECT_S = 1.0


class Probe:
    """One ApiVersions request on a new TCP connection, sent when the probe is made.

    Attributes:
        broken: why the connection failed or ended; empty while it is up.
        received: bytes of the answer so far.
    """

    def __init__(self, endpoint: tuple[str, int]) -> None:
        """Connect and send. What fails is told by ``broken``."""
        self.endpoint, self.broken, self.received = endpoint, "", 0
        self._asked_ns = now_ns()
        self._socket: socket.socket | None = None
        try:
            self._socket = socket.create_connection(endpoint, timeout=CONNECT_S)
            self._socket.sendall(PROBE)
            self._socket.setblocking(False)
        except OSError as error:
            self.broken = str(error)
            self.close()

    @property
    def age_s(self) -> float:
        """Seconds since the request was sent."""
        return (now_ns() - self._asked_ns) / NS

    def answered(self) -> bool:
        """Whether any byte of an answer has come; does not wait."""
        if self._socket is not None and not self.broken:
            try:
                part = self._socket.recv(65536)
            except BlockingIOError:
                pass
            except OSError as error:
                self.broken = str(error)
            else:
                self.received += len(part)
                self.broken = "" if part else "closed by the proxy"
        return self.received > 0

    def close(self) -> None:
        """End the connection. May be called twice."""
        if self._socket is not None:
            with contextlib.suppress(OSError):
                self._socket.close()
            self._socket = None
