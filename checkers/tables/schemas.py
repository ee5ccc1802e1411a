"""The shapes of the files of a run: the type of each field that the tables use. Other fields are allowed.

A line or an object of another shape is damage, so only ``reading`` has to handle it.
"""

from __future__ import annotations

from typing import Annotated, Any, Required, TypedDict

import msgspec

Int = Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)]
Place = tuple[str, Int, Int | None, str | None]  # topic, partition, offset, error
Owned = dict[str, list[Int]]  # topic -> partitions


class _BrokerLine(TypedDict, total=False):
    """The common fields of lines from brokers."""

    order: Int
    at_ns: Int
    uncertainty_ns: Int
    term: Int
    type: Required[str]
    topic: str
    partition: Int


class _Member(TypedDict, total=False):
    member_id: Required[str]
    assignment: Owned | None


class OffsetLine(_BrokerLine, total=False):
    """A line of ``offsets.jsonl``."""

    batch: Int
    member_id: str
    deleted: bool
    committed: Int | bool
    members: list[_Member] | None
    assigned: Owned | None
    pending_revocation: Owned | None
    generation: Int | None
    epoch: Int | None
    producer: Int


OF_MEMBER = {"member": "member_id", "current": "member_id"}  # the type of an offset line -> the field that it must have


class MetadataLine(_BrokerLine, total=False):
    """A line of ``metadata.jsonl``."""

    leader: Int | None
    log_end: Int | None
    high_watermark: Int | None


class _Options(TypedDict, total=False):
    requireStable: bool | None


class RequestLine(TypedDict, total=False):
    """A line of ``requests.jsonl``."""

    api: Required[str]
    broker: Int | None
    request: _Options | None
    slot: Int | None
    connection: str | None
    client_id: str | None
    member_id: str | None
    instance_id: str | None
    start_ns: Int | None
    end_ns: Int | None
    uncertainty_ns: Int | None
    generation: Int | None
    answered_generation: Int | None
    error: str | None
    reason: str | None
    offsets: list[Place] | None


class HostLine(TypedDict, total=False):
    """A line of ``host.jsonl``."""

    kind: Required[str]
    from_ns: Int
    to_ns: Int


class _Evidence(TypedDict, total=False):
    took_effect: bool
    at_ns: Int | None
    what: str | None


class EventDetail(TypedDict, total=False):
    """The detail of an event."""

    slot: Int
    member: Int
    instance_id: str | None
    name: str
    reason: str | None
    step: Int
    fault: str
    target: str | None
    members: list[str] | None
    brokers: list[Int] | None
    expect: str | None
    evidence: _Evidence | None
    how: str | None
    exit_code: Int | None
    asked_ns: Int | None
    place: str | None
    fatal: bool
    protocol: str | None
    text: str | None
    parts: list[str]
    polled_ns: Int | None
    mode: str | None
    asked: list[tuple[str, Int, Int]] | None
    what: str | None
    writer: Int
    seq: Int
    token: Int
    key: Int
    again: Int
    retried_ns: Int
    client: str | None
    told_by: str | None
    config: dict[str, Any] | None


class _Fault(TypedDict, total=False):
    type: str


class _Step(TypedDict, total=False):
    step: Int
    fault: Required[_Fault]
    expect: str | None


class PlanFile(TypedDict, total=False):
    """``plan.json``."""

    seed: Int
    steps: Required[list[_Step]]


class _Group(TypedDict, total=False):
    config: dict[str, str | Int | float | bool]
    protocol: str


class _Topic(TypedDict, total=False):
    name: str
    config: dict[str, str | Int | float | bool]


class _Asked(TypedDict, total=False):
    name: str
    topics: list[_Topic]
    group: Required[_Group]
    workload: dict[str, Any]
    promises: Required[list[str | dict[str, Any]]]
    min_records: Int


class _Cluster(TypedDict, total=False):
    broker_config: dict[str, str | Int | float | bool]


class ScenarioFile(TypedDict, total=False):
    """``scenario.json``."""

    scenario: Required[_Asked]
    group: str
    seed: Int
    cluster: _Cluster
    versions: dict[str, str]


class SettingsFile(TypedDict, total=False):
    """``settings.json``."""

    topics: Required[dict[str, dict[str, str]]]
    broker: Required[dict[str, str]]


class ClockFile(TypedDict):
    """``clock.json``."""

    pairs: Annotated[list[tuple[Int, Int]], msgspec.Meta(min_length=1)]


_Renewed = TypedDict(
    "_Renewed",
    {
        "as": Int,
        "begin_ns": Int,
        "end_ns": Int,
        "last_ns": Int,
        "next": Int,
        "begun": Int,
        "begin_ns_of": dict[str, Int],
        "done_ns": dict[str, Int],
    },
)


class _Partition(TypedDict, total=False):
    tp: Required[Int]
    topic: Required[str]
    partition: Required[Int]
    log_start: Int
    log_end: Int
    renewed: _Renewed


class PartitionsFile(TypedDict):
    """``partitions.json``."""

    partitions: list[_Partition]


class _Sealed(TypedDict):
    file: str
    records: Int
    torn: Int
    damage: list[str]


class SealFile(TypedDict):
    """``seal.json``."""

    files: list[_Sealed]
    fingerprints: dict[str, str]
    digest: str
