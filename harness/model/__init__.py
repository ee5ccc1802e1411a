"""The nouns that every part shares: partitions, outcomes, anomalies, findings, verdicts.

Everything here is frozen data of the standard library, so that a user's test environment can import it.
Times are nanoseconds of ``CLOCK_MONOTONIC`` of the host that ran the group, unless a name says otherwise.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any, NamedTuple

from fencepost.model import findings

if TYPE_CHECKING:
    from fencepost.model.clients import Client


class TopicPartition(NamedTuple):
    """One partition of one topic; printed as ``orders-3``."""

    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"


OFFSETS_TOPIC = "__consumer_offsets"


def group_partition(group: str, partitions: int) -> int:
    """The partition of the offsets topic for ``group``: Java's string hash, made positive as Kafka does."""
    utf16 = group.encode("utf-16-be", "surrogatepass")
    code = 0
    for (unit,) in struct.iter_unpack(">H", utf16):
        code = (31 * code + unit) & 0xFFFFFFFF
    signed = code - (1 << 32) if code & 0x80000000 else code
    return (0 if signed == -(1 << 31) else abs(signed)) % partitions


class Outcome(StrEnum):
    """How an operation completed: ``fail`` means it definitely did not happen, ``info`` that this is unknown."""

    OK = "ok"
    FAIL = "fail"
    INFO = "info"


class Validity(StrEnum):
    """The three values of a verdict. The worst wins: invalid, then unknown, then valid."""

    VALID = "valid"
    UNKNOWN = "unknown"
    INVALID = "invalid"

    @classmethod
    def worst(cls, values: Iterable[Validity]) -> Validity:
        """The worst of ``values``; nothing judged is unknown."""
        order = (cls.VALID, cls.UNKNOWN, cls.INVALID)
        return max(values, key=order.index, default=cls.UNKNOWN)


class Severity(StrEnum):
    """The weight of a finding under the promises made."""

    VIOLATION = "violation"
    PERMITTED = "permitted"
    NOTE = "note"


@dataclass(frozen=True)
class MemberView:
    """The state of one member at one moment.

    ``alive``: its process runs (paused or not). ``disturbed``: a fault of the schedule acts on it. ``member_id``: its
    member id, as it reported last; empty: not reported yet. ``consumers``: the incarnations in its process; none: this
    one.
    """

    index: int
    slot: int
    incarnation: str
    alive: bool
    disturbed: bool = False
    owned: frozenset[TopicPartition] = frozenset()
    member_id: str = ""
    consumers: tuple[str, ...] = ()


@dataclass(frozen=True)
class View:
    """The cluster and the group at one moment; selectors resolve against it."""

    members: tuple[MemberView, ...]
    brokers: tuple[int, ...]
    leaders: Mapping[TopicPartition, int]
    coordinator: int


@dataclass(frozen=True)
class Inventory:
    """Possible targets of a scenario: members 0 .. members-1, brokers 1 .. brokers, topics with their partition counts.

    ``spare_brokers`` is how many may be down at a time while every partition accepts writes (``min.insync.replicas``).
    ``spare_members`` are numbered after the others, and faults start them; ``clients``: one for each member;
    ``static``: for each member whether it has a ``group.instance.id``; ``own_program``: members are a user's program.
    ``kafka``: empty for the newest version."""

    members: int
    brokers: int
    topics: Mapping[str, int]
    spare_brokers: int = 0
    spare_members: int = 0
    static: tuple[bool, ...] = ()
    protocol: str = ""
    clients: tuple[Client, ...] = ()
    own_program: bool = False
    kafka: str = ""

    def lacks_loop(self) -> str:
        """A sentence when members do not run our loop, the only program that can be reconfigured; else empty."""
        libraries = [client.library for client in self.clients]
        ours = not self.own_program and all(library.imported for library in libraries)
        return "" if ours else "the members run a program of the user's, which cannot be reconfigured"

    def lacks_reports(self) -> str:
        """A sentence when members do not report what they do; else empty."""
        silent = any(client.library.silent for client in self.clients)
        return "the members are black boxes, which do not report what they do" if silent else ""

    def lacks_member(self, index: int) -> str:
        """A sentence when there is no such member; else empty."""
        count = self.members + self.spare_members
        return "" if 0 <= index < count else f"there is no member {index}; there are 0 to {count - 1}"

    def lacks_broker(self, broker: int) -> str:
        """A sentence when there is no such broker; else empty."""
        return "" if 1 <= broker <= self.brokers else f"there is no broker {broker}; there are 1 to {self.brokers}"

    def lacks_partition(self, tp: TopicPartition) -> str:
        """A sentence when there is no such topic or partition; else empty."""
        if tp.topic not in self.topics:
            return f"there is no topic {tp.topic!r}; there are {', '.join(self.topics)}"
        count = self.topics[tp.topic]
        return "" if tp.partition < count else f"there is no partition {tp}; {tp.topic} has 0 to {count - 1}"


