"""Adds up what customers spent, in two threads, each with a consumer of its own: ``python -m tills.threads``.

A thread writes what it polled in one transaction, and commits that; so it has nothing in hand when its partitions go.
Adding an order twice changes nothing.

``--first-commits`` is how the service was written at first: the first thread commits what both have written.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import sqlite3
import sys
import threading

from confluent_kafka import Consumer, KafkaException, TopicPartition

CONFIG = {
    "bootstrap.servers": "kafka-1.shop.internal:9092,kafka-2.shop.internal:9092",
    "group.id": "shop-tills",
    "auto.offset.reset": "earliest",
    "enable.auto.commit": False,
    "session.timeout.ms": 6000,
}
THREADS, BATCH = 2, 200
SPENT = "INSERT OR REPLACE INTO spent VALUES (:id, :customer, :cents)"


class Till:
    """One thread, its consumer, and what it has written and not committed."""

    def __init__(self, database: str, stop: threading.Event) -> None:
        self.database, self.stop = database, stop
        self.consumer = Consumer(CONFIG)
        self.consumer.subscribe(["orders"], on_revoke=self.gone, on_lost=self.gone)
        self.unsaid: dict[tuple[str, int], int] = {}
        self.thread = threading.Thread(target=self.run)

    def gone(self, consumer: Consumer, partitions: list[TopicPartition]) -> None:
        """Others have these partitions now."""
        for p in partitions:
            self.unsaid.pop((p.topic, p.partition), None)

    def run(self) -> None:
        """Consume until told to stop."""
        database = sqlite3.connect(self.database, timeout=30)
        while not self.stop.is_set():
            messages = [m for m in self.consumer.consume(BATCH, 0.1) if m.error() is None]
            with database:
                database.executemany(SPENT, [json.loads(m.value() or b"{}") for m in messages])
            self.unsaid.update({(m.topic(), m.partition()): m.offset() + 1 for m in messages})
            self.commit()
        self.consumer.close()

    def commit(self) -> None:
        """Tell Kafka what is written. Where it refuses, another one has the partitions, and adds them up again."""
        offsets = [TopicPartition(*place, offset) for place, offset in list(self.unsaid.items())]
        self.unsaid.clear()
        if offsets:
            try:
                self.consumer.commit(offsets=offsets, asynchronous=False)
            except KafkaException as error:
                print(f"commit failed: {error}", file=sys.stderr, flush=True)


class Other(Till):
    """A thread that leaves its commits to the first one."""

    def __init__(self, first: Till) -> None:
        super().__init__(first.database, first.stop)
        self.unsaid = first.unsaid

    def commit(self) -> None:
        """The first one does."""


def main() -> int:
    """Run all threads until told to stop."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--first-commits", action="store_true")
    options = parser.parse_args()
    stop = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stop.set())
    path = os.environ.get("SHOP_DATABASE", "tills.db")
    with sqlite3.connect(path, timeout=30) as database:
        database.execute("PRAGMA journal_mode=WAL")
        database.execute("CREATE TABLE IF NOT EXISTS spent (id TEXT PRIMARY KEY, customer TEXT, cents INTEGER)")
    first = Till(path, stop)
    others = [Other(first) if options.first_commits else Till(path, stop) for _ in range(1, THREADS)]
    for till in (first, *others):
        till.thread.start()
    for till in (first, *others):
        till.thread.join()
    return 0


if __name__ == "__main__":
    sys.exit(main())
