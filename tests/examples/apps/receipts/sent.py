"""Which orders have a receipt, for tests."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, KafkaException, TopicPartition
from shop.fakes import number

TOPIC, SILENCE_S = "receipts", 10.0


def receipts(settings: Mapping[str, str]) -> Iterator[int]:
    """Every receipt in the topic."""
    consumer = Consumer({**settings, "group.id": "audit", "enable.auto.commit": False, "enable.partition.eof": True})
    try:
        unread = set(consumer.list_topics(TOPIC, SILENCE_S).topics[TOPIC].partitions)
        consumer.assign([TopicPartition(TOPIC, partition, OFFSET_BEGINNING) for partition in unread])
        while unread:
            message = consumer.poll(SILENCE_S)
            if message is None:
                raise TimeoutError(f"nothing came of partitions {unread}")
            if (error := message.error()) is None:
                yield number((message.key() or b"").decode())
            elif error.code() == KafkaError._PARTITION_EOF:
                unread.discard(message.partition())
            else:
                raise KafkaException(error)
    finally:
        consumer.close()