@dataclass(frozen=True, order=True)
class Anomaly:
    """Something that was seen in a history, before any promise is consulted.

    The oracle and the Spark judge must produce equal sets of these. One anomaly is one kind, cause, excuse and
    place (partition and incarnations); ``count`` is the number of records (or of events) that it covers.

    Attributes:
        kind: the name of the anomaly (Jepsen's where Jepsen has one).
        cause: a more precise reason, e.g. ``skipped``; empty when the kind says it all.
        excuse: the harmless explanation that the history proves, e.g. ``former owner died``; empty when none.
        topic, partition: where; partition -1 when the anomaly has no partition.
        members: the incarnations concerned, the one to blame first.
        first_offset, last_offset: the smallest and greatest offset concerned, -1 when there is none.
        from_ns, to_ns: when it began and ended, 0 when it has no time.
        count: records, commits or intervals concerned.
    """

    kind: str
    topic: str = ""
    partition: int = -1
    members: tuple[str, ...] = ()
    cause: str = ""
    excuse: str = ""
    first_offset: int = -1
    last_offset: int = -1
    from_ns: int = 0
    to_ns: int = 0
    count: int = 1


@dataclass(frozen=True)
class Finding:
    """All anomalies of one kind under one judgement: counts are never capped, examples are the clearest ones."""

    kind: str
    severity: Severity
    count: int
    reason: str = ""
    examples: tuple[Mapping[str, Any], ...] = ()


@dataclass(frozen=True)
class Check:
    """One promise, judged: how many facts were examined, what was found, and the reason for the validity."""

    check: str
    promise: str
    validity: Validity
    facts_judged: int
    reason: str
    findings: tuple[Finding, ...] = ()


@dataclass(frozen=True)
class Verdict:
    """The judgement of one run; ``verdict.json`` is exactly this value.

    Attributes:
        unjudged: the kinds of findings that could not be seen in this run, each with the reason. A promise about one of
            them is unknown, unless the reason is that the cluster does not show its own records: then the promise is
            judged by its other kinds (see ``Scenario.evidence``).
        owners: for black boxes only: the owner of each partition over time, by the coordinator's records.
    """

    scenario: str
    seed: int
    validity: Validity
    checks: tuple[Check, ...]
    faults: tuple[Mapping[str, Any], ...] = ()
    rebalances: tuple[Mapping[str, Any], ...] = ()
    measures: Mapping[str, Any] = field(default_factory=dict)
    versions: Mapping[str, str] = field(default_factory=dict)
    unjudged: Mapping[str, str] = field(default_factory=dict)
    owners: tuple[Mapping[str, Any], ...] = ()
    format_version: int = 1

    def to_json(self) -> dict[str, Any]:
        """The verdict as plain JSON values; ``unjudged`` and ``owners`` are omitted when empty."""
        return {name: value for name, value in asdict(self).items() if name not in ("unjudged", "owners") or value}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Verdict:
        """The inverse of ``to_json``; kinds of findings that are called otherwise today have their names of today."""
        unjudged = data.get("unjudged", {})
        today = findings.renamed([*unjudged, *(f["kind"] for check in data["checks"] for f in check["findings"])])
        checks = tuple(
            Check(
                **{
                    **check,
                    "validity": Validity(check["validity"]),
                    "findings": tuple(_finding(finding, today) for finding in check["findings"]),
                }
            )
            for check in data["checks"]
        )
        return cls(
            **{
                **data,
                "validity": Validity(data["validity"]),
                "checks": checks,
                "faults": tuple(data["faults"]),
                "rebalances": tuple(data["rebalances"]),
                "unjudged": {today.get(kind, kind): why for kind, why in unjudged.items()},
                "owners": tuple(data.get("owners", ())),
            }
        )


def _finding(data: Mapping[str, Any], today: Mapping[str, str]) -> Finding:
    kind, examples = today.get(data["kind"], data["kind"]), tuple(data["examples"])
    return Finding(**{**data, "kind": kind, "severity": Severity(data["severity"]), "examples": examples})
