"""A program as users have it, which knows nothing of Fencepost: it handles what a poll brings, then commits it.

python subscriber.py eager|cooperative|consumer
"""

from __future__ import annotations

import signal
import sys
import threading

from confluent_kafka import Consumer, KafkaException

PROTOCOLS = {
    "eager": {"partition.assignment.strategy": "range"},
    "cooperative": {"partition.assignment.strategy": "cooperative-sticky"},
    "consumer": {"group.protocol": "consumer"},
}


def main(protocol: str) -> None:
    """Until it is asked to end."""
    stop = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stop.set())
    settings = {
        "bootstrap.servers": "kafka.shop.internal:9092",
        "group.id": "shop",
        "enable.auto.commit": False,
        "auto.offset.reset": "earliest",
    }
    consumer = Consumer(settings | PROTOCOLS[protocol])
    consumer.subscribe(["orders", "refunds"])
    try:
        while not stop.is_set():
            records = [record for record in consumer.consume(100, 0.2) if not record.error()]
            for record in records:
                assert record.value()  # and whatever else is to be done with it
            try:
                if records:
                    consumer.commit(asynchronous=False)
            except KafkaException as refused:
                print("commit failed:", refused, file=sys.stderr)
    finally:
        consumer.close()


if __name__ == "__main__":
    main(sys.argv[1])
