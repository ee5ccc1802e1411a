"""Books a parcel with the carrier for every packed order.

The carrier grants us a limited number of bookings per second. An order is
acknowledged once its parcel is booked and written down.
"""

import asyncio
import logging
import os
import sqlite3
import time
from pathlib import Path

from faststream import AckPolicy, FastStream, Logger
from faststream.confluent import KafkaBroker
from faststream.confluent.annotations import KafkaMessage

TOPIC = "shop.orders.packed"
SERVERS = "kafka-1.shop.internal:9092,kafka-2.shop.internal:9092"
BOOKINGS_PER_SECOND = 60

broker = KafkaBroker(SERVERS, allow_auto_create_topics=False, graceful_timeout=4.0)
app = FastStream(broker)


class QuotaExceeded(Exception):
    """The carrier takes no more bookings within this second."""


class Carrier:
    """The carrier's booking service."""

    def __init__(self, per_second: int) -> None:
        self.per_second = per_second
        self.second = 0
        self.used = 0

    async def book(self, order: dict) -> str:
        await asyncio.sleep(0.004)
        second = int(time.monotonic())
        if second != self.second:
            self.second, self.used = second, 0
        if self.used >= self.per_second:
            raise QuotaExceeded(f"more than {self.per_second} bookings in a second")
        self.used += 1
        return f"PCL{order['id']:09d}"


class Parcels:
    """The parcels that have been booked, one row for each order."""

    def __init__(self) -> None:
        self.db: sqlite3.Connection | None = None

    def open(self) -> None:
        path = Path(os.environ["SERVICES_DATA"]) / "parcels.db"
        self.db = sqlite3.connect(path, timeout=30, check_same_thread=False)
        self.db.execute("PRAGMA journal_mode=WAL")
        self.db.execute("CREATE TABLE IF NOT EXISTS parcels (id INTEGER PRIMARY KEY, customer TEXT, parcel TEXT)")

    def save(self, order: dict, parcel: str) -> None:
        with self.db:
            self.db.execute("INSERT OR REPLACE INTO parcels VALUES (?, ?, ?)", (order["id"], order["customer"], parcel))


carrier = Carrier(BOOKINGS_PER_SECOND)
parcels = Parcels()
app.on_startup(parcels.open)


@broker.subscriber(
    TOPIC,
    group_id="parcel-booking",
    auto_offset_reset="earliest",
    session_timeout_ms=6000,
    heartbeat_interval_ms=2000,
    ack_policy=AckPolicy.MANUAL,
)
async def on_order(order: dict, message: KafkaMessage, logger: Logger) -> None:
    try:
        parcel = await carrier.book(order)
    except QuotaExceeded as error:
        # Not acknowledged, so Kafka will hand it to us again.
        logger.warning("order %s is not booked yet: %s", order["id"], error)
        await asyncio.sleep(0.1)
        return
    await asyncio.to_thread(parcels.save, order, parcel)
    await message.ack()


if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO)
    asyncio.run(app.run())
