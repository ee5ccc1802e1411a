"""Feeds the sales wall in the office.

Every new order is put into a small SQLite table that the wall reads. Only
orders placed after the wall was first switched on are of interest, so the
consumer starts at the end of the topic the first time it sees a partition.
"""

import json
import logging
import os
import signal
import sqlite3
import threading
import time
from pathlib import Path

from confluent_kafka import Consumer, KafkaException

TOPIC = "shop.orders.placed"
CONFIG = {
    "bootstrap.servers": "kafka-1.shop.internal:9092,kafka-2.shop.internal:9092",
    "group.id": "sales-wall",
    "session.timeout.ms": 6000,
    "enable.auto.commit": True,
    "auto.commit.interval.ms": 1000,
    # Offsets are stored by hand once the order is in the database.
    "enable.auto.offset.store": False,
}

log = logging.getLogger("sales_wall")


def open_database() -> sqlite3.Connection:
    db = sqlite3.connect(Path(os.environ["SERVICES_DATA"]) / "sales_wall.db", timeout=30)
    db.execute("PRAGMA journal_mode=WAL")
    db.execute("CREATE TABLE IF NOT EXISTS wall (id INTEGER PRIMARY KEY, customer TEXT, cents INTEGER)")
    return db


def show(db: sqlite3.Connection, order: dict) -> None:
    time.sleep(0.003)  # the wall wants the customer's avatar as well
    with db:
        db.execute(
            "INSERT OR REPLACE INTO wall VALUES (?, ?, ?)",
            (order["id"], order["customer"], order["cents"]),
        )


def pin_new_partitions(consumer: Consumer, partitions: list) -> None:
    """Commit the end of partitions nobody has committed yet.

    Otherwise "latest" would be decided anew at each rebalance until the first
    order of that partition is done.
    """
    try:
        new = [tp for tp in consumer.committed(partitions, timeout=5) if tp.offset < 0]
        for tp in new:
            _, tp.offset = consumer.get_watermark_offsets(tp, timeout=5)
        if new:
            consumer.commit(offsets=new, asynchronous=False)
    except KafkaException as error:
        log.warning("could not pin the start of new partitions: %s", error)


def main() -> None:
    logging.basicConfig(level=logging.INFO)
    stopping = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stopping.set())

    db = open_database()
    consumer = Consumer(CONFIG)
    consumer.subscribe([TOPIC], on_assign=pin_new_partitions)
    try:
        while not stopping.is_set():
            message = consumer.poll(0.5)
            if message is None:
                continue
            if message.error():
                if message.error().fatal():
                    raise KafkaException(message.error())
                log.warning("kafka says: %s", message.error())
                continue
            show(db, json.loads(message.value()))
            try:
                consumer.store_offsets(message=message)
            except KafkaException as error:
                log.warning("offset not stored, the order may come again: %s", error)
    finally:
        consumer.close()  # commits the stored offsets
        db.close()


if __name__ == "__main__":
    main()
