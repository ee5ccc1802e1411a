"""The parts of Kafka's wire format that reading evidence needs: error names, assignments, a probe."""

from __future__ import annotations

import base64
import binascii
import struct
from collections.abc import Mapping
from typing import Any

# Error codes in answers to requests of a group (Kafka's ``Errors``).
ERROR_NAMES = {
    -1: "UNKNOWN_SERVER_ERROR",
    1: "OFFSET_OUT_OF_RANGE",
    3: "UNKNOWN_TOPIC_OR_PARTITION",
    5: "LEADER_NOT_AVAILABLE",
    6: "NOT_LEADER_OR_FOLLOWER",
    7: "REQUEST_TIMED_OUT",
    12: "OFFSET_METADATA_TOO_LARGE",
    13: "NETWORK_EXCEPTION",
    14: "COORDINATOR_LOAD_IN_PROGRESS",
    15: "COORDINATOR_NOT_AVAILABLE",
    16: "NOT_COORDINATOR",
    19: "NOT_ENOUGH_REPLICAS",
    20: "NOT_ENOUGH_REPLICAS_AFTER_APPEND",
    22: "ILLEGAL_GENERATION",
    23: "INCONSISTENT_GROUP_PROTOCOL",
    24: "INVALID_GROUP_ID",
    25: "UNKNOWN_MEMBER_ID",
    26: "INVALID_SESSION_TIMEOUT",
    27: "REBALANCE_IN_PROGRESS",
    28: "INVALID_COMMIT_OFFSET_SIZE",
    29: "TOPIC_AUTHORIZATION_FAILED",
    30: "GROUP_AUTHORIZATION_FAILED",
    35: "UNSUPPORTED_VERSION",
    42: "INVALID_REQUEST",
    47: "INVALID_PRODUCER_EPOCH",
    48: "INVALID_TXN_STATE",
    49: "INVALID_PRODUCER_ID_MAPPING",
    51: "CONCURRENT_TRANSACTIONS",
    56: "KAFKA_STORAGE_ERROR",
    69: "GROUP_ID_NOT_FOUND",
    79: "MEMBER_ID_REQUIRED",
    81: "GROUP_MAX_SIZE_REACHED",
    82: "FENCED_INSTANCE_ID",
    86: "GROUP_SUBSCRIBED_TO_TOPIC",
    88: "UNSTABLE_OFFSET_COMMIT",
    90: "PRODUCER_FENCED",
    100: "UNKNOWN_TOPIC_ID",
    110: "FENCED_MEMBER_EPOCH",
    111: "UNRELEASED_INSTANCE_ID",
    112: "UNSUPPORTED_ASSIGNOR",
    113: "STALE_MEMBER_EPOCH",
}
TOPIC_NAME_MAX = 249


def probe(padding: int = 0) -> bytes:
    """An ApiVersions request, version 0, correlation 77, client id "probe": any broker answers it, and it changes
    nothing.

    Version 0 has an empty body; brokers ignore the ``padding`` bytes after it.
    """
    return struct.pack(">ihhih5s", 15 + padding, 18, 0, 77, 5, b"probe") + bytes(padding)


def request_of_unknown_topics(size: int) -> bytes:
    """A Metadata request, version 4, correlation 78, for topics that do not exist: cheap for a broker, and it changes
    nothing.

    The answer names each of them again, and so has ``size`` bytes or more.
    """
    names = [f"probe-{n:06}-".encode().ljust(TOPIC_NAME_MAX, b"x") for n in range(-(-size // TOPIC_NAME_MAX))]
    body = struct.pack(">i", len(names)) + b"".join(struct.pack(">h", len(name)) + name for name in names) + bytes(1)
    head = struct.pack(">hhih5s", 3, 4, 78, 5, b"probe")
    return struct.pack(">i", len(head) + len(body)) + head + body


def answers_in(received: bytes) -> int:
    """The number of complete answers in ``received``; each begins with its length."""
    count = at = 0
    while at + 4 <= len(received):
        at += 4 + int.from_bytes(received[at : at + 4], "big")
        count += at <= len(received)
    return count


def error_name(code: int) -> str | None:
    """Kafka's name of an error code; None for 0 (no error)."""
    return None if code == 0 else ERROR_NAMES.get(code, f"ERROR_{code}")


def assignment(blob: str) -> dict[str, list[int]] | None:
    """The partitions by topic of a ``ConsumerProtocolAssignment`` in base64; {} if empty, None if it is not valid."""
    try:
        raw = base64.b64decode(blob, validate=True)
        return _assignment(raw) if raw else {}
    except (binascii.Error, struct.error, UnicodeDecodeError):
        return None


def _assignment(raw: bytes) -> dict[str, list[int]]:
    (topics,), at = struct.unpack_from(">i", raw, 2), 6  # after the version
    found: dict[str, list[int]] = {}
    for _ in range(topics):
        (length,) = struct.unpack_from(">h", raw, at)
        name, at = raw[at + 2 : at + 2 + length].decode(), at + 2 + length
        (count,) = struct.unpack_from(">i", raw, at)
        found[name] = sorted(struct.unpack_from(f">{count}i", raw, at + 4))
        at += 4 + 4 * count
    return found


def named_partitions(listed: list[Mapping[str, Any]] | None, topics: Mapping[str, str]) -> dict[str, list[int]]:
    """Partitions by topic name, from Kafka's form of assignments: ``[{topic | topicId, partitions}]``.

    An id that is not in ``topics`` stays as it is: the topic was deleted, or is not part of the run.
    """
    named: dict[str, list[int]] = {}
    for one in listed or ():
        topic = topic_name(one, topics)
        named[topic] = sorted({*named.get(topic, ()), *one["partitions"]})
    return named


def topic_name(one: Mapping[str, Any], topics: Mapping[str, str]) -> str:
    """The topic in a part of a request or record, whichever of its fields has the name or id."""
    name = one.get("name") or one.get("topic")
    return str(name) if name else topics.get(str(one.get("topicId")), str(one.get("topicId")))
