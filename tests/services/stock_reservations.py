"""Reserves stock for new orders.

Polls a batch of orders, reserves the stock of each partition's orders in one
database transaction and then commits the offsets of what has been reserved.
"""

import json
import logging
import os
import signal
import sqlite3
import threading
import time
from pathlib import Path

from kafka import KafkaConsumer, OffsetAndMetadata
from kafka.errors import KafkaError

TOPIC = "shop.orders.placed"
SERVERS = ["kafka-1.shop.internal:9092", "kafka-2.shop.internal:9092"]

log = logging.getLogger("stock_reservations")


def open_database() -> sqlite3.Connection:
    db = sqlite3.connect(Path(os.environ["SERVICES_DATA"]) / "stock.db", timeout=30)
    db.execute("PRAGMA journal_mode=WAL")
    db.execute(
        "CREATE TABLE IF NOT EXISTS reservations (id INTEGER PRIMARY KEY, customer TEXT, shelf TEXT, cents INTEGER)"
    )
    return db


def find_shelf(order: dict) -> str:
    time.sleep(0.004)  # the shelf directory is a slow old system
    return f"{'ABCDEF'[order['id'] % 6]}-{order['id'] % 40:02d}"


def reserve(db: sqlite3.Connection, records: list) -> None:
    rows = []
    for record in records:
        order = json.loads(record.value)
        rows.append((order["id"], order["customer"], find_shelf(order), order["cents"]))
    with db:
        db.executemany("INSERT OR REPLACE INTO reservations VALUES (?, ?, ?, ?)", rows)


def commit(consumer: KafkaConsumer, offsets: dict) -> None:
    try:
        consumer.commit(offsets, timeout_ms=3000)
    except KafkaError as error:
        # Thrown out of the group, or no coordinator at the moment. The orders
        # may come a second time, which does no harm.
        log.warning("commit failed: %s", error)


def main() -> None:
    logging.basicConfig(level=logging.INFO)
    stopping = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stopping.set())

    db = open_database()
    consumer = KafkaConsumer(
        TOPIC,
        bootstrap_servers=SERVERS,
        group_id="stock-reservations",
        session_timeout_ms=6000,
        heartbeat_interval_ms=2000,
        auto_offset_reset="earliest",
        enable_auto_commit=False,
        max_poll_records=100,
    )
    try:
        while not stopping.is_set():
            try:
                batches = consumer.poll(timeout_ms=500)
            except KafkaError as error:
                log.error("poll failed, trying again: %s", error)
                stopping.wait(1)
                continue
            offsets = {}
            for partition, records in batches.items():
                if stopping.is_set():
                    break  # the rest is left for the next start
                reserve(db, records)
                offsets[partition] = OffsetAndMetadata(records[-1].offset + 1)
            if offsets:
                commit(consumer, offsets)
    finally:
        consumer.close(autocommit=False, timeout_ms=3000)
        db.close()


if __name__ == "__main__":
    main()
