"""Leader and in-sync changes of partitions, and changes of brokers and topics, as the controller recorded them."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from fencepost.evidence.brokers import dump_parser
from fencepost.evidence.brokers.clock_conversion import WallClockConverter, write_lines
from fencepost.evidence.brokers.dump_parser import Record
from fencepost.evidence.brokers.offsets_topic import TOPIC as OFFSETS_TOPIC
from fencepost.interfaces import BrokerEvidence

FILE = "coordinator/metadata.jsonl"
TOPIC = "__cluster_metadata"
Place = tuple[int, int]  # partition and leader epoch
_LEADS = re.compile(
    rf"Leader {OFFSETS_TOPIC}-(\d+) .*starts at leader epoch (\d+) from offset (\d+) .*high watermark (\d+)"
)


def collect(
    evidence: BrokerEvidence,
    brokers: Iterable[int],
    pairs: Sequence[Sequence[int]],
    topics: Collection[str],
    into: Path,
) -> dict[str, str]:
    """Write ``metadata.jsonl``: one line per change of a broker, or of a partition of ``topics`` or the offsets topic.

    Args:
        brokers: the brokers whose text logs are read too.
        pairs: clock pairs (monotonic_ns, wall_ns).
        into: the ``history`` folder of the run.

    Returns:
        The names of all topics by id, deleted ones included.

    Raises:
        DamagedDumpError: the dump cannot be read.
    """
    found = list(dump_parser.read(evidence.dump(TOPIC, 0)))
    marks = {of: mark for broker in brokers for of, mark in watermarks(evidence.text_log(broker)[0])}
    write_lines(into / FILE, normalise(found, WallClockConverter.of(pairs), {*topics, OFFSETS_TOPIC}, marks))
    return topic_names(found)


def watermarks(lines: Iterable[str]) -> Iterator[tuple[Place, Mapping[str, int]]]:
    """For each new leader of a partition of the offsets topic: the end of its log and its high watermark at that time,
    from the broker's text log (the same format in 4.3.1 and 3.9.1)."""
    for line in lines:
        if found := _LEADS.search(line):
            partition, epoch, end, mark = map(int, found.groups())
            yield (partition, epoch), {"log_end": end, "high_watermark": mark}


def topic_names(found: Iterable[Record]) -> dict[str, str]:
    """Topic names by topic id."""
    made = ((r.payload or {}).get("data", {}) for r in found if (r.payload or {}).get("type") == "TOPIC_RECORD")
    return {data["topicId"]: data["name"] for data in made}


def normalise(
    found: Sequence[Record],
    timeline: WallClockConverter,
    topics: Collection[str],
    marks: Mapping[Place, Mapping[str, int]] | None = None,
) -> Iterator[dict[str, Any]]:
    """The facts in the order of the log: ``type`` is partition, broker or topic; ``change`` is the kind of change.

    ``marks``: see ``watermarks``.
    """
    names = topic_names(found)
    partitions: dict[tuple[str, int], dict[str, Any]] = {}
    for record in found:
        payload = record.payload or {}
        kind, data = str(payload.get("type", "")), payload.get("data", {})
        if kind in ("PARTITION_RECORD", "PARTITION_CHANGE_RECORD"):
            topic = names.get(data["topicId"], data["topicId"])
            where = (topic, data["partitionId"])
            fact = _partition(kind, data, partitions.get(where, {}))
            partitions[where] = fact
            begins = topic == OFFSETS_TOPIC and ("leader" in fact["change"] or fact["change"] == "created")
            mark = (marks or {}).get((data["partitionId"], fact["leader_epoch"]), {}) if begins else {}
            fact = {"type": "partition", "topic": topic, "partition": data["partitionId"], **fact, **mark}
        elif kind in ("TOPIC_RECORD", "REMOVE_TOPIC_RECORD"):
            topic = names.get(data["topicId"], data["topicId"])
            change = "created" if kind == "TOPIC_RECORD" else "deleted"
            fact = {"type": "topic", "topic": topic, "topic_id": data["topicId"], "change": change}
        elif change := _broker_change(kind, data):
            topic = ""
            fact = {"type": "broker", "broker": data["brokerId"], "change": change}
        else:
            continue
        if not topic or topic in topics:
            times = {"at_ns": timeline.at_ns(record.wall_ms), "uncertainty_ns": timeline.uncertainty_ns}
            yield {"order": record.offset, **times, **fact}


def _partition(kind: str, data: dict[str, Any], before: dict[str, Any]) -> dict[str, Any]:
    """The partition after this record. A change record has only changed fields; a leader in it begins a new epoch."""
    after = {name: data.get(name, before.get(name)) for name in ("leader", "isr", "replicas")}
    if kind == "PARTITION_RECORD":
        return {**after, "leader_epoch": data.get("leaderEpoch", 0), "change": "created"}
    epoch = before.get("leader_epoch", -1)
    change = ", ".join(name for name in ("leader", "isr", "replicas") if name in data) or "other"
    return {**after, "leader_epoch": epoch + ("leader" in data and epoch >= 0), "change": change}


def _broker_change(kind: str, data: dict[str, Any]) -> str:
    """``registered``, ``unregistered``, ``fenced``, ``unfenced`` or ``shutting-down``; empty: none of these."""
    match kind:
        case "REGISTER_BROKER_RECORD":
            return "registered"
        case "UNREGISTER_BROKER_RECORD":
            return "unregistered"
        case "BROKER_REGISTRATION_CHANGE_RECORD":
            if data.get("inControlledShutdown") == 1:
                return "shutting-down"
            return {1: "fenced", -1: "unfenced"}.get(data.get("fenced", 0), "")
        case _:
            return ""
