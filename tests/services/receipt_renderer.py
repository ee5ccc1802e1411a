"""Renders a receipt for every paid order into a file of JSON lines.

Rendering is slow, so it is done by a pool of threads, one task per record.
Per partition the committed offset is that of the lowest unfinished record.
"""

import json
import logging
import os
import signal
import threading
import time
from concurrent.futures import Future, ThreadPoolExecutor, wait
from pathlib import Path

from confluent_kafka import Consumer, KafkaException, Message, TopicPartition

CONFIG = {
    "bootstrap.servers": "kafka-1.shop.internal:9092,kafka-2.shop.internal:9092",
    "group.id": "receipt-renderer",
    "session.timeout.ms": 6000,
    "auto.offset.reset": "earliest",
    "enable.auto.commit": False,
}
log = logging.getLogger("receipt_renderer")


class Renderer:
    def __init__(self) -> None:
        path = Path(os.environ["SERVICES_DATA"]) / f"receipts-{os.getpid()}.jsonl"
        self.out = path.open("a", encoding="utf-8")
        self.lock = threading.Lock()
        self.pool = ThreadPoolExecutor(6)
        self.slots = threading.BoundedSemaphore(48)
        self.tasks: set[Future] = set()
        self.unfinished: dict[tuple[str, int], set[int]] = {}
        self.end: dict[tuple[str, int], int] = {}  # one past the last offset taken
        self.failure: Exception | None = None

    def render(self, message: Message, unfinished: set[int]) -> None:
        try:
            order = json.loads(message.value())
            time.sleep(0.005 + order["id"] % 10 / 1000)
            body = f"{order['customer']}: {order['cents'] / 100:.2f} EUR"
            with self.lock:
                self.out.write(json.dumps({"id": order["id"], "receipt": body}) + "\n")
                self.out.flush()
                unfinished.discard(message.offset())
        except Exception as error:
            self.failure = error  # the main loop gives up, the record stays unfinished
        self.slots.release()

    def submit(self, message: Message) -> None:
        self.slots.acquire()
        key = (message.topic(), message.partition())
        with self.lock:
            unfinished = self.unfinished.setdefault(key, set())
            unfinished.add(message.offset())
            self.end[key] = message.offset() + 1
        task = self.pool.submit(self.render, message, unfinished)
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)

    def commit(self, consumer: Consumer) -> None:
        with self.lock:
            safe = [TopicPartition(*k, min(self.unfinished[k], default=end)) for k, end in self.end.items()]
        try:
            if safe:
                consumer.commit(offsets=safe, asynchronous=False)
        except KafkaException as error:
            log.warning("commit failed, the next one makes up for it: %s", error)

    def on_revoke(self, consumer: Consumer, partitions: list) -> None:
        wait(set(self.tasks), timeout=5)
        self.commit(consumer)
        self.on_lost(consumer, partitions)

    def on_lost(self, consumer: Consumer, partitions: list) -> None:
        self.unfinished.clear()  # tasks still at work keep their own set
        self.end.clear()


def main() -> None:
    logging.basicConfig(level=logging.INFO)
    stopping = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stopping.set())
    renderer, next_commit = Renderer(), 0.0
    consumer = Consumer(CONFIG)
    consumer.subscribe(["shop.orders.paid"], on_revoke=renderer.on_revoke, on_lost=renderer.on_lost)
    try:
        while not stopping.is_set() and not renderer.failure:
            message = consumer.poll(0.2)
            if message is not None and message.error():
                log.warning("kafka says: %s", message.error())
            elif message is not None:
                renderer.submit(message)
            if time.monotonic() >= next_commit:
                renderer.commit(consumer)
                next_commit = time.monotonic() + 1
    finally:
        renderer.pool.shutdown(wait=True)
        renderer.commit(consumer)
        consumer.close()
        if renderer.failure:
            raise renderer.failure


if __name__ == "__main__":
    main()
