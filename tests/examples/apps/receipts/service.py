"""Writes a receipt of each order into the topic ``receipts``: ``python -m receipts.service``.

Receipts of a batch are sent, and when the brokers have them it is committed.

``--unflushed`` is how the service was written at first: what is sent is committed, whether or not it has arrived.
"""

from __future__ import annotations

import argparse
import json
import signal
import sys
import threading

from confluent_kafka import Consumer, KafkaException, Producer

BROKERS = {"bootstrap.servers": "kafka-1.shop.internal:9092,kafka-2.shop.internal:9092"}
CONSUMER = {
    **BROKERS,
    "group.id": "shop-receipts",
    "auto.offset.reset": "earliest",
    "enable.auto.commit": False,
    "session.timeout.ms": 6000,
}
LINGER_MS = 500  # receipts are small, and nobody waits for them


def main() -> int:
    """Consume until told to stop."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--unflushed", action="store_true")
    options = parser.parse_args()
    stop = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stop.set())
    consumer, producer = Consumer(CONSUMER), Producer({**BROKERS, "linger.ms": LINGER_MS})
    consumer.subscribe(["orders"])
    while not stop.is_set():
        batch = [m for m in consumer.consume(100, 0.2) if m.error() is None]
        for message in batch:
            order = json.loads(message.value() or b"{}")
            producer.produce("receipts", key=order["id"], value=f"{order['cents'] / 100:.2f} EUR")
        if not options.unflushed:
            producer.flush()
        try:
            if batch:
                consumer.commit(asynchronous=False)
        except KafkaException as error:  # another one has the partitions, and writes them again
            print(f"commit failed: {error}", file=sys.stderr, flush=True)
        producer.poll(0)
    producer.flush()
    consumer.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
