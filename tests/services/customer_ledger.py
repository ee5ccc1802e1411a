"""Keeps the customers' ledger.

Books the invoices in batches, each batch in one database transaction. A batch
is acknowledged when it is booked and taken again when booking it fails.
"""

import asyncio
import logging
import os
import sqlite3
from pathlib import Path

from faststream import AckPolicy, FastStream
from faststream.kafka import KafkaBroker

TOPIC = "shop.invoices.issued"
SERVERS = ["kafka-1.shop.internal:9092", "kafka-2.shop.internal:9092"]

log = logging.getLogger("customer_ledger")
broker = KafkaBroker(SERVERS, consumer_only=True, graceful_timeout=4.0)
app = FastStream(broker)


class Ledger:
    """The bookings, one row for each invoice."""

    def __init__(self) -> None:
        self.db: sqlite3.Connection | None = None

    def open(self) -> None:
        path = Path(os.environ["SERVICES_DATA"]) / "ledger.db"
        self.db = sqlite3.connect(path, timeout=30, check_same_thread=False)
        self.db.execute("PRAGMA journal_mode=WAL")
        self.db.execute(
            "CREATE TABLE IF NOT EXISTS bookings (id INTEGER PRIMARY KEY, customer TEXT, cents INTEGER, vat INTEGER)"
        )

    def book(self, invoices: list[dict]) -> None:
        rows = [(i["id"], i["customer"], i["cents"], round(i["cents"] * 0.19 / 1.19)) for i in invoices]
        with self.db:
            self.db.executemany("INSERT OR REPLACE INTO bookings VALUES (?, ?, ?, ?)", rows)


ledger = Ledger()


@app.on_startup
def open_ledger() -> None:
    ledger.open()


@broker.subscriber(
    TOPIC,
    group_id="customer-ledger",
    batch=True,
    max_records=60,
    batch_timeout_ms=300,
    auto_offset_reset="earliest",
    session_timeout_ms=10_000,
    heartbeat_interval_ms=3_000,
    ack_policy=AckPolicy.NACK_ON_ERROR,
)
async def on_invoices(invoices: list[dict]) -> None:
    await asyncio.sleep(0.002 * len(invoices))  # the tax service
    await asyncio.to_thread(ledger.book, invoices)
    log.info("booked %d invoices", len(invoices))


if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO)
    asyncio.run(app.run())
