"""Protocol states: what a member or the group's coordinator is in for a moment. They trigger faults, and end them.

A state is looked for in ``Signs``: what members tell of their callbacks and commits, and what the brokers' own logs
tell of the coordinator. Lasting states are so now; momentary ones have happened since.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from operator import itemgetter
from typing import Any, ClassVar

from fencepost.history import EventKind
from fencepost.interfaces import Target
from fencepost.interfaces.signs import CoordinatorSigns, MemberSigns, Occurrence, Signs, State
from fencepost.model import Inventory, serialization

CONSUMER = "consumer"  # the protocol in which nobody waits for others to join


@dataclass(frozen=True)
class _OfMember:
    """A callback or a commit of a member that has begun and not ended.

    A callback may take less than a millisecond, so it counts, too, if it began since it is waited for, and is over; for
    another commit one need not wait long.
    """

    kind: ClassVar[EventKind]
    returns: ClassVar[bool] = False
    needs: ClassVar[frozenset[str]] = frozenset()
    hits: ClassVar[str] = "members"

    def lacking(self, inventory: Inventory) -> str:
        """See ``Names``."""
        return inventory.lacks_telling()

    def seen(self, signs: Signs, since_ns: int, among: Collection[int] = ()) -> Occurrence | None:
        """See ``State``."""
        those = [m for m in signs.members if m.alive and _counts(m, among)]
        if now := [(m.open[self.kind], m) for m in those if self.kind in m.open]:
            return _met(*max(now, key=itemgetter(0)))
        came = [(m.ended[self.kind], m) for m in those if m.ended.get(self.kind, -1) >= since_ns and not self.returns]
        return _met(*max(came, key=itemgetter(0)), over=True) if came else None


@dataclass(frozen=True)
class Assigning(_OfMember):
    """A member is in its assigned callback."""

    kind = EventKind.ASSIGNED


@dataclass(frozen=True)
class Revoking(_OfMember):
    """A member is in its revoked callback: it may still commit what it is about to give up."""

    kind = EventKind.REVOKED


@dataclass(frozen=True)
class CommitInFlight(_OfMember):
    """A member has sent a commit and has no answer yet."""

    kind = EventKind.COMMIT
    returns = True


@dataclass(frozen=True)
class _OfCoordinator:
    needs: ClassVar[frozenset[str]] = frozenset({"broker-log"})
    hits: ClassVar[str] = "brokers"


@dataclass(frozen=True)
class _OfGeneration(_OfCoordinator):
    """A part of a rebalance of the classic protocols."""

    since: ClassVar[str]

    def lacking(self, inventory: Inventory) -> str:
        """See ``Names``."""
        alone = f"{serialization.name_of(self)}() is a state of the classic protocols, but the group's is {CONSUMER!r}"
        return alone if inventory.protocol == CONSUMER else ""

    def seen(self, signs: Signs, since_ns: int, among: Collection[int] = ()) -> Occurrence | None:
        """See ``State``."""
        told = signs.coordinator
        at_ns = getattr(told, self.since, 0)
        return Occurrence(at_ns, Target(brokers=(told.broker,))) if told and at_ns else None


@dataclass(frozen=True)
class Joining(_OfGeneration):
    """The coordinator waits for all members to join (JoinGroup; a rebalance of a classic group is prepared)."""

    since = "joining_ns"


@dataclass(frozen=True)
class Syncing(_OfGeneration):
    """A generation has begun, and the coordinator waits for its leader's assignment (SyncGroup)."""

    since = "syncing_ns"


@dataclass(frozen=True)
class CoordinatorLoading(_OfCoordinator):
    """A broker that is to coordinate the group still loads what it must know: the group's commits and members.

    It may take some milliseconds, so it counts, too, if it began since it is waited for, and is over.
    """

    def seen(self, signs: Signs, since_ns: int, among: Collection[int] = ()) -> Occurrence | None:
        """See ``State``."""
        told = signs.coordinator or CoordinatorSigns()
        came = {broker: at_ns for broker, at_ns in told.loaded.items() if at_ns >= since_ns}
        for loading, over in ((told.loading, False), (came, True)):
            if loading:
                broker = max(loading, key=loading.__getitem__)
                return Occurrence(loading[broker], Target(brokers=(broker,)), over=over)
        return None


@dataclass(frozen=True)
class Fenced:
    """A member was put out of the group, by its own lost callback or by the coordinator's log."""

    needs: ClassVar[frozenset[str]] = frozenset({"broker-log"})  # who hangs calls nothing back
    hits: ClassVar[str] = "members"

    def lacking(self, inventory: Inventory) -> str:
        """See ``Names``. By which id a member is known, it tells itself."""
        return inventory.lacks_telling()

    def seen(self, signs: Signs, since_ns: int, among: Collection[int] = ()) -> Occurrence | None:
        """See ``State``."""
        removed = signs.coordinator.removed if signs.coordinator else {}
        those = [m for m in signs.members if _counts(m, among)]
        times = [max([m.lost_ns, *(at for name, at in removed.items() if name in m.ids)]) for m in those]
        at_ns, member = max(zip(times, those, strict=True), key=lambda both: both[0], default=(0, None))
        return _met(at_ns, member) if member and at_ns >= since_ns else None


@dataclass(frozen=True)
class Rebalanced(_OfCoordinator):
    """The group went on to a new generation or epoch."""

    def seen(self, signs: Signs, since_ns: int, among: Collection[int] = ()) -> Occurrence | None:
        """See ``State``."""
        told = signs.coordinator
        if told is None or not told.rebalanced_ns or told.rebalanced_ns < since_ns:
            return None
        return Occurrence(told.rebalanced_ns, Target(brokers=(told.broker,)))


def lasting(signs: Signs | None) -> dict[str, bool | None]:
    """Every lasting state by name, and whether anybody is in it; None: nobody can tell."""
    if signs is None:
        return {serialization.name_of(state): None for state in LASTING}
    everybody = [member.index for member in signs.members]
    return {
        serialization.name_of(state): None
        if (signs.coordinator is None and state.hits == "brokers") or (signs.silent and state.hits == "members")
        else (seen := state.seen(signs, 0, everybody)) is not None and not seen.over
        for state in LASTING
    }


def met(state: State, occurrence: Occurrence, signs: Signs | None) -> dict[str, Any]:
    """Whether a state that was seen is still the same, in plain values."""
    again = state.seen(signs, occurrence.since_ns, occurrence.target.members) if signs else None
    return {
        "state": serialization.name_of(state),
        "since_ns": occurrence.since_ns,
        "met": again is not None and not again.over and again.since_ns == occurrence.since_ns,
    }


def _met(since_ns: int, member: MemberSigns, over: bool = False) -> Occurrence:
    return Occurrence(since_ns, Target(members=(member.index,)), member.consumers or (member.incarnation,), over)


def _counts(member: MemberSigns, among: Collection[int]) -> bool:
    return member.index in among if among else not member.disturbed


assigning = Assigning
commit_in_flight = CommitInFlight
coordinator_loading = CoordinatorLoading
fenced = Fenced
joining = Joining
rebalanced = Rebalanced
revoking = Revoking
syncing = Syncing
LASTING: tuple[State, ...] = (Joining(), Syncing(), Assigning(), Revoking(), CommitInFlight(), CoordinatorLoading())

__all__ = [
    "assigning",
    "commit_in_flight",
    "coordinator_loading",
    "fenced",
    "joining",
    "rebalanced",
    "revoking",
    "syncing",
]
