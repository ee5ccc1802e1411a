"""Matches incoming payments with open invoices.

Takes one payment after the other, looks for its invoice, writes down the match
and commits the offset of the payment.
"""

import asyncio
import json
import logging
import os
import signal
import sqlite3
from pathlib import Path

from aiokafka import AIOKafkaConsumer, TopicPartition

TOPIC = "bank.payments.received"
SERVERS = "kafka-1.shop.internal:9092,kafka-2.shop.internal:9092"

log = logging.getLogger("payment_matcher")


class Matches:
    """The matches, one row for each payment."""

    def __init__(self) -> None:
        path = Path(os.environ["SERVICES_DATA"]) / "payments.db"
        self.db = sqlite3.connect(path, timeout=30, check_same_thread=False)
        self.db.execute("PRAGMA journal_mode=WAL")
        self.db.execute(
            "CREATE TABLE IF NOT EXISTS matches (id INTEGER PRIMARY KEY, customer TEXT, cents INTEGER, invoice TEXT)"
        )

    def save(self, payment: dict, invoice: str) -> None:
        with self.db:
            self.db.execute(
                "INSERT OR REPLACE INTO matches VALUES (?, ?, ?, ?)",
                (payment["id"], payment["customer"], payment["cents"], invoice),
            )


async def find_invoice(payment: dict) -> str:
    await asyncio.sleep(0.008)  # the bookkeeping's search
    return f"{payment['customer']}/{payment['id']:06d}"


async def match_payments(consumer: AIOKafkaConsumer, matches: Matches) -> None:
    await consumer.start()
    log.info("waiting for payments")
    async for record in consumer:
        payment = json.loads(record.value)
        invoice = await find_invoice(payment)
        await asyncio.to_thread(matches.save, payment, invoice)
        partition = TopicPartition(record.topic, record.partition)
        await consumer.commit({partition: record.offset + 1})


async def main() -> None:
    logging.basicConfig(level=logging.INFO)
    stopping = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stopping.set)

    matches = Matches()
    consumer = AIOKafkaConsumer(
        TOPIC,
        bootstrap_servers=SERVERS,
        group_id="payment-matcher",
        session_timeout_ms=6000,
        heartbeat_interval_ms=2000,
        auto_offset_reset="earliest",
        enable_auto_commit=False,
    )
    matching = asyncio.create_task(match_payments(consumer, matches))
    await stopping.wait()

    log.info("stopping")
    matching.cancel()
    await asyncio.gather(matching, return_exceptions=True)
    await consumer.stop()


if __name__ == "__main__":
    asyncio.run(main())
