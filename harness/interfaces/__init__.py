"""The contracts between the parts, at most five methods each. No class inherits them: mypy checks that it has them."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Protocol, runtime_checkable

from fencepost.history import EventKind
from fencepost.interfaces.admin import ClusterAdmin
from fencepost.interfaces.network import Links, Packets
from fencepost.interfaces.process import Environment, Interpreter, MemberNode, Node
from fencepost.model import Inventory, TopicPartition, View
from fencepost.model.clock_readings import ClockReadings
from fencepost.model.impact import Impact


@dataclass(frozen=True)
class Evidence:
    """The proof that a fault took effect or is gone: the earliest moment, a sentence, the numbers behind it."""

    took_effect: bool
    at_ns: int
    what: str
    data: Mapping[str, Any] = field(default_factory=dict)


class BrokerEvidence(Protocol):
    """Records of the brokers themselves, even after the run stopped the cluster. NotShown: they are hidden from us."""

    def request_log(self, broker: int) -> Iterator[str]:
        """The lines of its request log, over all restarts, in order: ``<wall clock, ms> Completed request:{json}``."""

    def text_log(self, broker: int, start: int = 0) -> tuple[list[str], int]:
        """The complete lines of its text log from byte ``start`` on, and the position of the next line."""

    def dump(self, topic: str, partition: int) -> Iterator[str]:
        """The decoded output of Kafka's dump tool for all of ``__consumer_offsets-N`` or ``__cluster_metadata-0``."""

    def clocks(self) -> ClockReadings | None:
        """The readings of the brokers' clocks, up to now; None: they have this machine's clock."""

    def collect_logs(self, into: Path) -> None:
        """Copy the text logs of every process of the cluster (brokers, controller, proxy) into a folder."""


class Cluster(Protocol):
    """A running cluster of any back-end. Created by the back-end's ``start``; ``stop`` may be called twice."""

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
        """The records of the brokers."""

    @property
    def access(self) -> Mapping[str, str]:
        """Settings that every client needs with ``bootstrap``: librdkafka's for SASL and TLS. Never stored."""

    def interpreter(self, slot: int) -> Interpreter:
        """The Python or program of the member in ``slot``, and where it runs."""

    def bootstrap(self, slot: int | None = None) -> str:
        """``bootstrap.servers`` for the member in ``slot`` (its proxies), or without proxies for None."""

    def internal(self, node: int | None, broker: int) -> tuple[str, int]:
        """Where a broker (None: the controller) listens for this one broker; for faults that need ``packets``."""

    def sockets(self) -> str:
        """The output of ``ss -tinHO`` on the host of the proxies."""

    def stop(self) -> None:
        """End everything that belongs to the cluster and free its addresses."""


@dataclass(frozen=True)
class ClusterSpec:
    """Options of a new cluster: brokers 1 .. ``brokers``, ``slots`` for members, additional Kafka settings."""

    brokers: int = 3
    slots: int = 8
    broker_config: Mapping[str, Any] = field(default_factory=dict)
    controller_config: Mapping[str, Any] = field(default_factory=dict)
    kafka: str = ""  # its version, one of settings.KAFKAS; empty: the default
    members: Sequence[Environment] = ()  # the environment of each slot; slots without one use the harness's own


@dataclass(frozen=True)
class Target:
    """The result of a selector: member indices, or broker ids, never both."""

    members: tuple[int, ...] = ()
    brokers: tuple[int, ...] = ()

    def __str__(self) -> str:
        return ", ".join([*(f"member-{m}" for m in self.members), *(f"broker-{b}" for b in self.brokers)]) or "nothing"


class FaultContext(Protocol):
    """The objects that a fault may use while it is injected."""

    @property
    def cluster(self) -> Cluster:
        """The running cluster."""

    @property
    def members(self) -> Sequence[MemberNode]:
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
    """One fault in effect on one target. The runner owns it, and undoes all injections in reverse order."""

    def proven(self) -> Evidence:
        """Wait (bounded) for the proof that the fault took effect. Never raises for a missing effect."""

    def undo(self) -> None:
        """Undo the fault. May be called twice. Does nothing where there is nothing to heal."""

    def healed(self) -> Evidence:
        """Wait (bounded) for the proof that the effect is gone, after ``undo``."""


