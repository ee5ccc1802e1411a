"""A probe: a connection of the harness through a proxy, with a request that any broker answers."""

from __future__ import annotations

import contextlib
import socket

from fencepost.clock import NS, now_ns
from fencepost.evidence.brokers.kafka_protocol import answers_in, probe

CONNECT_S = 1.0


class Probe:
    """A request on a new TCP connection, sent when the probe is made.

    Attributes:
        broken: why the connection failed or ended; empty while it is up.
        refused: the connection failed because there is no listener.
        received: bytes of the answer so far.
        silent_s: the last age of the request at which the answer was certainly incomplete.
        took_s: the age of the request when the complete answer was seen; 0 before that.
    """

    def __init__(self, endpoint: tuple[str, int], request: bytes = b"") -> None:
        """Connect and send ``request``, by default ApiVersions. ``broken`` says what failed."""
        self.endpoint, self.broken, self.refused, self.received = endpoint, "", False, 0
        self.silent_s = self.took_s = 0.0
        self._answer = b""
        self._unsent = memoryview(request or probe())
        self._asked_ns = now_ns()
        self._socket: socket.socket | None = None
        try:
            self._socket = socket.create_connection(endpoint, timeout=CONNECT_S)
            self._socket.setblocking(False)
        except OSError as error:
            self.refused = isinstance(error, ConnectionRefusedError)
            self._fail(str(error))
        self._go_on()

    def __str__(self) -> str:
        host, port = self.endpoint
        return f"{host}:{port}"

    @property
    def age_s(self) -> float:
        """Seconds since the request was sent."""
        return (now_ns() - self._asked_ns) / NS

    def answered(self) -> bool:
        """Whether any byte of the answer has arrived; does not wait."""
        self._go_on()
        return self.received > 0

    def complete(self) -> bool:
        """Whether the whole answer has arrived; does not wait."""
        self._go_on()
        return self.took_s > 0

    def ended(self) -> bool:
        """Whether the connection failed or was ended; does not wait."""
        self._go_on()
        return bool(self.broken)

    def close(self) -> None:
        """End the connection. May be called twice."""
        if self._socket is not None:
            with contextlib.suppress(OSError):
                self._socket.close()
            self._socket = None

    def _go_on(self) -> None:
        """Send and receive without waiting."""
        before_s = self.age_s
        while self._socket is not None:
            try:
                if self._unsent:
                    self._unsent = self._unsent[self._socket.send(self._unsent) :]
                    continue
                part = self._socket.recv(1 << 16)
            except BlockingIOError:
                break
            except OSError as error:
                self._fail(str(error))
                break
            if not part:
                self._fail("closed by the proxy")
                break
            self.received += len(part)
            self._answer += part
            if not self.took_s and answers_in(self._answer):
                self.took_s = self.age_s
        if not self.took_s:
            self.silent_s = before_s

    def _fail(self, why: str) -> None:
        self.broken = why
        self.close()
