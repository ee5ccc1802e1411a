"""Scores the orders of both shops for fraud.

Takes a batch of orders, scores the partitions of the batch side by side,
writes all the scores and commits. A rebalance waits for the batch in hand.
"""

import asyncio
import contextlib
import json
import logging
import os
import signal
import sqlite3
from pathlib import Path

from aiokafka import AIOKafkaConsumer, ConsumerRebalanceListener, TopicPartition
from aiokafka.errors import KafkaError

TOPICS = ["webshop.orders.placed", "appshop.orders.placed"]
SERVERS = "kafka-1.shop.internal:9092,kafka-2.shop.internal:9092"

log = logging.getLogger("fraud_scores")


def open_database() -> sqlite3.Connection:
    path = Path(os.environ["SERVICES_DATA"]) / "fraud.db"
    db = sqlite3.connect(path, timeout=30, check_same_thread=False)
    db.execute("PRAGMA journal_mode=WAL")
    db.execute(
        "CREATE TABLE IF NOT EXISTS scores"
        " (shop TEXT, id INTEGER, customer TEXT, score INTEGER, PRIMARY KEY (shop, id))"
    )
    return db


def save(db: sqlite3.Connection, rows: list[tuple]) -> None:
    with db:
        db.executemany("INSERT OR REPLACE INTO scores VALUES (?, ?, ?, ?)", rows)


async def score(partition: TopicPartition, records: list) -> list[tuple]:
    shop, rows = partition.topic.split(".")[0], []
    for record in records:
        order = json.loads(record.value)
        await asyncio.sleep(0.003)  # the model answers
        rows.append((shop, order["id"], order["customer"], (order["cents"] * 31 + order["id"]) % 101))
    return rows


class FinishFirst(ConsumerRebalanceListener):
    """Holds a rebalance back until the batch in hand is written and committed."""

    def __init__(self, in_hand: asyncio.Lock) -> None:
        self.in_hand = in_hand

    async def on_partitions_revoked(self, revoked) -> None:
        async with self.in_hand:
            log.info("giving up %s", sorted(revoked))

    async def on_partitions_assigned(self, assigned) -> None:
        log.info("now scoring %s", sorted(assigned))


async def score_orders(consumer: AIOKafkaConsumer, db: sqlite3.Connection) -> None:
    in_hand = asyncio.Lock()
    consumer.subscribe(TOPICS, listener=FinishFirst(in_hand))
    await consumer.start()
    while True:
        batches = await consumer.getmany(timeout_ms=500, max_records=120)
        if not batches:
            continue
        async with in_hand:
            parts = await asyncio.gather(*(score(tp, records) for tp, records in batches.items()))
            await asyncio.to_thread(save, db, [row for rows in parts for row in rows])
            try:
                await consumer.commit({tp: records[-1].offset + 1 for tp, records in batches.items()})
            except KafkaError as error:
                log.warning("not committed, some orders will be scored again: %s", error)


async def main() -> None:
    logging.basicConfig(level=logging.INFO)
    stopping = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stopping.set)
    consumer = AIOKafkaConsumer(
        bootstrap_servers=SERVERS,
        group_id="fraud-scores",
        session_timeout_ms=6000,
        heartbeat_interval_ms=2000,
        auto_offset_reset="earliest",
        enable_auto_commit=False,
    )
    scoring = asyncio.create_task(score_orders(consumer, open_database()))
    stop = asyncio.create_task(stopping.wait())
    try:
        await asyncio.wait({scoring, stop}, return_when=asyncio.FIRST_COMPLETED)
        if stopping.is_set():
            scoring.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await scoring
    finally:
        await consumer.stop()


if __name__ == "__main__":
    asyncio.run(main())
