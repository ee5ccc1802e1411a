"""Keeps the history of what customers paid.

Polls a batch of order lines, writes them to the history and commits. Before
the next batch is taken the commit has to be through, so that a restart never
has to go back further than one batch.
"""

import itertools
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

TOPICS = ["shop.orders.paid", "shop.refunds.paid"]
SERVERS = ["kafka-1.shop.internal:9092", "kafka-2.shop.internal:9092"]

log = logging.getLogger("price_history")
stopping = threading.Event()


def open_database() -> sqlite3.Connection:
    db = sqlite3.connect(Path(os.environ["SERVICES_DATA"]) / "price_history.db", timeout=30)
    db.execute("PRAGMA journal_mode=WAL")
    db.execute(
        "CREATE TABLE IF NOT EXISTS history"
        " (topic TEXT, id INTEGER, customer TEXT, cents INTEGER, PRIMARY KEY (topic, id))"
    )
    return db


def write(db: sqlite3.Connection, topic: str, records: list) -> None:
    rows = []
    for record in records:
        line = json.loads(record.value)
        time.sleep(0.004)  # the exchange rate of the day
        rows.append((topic, line["id"], line["customer"], line["cents"]))
    with db:
        db.executemany("INSERT OR REPLACE INTO history VALUES (?, ?, ?, ?)", rows)


def commit(consumer: KafkaConsumer, offsets: dict) -> None:
    """Commit, again and again if need be: the coordinator may be moving."""
    for attempt in itertools.count(1):
        try:
            consumer.commit(offsets, timeout_ms=3000)
            return
        except KafkaError as error:
            log.warning("commit failed (attempt %d): %s", attempt, error)
        if stopping.wait(min(attempt, 5)):
            return


def run(consumer: KafkaConsumer, db: sqlite3.Connection) -> None:
    while not stopping.is_set():
        try:
            batches = consumer.poll(timeout_ms=500, max_records=80)
        except KafkaError as error:
            log.error("poll failed, trying again: %s", error)
            stopping.wait(1)
            continue
        offsets = {}
        for partition, records in batches.items():
            write(db, partition.topic, records)
            offsets[partition] = OffsetAndMetadata(records[-1].offset + 1)
        if offsets:
            commit(consumer, offsets)


def main() -> None:
    logging.basicConfig(level=logging.INFO)
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stopping.set())

    db = open_database()
    consumer = KafkaConsumer(
        *TOPICS,
        bootstrap_servers=SERVERS,
        group_id="price-history",
        session_timeout_ms=6000,
        heartbeat_interval_ms=2000,
        auto_offset_reset="earliest",
        enable_auto_commit=False,
    )
    try:
        run(consumer, db)
    finally:
        consumer.close(autocommit=False, timeout_ms=3000)
        db.close()


if __name__ == "__main__":
    main()
