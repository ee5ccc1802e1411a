"""The records of ``__consumer_offsets`` about one group: every accepted commit, generation and assignment.

The group's partition is one replicated log, so one dump of a complete replica has everything, across all moves of the
coordinator. ``order`` is the offset in that log, which defines the order of commits. ``term`` is the leader epoch,
which differs for each coordinator.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from fencepost.evidence.brokers import dump_parser
from fencepost.evidence.brokers.clock_conversion import Collected, Timeline, write_lines
from fencepost.evidence.brokers.dump_parser import Record
from fencepost.evidence.brokers.kafka_protocol import assignment, named_partitions
from fencepost.interfaces import BrokerEvidence

FILE = "coordinator/offsets.jsonl"
TOPIC = "__consumer_offsets"

TYPES = {
    0: "commit",
    1: "commit",
    2: "classic-group",
    3: "group-epoch",
    4: "partition-metadata",
    5: "member",
    6: "target-epoch",
    7: "target",
    8: "current",
    16: "subscription-regex",
}


def collect(
    evidence: BrokerEvidence,
    partition: int,
    timeline: Timeline,
    group: str,
    into: Path,
    topics: Mapping[str, str] | None = None,
) -> Collected:
    """Write ``offsets.jsonl``.

    Args:
        partition: the group's, see ``model.group_partition``.
        timeline: dates the records.
        into: the ``history`` folder of the run.
        topics: topic names by id (``metadata_log.collect`` returns them).

    Raises:
        DamagedDumpError: the dump cannot be read.
        NotShown: the cluster does not show it, or a record cannot be dated.
    """
    facts = normalise(dump_parser.read(evidence.dump(TOPIC, partition)), timeline, group, topics or {})
    return Collected(write_lines(into / FILE, facts), 0)


def normalise(
    found: Iterable[Record], timeline: Timeline, group: str, topics: Mapping[str, str]
) -> Iterator[dict[str, Any]]:
    """The facts of ``group`` in the order of the log.

    Ends of transactions are facts too (type ``transaction-end``), from the first transactional commit of the group on.

    Raises:
        DamagedDumpError: a record cannot be read.
        NotShown: a fact cannot be dated.
    """
    producers: set[int] = set()
    for record in found:
        if record.marker:
            if record.producer in producers:
                yield {
                    **_head(record, timeline),
                    "type": "transaction-end",
                    "producer": record.producer,
                    "committed": record.marker == "COMMIT",
                }
            continue
        key = (record.key or {}).get("data", {})
        if group not in (key.get("group"), key.get("groupId")):
            continue
        head = _head(record, timeline)
        if record.producer >= 0:
            producers.add(record.producer)
            head["producer"] = record.producer
        kind = TYPES.get(int((record.key or {})["type"]), f"type-{(record.key or {})['type']}")
        value = (record.payload or {}).get("data")
        yield {
            **head,
            "type": kind,
            "group": group,
            **_key(key),
            "deleted": value is None,
            **_value(kind, value, topics),
        }


def _head(record: Record, timeline: Timeline) -> dict[str, Any]:
    """Where and when a record of this group was written. Records of others may have times that nobody can convert."""
    moment = timeline.moment(record.wall_ms, record.term)
    return {
        "order": record.offset,
        "at_ns": moment.at_ns,
        "uncertainty_ns": moment.uncertainty_ns,
        "term": record.term,
        "batch": record.batch,
    }


def _key(key: Mapping[str, Any]) -> dict[str, Any]:
    names = {"topic": "topic", "partition": "partition", "memberId": "member_id"}
    return {ours: key[theirs] for theirs, ours in names.items() if theirs in key}


def _value(kind: str, value: Mapping[str, Any] | None, topics: Mapping[str, str]) -> dict[str, Any]:
    if value is None:
        return {}
    match kind:
        case "commit":
            return {"committed": value["offset"], "leader_epoch": value.get("leaderEpoch", -1)}
        case "classic-group":
            return {
                "generation": value["generation"],
                "protocol": value.get("protocol"),
                "leader": value.get("leader"),
                "members": [_classic_member(m, topics) for m in value.get("members") or ()],
            }
        case "group-epoch":
            return {"epoch": value["epoch"]}
        case "target-epoch":
            return {"epoch": value["assignmentEpoch"]}
        case "member":
            names = {"instanceId": "instance_id", "clientId": "client_id", "rebalanceTimeoutMs": "rebalance_timeout_ms"}
            about = {ours: value.get(theirs) for theirs, ours in names.items()}
            return {**about, "subscribed": value.get("subscribedTopicNames") or []}
        case "target":
            return {"assigned": named_partitions(value.get("topicPartitions"), topics)}
        case "current":
            return {
                "epoch": value["memberEpoch"],
                "previous_epoch": value.get("previousMemberEpoch", -1),
                "state": value.get("state"),
                "assigned": named_partitions(value.get("assignedPartitions"), topics),
                "pending_revocation": named_partitions(value.get("partitionsPendingRevocation"), topics),
            }
        case _:
            return {"value": dict(value)}


def _classic_member(member: Mapping[str, Any], topics: Mapping[str, str]) -> dict[str, Any]:
    """One member of a generation. Kafka's tool decodes the assignment since 4.0; before, it prints base64."""
    given = member.get("assignment")
    if isinstance(given, Mapping):
        partitions: dict[str, list[int]] | None = named_partitions(given.get("assignedPartitions"), topics)
    else:
        partitions = assignment(given) if isinstance(given, str) else None
    return {
        "member_id": member["memberId"],
        "instance_id": member.get("groupInstanceId"),
        "client_id": member.get("clientId"),
        "session_timeout_ms": member.get("sessionTimeout"),
        "rebalance_timeout_ms": member.get("rebalanceTimeout"),
        "assignment": partitions,
    }
