"""Mails invoices to customers.

The mail server takes one mail at a time, so a single sender thread works
through a queue. While the queue is long, fetching is paused. Committed are the
offsets of mails that have been sent.
"""

import json
import logging
import os
import queue
import signal
import threading
import time
from pathlib import Path

from confluent_kafka import Consumer, KafkaException, TopicPartition

HIGH_WATER, LOW_WATER = 200, 50
CONFIG = {
    "bootstrap.servers": "kafka-1.shop.internal:9092,kafka-2.shop.internal:9092",
    "group.id": "invoice-mailer",
    "session.timeout.ms": 6000,
    "auto.offset.reset": "earliest",
    "enable.auto.commit": False,
}
log = logging.getLogger("invoice_mailer")


class Mailer:
    def __init__(self) -> None:
        self.mails: queue.Queue = queue.Queue()
        self.sent: dict[tuple[str, int], int] = {}  # next offset by topic and partition
        self.failure: Exception | None = None
        self.paused = False
        self.outbox = (Path(os.environ["SERVICES_DATA"]) / f"outbox-{os.getpid()}.jsonl").open("a")
        self.consumer = Consumer(CONFIG)

    def send_all(self) -> None:
        """The sender thread: sends the mails in the order they came in."""
        while True:
            message = self.mails.get()
            try:
                if self.failure is None:
                    self.send(message)
            except Exception as error:
                self.failure = error  # the main loop gives up, nothing more is sent
            self.mails.task_done()

    def send(self, message) -> None:
        invoice = json.loads(message.value())
        time.sleep(0.006)
        self.outbox.write(json.dumps({"mail": invoice["id"], **invoice}) + "\n")
        self.outbox.flush()
        self.sent[message.topic(), message.partition()] = message.offset() + 1

    def commit(self) -> None:
        offsets = [TopicPartition(*key, offset) for key, offset in self.sent.copy().items()]
        try:
            if offsets:
                self.consumer.commit(offsets=offsets, asynchronous=False)
        except KafkaException as error:
            log.warning("commit failed, the next one makes up for it: %s", error)

    def on_revoke(self, consumer: Consumer, partitions: list) -> None:
        self.mails.join()
        self.commit()
        self.on_lost(consumer, partitions)

    def on_lost(self, consumer: Consumer, partitions: list) -> None:
        self.mails.join()
        self.sent.clear()
        if self.paused:
            consumer.resume(partitions)
            self.paused = False

    def run(self, stopping: threading.Event) -> None:
        self.consumer.subscribe(["shop.invoices.issued"], on_revoke=self.on_revoke, on_lost=self.on_lost)
        threading.Thread(target=self.send_all, daemon=True).start()
        next_commit = 0.0
        while not stopping.is_set() and self.failure is None:
            if time.monotonic() >= next_commit:
                self.commit()
                next_commit = time.monotonic() + 1
            message = self.consumer.poll(0.2)
            if message is None:
                continue
            if message.error():
                log.warning("kafka says: %s", message.error())
                continue
            self.mails.put(message)
            if not self.paused and self.mails.qsize() >= HIGH_WATER:
                self.consumer.pause(self.consumer.assignment())
                self.paused = True
            elif self.paused and self.mails.qsize() <= LOW_WATER:
                self.consumer.resume(self.consumer.assignment())
                self.paused = False
        self.mails.join()
        self.commit()
        self.consumer.close()
        if self.failure:
            raise self.failure


if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO)
    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    Mailer().run(stop)
