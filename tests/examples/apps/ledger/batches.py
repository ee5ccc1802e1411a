"""Books orders in batches, each in one transaction: ``python -m ledger.batches``.

A transaction holds the bookings of a batch and how far each partition is booked. Kafka hears of it after that. Booking
an order twice changes nothing, so what is delivered again is harmless.
"""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import sys
import threading

from kafka import KafkaConsumer, TopicPartition
from kafka.consumer.fetcher import ConsumerRecord
from kafka.errors import KafkaError
from kafka.structs import OffsetAndMetadata

TABLES = """
CREATE TABLE IF NOT EXISTS bookings (id TEXT PRIMARY KEY, customer TEXT, cents INTEGER);
CREATE TABLE IF NOT EXISTS booked (part INTEGER PRIMARY KEY, below INTEGER);
"""
BOOK = "INSERT OR REPLACE INTO bookings VALUES (:id, :customer, :cents)"
ADVANCE = """INSERT INTO booked VALUES (?, ?)
ON CONFLICT (part) DO UPDATE SET below = max(below, excluded.below)"""  # a batch that came late takes nothing back

Batch = dict[TopicPartition, list[ConsumerRecord]]


class Ledger:
    """The database."""

    def __init__(self, path: str) -> None:
        self.database = sqlite3.connect(path, timeout=30)
        self.database.execute("PRAGMA journal_mode=WAL")
        self.database.executescript(TABLES)

    def book(self, batch: Batch) -> None:
        """All of it, or nothing."""
        with self.database:
            for place, records in batch.items():
                self.database.executemany(BOOK, [json.loads(r.value) for r in records])
                self.database.execute(ADVANCE, (place.partition, records[-1].offset + 1))


def commit(consumer: KafkaConsumer, batch: Batch) -> None:
    """Tell Kafka that a batch is booked. Where it refuses, another one has the partitions, and books it again."""
    offsets = {place: OffsetAndMetadata(records[-1].offset + 1, "", -1) for place, records in batch.items()}
    try:
        consumer.commit(offsets)
    except KafkaError as error:
        print(f"commit failed: {error}", file=sys.stderr, flush=True)


def main() -> int:
    """Consume until told to stop."""
    stop = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stop.set())
    ledger = Ledger(os.environ.get("SHOP_DATABASE", "ledger.db"))
    consumer = KafkaConsumer(
        "orders",
        bootstrap_servers=["kafka-1.shop.internal:9092", "kafka-2.shop.internal:9092"],
        group_id="shop-ledger",
        auto_offset_reset="earliest",
        enable_auto_commit=False,
        session_timeout_ms=6000,
        heartbeat_interval_ms=1000,
        max_poll_records=200,
    )
    consumer.partitions_for_topic("orders")  # or it joins once more as it hears of them, and may forget that it did
    try:
        while not stop.is_set():
            batch = consumer.poll(timeout_ms=200)
            if batch:
                ledger.book(batch)
                commit(consumer, batch)
    finally:
        consumer.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
