"""What a member or producer process is told: one JSON file, read strictly."""

from __future__ import annotations

import json
from dataclasses import MISSING, dataclass, field, fields
from pathlib import Path
from typing import Any, Dict, List, Mapping, Optional, Sequence, Tuple, Type, TypeVar

T = TypeVar("T")
Tp = Tuple[str, int]

ASYNCHRONOUS = "asynchronous"
COMMIT_POLICIES = ("after-processing", "after-batch", ASYNCHRONOUS, "before-processing", "auto", "auto-delivered")
TRANSACTION = "transaction"  # where a member has an output
AUTOMATIC = COMMIT_POLICIES[-2:]  # the client commits by itself
PROTOCOLS = ("eager", "cooperative", "consumer")
TOLD, EFFECT = "told", "effect"
PROCESSED = ("next-poll", "commit", TOLD, EFFECT)
BACKPRESSURE = ("pause", "resume")
LANES = ("partition", "key")
STOP, PARK, REQUEUE = "stop", "park", "requeue"
OPEN_MS = 30_000  # after so long brokers abort a transaction that nobody ends
ON_FAILURE = (STOP, PARK, REQUEUE)
SUPERVISOR = "supervisor"
FENCES = ("token", "lease", "none", SUPERVISOR)
UNLOCKED = FENCES[2:]  # those without a lease


class ConfigError(Exception):
    """The configuration file cannot be used; the message says what is wrong with it."""


@dataclass(frozen=True)
class LoopConfig:
    """How a member treats records.

    Attributes:
        commit: one of ``COMMIT_POLICIES``, or with an output ``TRANSACTION``.
        commit_every_ms: how often ``after-processing`` and the automatic ones commit; 0: after each record.
        handler_ms: how long the handler takes for one record; it waits, it does not compute.
        handler: what handles records instead, ``module:function``; see ``functions.handler_of``.
        batch: records that one poll may return; 1 polls singly.
        backpressure: one of ``BACKPRESSURE``, see there; empty: none.
        pause_ms: how long partitions are paused at least.
        slow_partition, slow_ms: so much longer it takes for records of this partition, of any topic; -1: of none.
        deadline_ms: a record whose handler takes longer is parked or re-queued, or where neither is done given up
            together with all partitions; 0: it takes as long as it takes.
        workers: threads that handle records, see ``pool``; 0: the one that polls does.
        lanes: one of ``LANES``: what is handled in order.
        in_hand: records of one partition above which it is paused.
        wait_ms: how long the revoked callback, or a clean end, waits for workers at most.
        delay_revoke: it puts a revocation off for so long instead.
        fence: one of ``FENCES``, where records have effects in a ``store``; empty: they have none.
        lease_ms: how long a member has a partition's lease there.
        into: the topic of an output: what is made of records is written there, or what cannot be processed; empty:
            there is none, unless records are re-queued.
        transaction_timeout_ms: after so long the brokers abort a transaction that nobody ends.
        poison_every: without a ``handler``: one of so many records of a writer cannot be processed; 0: none.
        on_failure: one of ``ON_FAILURE``: what a handler raises ends the member, or the record is parked: it is
            written to ``into`` after ``attempts``, between which there are ``retry_ms``; or, likewise, it is re-queued:
            written to the end of its own partition.
        keep_order: what comes after a record that was parked, under its key, is parked, too.
        redirect: the topic that tells until when: until what was parked was retried; empty: for good.
        planted_bug: one of ``planted.NAMES``, for tests and demonstrations; empty: none.
        processed: by which rule a record is done, one of ``PROCESSED``, where the loop is a user's own program and the
            rest means nothing; see ``instrument.in_hand``.
    """

    commit: str = "after-processing"
    commit_every_ms: float = 200
    handler_ms: float = 0
    handler: str = ""
    batch: int = 500
    backpressure: str = ""
    pause_ms: float = 100
    slow_partition: int = -1
    slow_ms: float = 0
    deadline_ms: float = 0
    workers: int = 0
    lanes: str = "partition"
    in_hand: int = 1000
    wait_ms: float = 10_000
    delay_revoke: bool = False
    fence: str = ""
    lease_ms: float = 2000
    into: str = ""
    transaction_timeout_ms: float = 30_000
    poison_every: int = 0
    on_failure: str = STOP
    attempts: int = 1
    retry_ms: float = 0
    keep_order: bool = False
    redirect: str = ""
    planted_bug: str = ""
    processed: str = ""

    @property
    def writes(self) -> bool:
        """Whether there is an output."""
        return bool(self.into) or self.on_failure == REQUEUE


