"""Reads a topic from its begin to its end, beside the group."""

from __future__ import annotations

import time
from typing import Any, Dict, Iterator, Mapping, Set, Tuple

import confluent_kafka as client

READ_S = 60.0  # without the end of a partition, or a record
CALL_S = 5.0
TRY_EVERY_S = 0.1


def contents(topic: str, settings: Mapping[str, Any]) -> Iterator[Tuple[Any, Dict[str, Any]]]:
    """Key and headers of every record that is committed now, of whichever partition.

    Args:
        settings: those of the client, addresses and access.

    Raises:
        TimeoutError: the brokers told nothing new for a minute.
    """
    consumer = client.Consumer({**reading(topic), **settings})
    try:
        until_s = time.monotonic() + READ_S
        unread = partitions_of_topic(consumer, topic, until_s)
        consumer.assign([client.TopicPartition(topic, partition, client.OFFSET_BEGINNING) for partition in unread])
        while unread:
            message = consumer.poll(CALL_S)
            if time.monotonic() > until_s:
                raise TimeoutError("the end of %s %r was not seen within %d s" % (topic, sorted(unread), READ_S))
            if message is None:
                continue
            error = message.error()
            if error is None:
                until_s = time.monotonic() + READ_S
                key, headers = message.key(), message.headers()
                yield key, dict(headers or ())
            elif error.code() == client.KafkaError._PARTITION_EOF:
                unread.discard(message.partition())
    finally:
        consumer.close()


def reading(topic: str) -> Dict[str, Any]:
    """The settings with which a topic is read beside the group, but for addresses and access."""
    return {
        "group.id": "%s-reader" % topic,  # the library asks for one; nobody joins
        "enable.auto.commit": False,
        "auto.offset.reset": "earliest",
        "enable.partition.eof": True,
        "isolation.level": "read_committed",
    }


def partitions_of_topic(consumer: Any, topic: str, until_s: float) -> Set[int]:
    """All of them. Raises TimeoutError when nobody has told by ``until_s``, of the monotonic clock."""
    while True:
        try:
            found = set(consumer.list_topics(topic, CALL_S).topics[topic].partitions)
        except client.KafkaException:
            found = set()
        if found:
            return found
        if time.monotonic() > until_s:
            raise TimeoutError("nobody told of the partitions of %s within %d s" % (topic, READ_S))
        consumer.poll(TRY_EVERY_S)  # brings nothing, as nothing is assigned yet
