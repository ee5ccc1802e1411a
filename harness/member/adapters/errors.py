"""Kafka's names of the exceptions of kafka-python and aiokafka, which have a common origin. Imports neither."""

from __future__ import annotations

import re

FENCED = "FENCED_INSTANCE_ID"  # the only fatal error: the fence of a static member is permanent
# Kafka's number of an error -> Kafka's name, where the libraries use other names.
BY_NUMBER = {
    -1: "UNKNOWN_SERVER_ERROR",
    6: "NOT_LEADER_OR_FOLLOWER",
    10: "MESSAGE_TOO_LARGE",
    13: "NETWORK_EXCEPTION",
    14: "COORDINATOR_LOAD_IN_PROGRESS",
    15: "COORDINATOR_NOT_AVAILABLE",
    16: "NOT_COORDINATOR",
    17: "INVALID_TOPIC_EXCEPTION",
    25: "UNKNOWN_MEMBER_ID",
    27: "REBALANCE_IN_PROGRESS",
    39: "INVALID_REPLICA_ASSIGNMENT",
    81: "GROUP_MAX_SIZE_REACHED",
    82: FENCED,
}
# The libraries' own errors, by class name. All others become LOCAL_ and the class name.
LOCAL = {
    "IllegalStateError": "LOCAL_STATE",
    "KafkaConnectionError": "NETWORK_EXCEPTION",
    "KafkaTimeoutError": "LOCAL_TIMED_OUT",
    "NoBrokersAvailable": "LOCAL_ALL_BROKERS_DOWN",
}
NUMBER = re.compile(r"\[Error (-?\d+)\] (\w+)")


def error_name(error: BaseException) -> str:
    """Kafka's name of an exception, or of the exception that it wraps or quotes in its message."""
    number, kind = getattr(error, "errno", None), type(error).__name__
    if number is not None:
        return BY_NUMBER.get(number) or str(getattr(error, "message", "")) or "LOCAL_%d" % number
    inner = next((one for one in (*error.args, error.__cause__) if isinstance(one, BaseException)), None)
    if inner is not None:
        return error_name(inner)
    words = NUMBER.search(str(error))
    if words:
        return BY_NUMBER.get(int(words.group(1))) or _shout(words.group(2))
    return LOCAL.get(kind) or "LOCAL_" + _shout(kind)


def _shout(kind: str) -> str:
    """``InconsistentGroupProtocolError`` -> ``INCONSISTENT_GROUP_PROTOCOL``."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", re.sub(r"Error$", "", kind)).upper()