@dataclass(frozen=True)
class MemberConfig:
    """One life of one member.

    Attributes:
        actor: the name of this life (``member-2.1``).
        member, slot: index of the member, and the slot it lives in.
        run: the history folder of the run.
        topics: topic -> partition -> number ``tp``.
        client: the adapter (``confluent-kafka``).
        protocol: one of ``PROTOCOLS``.
        client_config: settings for the client, on top of the adapter's own.
        instance_id: ``group.instance.id`` of a static member.
        without: those of ``topics`` that it does not subscribe to.
        assignors: with a classic protocol, in place of those that it has otherwise.
        prefix: what names of topics begin with here, and not in a user's own program.
    """

    actor: str
    member: int
    slot: int
    run: str
    group: str
    topics: Mapping[str, Mapping[str, int]]
    bootstrap: str
    client: str = "confluent-kafka"
    protocol: str = "cooperative"
    client_config: Mapping[str, Any] = field(default_factory=dict)
    instance_id: Optional[str] = None
    loop: LoopConfig = field(default_factory=LoopConfig)
    without: Sequence[str] = ()
    assignors: str = ""
    prefix: str = ""

    @property
    def subscription(self) -> List[str]:
        """The topics that it subscribes to."""
        return sorted(set(self.topics) - set(self.without))


@dataclass(frozen=True)
class ProducerConfig:
    """One producer process.

    Attributes:
        writer: its number; every record carries it.
        rate_hz: records per second; 0: as fast as it goes.
        keys: how many different keys there are.
        value_bytes: size of a value of ours.
        payload: what makes the values instead, ``module:function``; see ``functions.values_of``.
        text: what says who wrote a record is text, for members that tell of records in JSON.
        seed: of the order in which keys are drawn.
        skew: how much likelier the first keys are: key ``k`` has the weight ``1 / (k + 1) ** skew``; 0: all alike.
        burst_every_s: what is due in so many seconds is sent at once; 0: steadily.
        transaction_records: records in each transaction; 0: there are none.
        abort_every: each so-many-th transaction is aborted on purpose; 0: none is.
        flush_s: how long the last records may take at the end.
    """

    actor: str
    writer: int
    run: str
    bootstrap: str
    topics: Mapping[str, Mapping[str, int]]
    rate_hz: float = 0
    keys: int = 1000
    value_bytes: int = 64
    payload: str = ""
    text: bool = False
    client_config: Mapping[str, Any] = field(default_factory=dict)
    seed: int = 0
    skew: float = 0
    burst_every_s: float = 0
    transaction_records: int = 0
    abort_every: int = 0
    flush_s: float = 10.0


def read_member(path: str) -> MemberConfig:
    """The configuration of a member. Raises ConfigError."""
    data = _read(path)
    loop = _build(LoopConfig, data.get("loop", {}), path + ", loop")
    config = _build(MemberConfig, {**data, "loop": loop}, path)
    _one_of(path, "commit", loop.commit, (*COMMIT_POLICIES, *((TRANSACTION,) if loop.writes else ())))
    _one_of(path, "protocol", config.protocol, PROTOCOLS)
    _one_of(path, "backpressure", loop.backpressure, ("", *BACKPRESSURE))
    _one_of(path, "lanes", loop.lanes, LANES)
    _one_of(path, "fence", loop.fence, ("", *FENCES))
    _one_of(path, "on_failure", loop.on_failure, ON_FAILURE)
    _one_of(path, "processed", loop.processed, ("", *PROCESSED))
    if loop.batch < 1:
        raise ConfigError("%s: batch is %r, it must be at least 1" % (path, loop.batch))
    return config


def read_producer(path: str) -> ProducerConfig:
    """The configuration of a producer. Raises ConfigError."""
    return _build(ProducerConfig, _read(path), path)


class Numbers(Dict[Tp, int]):
    """(topic, partition) -> ``tp``. A partition that was added during the run gets a number when it is asked for.

    It is the same for everybody who starts from the same topics, and nobody else's: behind all those that were there,
    the topics take turns.
    """

    def __init__(self, topics: Mapping[str, Mapping[str, int]]) -> None:
        """``topics`` is the form that JSON allows: topic -> partition -> number."""
        super().__init__({(topic, int(p)): tp for topic, partitions in topics.items() for p, tp in partitions.items()})
        self._next = max(self.values(), default=-1) + 1
        self._had = {topic: len(topics[topic]) for topic in sorted(topics)}

    def __missing__(self, tp: Tp) -> int:
        """Raises KeyError when it is of another topic."""
        topic, partition = tp
        turns = list(self._had)
        self[tp] = self._next + (partition - self._had[topic]) * len(turns) + turns.index(topic)
        return self[tp]


def _read(path: str) -> Dict[str, Any]:
    try:
        data = json.loads(Path(path).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ConfigError("%s cannot be read: %s" % (path, error)) from error
    if not isinstance(data, dict):
        raise ConfigError("%s: found %s, expected an object" % (path, type(data).__name__))
    return data


def _build(cls: Type[T], data: Mapping[str, Any], where: str) -> T:
    known = {f.name: f for f in fields(cls)}  # type: ignore[arg-type]
    unknown = sorted(set(data) - set(known))
    if unknown:
        raise ConfigError("%s: unknown %s; known are %s" % (where, ", ".join(unknown), ", ".join(known)))
    missing = [
        name for name, f in known.items() if name not in data and f.default is MISSING and f.default_factory is MISSING
    ]
    if missing:
        raise ConfigError("%s: %s is missing" % (where, ", ".join(missing)))
    return cls(**data)


def _one_of(path: str, name: str, value: str, allowed: Tuple[str, ...]) -> None:
    if value not in allowed:
        raise ConfigError("%s: %s is %r, it must be one of %s" % (path, name, value, ", ".join(filter(None, allowed))))
