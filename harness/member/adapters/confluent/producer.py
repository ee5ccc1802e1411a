"""The producer of a member of confluent-kafka: with its offsets in transactions, or before it commits them."""

from __future__ import annotations

from typing import Any, Dict, Mapping, Optional, Protocol

import confluent_kafka as client

from fencepost_member.adapters import Adapter, ClientListener, Headers, Tp
from fencepost_member.adapters.confluent.errors import cause, error_name
from fencepost_member.adapters.confluent.parked_keys import Letters, Redirects
from fencepost_member.adapters.confluent.retries import CALL_S, tried
from fencepost_member.adapters.confluent.values import MAGIC, identity_of, partitions_of
from fencepost_member.adapters.settings import access_of
from fencepost_member.config import TRANSACTION, ConfigError, MemberConfig
from fencepost_member.payload import SOURCE, source

WRITE_S = 60.0  # timeout for the delivery of a record
GIVE_UP_S = 60.0  # how long retriable errors are retried
FULL_S = 0.01  # wait between attempts when the producer's queue is full


class InGroup(Adapter, Protocol):
    """The adapter of a member that a producer commits for."""

    def group(self) -> Any:
        """The group, with who the member is in it now, as a producer of this library wants it."""


def output(config: MemberConfig, adapter: InGroup, listener: ClientListener) -> ConfluentOutput:
    """The output for ``config.loop.commit``. Raises ConfigError when librdkafka refuses the settings."""
    return (TransactionalOutput if config.loop.commit == TRANSACTION else ConfluentOutput)(config, adapter, listener)


class ConfluentOutput:
    """Without transactions: records first, then offsets. Satisfies ``adapters.Output``."""

    def __init__(self, config: MemberConfig, adapter: InGroup, listener: ClientListener) -> None:
        """Raises ConfigError when librdkafka refuses the settings."""
        self._into, self._actor, self._adapter, self._listener = config.loop.into, config.actor, adapter, listener
        self.identity = adapter.identity
        self.settings: Dict[str, Any] = {
            "bootstrap.servers": config.bootstrap,
            "client.id": config.actor,
            "linger.ms": 5,
            "enable.idempotence": True,
            "acks": "all",
            "message.timeout.ms": int(WRITE_S * 1000),
            **access_of(config),
            **self._more(config),
        }
        reading, redirect = {"bootstrap.servers": config.bootstrap, **access_of(config)}, config.loop.redirect
        self.parked: Any = Redirects(redirect, reading, self._produce) if redirect else Letters(self._into, reading)
        self._failed: Optional[client.KafkaError] = None  # since the last commit
        try:
            self._producer = client.Producer({**self.settings, "error_cb": self._error})
        except (client.KafkaException, TypeError, ValueError) as error:
            raise ConfigError("confluent-kafka refuses the output's settings: %s" % error) from error

    def _more(self, config: MemberConfig) -> Dict[str, Any]:
        return {}

    def start(self) -> None:
        """See ``adapters.Output``."""

    def write(self, tp: Tp, offset: int, key: Optional[bytes], value: Optional[bytes], headers: Headers = None) -> None:
        """See ``adapters.Output``."""
        had = [header for header in headers or () if header[0] != SOURCE]  # the record may itself be an output
        more: Any = [*had, (SOURCE, source(self._actor, tp, offset))]
        where: Any = {"topic": self._into} if self._into else {"topic": tp[0], "partition": tp[1]}
        self._produce(value=value, key=key, headers=more, **where)

    def _produce(self, **record: Any) -> None:
        while True:
            try:
                self._producer.produce(on_delivery=self._delivered, **record)
                return
            except BufferError:  # the queue is full, for no longer than the delivery timeout
                self._producer.poll(FULL_S)
            except client.KafkaException as error:
                self._failed = self._failed or error.args[0]
                return

    def commit(self, offsets: Mapping[Tp, int]) -> Dict[Tp, str]:
        """See ``adapters.Output``. A record that cannot be written is a fatal error, which ends the member."""
        while self._producer.flush(CALL_S):
            pass
        if self._failed:
            return dict.fromkeys(offsets, self._fail(self._failed))
        return self._adapter.commit(offsets)

    def close(self) -> None:
        """See ``adapters.Output``."""
        self._producer.purge()
        self._producer.flush(CALL_S)
        self.parked.close()

    def _fail(self, error: client.KafkaError) -> str:
        name = _name(error)
        self._listener.error(name, "the output failed: %s" % error.str(), True)
        return name

    def _delivered(self, error: Optional[client.KafkaError], message: client.Message) -> None:
        self._failed = self._failed or error

    def _error(self, error: client.KafkaError) -> None:
        self._listener.error(_name(error), "the output: %s" % error.str(), False)  # a fatal error fails the next call


