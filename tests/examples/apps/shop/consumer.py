"""Writes orders into a database: ``python -m shop.consumer``.

Orders are collected for a short while, written in one transaction, and committed to Kafka after that. Writing an order
twice changes nothing, so what is delivered again is harmless. Whoever gives partitions up writes what it has of them
first; who has lost them forgets it, for another one has them now.

``--keep-batch`` is how the service was written at first: it never looked at what it was told about its partitions, and
a commit that failed was tried again later. ``--without-free`` leaves out orders that cost nothing, and with them by
mistake all that cost whole euros.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import sqlite3
import sys
import threading
import time

from confluent_kafka import Consumer, KafkaException, Message, TopicPartition

CONFIG = {
    "bootstrap.servers": "kafka-1.shop.internal:9092,kafka-2.shop.internal:9092",
    "group.id": "shop-orders",
    "auto.offset.reset": "earliest",
    "enable.auto.commit": False,
    "partition.assignment.strategy": "cooperative-sticky",
    "session.timeout.ms": 6000,
}
BATCH, BATCH_S = 1000, 2.0


class Orders:
    """The orders that are written, and those that wait for it."""

    def __init__(self, path: str, consumer: Consumer, keep_batch: bool, without_free: bool) -> None:
        self.database = sqlite3.connect(path, timeout=30)
        self.database.execute("PRAGMA journal_mode=WAL")
        self.database.execute("CREATE TABLE IF NOT EXISTS orders (id TEXT PRIMARY KEY, customer TEXT, cents INTEGER)")
        self.consumer, self.keep_batch, self.without_free = consumer, keep_batch, without_free
        self.waiting: list[Message] = []
        self.since_s = time.monotonic()
        self.unsaid: dict[tuple[str, int], int] = {}

    def add(self, message: Message) -> None:
        """Take one more."""
        self.waiting.append(message)

    def due(self) -> bool:
        """Whether it is time to write."""
        return len(self.waiting) >= BATCH or time.monotonic() - self.since_s > BATCH_S

    def write(self) -> None:
        """Write what waits, and only then commit it."""
        self.since_s = time.monotonic()
        messages, self.waiting = self.waiting, []
        orders = [json.loads(m.value() or b"{}") for m in messages]
        if self.without_free:
            orders = [order for order in orders if order["cents"] % 100]
        with self.database:
            self.database.executemany("INSERT OR REPLACE INTO orders VALUES (:id, :customer, :cents)", orders)
        for m in messages:
            self.unsaid[m.topic(), m.partition()] = m.offset() + 1
        if self.unsaid:
            self.commit()

    def commit(self) -> None:
        """Tell Kafka what is written."""
        offsets = [TopicPartition(*place, offset) for place, offset in self.unsaid.items()]
        try:
            self.consumer.commit(offsets=offsets, asynchronous=False)
        except KafkaException as error:
            print(f"commit failed: {error}", file=sys.stderr, flush=True)
            if self.keep_batch:
                return  # the next one tries it again
        self.unsaid.clear()

    def revoked(self, consumer: Consumer, partitions: list[TopicPartition]) -> None:
        """Before partitions go to another one."""
        if not self.keep_batch:
            self.write()

    def lost(self, consumer: Consumer, partitions: list[TopicPartition]) -> None:
        """Another one may have them already."""
        if not self.keep_batch:
            gone = {(p.topic, p.partition) for p in partitions}
            self.waiting = [m for m in self.waiting if (m.topic(), m.partition()) not in gone]
            self.unsaid = {place: offset for place, offset in self.unsaid.items() if place not in gone}


def main() -> int:
    """Consume until told to stop."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--keep-batch", action="store_true")
    parser.add_argument("--without-free", action="store_true")
    options = parser.parse_args()
    stop = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stop.set())
    consumer = Consumer(CONFIG)
    orders = Orders(os.environ.get("SHOP_DATABASE", "orders.db"), consumer, options.keep_batch, options.without_free)
    consumer.subscribe(["orders"], on_revoke=orders.revoked, on_lost=orders.lost)
    while not stop.is_set():
        message = consumer.poll(0.1)
        if message is not None and message.error() is None:
            orders.add(message)
        if orders.due():
            orders.write()
    orders.write()
    consumer.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
