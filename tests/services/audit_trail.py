"""Writes every order to the audit trail.

The trail is a file of JSON lines, a new one for each run of the service. A
line may be there twice; the yearly report drops the doubles by order number.
"""

import json
import logging
import os
import signal
import threading
import time
from pathlib import Path

from kafka import ConsumerRebalanceListener, KafkaConsumer, OffsetAndMetadata, TopicPartition
from kafka.errors import KafkaError

TOPICS = ["shop.orders.placed", "shop.orders.cancelled"]
SERVERS = ["kafka-1.shop.internal:9092", "kafka-2.shop.internal:9092"]
COMMIT_EVERY = 25

log = logging.getLogger("audit_trail")


class Offsets(ConsumerRebalanceListener):
    """The offsets of what has been written but not been committed yet."""

    def __init__(self, consumer: KafkaConsumer) -> None:
        self.consumer = consumer
        self.written: dict[TopicPartition, OffsetAndMetadata] = {}
        self.count = 0

    def add(self, record) -> None:
        partition = TopicPartition(record.topic, record.partition)
        self.written[partition] = OffsetAndMetadata(record.offset + 1)
        self.count += 1

    def commit(self) -> None:
        self.count = 0
        if not self.written:
            return
        try:
            self.consumer.commit(self.written, timeout_ms=3000)
            self.written = {}
        except KafkaError as error:
            log.warning("commit failed, some lines may be written twice: %s", error)

    def on_partitions_revoked(self, revoked) -> None:
        # Runs on the network thread, where a blocking commit is not allowed.
        if self.written:
            self.consumer.commit_async(self.written)
        self.written = {}

    def on_partitions_assigned(self, assigned) -> None:
        log.info("now auditing %s", sorted(assigned))

    def on_partitions_lost(self, lost) -> None:
        self.written = {}


def write(trail, record) -> None:
    order = json.loads(record.value)
    line = {"topic": record.topic, "offset": record.offset, **order}
    time.sleep(0.002)  # signing
    trail.write(json.dumps(line) + "\n")
    trail.flush()


def main() -> None:
    logging.basicConfig(level=logging.INFO)
    stopping = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stopping.set())

    consumer = KafkaConsumer(
        bootstrap_servers=SERVERS,
        group_id="audit-trail",
        session_timeout_ms=10000,
        auto_offset_reset="earliest",
        enable_auto_commit=False,
        max_poll_records=100,
        consumer_timeout_ms=1000,  # lets the loop below look up when it is quiet
    )
    offsets = Offsets(consumer)
    consumer.subscribe(TOPICS, listener=offsets)
    path = Path(os.environ["SERVICES_DATA"]) / f"audit-{int(time.time())}-{os.getpid()}.jsonl"
    try:
        with path.open("a", encoding="utf-8") as trail:
            while not stopping.is_set():
                try:
                    for record in consumer:
                        write(trail, record)
                        offsets.add(record)
                        if stopping.is_set():
                            break
                        if offsets.count >= COMMIT_EVERY:
                            offsets.commit()
                except KafkaError as error:
                    log.error("reading failed, trying again: %s", error)
                    stopping.wait(1)
                offsets.commit()
    finally:
        consumer.close(autocommit=False, timeout_ms=3000)


if __name__ == "__main__":
    main()
