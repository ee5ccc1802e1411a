"""The contracts between the parts, at most five methods each. Nobody inherits them: mypy checks who has the methods."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Protocol, runtime_checkable

from fencepost.history import EventKind
from fencepost.interfaces.admin import ClusterAdmin
from fencepost.interfaces.network import Links, Packets
from fencepost.interfaces.process import Environment, Interpreter, Member, Node
from fencepost.model import Inventory, TopicPartition, View
from fencepost.model.impact import Impact


@dataclass(frozen=True)
class Evidence:
    """What proves that a fault took effect or is gone: the earliest moment, a sentence, the numbers behind it."""

    took_effect: bool
    at_ns: int
    what: str
    data: Mapping[str, Any] = field(default_factory=dict)


class BrokerEvidence(Protocol):
    """What the brokers themselves recorded, also after the run stopped the cluster; NotShown: not to us."""

    def request_log(self, broker: int) -> Iterator[str]:
        """The lines of its request log, all its lives in order: ``<wall clock, ms> Completed request:{json}``."""

    def text_log(self, broker: int, start: int = 0) -> tuple[list[str], int]:
        """The whole lines of its text log from byte ``start`` on, and where the next ones will begin."""

    def dump(self, topic: str, partition: int) -> Iterator[str]:
        """What Kafka's dump tool prints of all of ``__consumer_offsets-N`` or ``__cluster_metadata-0``, decoded."""

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
    def packets(self) -> Packets:
        """The packet filter; for faults that need ``packets``."""

    @property
    def admin(self) -> ClusterAdmin:
        """The administrator's view."""

    @property
    def evidence(self) -> BrokerEvidence:
        """What the brokers recorded."""

    @property
    def access(self) -> Mapping[str, str]:
        """What every client needs beside ``bootstrap``: librdkafka's settings of SASL and TLS. Never written down."""

    def interpreter(self, slot: int) -> Interpreter:
        """What the member in ``slot`` runs on, and where."""

    def bootstrap(self, slot: int | None = None) -> str:
        """``bootstrap.servers`` for the member in ``slot`` (its proxies), or past the proxies for None."""

    def internal(self, node: int | None, broker: int) -> tuple[str, int]:
        """Where a broker (None: the controller) listens for this broker alone; for faults that need ``packets``."""

    def sockets(self) -> str:
        """What ``ss -tinHO`` shows where the proxies are."""

    def stop(self) -> None:
        """End everything that belongs to the cluster and free its addresses."""


@dataclass(frozen=True)
class ClusterSpec:
    """What a cluster is started with: brokers 1 .. ``brokers``, ``slots`` for members, Kafka settings beside ours."""

    brokers: int = 3
    slots: int = 8
    broker_config: Mapping[str, Any] = field(default_factory=dict)
    controller_config: Mapping[str, Any] = field(default_factory=dict)
    kafka: str = ""  # its version, one of settings.KAFKAS; empty: the default
    members: Sequence[Environment] = ()  # what each runs on, by its slot; where none is named, the harness's own


@dataclass(frozen=True)
class Target:
    """What a selector resolved to: member indices, or broker ids, never both."""

    members: tuple[int, ...] = ()
    brokers: tuple[int, ...] = ()

    def __str__(self) -> str:
        return ", ".join([*(f"member-{m}" for m in self.members), *(f"broker-{b}" for b in self.brokers)]) or "nothing"


class World(Protocol):
    """What a fault may touch while it is injected."""

    @property
    def cluster(self) -> Cluster:
        """The running cluster."""

    @property
    def members(self) -> Sequence[Member]:
        """Member handles by member index."""

    @property
    def topics(self) -> Mapping[str, str]:
        """The workload's topics: as the scenario calls them, and as the cluster does."""

    @property
    def group(self) -> str:
        """The group's ``group.id``."""

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
class Acts(Protocol):
    """An injection that is a declared act: it excuses what it brings about, as no member is to blame for it.

    Attributes:
        acts: the partitions that it concerns.
        renews: whether there are others now under the same names.
    """

    acts: Sequence[TopicPartition]
    renews: bool


@runtime_checkable
class Fault(Protocol):
    """A mechanism: a frozen dataclass whose fields are its options.

    ``needs``: abilities of a back-end: ``signal`` (to brokers ``broker-signal`` as well), ``links``, ``packets``,
    ``admin`` (over the run's own topics and group), ``deletion`` (of its records), ``offsets`` (that it committed),
    ``coordinator`` (over who leads the partition of ``__consumer_offsets`` that other groups may share), ``replicas``
    (over who keeps it) and ``migration`` (of groups to another protocol, which brokers permit or not); states of the
    coordinator need ``broker-log``; a program of the user's needs ``command``. ``hits``: what it can be aimed at
    (``members``, ``idle members``, ``brokers``); ``heals``: whether there is something to take back (else a healing
    time is refused); ``seen``: what brokers and members will see of it, for who chooses one.
    """

    needs: ClassVar[frozenset[str]]
    seen: ClassVar[str]

    @property
    def hits(self) -> frozenset[str]:
        """See above."""

    @property
    def heals(self) -> bool:
        """See above."""

    def inject(self, world: World, target: Target) -> Injection:
        """Begin the fault on ``target`` and return at once; the effect is proven by the injection."""


@runtime_checkable
class HasImpact(Protocol):
    """A fault that freezes, ends, delays or duplicates members, whatever it does to what they hear: its events record
    that, and the judge excuses what follows from it."""

    impact: ClassVar[frozenset[Impact]]


@runtime_checkable
class Awaits(Protocol):
    """A fault that cannot be injected at any moment: asked before it is, and again for as long as for a target."""

    def awaits(self, world: World, target: Target) -> str:
        """A clause about what keeps it from being injected now; empty: nothing."""


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
class Writes(Protocol):
    """A workload whose members write into a topic of its own, which is made beside the scenario's, or into those.

    Attributes:
        into: the topic; empty: those that they read.
        transaction_timeout_ms: after so long no transaction is open any more.
        holds: what a record that they wrote is told as: ``EFFECT``, ``DEAD_LETTER`` or ``REQUEUED``.
    """

    into: str
    transaction_timeout_ms: float
    holds: ClassVar[EventKind]


@runtime_checkable
class Names(Protocol):
    """A fault, selector or workload whose options name members, brokers or partitions: asked before anything starts."""

    def lacking(self, inventory: Inventory) -> str:
        """A sentence about the first of them that the scenario does not have; empty: it has all."""
