"""Credits loyalty points for delivered orders, one order after the other.

The offset of an order is committed as soon as its points are in the database.
Anything unexpected ends the process, which starts again from the last commit.
"""

import asyncio
import contextlib
import json
import logging
import os
import signal
import sqlite3
from pathlib import Path

from aiokafka import AIOKafkaConsumer, TopicPartition
from aiokafka.errors import KafkaError

TOPIC = "shop.orders.delivered"
SERVERS = "kafka-1.shop.internal:9092,kafka-2.shop.internal:9092"

log = logging.getLogger("loyalty_points")


def open_database() -> sqlite3.Connection:
    path = Path(os.environ["SERVICES_DATA"]) / "loyalty.db"
    db = sqlite3.connect(path, timeout=30, check_same_thread=False)
    db.execute("PRAGMA journal_mode=WAL")
    db.execute("CREATE TABLE IF NOT EXISTS points (id INTEGER PRIMARY KEY, customer TEXT, points INTEGER)")
    return db


def save(db: sqlite3.Connection, order: dict, points: int) -> None:
    with db:
        db.execute("INSERT OR REPLACE INTO points VALUES (?, ?, ?)", (order["id"], order["customer"], points))


async def points_for(order: dict) -> int:
    await asyncio.sleep(0.004)  # asks for the customer's status
    factor = 2 if order["customer"].startswith("ada") else 1
    return order["cents"] // 100 * factor


async def commit(consumer: AIOKafkaConsumer, record) -> None:
    try:
        await consumer.commit({TopicPartition(record.topic, record.partition): record.offset + 1})
    except KafkaError as error:
        # The partition has moved on to somebody else, who will credit the same
        # points again under the same order number.
        log.warning("offset %d not committed: %s", record.offset, error)


async def credit_points(consumer: AIOKafkaConsumer, db: sqlite3.Connection) -> None:
    await consumer.start()
    async for record in consumer:
        order = json.loads(record.value)
        points = await points_for(order)
        await asyncio.to_thread(save, db, order, points)
        await commit(consumer, record)


async def main() -> None:
    logging.basicConfig(level=logging.INFO)
    stopping = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stopping.set)

    consumer = AIOKafkaConsumer(
        TOPIC,
        bootstrap_servers=SERVERS,
        group_id="loyalty-points",
        session_timeout_ms=6000,
        heartbeat_interval_ms=2000,
        auto_offset_reset="earliest",
        enable_auto_commit=False,
    )
    crediting = asyncio.create_task(credit_points(consumer, open_database()))
    stop = asyncio.create_task(stopping.wait())
    try:
        await asyncio.wait({crediting, stop}, return_when=asyncio.FIRST_COMPLETED)
        if stopping.is_set():
            crediting.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await crediting
    finally:
        await consumer.stop()


if __name__ == "__main__":
    asyncio.run(main())
