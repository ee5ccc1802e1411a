"""One connection per broker, on which every request has its own time-out: a wrapper around kafka-python's.

A broker under test may be dead or frozen at any moment, and the library's own client stays with whichever broker it
has a connection to. Here, a request that one broker does not answer is sent to the next.
"""

from __future__ import annotations

import ssl
from collections.abc import Callable, Collection, Mapping
from typing import Any, TypeVar

from kafka import errors as kafka_errors
from kafka.net.inet import KafkaNetSocket
from kafka.net.manager import KafkaConnectionManager
from kafka.net.sasl.oauth import AbstractTokenProvider
from kafka.net.selector import NetworkSelector

from fencepost.clock import eventually
from fencepost.errors import ClusterError, NotAuthorized
from fencepost.model.endpoint import Endpoint
from fencepost_member.adapters.settings import access_arguments, connecting

T = TypeVar("T")
ANSWER_MS = 1500
WITHIN_S = 15.0
ANSWER_BYTES = 128 << 20  # no broker sends larger batches
UNAUTHORIZED = (
    kafka_errors.TopicAuthorizationFailedError,
    kafka_errors.GroupAuthorizationFailedError,
    kafka_errors.ClusterAuthorizationFailedError,
    kafka_errors.TransactionalIdAuthorizationFailedError,
)
_ONLY = "bootstrap-0"  # the library's name of the first (here: the only) address of a connection manager


class _Socket(KafkaNetSocket):  # type: ignore[misc]
    """A plain connection that closes its socket if connecting fails; the library leaves it to the garbage collector."""

    SCHEMES = ("closing",)

    async def sock_connect(self, *arguments: Any, **options: Any) -> Any:
        """Connect, or close the socket."""
        try:
            return await super().sock_connect(*arguments, **options)
        except BaseException:
            arguments[1].close()
            raise


class _TlsSocket(ssl.SSLSocket):
    """A TLS socket that is closed if its handshake fails."""

    def do_handshake(self, block: bool = False) -> None:
        """Perform the handshake, or close the socket."""
        try:
            super().do_handshake(block)
        except (ssl.SSLWantReadError, ssl.SSLWantWriteError):
            raise  # the handshake continues
        except BaseException:
            self.close()
            raise


class _Net(NetworkSelector):  # type: ignore[misc]
    """The library's event loop. This method marks its thread as ours for ``library_logs``."""

    def run_forever(self) -> None:
        """Run until it is closed."""
        super().run_forever()


class Connections:
    """A connection to each of some brokers, opened when it is needed; may be used from several threads.

    Attributes:
        brokers: their ids; none once it is closed.
        refusals: the last error of a broker's connection or answer; removed once it has answered successfully.
    """

    def __init__(self, brokers: Mapping[int, Endpoint], access: Mapping[str, str] | None = None) -> None:
        """``access``: settings of SASL and TLS (``ACCESS``)."""
        self._net = _Net()
        self._net.start()
        settings = {
            "client_id": "fencepost-admin",
            "proxy_url": "closing://",  # no proxy: this makes the library use _Socket
            "request_timeout_ms": ANSWER_MS,
            "socket_connection_setup_timeout_ms": ANSWER_MS,
            "socket_connection_setup_timeout_max_ms": ANSWER_MS,
            "receive_message_max_bytes": ANSWER_BYTES,
            "reconnect_backoff_ms": 20,
            "reconnect_backoff_max_ms": 100,
            **connecting(access_arguments(access or {}), AbstractTokenProvider),
        }
        if "ssl_context" in settings:
            settings["ssl_context"].sslsocket_class = _TlsSocket
        self._managers = {
            broker: KafkaConnectionManager(self._net, bootstrap_servers=str(endpoint), **settings)
            for broker, endpoint in brokers.items()
        }
        self._order = list(self._managers)
        self._doubted: list[frozenset[int]] = []
        self.refusals: dict[int, str] = {}

    @property
    def brokers(self) -> tuple[int, ...]:
        """See the class."""
        return tuple(self._managers)

    def close(self) -> None:
        """Close all connections. May be called twice."""
        managers, self._managers = self._managers, {}
        for manager in managers.values():
            self._net.run(manager.close)
        if managers:
            self._net.close()

    def deprioritize(self, brokers: Collection[int]) -> Callable[[], None]:
        """Query these last: their metadata may be stale. Returns the function that ends this, to be called once."""
        these = frozenset(brokers)
        self._doubted.append(these)
        return lambda: self._doubted.remove(these)

    def request(self, request: Callable[[], Any]) -> Any:
        """The answer of any broker; the one that answered last is asked first.

        Raises:
            ClusterError: it is closed.
            WaitTimeout: no broker answered within 15 s.
        """
        if not self._managers:
            raise ClusterError("the cluster was stopped: its brokers cannot be queried any more")

        def answer() -> Any:
            for broker in sorted(self._order, key=lambda broker: any(broker in some for some in self._doubted)):
                found = self.request_once(broker, request())
                if found is not None:
                    self._order.sort(key=lambda other: other != broker)
                    return found
            return None

        return self.wait(answer, "any broker to answer an administrator")

    def wait(self, probe: Callable[[], T | None], describe: str) -> T:
        """The result of ``probe``, which asks brokers, once that is true.

        Raises:
            WaitTimeout: it was not true within 15 s; gives the last error of each broker.
        """

        def state() -> str:
            return "; ".join(f"broker {broker}: {why}" for broker, why in sorted(self.refusals.items()))

        return eventually(probe, WITHIN_S, describe, state=state)

    def request_once(self, broker: int, request: Any) -> Any | None:
        """The answer of one broker; None when it gives none in time."""
        manager = self._managers.get(broker)
        if manager is None:
            return None
        try:
            answer = self._net.run(manager.send, request, _ONLY, ANSWER_MS)
        except (kafka_errors.KafkaError, OSError) as error:  # OSError: its endpoint of tokens
            waits = isinstance(error, kafka_errors.NodeNotReadyError)  # a retry: the reason is already stored
            self.refusals[broker] = (waits and self.refusals.get(broker)) or str(error)
            return None
        self.refusals.pop(broker, None)
        return answer

    def is_retriable(self, broker: int, result: Any) -> bool:
        """Whether a part of a broker's answer is a retriable error, like a moved leader; it is stored as the broker's
        last error."""
        error = kafka_errors.for_code(result.error_code)
        if so := bool(getattr(error, "retriable", False)):
            self.refusals[broker] = error.__name__
        return so


def refuse(result: Any, what: str) -> None:
    """Raise a ClusterError when a part of an answer says that ``what`` was refused: NotAuthorized without the right."""
    error = kafka_errors.for_code(result.error_code)
    if error is not kafka_errors.NoError:
        message = getattr(result, "error_message", None)
        raise (NotAuthorized if unauthorized(result) else ClusterError)(
            f"{what} was refused: {error.__name__}{f' ({message})' if message else ''}"
        )


def unauthorized(result: Any) -> bool:
    """Whether a part of an answer says that this user does not have the right to something."""
    return kafka_errors.for_code(result.error_code) in UNAUTHORIZED


def already_leader(result: Any) -> bool:
    """Whether an election was refused because the broker is already the leader."""
    return kafka_errors.for_code(result.error_code) is kafka_errors.ElectionNotNeededError


def late(result: Any) -> bool:
    """Whether a part of an answer says that the request was accepted, but not completed everywhere in time."""
    return kafka_errors.for_code(result.error_code) is kafka_errors.RequestTimedOutError
