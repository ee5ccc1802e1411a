"""The configuration of a member or producer process: one JSON file, read strictly."""

from __future__ import annotations

import json
from dataclasses import MISSING, dataclass, field, fields
from pathlib import Path
from typing import Any, Dict, List, Mapping, Optional, Sequence, Tuple, Type, TypeVar

T = TypeVar("T")
Tp = Tuple[str, int]

ASYNCHRONOUS = "asynchronous"
COMMIT_POLICIES = ("after-processing", "after-batch", ASYNCHRONOUS, "before-processing", "auto", "auto-delivered")
TRANSACTION = "transaction"  # only for a member with an output
AUTOMATIC = COMMIT_POLICIES[-2:]  # the client commits by itself
PROTOCOLS = ("eager", "cooperative", "consumer")
REPORTED, EFFECT = "told", "effect"
PROCESSED = ("next-poll", "commit", REPORTED, EFFECT)
BACKPRESSURE = ("pause", "resume")
LANES = ("partition", "key")
STOP, PARK, REQUEUE = "stop", "park", "requeue"
OPEN_MS = 30_000  # brokers abort a transaction that is open for longer
ON_FAILURE = (STOP, PARK, REQUEUE)
SUPERVISOR = "supervisor"
FENCES = ("token", "lease", "none", SUPERVISOR)
UNLOCKED = FENCES[2:]  # fences without a lease


class ConfigError(Exception):
    """The configuration file cannot be used; the message says why."""


@dataclass(frozen=True)
class LoopConfig:
    """How a member processes records.

    Attributes:
        commit: one of ``COMMIT_POLICIES``, or ``TRANSACTION`` if there is an output.
        commit_every_ms: how often ``after-processing`` and the automatic policies commit; 0: after each record.
        handler_ms: how long the built-in handler waits for each record (it does not compute).
        handler: the user's handler instead, ``module:function``; see ``user_functions.handler_of``.
        batch: maximum number of records of a poll; 1 polls single records.
        backpressure: one of ``BACKPRESSURE``, see ``backpressure``; empty: none.
        pause_ms: minimum duration of a pause.
        slow_partition, slow_ms: records of this partition, of any topic, take longer by ``slow_ms``; -1: no partition.
        deadline_ms: a record whose handler takes longer is parked or re-queued; if the member does neither, it leaves
            the group and rejoins without processing the record; 0: no deadline.
        workers: number of threads that handle records, see ``pool``; 0: the polling thread handles them.
        lanes: one of ``LANES``: worker threads keep the order within a partition or within a key.
        in_hand: a partition with more unfinished records than this is paused.
        wait_ms: the longest time that the revoked callback, or a clean end, waits for workers.
        delay_revoke: delay a revocation for up to ``wait_ms`` instead of waiting in the callback.
        fence: one of ``FENCES``, if records have effects in a ``store``; empty: they have none.
        lease_ms: duration of a partition's lease in the store.
        into: the topic of the output, for results or for dead letters; empty: no output, unless records are re-queued.
        transaction_timeout_ms: the brokers abort a transaction that is open for longer.
        poison_every: without a ``handler``: one of so many records of a writer cannot be processed; 0: none.
        on_failure: one of ``ON_FAILURE``. After an exception of the handler the member stops; or, after ``attempts``
            with ``retry_ms`` between them, the record is parked (written to ``into``) or re-queued (written to the end
            of its own partition).
        keep_order: later records with the key of a parked record are parked, too.
        redirect: the topic that shows which parked records were retried, which ends ``keep_order`` for a key; empty:
            keys stay parked.
        planted_bug: one of ``planted_bugs.NAMES``, for tests and demonstrations; empty: none.
        processed: the rule for when a record is processed, one of ``PROCESSED``, if the loop is a user's own program.
            The other attributes have no meaning then; see ``instrument.in_flight``.
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
    """One incarnation of one member.

    Attributes:
        actor: the name of this incarnation (``member-2.1``).
        member, slot: index of the member, and of its slot.
        run: the history folder of the run.
        topics: topic -> partition -> number ``tp``.
        client: name of the adapter (``confluent-kafka``).
        protocol: one of ``PROTOCOLS``.
        client_config: client settings that override the adapter's own.
        instance_id: ``group.instance.id`` of a static member.
        without: the ``topics`` to which it does not subscribe.
        assignors: assignors of a classic protocol, instead of the protocol's default.
        prefix: prefix of topic names in this run, which a user's own program does not use.
        learning: a user's own program is started to find out which topics it subscribes to: ``topics`` is empty.
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
    learning: bool = False

    @property
    def subscription(self) -> List[str]:
        """The topics to which it subscribes."""
        return sorted(set(self.topics) - set(self.without))


@dataclass(frozen=True)
class ProducerConfig:
    """One producer process.

    Attributes:
        writer: its number, which is in every record.
        rate_hz: records per second; 0: as fast as possible.
        keys: number of different keys.
        value_bytes: size of a generated value.
        payload: the user's contents instead, a function or a file; see ``contents.contents_of``.
        text: whether writer and sequence number are encoded as text, for members that report records in JSON.
        seed: seed of the order of keys.
        skew: key ``k`` has the weight ``1 / (k + 1) ** skew``; 0: all keys are equally likely.
        burst_every_s: the records of so many seconds are sent at once; 0: steadily.
        transaction_records: records in each transaction; 0: no transactions.
        abort_every: one of so many transactions is aborted on purpose; 0: none.
        added_partitions: also writes to partitions that are added during the run.
        idle_partition_s: the last partition of each topic with several receives no record for so long.
        flush_s: timeout for the delivery of the last records at the end.
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
    added_partitions: bool = False
    idle_partition_s: float = 0
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


class PartitionNumbers(Dict[Tp, int]):
    """(topic, partition) -> ``tp``. A partition that was added during the run gets its number at the first lookup.

    The number is unique, and the same in every process that starts from the same topics: new numbers follow the known
    ones, and the topics alternate.
    """

    def __init__(self, topics: Mapping[str, Mapping[str, int]]) -> None:
        """``topics`` as in JSON: topic -> partition -> number."""
        super().__init__({(topic, int(p)): tp for topic, partitions in topics.items() for p, tp in partitions.items()})
        self._next = max(self.values(), default=-1) + 1
        self._had = {topic: len(topics[topic]) for topic in sorted(topics)}

    def __missing__(self, tp: Tp) -> int:
        """Raise KeyError when the topic is unknown."""
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
        raise ConfigError("%s: expected a JSON object, found %s" % (path, type(data).__name__))
    return data


def _build(cls: Type[T], data: Mapping[str, Any], where: str) -> T:
    known = {f.name: f for f in fields(cls)}  # type: ignore[arg-type]
    unknown = sorted(set(data) - set(known))
    if unknown:
        raise ConfigError("%s: unknown key %s; expected keys: %s" % (where, ", ".join(unknown), ", ".join(known)))
    missing = [
        name for name, f in known.items() if name not in data and f.default is MISSING and f.default_factory is MISSING
    ]
    if missing:
        raise ConfigError("%s: missing key %s" % (where, ", ".join(missing)))
    return cls(**data)


def _one_of(path: str, name: str, value: str, allowed: Tuple[str, ...]) -> None:
    if value not in allowed:
        raise ConfigError("%s: %s is %r, it must be one of %s" % (path, name, value, ", ".join(filter(None, allowed))))
