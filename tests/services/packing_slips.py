"""Prints packing slips for the warehouse.

Takes up to a hundred orders, has them printed by a pool of threads, waits
until all of them are printed and commits.
"""

import json
import logging
import os
import signal
import sqlite3
import threading
import time
from concurrent.futures import ThreadPoolExecutor, wait
from pathlib import Path

from confluent_kafka import Consumer, KafkaException, Message

TOPIC = "shop.orders.picked"
PRINTERS = 4
BATCH = 100
CONFIG = {
    "bootstrap.servers": "kafka-1.shop.internal:9092,kafka-2.shop.internal:9092",
    "group.id": "packing-slips",
    "session.timeout.ms": 6000,
    "auto.offset.reset": "earliest",
    "enable.auto.commit": False,
}

log = logging.getLogger("packing_slips")


class Slips:
    """The slips that have been printed. One connection for all the threads."""

    def __init__(self) -> None:
        path = Path(os.environ["SERVICES_DATA"]) / "packing_slips.db"
        self.lock = threading.Lock()
        self.db = sqlite3.connect(path, timeout=30, check_same_thread=False)
        self.db.execute("PRAGMA journal_mode=WAL")
        self.db.execute("CREATE TABLE IF NOT EXISTS slips (id INTEGER PRIMARY KEY, customer TEXT, text TEXT)")

    def print_slip(self, message: Message) -> None:
        order = json.loads(message.value())
        time.sleep(0.015)  # the printer
        text = f"Order {order['id']} for {order['customer']}"
        with self.lock, self.db:
            self.db.execute("INSERT OR REPLACE INTO slips VALUES (?, ?, ?)", (order["id"], order["customer"], text))


def take(consumer: Consumer) -> list[Message]:
    orders = []
    for message in consumer.consume(BATCH, timeout=0.5):
        if message.error():
            log.warning("kafka says: %s", message.error())
        else:
            orders.append(message)
    return orders


def commit(consumer: Consumer) -> None:
    try:
        consumer.commit(asynchronous=False)
    except KafkaException as error:
        log.warning("commit failed, some slips will be printed twice: %s", error)


def main() -> None:
    logging.basicConfig(level=logging.INFO)
    stopping = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stopping.set())

    slips = Slips()
    pool = ThreadPoolExecutor(PRINTERS)
    consumer = Consumer(CONFIG)
    consumer.subscribe([TOPIC])
    try:
        while not stopping.is_set():
            orders = take(consumer)
            if not orders:
                continue
            pending = {pool.submit(slips.print_slip, order) for order in orders}
            while pending and not stopping.is_set():
                printed, pending = wait(pending, timeout=0.2)
                for slip in printed:
                    slip.result()  # a broken printer ends the service
            commit(consumer)
            log.info("printed %d slips", len(orders))
    finally:
        pool.shutdown(wait=True, cancel_futures=True)
        consumer.close()


if __name__ == "__main__":
    main()
