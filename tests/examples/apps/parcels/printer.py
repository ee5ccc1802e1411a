"""Prints a label for each order, in a pool of threads: ``python -m parcels.printer``.

Labels are finished in any order. Of each partition only what is finished without a gap is committed. Whoever gives
partitions up waits for their labels first; who has lost them forgets them, for another one prints them now.

``--as-finished`` is how the service was written at first: what is finished is committed, whatever is in hand below it,
and nobody looks at who owns its partition by then. ``--at-once`` commits whatever the threads have, finished or not.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import sqlite3
import sys
import threading
from collections import deque
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from itertools import takewhile

from confluent_kafka import Consumer, KafkaException, Message, TopicPartition

CONFIG = {
    "bootstrap.servers": "kafka-1.shop.internal:9092,kafka-2.shop.internal:9092",
    "group.id": "shop-parcels",
    "auto.offset.reset": "earliest",
    "enable.auto.commit": False,
    "session.timeout.ms": 6000,
}
WORKERS, IN_HAND, WAIT_S = 8, 100, 10.0
LABEL_S, FOREIGN_LABEL_S = 0.002, 0.2  # every tenth goes abroad


class Labels:
    """The printer, and the list of what it printed."""

    def __init__(self, path: str) -> None:
        self.path, self.mine = path, threading.local()

    def database(self) -> sqlite3.Connection:
        """This thread's own connection."""
        if not hasattr(self.mine, "database"):
            self.mine.database = sqlite3.connect(self.path, timeout=30, isolation_level=None)
            self.mine.database.execute("PRAGMA journal_mode=WAL")
            self.mine.database.execute("PRAGMA synchronous=NORMAL")
            self.mine.database.execute("CREATE TABLE IF NOT EXISTS labels (id TEXT PRIMARY KEY, customer TEXT)")
        return self.mine.database

    def print(self, message: Message) -> None:
        """Print a label, which takes its time; twice is as good as once."""
        order = json.loads(message.value() or b"{}")
        threading.Event().wait(FOREIGN_LABEL_S if order["cents"] % 10 == 0 else LABEL_S)
        self.database().execute("INSERT OR REPLACE INTO labels VALUES (:id, :customer)", order)


def finished_prefix(queue: deque[tuple[int, Future[None]]]) -> list[tuple[int, Future[None]]]:
    """What is finished without a gap."""
    return list(takewhile(lambda each: each[1].done(), queue))


class Parcels:
    """What is in hand, by partition, in the order of its offsets."""

    def __init__(self, consumer: Consumer, labels: Labels, commits: str) -> None:
        self.consumer, self.labels, self.commits = consumer, labels, commits
        self.pool = ThreadPoolExecutor(WORKERS)
        self.in_hand: dict[tuple[str, int], deque[tuple[int, Future[None]]]] = {}
        self.unsaid: dict[tuple[str, int], int] = {}

    def take(self, message: Message) -> None:
        """Hand one more to the threads; when there are too many, wait for one of them."""
        future = self.pool.submit(self.labels.print, message)
        self.in_hand.setdefault((message.topic(), message.partition()), deque()).append((message.offset(), future))
        begun = [future for queue in self.in_hand.values() for _, future in queue if not future.done()]
        if len(begun) >= IN_HAND:
            wait(begun, WAIT_S, FIRST_COMPLETED)

    def commit(self) -> None:
        """Tell Kafka what is finished. A label that failed ends the service, uncommitted."""
        for place, queue in self.in_hand.items():
            for offset, future in self.settled(queue):
                queue.remove((offset, future))
                if future.done():
                    future.result()
                self.unsaid[place] = offset + 1
        offsets = [TopicPartition(*place, offset) for place, offset in self.unsaid.items()]
        if offsets:
            try:
                self.consumer.commit(offsets=offsets, asynchronous=False)
                self.unsaid.clear()
            except KafkaException as error:  # the next one tries it again, unless the partition is lost by then
                print(f"commit failed: {error}", file=sys.stderr, flush=True)

    def settled(self, queue: deque[tuple[int, Future[None]]]) -> list[tuple[int, Future[None]]]:
        """What a commit is about."""
        if self.commits == "in-order":
            return finished_prefix(queue)
        return [each for each in queue if self.commits == "at-once" or each[1].done()]

    def revoked(self, consumer: Consumer, partitions: list[TopicPartition]) -> None:
        """Before partitions go to another one."""
        going = [self.in_hand.get((p.topic, p.partition), deque()) for p in partitions]
        wait([future for queue in going for _, future in queue], WAIT_S)
        self.commit()
        self.lost(consumer, partitions)

    def lost(self, consumer: Consumer, partitions: list[TopicPartition]) -> None:
        """Another one may have them already."""
        for p in partitions:
            for _, future in self.in_hand.pop((p.topic, p.partition), ()):
                future.cancel()
            self.unsaid.pop((p.topic, p.partition), None)

    def close(self) -> None:
        """Finish what is in hand, and leave."""
        if self.commits == "in-order":
            self.revoked(self.consumer, self.consumer.assignment())
        self.consumer.close()
        self.pool.shutdown(cancel_futures=True)


def main() -> int:
    """Consume until told to stop."""
    parser = argparse.ArgumentParser()
    for way in ("as-finished", "at-once"):
        parser.add_argument("--" + way, dest="commits", action="store_const", const=way, default="in-order")
    options = parser.parse_args()
    stop = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stop.set())
    consumer = Consumer(CONFIG)
    parcels = Parcels(consumer, Labels(os.environ.get("SHOP_DATABASE", "labels.db")), options.commits)
    if options.commits == "in-order":
        consumer.subscribe(["orders"], on_revoke=parcels.revoked, on_lost=parcels.lost)
    else:
        consumer.subscribe(["orders"])
    while not stop.is_set():
        message = consumer.poll(0.1)
        if message is not None and message.error() is None:
            parcels.take(message)
        if message is None or message.offset() % 20 == 0:
            parcels.commit()
    parcels.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