@runtime_checkable
class DeclaresAction(Protocol):
    """An injection that is a declared act: its consequences are excused, as no member is to blame for them.

    Attributes:
        acts: the partitions that it concerns.
        recreates: whether these partitions were recreated under the same names.
    """

    acts: Sequence[TopicPartition]
    recreates: bool


@runtime_checkable
class Fault(Protocol):
    """A mechanism: a frozen dataclass whose fields are its options.

    ``needs``: abilities of a back-end: ``signal`` (to brokers ``broker-signal`` as well), ``links``, ``packets``,
    ``admin`` (over the run's own topics and group), ``deletion`` (of its records), ``offsets`` (that it committed),
    ``coordinator`` (leadership of the partition of ``__consumer_offsets``, which other groups may share), ``replicas``
    (of that partition) and ``migration`` (of groups to another protocol, which brokers permit or not); states of the
    coordinator need ``broker-log``; a program of the user's needs ``command``. ``hits``: possible targets
    (``members``, ``idle members``, ``brokers``); ``heals``: whether there is something to undo (else a healing
    time is refused); ``seen``: what brokers and members observe of it, as a help to choose a fault.
    """

    needs: ClassVar[frozenset[str]]
    seen: ClassVar[str]

    @property
    def hits(self) -> frozenset[str]:
        """See above."""

    @property
    def heals(self) -> bool:
        """See above."""

    def inject(self, world: FaultContext, target: Target) -> Injection:
        """Begin the fault on ``target`` and return at once; the effect is proven by the injection."""


@runtime_checkable
class HasImpact(Protocol):
    """A fault that freezes, ends, delays or duplicates members, whatever it does to what they hear: its events record
    that, and the judge excuses what follows from it."""

    impact: ClassVar[frozenset[Impact]]


@runtime_checkable
class Gated(Protocol):
    """A fault that needs a condition: asked before it is injected, and again for as long as a target is waited for."""

    def not_ready_reason(self, world: FaultContext, target: Target) -> str:
        """A clause that says what prevents the injection now; empty: nothing."""


@runtime_checkable
class Selector(Protocol):
    """Chooses the target of a step; a frozen dataclass. ``pick`` in [0, 1) was drawn from the seed."""

    hits: ClassVar[str]

    def resolve(self, view: View, pick: float) -> Target | None:
        """The present target; None: nothing matches at the moment."""


@runtime_checkable
class Promise(Protocol):
    """A user's claim about the group; a frozen dataclass. ``kinds``: finding kind to ``safety`` or ``liveness``.

    Optional: ``after_faults_s``, the seconds for which the load has to go on after the last fault.
    """

    kinds: ClassVar[Mapping[str, str]]

    def severity(self, kind: str, cause: str, excuse: str) -> str:
        """``violation``, ``permitted`` or ``note`` for an anomaly of one of its kinds.

        A kind that an option promises is ``permitted`` without it. Else it counts as promised, and lack of its evidence
        makes the verdict ``unknown``.
        """


@runtime_checkable
class Workload(Protocol):
    """The records of producers and their processing (the spec half; the loop is on the member's side)."""

    def member_config(self, member: int) -> dict[str, Any]:
        """The options of this member's loop, as its process reads them (see ``fencepost_member``)."""

    def producer_config(self) -> dict[str, Any]:
        """The options of the producers."""

    def promises(self) -> Collection[Promise]:
        """The promises that such a group should keep, when the scenario lists none."""


@runtime_checkable
class WritesOutput(Protocol):
    """A workload whose members write into a topic, which is created for it, or into the topics that they read.

    Attributes:
        into: the topic; empty: the topics that they read.
        transaction_timeout_ms: the longest time that a transaction stays open.
        holds: the kind of event for a record that they wrote: ``EFFECT``, ``DEAD_LETTER`` or ``REQUEUED``.
    """

    into: str
    transaction_timeout_ms: float
    holds: ClassVar[EventKind]


@runtime_checkable
class ChecksInventory(Protocol):
    """A fault, selector or workload whose options name members, brokers or partitions: checked before the start."""

    def inventory_problem(self, inventory: Inventory) -> str:
        """A sentence about the first name that the scenario does not have; empty: it has all."""
