"""A member of confluent-kafka (librdkafka) with one consumer: classic and consumer (KIP-848) protocol."""

from __future__ import annotations

from contextlib import suppress
from typing import Any, Callable, Dict, Iterable, List, Mapping, Optional, Sequence, Tuple

import confluent_kafka as client

from fencepost_member.adapters import ClientListener, Record, Tp
from fencepost_member.adapters.confluent import producer
from fencepost_member.adapters.confluent.errors import error_event, error_name
from fencepost_member.adapters.confluent.values import answered, identity_of, partitions_of, tps_of
from fencepost_member.adapters.settings import STRATEGY, settings_of
from fencepost_member.config import ASYNCHRONOUS, ConfigError, MemberConfig

# With the consumer protocol (KIP-848) brokers decide these, and the client refuses them.
CLASSIC_ONLY = ("session.timeout.ms", "heartbeat.interval.ms", STRATEGY, "group.protocol.type")

ASK_S = 5.0  # timeout of a request to the brokers


def identity(consumer: client.Consumer) -> Tuple[str, int]:
    """See ``Adapter``."""
    member_id, metadata = "", None
    with suppress(RuntimeError):  # a client that is closing may have only one of the two, or neither
        member_id = consumer.memberid() or "" if hasattr(consumer, "memberid") else ""  # since 2.0
        metadata = consumer.consumer_group_metadata()
    id_in_metadata, generation = identity_of(metadata if isinstance(metadata, bytes) else b"")
    return member_id or id_in_metadata, generation


def client_settings(config: MemberConfig) -> Dict[str, Any]:
    """librdkafka's settings for ``config``, without callbacks.

    Raises:
        ConfigError: ``client_config`` has a setting that the group or the loop decides.
    """
    settings = {**settings_of(config), "enable.auto.offset.store": config.loop.commit == "auto-delivered"}
    if config.protocol == "consumer":
        return {"group.protocol": "consumer", **{k: v for k, v in settings.items() if k not in CLASSIC_ONLY}}
    return settings


def consumer_of(settings: Mapping[str, Any]) -> Any:
    """A consumer with these settings, which include callbacks. Raises ConfigError when librdkafka refuses them."""
    try:
        return client.Consumer(dict(settings))
    except (client.KafkaException, TypeError, ValueError) as error:
        raise ConfigError("confluent-kafka refuses the client settings: %s" % error) from error


