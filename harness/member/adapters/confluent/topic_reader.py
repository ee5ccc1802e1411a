"""Reads a topic from its beginning to its end, without joining a group."""

from __future__ import annotations

import time
from typing import Any, Dict, Iterator, Mapping, Set, Tuple

import confluent_kafka as client

READ_S = 60.0  # timeout since the last record
CALL_S = 5.0
TRY_EVERY_S = 0.1


def contents(topic: str, settings: Mapping[str, Any]) -> Iterator[Tuple[Any, Dict[str, Any]]]:
    """Key and headers of every record of the topic that is committed now, in all partitions.

    Args:
        settings: the client's addresses, SASL and TLS.

    Raises:
        TimeoutError: no record was read for ``READ_S``, and the end was not reached.
    """
    consumer = client.Consumer({**reading(topic), **settings})
    try:
        until_s = time.monotonic() + READ_S
        unread = partitions_of_topic(consumer, topic, until_s)
        consumer.assign([client.TopicPartition(topic, partition, client.OFFSET_BEGINNING) for partition in unread])
        while unread:
            message = consumer.poll(CALL_S)
            if time.monotonic() > until_s:
                raise TimeoutError("the end of %s %r was not reached within %d s" % (topic, sorted(unread), READ_S))
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
    """The settings for reading a topic without joining a group, except addresses, SASL and TLS."""
    return {
        "group.id": "%s-reader" % topic,  # the library requires one; nothing joins it
        "enable.auto.commit": False,
        "auto.offset.reset": "earliest",
        "enable.partition.eof": True,
        "isolation.level": "read_committed",
    }


def partitions_of_topic(consumer: Any, topic: str, until_s: float) -> Set[int]:
    """All partitions of a topic. Raises TimeoutError when no broker has returned them by ``until_s`` (monotonic)."""
    while True:
        try:
            found = set(consumer.list_topics(topic, CALL_S).topics[topic].partitions)
        except client.KafkaException:
            found = set()
        if found:
            return found
        if time.monotonic() > until_s:
            raise TimeoutError("no broker returned the partitions of %s within %d s" % (topic, READ_S))
        consumer.poll(TRY_EVERY_S)  # returns no record, as nothing is assigned yet
