"""The one table of Kafka errors: which are definite (it certainly did not happen), which are worth a retry, and why.

The table describes one attempt at a produce or an offset commit. A client that retries by itself reports the error of
its last attempt, and an earlier attempt whose answer was lost may have succeeded: where that matters, the broker's own
records decide, never this table. An error that is not listed is neither definite nor retriable: its outcome is unknown.

``LOCAL_...`` are errors of the client itself, without an answer of a broker.
"""

from __future__ import annotations

from typing import Dict, NamedTuple


class Rule(NamedTuple):
    """The meaning of an error.

    Attributes:
        definite: the operation certainly did not happen.
        retriable: the same operation may succeed later without rejoining the group or changing a setting.
        why: the reason.
    """

    definite: bool
    retriable: bool
    why: str


UNKNOWN = Rule(False, False, "not in the table, so the outcome is unknown")

_FENCED = "the coordinator checks the member before it appends; the member must join again first"
_REFUSED = "checked before anything is appended; it will be refused again"

TABLE: Dict[str, Rule] = {
    # The group refuses the member.
    # A current member may get it, too: the commit left before a rebalance ended and arrived after it.
    "ILLEGAL_GENERATION": Rule(True, True, "refused before the append; succeeds with the next generation"),
    "UNKNOWN_MEMBER_ID": Rule(True, False, _FENCED),
    "FENCED_INSTANCE_ID": Rule(True, False, "another process uses this static id; this one is fenced permanently"),
    "FENCED_MEMBER_EPOCH": Rule(True, False, _FENCED),
    "STALE_MEMBER_EPOCH": Rule(True, True, "refused before the append; succeeds after the next heartbeat's answer"),
    "REBALANCE_IN_PROGRESS": Rule(True, True, "refused while the group waits for its assignment; no fence"),
    # The coordinator.
    "COORDINATOR_LOAD_IN_PROGRESS": Rule(True, True, "a coordinator that is loading appends nothing"),
    "COORDINATOR_NOT_AVAILABLE": Rule(False, True, "also the answer when the append was not replicated in time"),
    "NOT_COORDINATOR": Rule(False, True, "also the answer when leadership was lost after the append"),
    # Leaders and replicas.
    "NOT_LEADER_OR_FOLLOWER": Rule(False, True, "also the answer when leadership was lost after the append"),
    "LEADER_NOT_AVAILABLE": Rule(False, True, "leadership is changing; the append may have happened before"),
    "NOT_ENOUGH_REPLICAS": Rule(True, True, "checked before the append"),
    "NOT_ENOUGH_REPLICAS_AFTER_APPEND": Rule(False, True, "appended, and too few replicas have it yet"),
    "KAFKA_STORAGE_ERROR": Rule(False, True, "the disk failed during the append or after it"),
    "REQUEST_TIMED_OUT": Rule(False, True, "appended, not replicated in time"),
    "NETWORK_EXCEPTION": Rule(False, True, "the connection broke; the request may have arrived"),
    "UNKNOWN_TOPIC_OR_PARTITION": Rule(True, True, "this broker has no such partition (yet), so it appended nothing"),
    "UNKNOWN_TOPIC_ID": Rule(True, True, "this broker has no such topic (yet), so it appended nothing"),
    "THROTTLING_QUOTA_EXCEEDED": Rule(True, True, "refused because of a quota"),
    # Records and requests that are refused as such.
    "MESSAGE_TOO_LARGE": Rule(True, False, _REFUSED),
    "RECORD_LIST_TOO_LARGE": Rule(True, False, _REFUSED),
    "INVALID_RECORD": Rule(True, False, _REFUSED),
    "INVALID_TIMESTAMP": Rule(True, False, _REFUSED),
    "CORRUPT_MESSAGE": Rule(True, True, "checksum verified before the append; damaged on the way"),
    "UNSUPPORTED_FOR_MESSAGE_FORMAT": Rule(True, False, _REFUSED),
    "UNSUPPORTED_COMPRESSION_TYPE": Rule(True, False, _REFUSED),
    "UNSUPPORTED_VERSION": Rule(True, False, _REFUSED),
    "INVALID_REQUIRED_ACKS": Rule(True, False, _REFUSED),
    "INVALID_TOPIC_EXCEPTION": Rule(True, False, _REFUSED),
    "INVALID_REQUEST": Rule(True, False, _REFUSED),
    "OFFSET_METADATA_TOO_LARGE": Rule(True, False, _REFUSED),
    "INVALID_COMMIT_OFFSET_SIZE": Rule(True, False, _REFUSED),
    "INVALID_GROUP_ID": Rule(True, False, _REFUSED),
    "GROUP_ID_NOT_FOUND": Rule(True, False, _REFUSED),
    "POLICY_VIOLATION": Rule(True, False, _REFUSED),
    "TOPIC_AUTHORIZATION_FAILED": Rule(True, False, _REFUSED),
    "GROUP_AUTHORIZATION_FAILED": Rule(True, False, _REFUSED),
    "CLUSTER_AUTHORIZATION_FAILED": Rule(True, False, _REFUSED),
    "TRANSACTIONAL_ID_AUTHORIZATION_FAILED": Rule(True, False, _REFUSED),
    # Idempotent and transactional producers.
    "OUT_OF_ORDER_SEQUENCE_NUMBER": Rule(False, False, "an earlier batch is missing; this one may have been appended"),
    "DUPLICATE_SEQUENCE_NUMBER": Rule(False, False, "it is in the log already, from an attempt whose answer was lost"),
    "UNKNOWN_PRODUCER_ID": Rule(False, False, "the broker forgot the producer; an earlier attempt may be in the log"),
    "INVALID_PRODUCER_EPOCH": Rule(False, False, "fenced now; an earlier attempt may be in the log"),
    "PRODUCER_FENCED": Rule(False, False, "fenced now; an earlier attempt may be in the log"),
    # Errors of the client itself.
    "LOCAL_TIMED_OUT": Rule(False, True, "no answer in time; the request may have arrived"),
    "LOCAL_MESSAGE_TIMED_OUT": Rule(False, False, "not acknowledged in time; some attempt may have arrived"),
    "LOCAL_PURGE_QUEUE": Rule(True, False, "removed from the queue before it was sent"),
    "LOCAL_PURGE_INFLIGHT": Rule(False, False, "dropped while a request was in flight"),
    "LOCAL_QUEUE_FULL": Rule(True, True, "never entered the client's queue"),
    "LOCAL_UNKNOWN_PARTITION": Rule(True, False, "the client knows no such partition and sent nothing"),
    "LOCAL_UNKNOWN_TOPIC": Rule(True, False, "the client knows no such topic and sent nothing"),
    "LOCAL_NO_OFFSET": Rule(True, False, "there was nothing to commit, so nothing was sent"),
    "LOCAL_ASSIGNMENT_LOST": Rule(True, False, "the client lost its partitions and sent nothing"),
    "LOCAL_WAIT_COORD": Rule(True, True, "the client knows no coordinator, so nothing was sent"),
    "LOCAL_STATE": Rule(True, False, "not possible in the client's present state; nothing was sent"),
    "LOCAL_COMMIT_FAILED": Rule(
        True, False, "refused because the member is not in the group any more; the client hides Kafka's error"
    ),
    "LOCAL_ALL_BROKERS_DOWN": Rule(True, True, "the client reached no broker, so nothing was sent"),
    "LOCAL_DESTROY": Rule(False, False, "the client was closed meanwhile"),
    "LOCAL_FATAL": Rule(False, False, "the client failed permanently; an earlier attempt may have arrived"),
}


def rule(error: str) -> Rule:
    """The rule for Kafka's name of an error; ``UNKNOWN`` if the table has none."""
    return TABLE.get(error, UNKNOWN)


def outcome(error: str) -> str:
    """``ok`` for no error (the empty name), ``fail`` for a definite error, ``info`` for all others."""
    if not error:
        return "ok"
    return "fail" if rule(error).definite else "info"
