"""Exports orders for the data warehouse.

The warehouse loads files of JSON lines and prefers few large writes, so the
orders are collected and written in chunks.
"""

import json
import logging
import os
import signal
import threading
import time
from pathlib import Path

from kafka import KafkaConsumer
from kafka.errors import KafkaError

TOPIC = "shop.orders.placed"
SERVERS = ["kafka-1.shop.internal:9092", "kafka-2.shop.internal:9092"]
CHUNK = 100

log = logging.getLogger("warehouse_export")


class Export:
    """One file of this run. The warehouse drops double orders when it loads it."""

    def __init__(self) -> None:
        folder = Path(os.environ["SERVICES_DATA"])
        self.path = folder / f"export-{int(time.time())}-{os.getpid()}.jsonl"
        self.file = self.path.open("a", encoding="utf-8")
        self.chunk: list[dict] = []

    def add(self, order: dict) -> None:
        time.sleep(0.001)  # looks up the currency
        self.chunk.append({**order, "currency": "EUR"})
        if len(self.chunk) >= CHUNK:
            self.write()

    def write(self) -> None:
        if not self.chunk:
            return
        self.file.write("".join(json.dumps(order) + "\n" for order in self.chunk))
        self.file.flush()
        os.fsync(self.file.fileno())
        log.info("wrote %d orders to %s", len(self.chunk), self.path.name)
        self.chunk.clear()


def run(consumer: KafkaConsumer, export: Export, stopping: threading.Event) -> None:
    while not stopping.is_set():
        try:
            for record in consumer:
                export.add(json.loads(record.value))
                if stopping.is_set():
                    break
        except KafkaError as error:
            log.error("reading failed, trying again: %s", error)
            stopping.wait(1)
        export.write()  # it is quiet, or we are to stop


def main() -> None:
    logging.basicConfig(level=logging.INFO)
    stopping = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stopping.set())

    export = Export()
    consumer = KafkaConsumer(
        TOPIC,
        bootstrap_servers=SERVERS,
        group_id="warehouse-export",
        session_timeout_ms=6000,
        heartbeat_interval_ms=2000,
        auto_offset_reset="earliest",
        enable_auto_commit=True,
        auto_commit_interval_ms=1000,
        max_poll_records=50,
        consumer_timeout_ms=1000,  # lets the loop look up when it is quiet
    )
    try:
        run(consumer, export, stopping)
    except Exception:
        consumer.close(autocommit=False, timeout_ms=3000)
        raise
    consumer.close(timeout_ms=3000)


if __name__ == "__main__":
    main()
