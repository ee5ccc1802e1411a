"""One connection per broker, on which every request has a time-out of its own: kafka-python's, tamed.

A broker under test may be dead or frozen at any moment, and the library's own client sticks to whichever broker it
has a connection with. Here, a request that a broker does not answer is asked of the next.
"""

from __future__ import annotations

import ssl
from collections.abc import Callable, Collection, Mapping
from typing import Any, TypeVar

from kafka import errors as kafka_errors
from kafka.net.inet import KafkaNetSocket
from kafka.net.manager import KafkaConnectionManager
from kafka.net.selector import NetworkSelector

from fencepost.clock import eventually
from fencepost.errors import ClusterError
from fencepost.model.endpoint import Endpoint
from fencepost_member.adapters.settings import access_arguments, with_context

T = TypeVar("T")
ANSWER_MS = 1500
WITHIN_S = 15.0
ANSWER_BYTES = 128 << 20  # no broker sends larger batches
_ONLY = "bootstrap-0"  # what the library calls the first (here: the only) address of a connection manager


class _Socket(KafkaNetSocket):  # type: ignore[misc]
    """A plain connection whose socket is closed when it cannot be made; the library's own is left to the collector."""

    SCHEMES = ("closing",)

    async def sock_connect(self, *arguments: Any, **options: Any) -> Any:
        """Connect, or close."""
        try:
            return await super().sock_connect(*arguments, **options)
        except BaseException:
            arguments[1].close()
            raise


class _TlsSocket(ssl.SSLSocket):
    """One whose handshake fails is closed as well."""

    def do_handshake(self, block: bool = False) -> None:
        """Shake hands, or close."""
        try:
            super().do_handshake(block)
        except (ssl.SSLWantReadError, ssl.SSLWantWriteError):
            raise  # it goes on
        except BaseException:
            self.close()
            raise


class _Net(NetworkSelector):  # type: ignore[misc]
    """The library's event loop. Its thread is ours by this method, which is what ``library_logs`` goes by."""

    def run_forever(self) -> None:
        """Until it is closed."""
        super().run_forever()


class Connections:
    """A connection with each of some brokers, made when it is needed; may be used from several threads.

    Attributes:
        brokers: their ids; none once it is closed.
        told: what was last wrong with the connection of a broker, or its answer; nothing once it has answered well.
    """

    def __init__(self, brokers: Mapping[int, Endpoint], access: Mapping[str, str] | None = None) -> None:
        """``access``: settings of SASL and TLS, of ``ACCESS`` there."""
        self._net = _Net()
        self._net.start()
        settings = {
            "client_id": "fencepost-admin",
            "proxy_url": "closing://",  # no proxy: how the library is told to use _Socket
            "request_timeout_ms": ANSWER_MS,
            "socket_connection_setup_timeout_ms": ANSWER_MS,
            "socket_connection_setup_timeout_max_ms": ANSWER_MS,
            "receive_message_max_bytes": ANSWER_BYTES,
            "reconnect_backoff_ms": 20,
            "reconnect_backoff_max_ms": 100,
            **with_context(access_arguments(access or {})),
        }
        if "ssl_context" in settings:
            settings["ssl_context"].sslsocket_class = _TlsSocket
        self._managers = {
            broker: KafkaConnectionManager(self._net, bootstrap_servers=str(endpoint), **settings)
            for broker, endpoint in brokers.items()
        }
        self._order = list(self._managers)
        self._doubted: list[frozenset[int]] = []
        self.told: dict[int, str] = {}

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

    def doubt(self, brokers: Collection[int]) -> Callable[[], None]:
        """Ask these last, as they may know only what was once so. Returns what takes it back, to be called once."""
        these = frozenset(brokers)
        self._doubted.append(these)
        return lambda: self._doubted.remove(these)

    def ask(self, request: Callable[[], Any]) -> Any:
        """The answer of any broker; the one that answered last is asked first.

        Raises:
            ClusterError: it is closed.
            WaitTimeout: nobody answered within 15 s.
        """
        if not self._managers:
            raise ClusterError("the cluster was stopped: nobody can be asked any more")

        def answer() -> Any:
            for broker in sorted(self._order, key=lambda broker: any(broker in some for some in self._doubted)):
                found = self.ask_once(broker, request())
                if found is not None:
                    self._order.sort(key=lambda other: other != broker)
                    return found
            return None

        return self.wait(answer, "any broker to answer an administrator")

    def wait(self, probe: Callable[[], T | None], describe: str) -> T:
        """What ``probe``, which asks brokers, returns once that is true.

        Raises:
            WaitTimeout: it did not come within 15 s; says what was last wrong with each broker.
        """

        def state() -> str:
            return "; ".join(f"broker {broker}: {why}" for broker, why in sorted(self.told.items()))

        return eventually(probe, WITHIN_S, describe, state=state)

    def ask_once(self, broker: int, request: Any) -> Any | None:
        """The answer of one broker; None when it gives none in time."""
        manager = self._managers.get(broker)
        if manager is None:
            return None
        try:
            answer = self._net.run(manager.send, request, _ONLY, ANSWER_MS)
        except kafka_errors.KafkaError as error:
            waits = isinstance(error, kafka_errors.NodeNotReadyError)  # to try again: the reason was told before
            self.told[broker] = (waits and self.told.get(broker)) or str(error)
            return None
        self.told.pop(broker, None)
        return answer

    def puts_off(self, broker: int, result: Any) -> bool:
        """Whether a part of a broker's answer was refused for a reason that goes away by itself, like a leader that has
        moved; it is remembered as what was last wrong."""
        error = kafka_errors.for_code(result.error_code)
        if so := bool(getattr(error, "retriable", False)):
            self.told[broker] = error.__name__
        return so


def refuse(result: Any, what: str) -> None:
    """Raise a ClusterError when a part of an answer says that ``what`` was refused."""
    error = kafka_errors.for_code(result.error_code)
    if error is not kafka_errors.NoError:
        told = getattr(result, "error_message", None)
        raise ClusterError(f"{what} was refused: {error.__name__}{f' ({told})' if told else ''}")


def needless(result: Any) -> bool:
    """Whether an election was refused because the leader is the wanted one already."""
    return kafka_errors.for_code(result.error_code) is kafka_errors.ElectionNotNeededError


def late(result: Any) -> bool:
    """Whether a part of an answer says that it is being done, and was not everywhere in time."""
    return kafka_errors.for_code(result.error_code) is kafka_errors.RequestTimedOutError
