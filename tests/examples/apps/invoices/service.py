"""Writes an invoice for each order: ``python -m invoices.service``.

FastStream acknowledges an order when its handler returned, and asks for it again when that raised. Writing an invoice
twice changes nothing, so what is delivered again is harmless.
"""

from __future__ import annotations

import asyncio
import os
import sqlite3

from faststream import AckPolicy, FastStream
from faststream.kafka import KafkaBroker
from pydantic import BaseModel

SERVERS = ["kafka-1.shop.internal:9092", "kafka-2.shop.internal:9092"]


class Order(BaseModel):
    """What the shop's web site sends."""

    id: str
    customer: str
    cents: int


class Invoices:
    """The database of invoices. Calls of it block, so they are made in threads."""

    def __init__(self, path: str) -> None:
        self.database = sqlite3.connect(path, timeout=30, isolation_level=None, check_same_thread=False)
        self.database.execute("PRAGMA journal_mode=WAL")
        self.database.execute("PRAGMA synchronous=NORMAL")
        self.database.execute("CREATE TABLE IF NOT EXISTS invoices (id TEXT PRIMARY KEY, customer TEXT, cents INTEGER)")

    def write(self, order: Order) -> None:
        """Write an invoice; twice is as good as once."""
        self.database.execute("INSERT OR REPLACE INTO invoices VALUES (:id, :customer, :cents)", order.model_dump())


def service(invoices: Invoices) -> FastStream:
    """The application, ready to run."""
    broker = KafkaBroker(SERVERS, client_id="invoices")

    @broker.subscriber(
        "orders",
        group_id="shop-invoices",
        ack_policy=AckPolicy.NACK_ON_ERROR,  # by default it acknowledges before
        auto_offset_reset="earliest",
        session_timeout_ms=6000,
        heartbeat_interval_ms=1000,
    )
    async def invoice(order: Order) -> None:
        await asyncio.to_thread(invoices.write, order)

    return FastStream(broker)


def main() -> None:
    """Serve until told to stop."""
    invoices = Invoices(os.environ.get("SHOP_DATABASE", "invoices.db"))
    asyncio.run(service(invoices).run())


if __name__ == "__main__":
    main()