def has_left(metadata: object) -> bool:
    """Whether the client has no generation in the group any more. A coordinator accepts transactional offsets without a
    generation, as before KIP-447, and refuses those with an old one."""
    return isinstance(metadata, bytes) and metadata.startswith(MAGIC) and identity_of(metadata)[1] < 0


class TransactionalOutput(ConfluentOutput):
    """Records and offsets in one transaction: begun with the first record, ended by ``commit``."""

    _open = False
    has_left = staticmethod(has_left)

    def _more(self, config: MemberConfig) -> Dict[str, Any]:
        timeout_ms = int(config.loop.transaction_timeout_ms)
        return {
            "transactional.id": "%s-member-%d" % (config.group, config.member),  # the same in all incarnations
            "transaction.timeout.ms": timeout_ms,
            "message.timeout.ms": min(timeout_ms, int(WRITE_S * 1000)),  # the client refuses a longer one
        }

    def start(self) -> None:
        """See ``adapters.Output``: aborts a transaction that an earlier incarnation of the member left open."""
        try:
            tried(self._producer.init_transactions, GIVE_UP_S)
        except client.KafkaException as error:
            self._fail(error.args[0])

    def write(self, tp: Tp, offset: int, key: Optional[bytes], value: Optional[bytes], headers: Headers = None) -> None:
        """See ``adapters.Output``."""
        self._begin()
        super().write(tp, offset, key, value, headers)

    def commit(self, offsets: Mapping[Tp, int]) -> Dict[Tp, str]:
        """See ``adapters.Output``. Without offsets it commits only the records."""
        self._begin()
        group = self._adapter.group() if offsets else None

        def send_offsets_to_transaction(within_s: float) -> None:  # it may hang: its name is then in the stack
            self._producer.send_offsets_to_transaction(partitions_of(offsets), group, within_s)

        try:
            if offsets:
                if self.has_left(group):
                    raise client.KafkaException(client.KafkaError(client.KafkaError.UNKNOWN_MEMBER_ID))
                tried(send_offsets_to_transaction, GIVE_UP_S)
            if self._failed is None:
                tried(self._producer.commit_transaction, GIVE_UP_S)
        except client.KafkaException as error:
            self._failed = error.args[0]
        answer = self._aborted(self._failed) if self._failed else ""
        self._failed, self._open = None, False  # the client has reported the records that the abort dropped by now
        return dict.fromkeys(offsets, answer)

    def close(self) -> None:
        """See ``adapters.Output``."""
        if self._open:
            self._aborted(client.KafkaError(client.KafkaError._PURGE_QUEUE))

    def _begin(self) -> None:
        if not self._open:
            self._open = True
            try:
                self._producer.begin_transaction()
            except client.KafkaException as error:
                self._failed = error.args[0]

    def _aborted(self, error: client.KafkaError) -> str:
        """Abort the transaction because of an error, and return the error's name."""
        if error.fatal():
            return self._fail(error)
        try:
            tried(self._producer.abort_transaction, GIVE_UP_S)
        except client.KafkaException as worse:
            self._fail(worse.args[0])
        return _name(error)


def _name(error: client.KafkaError) -> str:
    """Kafka's name of a producer's error."""
    if error.code() == client.KafkaError._FENCED:
        return "PRODUCER_FENCED"
    return cause(error) if error.fatal() else error_name(error)
