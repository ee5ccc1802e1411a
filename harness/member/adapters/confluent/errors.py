"""Kafka's names of librdkafka's errors."""

from __future__ import annotations

from typing import Optional, Tuple

import confluent_kafka as client

# librdkafka's names where they are not Kafka's. Its own errors (names with a leading underscore) become LOCAL_...
KAFKA_NAMES = {
    "INVALID_MSG": "CORRUPT_MESSAGE",
    "UNKNOWN_TOPIC_OR_PART": "UNKNOWN_TOPIC_OR_PARTITION",
    "INVALID_MSG_SIZE": "INVALID_FETCH_SIZE",
    "NOT_LEADER_FOR_PARTITION": "NOT_LEADER_OR_FOLLOWER",
    "MSG_SIZE_TOO_LARGE": "MESSAGE_TOO_LARGE",
    "STALE_CTRL_EPOCH": "STALE_CONTROLLER_EPOCH",
    "TOPIC_EXCEPTION": "INVALID_TOPIC_EXCEPTION",
    "GROUP_COORDINATOR_NOT_AVAILABLE": "COORDINATOR_NOT_AVAILABLE",
    "NOT_COORDINATOR_FOR_GROUP": "NOT_COORDINATOR",
    "GROUP_LOAD_IN_PROGRESS": "COORDINATOR_LOAD_IN_PROGRESS",
    "_TRANSPORT": "NETWORK_EXCEPTION",
    "_MSG_TIMED_OUT": "LOCAL_MESSAGE_TIMED_OUT",
    "_FENCED": "FENCED_INSTANCE_ID",
}


def error_name(error: Optional[client.KafkaError]) -> str:
    """Kafka's name of a client error; empty for none."""
    if error is None or error.code() == 0:
        return ""
    name = str(error.name())
    return KAFKA_NAMES.get(name) or ("LOCAL" + name if name.startswith("_") else name)


def cause(error: client.KafkaError) -> str:
    """Kafka's name of the cause of a fatal error. A consumer gets only the code ``_FATAL`` and the cause as text."""
    if error.code() != client.KafkaError._FATAL:
        return error_name(error)
    meant = (candidate for candidate in map(client.KafkaError, range(1, 200)) if candidate.str() in error.str())
    return error_name(max(meant, key=lambda candidate: len(candidate.str()), default=error))


def error_event(error: client.KafkaError) -> Tuple[str, str, bool]:
    """The arguments of ``ClientListener.error`` for an error: name, text, whether it is fatal."""
    fatal = error.fatal() or error.code() == client.KafkaError._FATAL
    return cause(error) if fatal else error_name(error), error.str(), fatal
