"""The group's requests from the brokers' request logs: member, slot, request, times, and answer.

``kafka.request.logger`` writes a line when the answer was sent. So a request that was in flight when its broker was
killed is missing, and a delayed answer makes ``total_ms`` longer: the broker decided between the start plus
``queue_ms`` and that time plus ``local_ms`` and ``remote_ms``.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from fencepost.evidence.brokers.clock_conversion import MS, Collected, WallClockConverter, write_lines
from fencepost.evidence.brokers.kafka_protocol import assignment, error_name, named_partitions, topic_name
from fencepost.interfaces import BrokerEvidence

FILE = "coordinator/requests.jsonl"
# 13 digits of wall-clock time. The last match counts: a restarted broker continues a line that a kill cut.
_HEAD = re.compile(r"(\d{13}) Completed request:")
_SLOT = re.compile(r"SLOT(\d+)")
# Fields that are stored separately, and blobs that only the client library can read.
_TRIMMED = frozenset(
    {
        "groupId",
        "memberId",
        "groups",
        "topics",
        "protocols",
        "metadata",
        "assignment",
        "assignments",
        "topicPartitions",
        "throttleTimeMs",
    }
)


def collect(
    evidence: BrokerEvidence,
    brokers: Iterable[int],
    pairs: Sequence[Sequence[int]],
    group: str,
    into: Path,
    topics: Mapping[str, str] | None = None,
) -> Collected:
    """Write ``requests.jsonl``, in the order of the requests' starts.

    Args:
        pairs: clock pairs (monotonic_ns, wall_ns).
        into: the ``history`` folder of the run.
        topics: topic names by id, for requests that name topics by id.
    """
    timeline, found, damaged = WallClockConverter.of(pairs), [], 0
    for broker in brokers:
        for line in evidence.request_log(broker):
            try:
                request = parse(line, timeline, group, topics or {})
            except (ValueError, KeyError, TypeError):
                damaged += 1
                continue
            if request is not None:
                found.append({"broker": broker, **request})
    found.sort(key=lambda r: (r["start_ns"], r["broker"]))
    return Collected(write_lines(into / FILE, found), damaged)


def parse(line: str, timeline: WallClockConverter, group: str, topics: Mapping[str, str]) -> dict[str, Any] | None:
    """One line of the log; None if it is about another group, or about none.

    Raises:
        ValueError, KeyError, TypeError: the line is damaged.
    """
    heads = list(_HEAD.finditer(line))
    if not heads:
        if line.strip():
            raise ValueError(f"expected a time and 'Completed request:', but found {line[:80]!r}")
        return None
    body = line[heads[-1].end() :]
    if json.dumps(group) not in body:
        return None  # a cheap test that rejects most lines of a busy broker
    entry = json.loads(body)
    request, response = entry["request"], entry["response"]
    if group not in _groups(request):
        return None
    head, total_ms = entry["requestHeader"], float(entry["totalTimeMs"])
    end_ns = timeline.at_ns(int(heads[-1][1]))
    slot = _SLOT.fullmatch(entry["listener"])
    return {
        "listener": entry["listener"],
        "slot": int(slot[1]) if slot else None,
        "connection": entry["connection"],
        "api": head["requestApiKeyName"],
        "correlation": head["correlationId"],
        "client_id": head["clientId"],
        "start_ns": end_ns - round(total_ms * MS),
        "end_ns": end_ns,
        "uncertainty_ns": timeline.uncertainty_ns,
        "queue_ms": entry["requestQueueTimeMs"],
        "local_ms": entry["localTimeMs"],
        "remote_ms": entry["remoteTimeMs"],
        "total_ms": total_ms,
        **_who(head["requestApiKeyName"], request, response),
        "error": next(_errors(response), None),
        "assignment": _given(response, topics),
        "owned": _owned(request, topics),
        "offsets": _offsets(request, response, topics),
        "request": _trim(request),
        "response": _trim(response),
    }


def _groups(request: Mapping[str, Any]) -> set[str]:
    """The groups that a request names."""
    many = [g["groupId"] for g in request.get("groups") or () if isinstance(g, dict)]
    keys = [request.get("key"), *(request.get("coordinatorKeys") or ())] if request.get("keyType", 0) == 0 else []
    return {g for g in (request.get("groupId"), *many, *keys) if isinstance(g, str)}


def _who(api: str, request: Mapping[str, Any], response: Mapping[str, Any]) -> dict[str, Any]:
    """Member, generation (or epoch) and reason; ``answered_generation`` is that in the coordinator's answer."""
    leaving = (request.get("members") or [{}])[0] if api == "LEAVE_GROUP" else {}
    asked = next((g for g in (request.get("groups") or ()) if isinstance(g, dict)), {})
    first = (request.get(k) for k in ("generationId", "generationIdOrMemberEpoch", "memberEpoch"))
    return {
        "member_id": request.get("memberId")
        or leaving.get("memberId")
        or asked.get("memberId")
        or response.get("memberId")
        or None,
        "instance_id": request.get("groupInstanceId")
        or request.get("instanceId")
        or leaving.get("groupInstanceId")
        or None,
        "generation": next((g for g in first if g is not None), asked.get("memberEpoch")),
        "answered_generation": response.get("generationId", response.get("memberEpoch")),
        "reason": request.get("reason") or leaving.get("reason") or None,
    }


def _errors(part: Any) -> Iterator[str]:
    """The names of the errors in an answer, the outermost first."""
    if isinstance(part, dict):
        name = error_name(int(part.get("errorCode") or 0))
        if name:
            yield name
    for inner in part.values() if isinstance(part, dict) else part if isinstance(part, list) else ():
        yield from _errors(inner)


def _given(response: Mapping[str, Any], topics: Mapping[str, str]) -> dict[str, list[int]] | None:
    """The assignment in the coordinator's answer; None: the answer has none."""
    given = response.get("assignment")
    if isinstance(given, str):
        return assignment(given)
    return None if given is None else named_partitions(given.get("topicPartitions"), topics)


def _owned(request: Mapping[str, Any], topics: Mapping[str, str]) -> dict[str, list[int]] | None:
    """The partitions that the member reports as owned (consumer protocol); None: the request has none."""
    owned = request.get("topicPartitions")
    return None if owned is None else named_partitions(owned, topics)


def _offsets(
    request: Mapping[str, Any], response: Mapping[str, Any], topics: Mapping[str, str]
) -> list[list[Any]] | None:
    """[topic, partition, offset, error] of a commit or fetch of offsets; None for other requests."""
    asked = _by_partition(request, topics)
    answered = _by_partition(response, topics)
    found = []
    for where in answered or asked:
        both = {**asked.get(where, {}), **answered.get(where, {})}
        found.append([*where, both.get("committedOffset", -1), error_name(int(both.get("errorCode") or 0))])
    return found or None


def _by_partition(part: Mapping[str, Any], topics: Mapping[str, str]) -> dict[tuple[str, int], Mapping[str, Any]]:
    scopes = [part, *(g for g in part.get("groups") or () if isinstance(g, dict))]
    return {
        (topic_name(topic, topics), p["partitionIndex"]): p
        for scope in scopes
        for topic in scope.get("topics") or ()
        if isinstance(topic, dict)
        for p in topic.get("partitions") or ()
    }


def _trim(part: Any) -> Any:
    if isinstance(part, dict):
        return {k: _trim(v) for k, v in part.items() if k not in _TRIMMED and v is not None}
    return [_trim(v) for v in part] if isinstance(part, list) else part
