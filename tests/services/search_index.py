"""Keeps the search index of orders up to date.

Writing to the index is cheap in bulk only, so orders are collected and
written together: 150 at a time, or what there is after two seconds.
"""

import json
import logging
import os
import signal
import sqlite3
import threading
import time
from pathlib import Path

from confluent_kafka import Consumer, KafkaException, TopicPartition

TOPICS = ["shop.orders.placed"]
BULK_SIZE = 150
BULK_SECONDS = 2.0
CONFIG = {
    "bootstrap.servers": "kafka-1.shop.internal:9092,kafka-2.shop.internal:9092",
    "group.id": "search-index",
    "session.timeout.ms": 6000,
    "auto.offset.reset": "earliest",
    "enable.auto.commit": False,
    "partition.assignment.strategy": "cooperative-sticky",
}

log = logging.getLogger("search_index")


class Index:
    """The index and the orders that are collected for it."""

    def __init__(self, consumer: Consumer) -> None:
        self.consumer = consumer
        self.collected: list[tuple] = []  # row, topic, partition, offset
        self.since = time.monotonic()
        self.db = sqlite3.connect(Path(os.environ["SERVICES_DATA"]) / "search.db", timeout=30)
        self.db.execute("PRAGMA journal_mode=WAL")
        self.db.execute("CREATE TABLE IF NOT EXISTS orders (id INTEGER PRIMARY KEY, customer TEXT, words TEXT)")

    def add(self, message) -> None:
        order = json.loads(message.value())
        time.sleep(0.001)  # word stems
        words = f"{order['customer']} {order['cents'] // 100} euro"
        row = (order["id"], order["customer"], words)
        if not self.collected:
            self.since = time.monotonic()
        self.collected.append((row, message.topic(), message.partition(), message.offset()))

    def is_due(self) -> bool:
        return len(self.collected) >= BULK_SIZE or time.monotonic() - self.since >= BULK_SECONDS

    def write(self) -> None:
        if not self.collected:
            return
        with self.db:
            self.db.executemany("INSERT OR REPLACE INTO orders VALUES (?, ?, ?)", [c[0] for c in self.collected])
        ends = {(topic, partition): offset + 1 for _, topic, partition, offset in self.collected}
        self.collected.clear()
        try:
            self.consumer.commit(offsets=[TopicPartition(*key, end) for key, end in ends.items()], asynchronous=False)
        except KafkaException as error:
            log.warning("commit failed, some orders will be indexed again: %s", error)

    def on_revoke(self, consumer: Consumer, partitions: list) -> None:
        # Nothing of this is committed yet: it will be read again from the last commit on.
        log.info("giving up %d partitions, dropping %d orders", len(partitions), len(self.collected))
        self.collected.clear()


def main() -> None:
    logging.basicConfig(level=logging.INFO)
    stopping = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stopping.set())

    consumer = Consumer(CONFIG)
    index = Index(consumer)
    consumer.subscribe(TOPICS, on_revoke=index.on_revoke)
    try:
        while not stopping.is_set():
            for message in consumer.consume(50, timeout=0.5):
                if message.error():
                    log.warning("kafka says: %s", message.error())
                else:
                    index.add(message)
            if index.is_due():
                index.write()
        index.write()
    finally:
        consumer.close()


if __name__ == "__main__":
    main()
