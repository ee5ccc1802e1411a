"""Tells the warehouse what to send, in two processes, each with a consumer of its own: ``python -m dispatch.workers``.

The first process consumes nothing: it forks the others, forks them again when they end, and tells them when to stop.
Sending an order twice changes nothing.

``--whole-batches`` is how the service was written at first: it took each batch for a full one.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import sqlite3
import sys
import threading
from multiprocessing import get_context
from multiprocessing.connection import wait
from multiprocessing.process import BaseProcess

from kafka import KafkaConsumer, TopicPartition
from kafka.errors import KafkaError
from kafka.structs import OffsetAndMetadata

WORKERS, BATCH = 2, 50
PATH = os.environ.get("SHOP_DATABASE", "dispatch.db")
SENT = "INSERT OR REPLACE INTO sent VALUES (:id, :customer)"


def work(topic: str, whole_batches: bool) -> None:
    """A worker: consume until told to stop."""
    stop = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stop.set())
    database = sqlite3.connect(PATH, timeout=30)
    consumer = KafkaConsumer(
        bootstrap_servers=["kafka-1.shop.internal:9092", "kafka-2.shop.internal:9092"],
        group_id="shop-dispatch",
        auto_offset_reset="earliest",
        enable_auto_commit=False,
        session_timeout_ms=6000,
        heartbeat_interval_ms=1000,
        max_poll_records=BATCH,
    )
    consumer.subscribe([topic])
    consumer.partitions_for_topic(topic)  # or it joins once more as it hears of them, and may forget that it did
    try:
        while not stop.is_set():
            for place, records in consumer.poll(timeout_ms=200).items():
                with database:
                    database.executemany(SENT, [json.loads(r.value) for r in records])
                commit(consumer, place, records[0].offset + (BATCH if whole_batches else len(records)))
    finally:
        consumer.close()


def commit(consumer: KafkaConsumer, place: TopicPartition, offset: int) -> None:
    """Tell Kafka what is sent. Where it refuses, another one has the partition, and sends it again."""
    try:
        consumer.commit({place: OffsetAndMetadata(offset, "", -1)})
    except KafkaError as error:
        print(f"commit failed: {error}", file=sys.stderr, flush=True)


def main() -> int:
    """Have so many workers until told to stop."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--topic", default="orders")
    parser.add_argument("--whole-batches", action="store_true")
    options = parser.parse_args()
    database = sqlite3.connect(PATH, timeout=30)
    database.execute("PRAGMA journal_mode=WAL")
    database.execute("CREATE TABLE IF NOT EXISTS sent (id TEXT PRIMARY KEY, customer TEXT)")
    database.close()  # no connection may be carried over a fork
    context, stopping = get_context("fork"), threading.Event()
    workers: list[BaseProcess] = []

    def fork() -> None:
        workers.append(context.Process(target=work, args=(options.topic, options.whole_batches)))
        workers[-1].start()

    def stop(*_: object) -> None:
        stopping.set()
        for worker in workers:
            worker.terminate()

    signal.signal(signal.SIGTERM, stop)
    for _ in range(WORKERS):
        fork()
    while workers:
        ended = wait([worker.sentinel for worker in workers])
        for worker in [each for each in workers if each.sentinel in ended]:
            workers.remove(worker)
            if not stopping.is_set():
                fork()
    return 0


if __name__ == "__main__":
    sys.exit(main())