class ConfluentKafka:
    """One librdkafka consumer; satisfies ``Adapter`` and all the other protocols of ``adapters``."""

    def __init__(self, config: MemberConfig, listener: ClientListener) -> None:
        """Raises ConfigError when librdkafka refuses the settings."""
        self.version = "%s, librdkafka %s" % (client.__version__, client.libversion()[0])
        self.settings = client_settings(config)
        self._listener = listener
        self._incremental = config.protocol != "eager"
        self._starts: Dict[Tp, int] = {}
        self._unanswered: List[Tuple[Dict[Tp, int], Callable[[Dict[Tp, str]], None]]] = []
        callbacks: Dict[str, Any] = {"error_cb": self._error}
        if self.settings["enable.auto.commit"] or config.loop.commit == ASYNCHRONOUS:
            callbacks["on_commit"] = self._committed
        self._consumer = self._fetching = consumer_of({**self.settings, **callbacks})

    def subscribe(self, topics: Sequence[str]) -> None:
        """See ``Adapter``."""
        self._consumer.subscribe(list(topics), on_assign=self._assigned, on_revoke=self._revoked, on_lost=self._lost)

    def poll(self, most: int, timeout_s: float) -> List[Record]:
        """See ``Adapter``. A poll waits up to ``timeout_s`` for ``most`` records."""
        if most == 1:
            message = self._fetching.poll(timeout_s)
            messages: List[Any] = [] if message is None else [message]
        else:
            messages = self._fetching.consume(most, timeout_s)
        records = []
        for m in messages:
            error = m.error()
            if error is None:
                records.append((m.topic(), m.partition(), m.offset(), m.key(), m.value(), m.headers()))
            elif error.code() != client.KafkaError._PARTITION_EOF:  # not an error: a setting enables it
                self._error(error)
        return records

    def commit(self, offsets: Mapping[Tp, int], metadata: str = "") -> Dict[Tp, str]:
        """See ``Adapter`` and ``CommitMetadata``."""
        try:
            answers = self._consumer.commit(offsets=partitions_of(offsets, metadata), asynchronous=False)
        except client.KafkaException as error:
            return dict.fromkeys(offsets, error_name(error.args[0]))
        return answered(answers)[1]

    def commit_async(self, offsets: Mapping[Tp, int], answered: Callable[[Dict[Tp, str]], None]) -> None:
        """See ``AsyncCommit``. The library calls back for all commits, synchronous ones included."""
        try:
            self._consumer.commit(offsets=partitions_of(offsets), asynchronous=True)
        except client.KafkaException as error:
            answered(dict.fromkeys(offsets, error_name(error.args[0])))
        else:
            self._unanswered.append((dict(offsets), answered))

    def identity(self) -> Tuple[str, int]:
        """See ``Adapter``."""
        return identity(self._consumer)

    def close(self) -> None:
        """See ``Adapter``."""
        self._consumer.close()

    def seek(self, tp: Tp, offset: int) -> None:
        """See ``Seeks``."""
        self._guarded(lambda: self._fetching.seek(client.TopicPartition(tp[0], tp[1], offset)))()

    def pause(self, tp: Tp) -> None:
        """See ``Pauses``."""
        self._guarded(lambda: self._fetching.pause([client.TopicPartition(*tp)]))()

    def resume(self, tp: Tp) -> None:
        """See ``Pauses``."""
        self._guarded(lambda: self._fetching.resume([client.TopicPartition(*tp)]))()

    def partitions(self, topics: Iterable[str]) -> List[Tp]:
        """See ``StartOffsets``."""
        with suppress(client.KafkaException):
            known = self._consumer.list_topics(timeout=ASK_S).topics
            return sorted((name, p) for name in topics if name in known for p in known[name].partitions)
        return []

    def committed(self, partitions: Sequence[Tp]) -> Dict[Tp, int]:
        """See ``StartOffsets``."""
        with suppress(client.KafkaException):
            found = self._consumer.committed([client.TopicPartition(*tp) for tp in partitions], timeout=ASK_S)
            return {(p.topic, p.partition): p.offset for p in found if p.error is None and p.offset >= 0}
        return {}

    def start_at(self, offsets: Mapping[Tp, int]) -> None:
        """See ``StartOffsets``."""
        self._starts.update(offsets)

    def store(self, offsets: Mapping[Tp, int]) -> None:
        """See ``StoreOffsets``."""
        self._guarded(lambda: self._consumer.store_offsets(offsets=partitions_of(offsets)))()

    def unsubscribe(self) -> None:
        """See ``Resubscribe``: the callback runs in the next poll."""
        self._guarded(self._consumer.unsubscribe)()

    def output(self, config: MemberConfig, listener: ClientListener) -> Any:
        """See ``Outputs``."""
        return producer.output(config, self, listener)

    def group(self) -> Any:
        """The group's metadata with the present member id and generation, for a producer of this library."""
        return self._consumer.consumer_group_metadata()

    def _assigned(self, consumer: client.Consumer, partitions: List[client.TopicPartition]) -> None:
        assign = consumer.incremental_assign if self._incremental else consumer.assign
        self._listener.assigned(tps_of(partitions), self._guarded(lambda: assign(self._placed(partitions))))

    def _placed(self, partitions: List[client.TopicPartition]) -> List[client.TopicPartition]:
        starts, self._starts = self._starts, {}
        own = client.OFFSET_INVALID  # the committed offset
        return [client.TopicPartition(*tp, starts.get(tp, own)) for tp in tps_of(partitions)] if starts else partitions

    def _revoked(self, consumer: client.Consumer, partitions: List[client.TopicPartition]) -> None:
        self._listener.revoked(tps_of(partitions), self._guarded(lambda: self._unassign(consumer, partitions)))

    def _lost(self, consumer: client.Consumer, partitions: List[client.TopicPartition]) -> None:
        self._listener.lost(tps_of(partitions), self._guarded(lambda: self._unassign(consumer, partitions)))

    def _unassign(self, consumer: client.Consumer, partitions: List[client.TopicPartition]) -> None:
        if self._incremental:
            consumer.incremental_unassign(partitions)
        else:
            consumer.unassign()

    def _committed(self, error: Optional[client.KafkaError], partitions: List[client.TopicPartition]) -> None:
        whole = error_name(error)
        offsets, errors = answered(partitions, whole)
        asked = next((one for one in self._unanswered if one[0] == offsets), None)
        if asked:
            self._unanswered.remove(asked)
            asked[1](errors)
        elif self.settings["enable.auto.commit"] and whole != "LOCAL_NO_OFFSET":  # else there was nothing new to commit
            self._listener.committed(offsets, errors)

    def _error(self, error: client.KafkaError) -> None:
        self._listener.error(*error_event(error))

    def _guarded(self, call: Callable[[], None]) -> Callable[[], None]:
        """Wrap ``call`` so that its error is reported to the listener instead of ending the poll."""

        def guarded() -> None:
            try:
                call()
            except client.KafkaException as error:
                self._error(error.args[0])

        return guarded
