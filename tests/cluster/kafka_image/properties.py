"""Writes Kafka's settings from environment variables: KAFKA_LOG_DIRS becomes log.dirs."""

import os
from pathlib import Path

DEFAULTS = {
    "log.dirs": "/tmp/kafka-data",
    "group.consumer.session.timeout.ms": "6000",
    "group.consumer.min.session.timeout.ms": "6000",
    "group.consumer.heartbeat.interval.ms": "500",
    "group.consumer.min.heartbeat.interval.ms": "500",
}
set_here = {
    name.removeprefix("KAFKA_").lower().replace("_", "."): value
    for name, value in os.environ.items()
    if name.startswith("KAFKA_")
}
file = Path("/etc/kafka/kafka.properties")
file.parent.mkdir(parents=True, exist_ok=True)
file.write_text("".join(f"{name}={value}\n" for name, value in {**DEFAULTS, **set_here}.items()))
