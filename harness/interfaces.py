"""The contracts between the parts, at most five methods each; what only some things can do is a protocol of its own.

Nobody inherits from these: an implementation just has the methods, and mypy checks that it does.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, runtime_checkable

from fencepost.model import Inventory, TopicPartition, View

if TYPE_CHECKING:
    from fencepost.scenario import Topic


@dataclass(frozen=True)
class Evidence:
    """What proves that a fault took effect, or that it is gone: whether the proof was found within its bound, the
    earliest moment that it proves, one sentence for the report ("process 4711 in state T"), the numbers behind it."""

    took_effect: bool
    at_ns: int
    what: str
    data: Mapping[str, Any] = field(default_factory=dict)


class Node(Protocol):
    """A process that faults can hit: a member or a broker. Faults know no other way to touch processes."""

    @property
    def name(self) -> str:
        """``member-2`` or ``broker-1``; stays the same over restarts."""

    @property
    def pid(self) -> int | None:
        """Process id of the present life; None when there is none. A new life has a new pid."""

    def start(self) -> None:
        """Begin a new life and return once it serves (broker) or its loop runs (member). No-op when alive."""

    def signal(self, signal: int) -> None:
        """Send a signal to the present life (SIGTERM asks for a clean end); nothing happens when there is none."""

    def wait_ended(self, within_s: float) -> int:
        """Wait for the present life to end, reap it and return its exit code (negative: the signal's number)."""


class Links(Protocol):
    """The proxies between members and brokers: one link per (slot, broker). Back-ends with proxies have it."""

    def add_toxic(self, slot: int, broker: int, kind: str, stream: str, attributes: Mapping[str, Any]) -> str:
        """Put a toxic on one link (``stream``: upstream = towards the broker, downstream); returns its name."""

    def remove_toxic(self, slot: int, broker: int, name: str) -> None:
        """Take it away again; returns once the proxy confirmed. Removing what is not there is no error."""

    def endpoint(self, slot: int, broker: int) -> tuple[str, int]:
        """Where the member in this slot connects to reach this broker: the proxy's listen address."""

    def upstream(self, slot: int, broker: int) -> tuple[str, int]:
        """Where the proxy connects to: the broker's listener of this slot."""


class Admin(Protocol):
    """The view of an administrator, past all proxies (the OBSERVER listeners)."""

    def leaders(self, topic: str) -> dict[int, int]:
        """Leader broker of every partition of ``topic``; -1 where there is none."""

    def in_sync_replicas(self, topic: str) -> dict[int, tuple[int, ...]]:
        """In-sync replicas of every partition of ``topic``."""

    def coordinator(self, group: str) -> int:
        """The broker that FindCoordinator names for ``group``; -1 while there is none."""

    def committed(self, group: str) -> dict[TopicPartition, int]:
        """The group's committed offsets (next offset to read)."""

    def move_leader(self, tp: TopicPartition, to_broker: int) -> None:
        """Make ``to_broker`` (a replica) the leader without a crash: same replicas in another order, then a
        preferred election. Returns when the requests are accepted; the caller proves the move."""


class TopicAdmin(Protocol):
    """The administration of topics, past all proxies."""

    def create_topics(self, topics: Iterable[Topic]) -> None:
        """Create topics and return once every broker knows a leader for each partition."""

    def end_offsets(self, topic: str) -> dict[int, int]:
        """Where the log of every partition of ``topic`` ends."""


class ClusterAdmin(Admin, TopicAdmin, Protocol):
    """Both."""


class BrokerEvidence(Protocol):
    """What the brokers themselves recorded, read from their files (also after the cluster was stopped by the run)."""

    def request_log(self, broker: int) -> Iterator[str]:
        """The lines of its request log, all its lives in order: ``<wall clock, ms> Completed request:{json}``."""

    def dump(self, topic: str, partition: int) -> Iterator[str]:
        """What Kafka's own dump tool prints of one partition of ``__consumer_offsets`` or ``__cluster_metadata``,
        decoded, from a replica that has all of it. Brokers must be up or cleanly stopped."""

    def collect_logs(self, into: Path) -> None:
        """Copy the text logs of every process of the cluster (brokers, controller, proxy) into a folder."""


class Cluster(Protocol):
    """A running cluster, whatever started it. Made by a back-end's ``start``; ``stop`` may be called twice."""

    @property
    def brokers(self) -> Mapping[int, Node]:
        """Broker handles by broker id."""

    @property
    def links(self) -> Links:
        """The proxies."""

    @property
    def admin(self) -> ClusterAdmin:
        """The administrator's view."""

    @property
    def evidence(self) -> BrokerEvidence:
        """What the brokers recorded."""

    def bootstrap(self, slot: int | None = None) -> str:
        """``bootstrap.servers`` for the member in ``slot`` (its proxies), or past the proxies for None."""

    def stop(self) -> None:
        """End everything that belongs to the cluster and free its addresses."""


@dataclass(frozen=True)
class ClusterSpec:
    """What a cluster is started with, computed from the scenario: broker ids 1 .. ``brokers``, ``slots`` for members
    behind proxies, Kafka settings on top of the harness's own."""

    brokers: int = 3
    slots: int = 8
    broker_config: Mapping[str, Any] = field(default_factory=dict)
    controller_config: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Target:
    """What a selector resolved to: member indices, or broker ids, never both."""

    members: tuple[int, ...] = ()
    brokers: tuple[int, ...] = ()

    def __str__(self) -> str:
        names = [f"member-{m}" for m in self.members] + [f"broker-{b}" for b in self.brokers]
        return ", ".join(names) or "nothing"


class World(Protocol):
    """What a fault may touch while it is injected."""

    @property
    def cluster(self) -> Cluster:
        """The running cluster."""

    @property
    def members(self) -> Sequence[Node]:
        """Member handles by member index."""

    def slot_of(self, member: int) -> int:
        """The slot in which this member lives."""

    def view(self) -> View:
        """The state now."""


class Injection(Protocol):
    """One fault in effect on one target. Owned by the runner, which undoes all of them in reverse order."""

    def proven(self) -> Evidence:
        """Wait (bounded) for the proof that the fault took effect. Never raises for a missing effect."""

    def undo(self) -> None:
        """Take the fault back. May be called twice. Nothing to heal: does nothing."""

    def healed(self) -> Evidence:
        """Wait (bounded) for the proof that the effect is gone, after ``undo``."""


@runtime_checkable
class Fault(Protocol):
    """A mechanism: a frozen dataclass whose fields are its options.

    ``needs``: abilities of a back-end (``signal``, ``links``, ``admin``); ``hits``: what it can be aimed at
    (``members``, ``brokers``); ``heals``: whether there is something to take back (else a healing time is refused).
    """

    needs: ClassVar[frozenset[str]]
    hits: ClassVar[frozenset[str]]
    heals: ClassVar[bool]

    def inject(self, world: World, target: Target) -> Injection:
        """Begin the fault on ``target`` and return at once; the effect is proven by the injection."""


@runtime_checkable
class Selector(Protocol):
    """Chooses what a step hits; a frozen dataclass. ``pick`` in [0, 1) was drawn from the seed."""

    hits: ClassVar[str]

    def resolve(self, view: View, pick: float) -> Target | None:
        """What is hit now; None: nothing matches at the moment."""


@runtime_checkable
class Promise(Protocol):
    """What the user claims of the group; a frozen dataclass. ``kinds``: anomaly kind to ``safety`` or ``liveness``."""

    kinds: ClassVar[Mapping[str, str]]

    def severity(self, kind: str, cause: str, excuse: str) -> str:
        """``violation``, ``permitted`` or ``note`` for an anomaly of one of its kinds."""


@runtime_checkable
class Workload(Protocol):
    """What producers write and what a member does with a record (the spec half; the loop is on the member's side)."""

    def member_config(self, member: int) -> dict[str, Any]:
        """The options of this member's loop, as its process reads them (see ``fencepost_member``)."""

    def producer_config(self) -> dict[str, Any]:
        """The options of the producers."""

    def promises(self) -> Collection[Promise]:
        """What such a group may be expected to keep, when the scenario says nothing else."""


@runtime_checkable
class Names(Protocol):
    """A fault, selector or workload whose options name members, brokers or partitions: asked before anything starts."""

    def lacking(self, inventory: Inventory) -> str:
        """A sentence about the first of them that the scenario does not have; empty: it has all."""
