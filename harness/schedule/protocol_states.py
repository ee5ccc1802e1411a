"""Protocol states: short-lived states of a member or of the group's coordinator. They trigger faults, and end them.

A state is read from ``GroupSnapshot``: the members' events about callbacks and commits, and the brokers' own logs about
the coordinator. A lasting state holds now; a momentary one has happened since a given time.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from operator import itemgetter
from typing import Any, ClassVar

from fencepost.history import EventKind
from fencepost.interfaces import Target
from fencepost.interfaces.group_snapshot import (
    CoordinatorStatus,
    GroupSnapshot,
    MemberStatus,
    ProtocolState,
    StateMatch,
)
from fencepost.model import Inventory, serialization

CONSUMER = "consumer"  # the protocol in which the coordinator does not wait for others to join


@dataclass(frozen=True)
class _OfMember:
    """A callback or a commit of a member that has begun and not ended.

    A callback may last less than a millisecond, so one that is over also counts, if it began during the wait; a commit
    that is over does not count, as the next one follows soon.
    """

    kind: ClassVar[EventKind]
    returns: ClassVar[bool] = False
    needs: ClassVar[frozenset[str]] = frozenset()
    hits: ClassVar[str] = "members"

    def inventory_problem(self, inventory: Inventory) -> str:
        """See ``ChecksInventory``."""
        return inventory.lacks_reports()

    def seen(self, signs: GroupSnapshot, since_ns: int, among: Collection[int] = ()) -> StateMatch | None:
        """See ``ProtocolState``."""
        candidates = [m for m in signs.members if m.alive and _counts(m, among)]
        if now := [(m.open[self.kind], m) for m in candidates if self.kind in m.open]:
            return _met(*max(now, key=itemgetter(0)))
        over = [(m.ended[self.kind], m) for m in candidates if m.ended.get(self.kind, -1) >= since_ns]
        return _met(*max(over, key=itemgetter(0)), over=True) if over and not self.returns else None


@dataclass(frozen=True)
class Assigning(_OfMember):
    """A member is in its assigned callback."""

    kind = EventKind.ASSIGNED


@dataclass(frozen=True)
class Revoking(_OfMember):
    """A member is in its revoked callback: it may still commit records of the partitions that it loses."""

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

    def inventory_problem(self, inventory: Inventory) -> str:
        """See ``ChecksInventory``."""
        alone = f"{serialization.name_of(self)}() is a state of the classic protocols, but the group's is {CONSUMER!r}"
        return alone if inventory.protocol == CONSUMER else ""

    def seen(self, signs: GroupSnapshot, since_ns: int, among: Collection[int] = ()) -> StateMatch | None:
        """See ``ProtocolState``."""
        seen = signs.coordinator
        at_ns = getattr(seen, self.since, 0)
        return StateMatch(at_ns, Target(brokers=(seen.broker,))) if seen and at_ns else None


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
    """A broker that will coordinate the group still loads the group's commits and members.

    It may take only milliseconds, so a load that is over also counts, if it began during the wait.
    """

    def seen(self, signs: GroupSnapshot, since_ns: int, among: Collection[int] = ()) -> StateMatch | None:
        """See ``ProtocolState``."""
        seen = signs.coordinator or CoordinatorStatus()
        over_since = {broker: at_ns for broker, at_ns in seen.loaded.items() if at_ns >= since_ns}
        for loading, over in ((seen.loading, False), (over_since, True)):
            if loading:
                broker = max(loading, key=loading.__getitem__)
                return StateMatch(loading[broker], Target(brokers=(broker,)), over=over)
        return None


@dataclass(frozen=True)
class Fenced:
    """A member was removed from the group, by its own lost callback or by the coordinator's log."""

    needs: ClassVar[frozenset[str]] = frozenset({"broker-log"})  # a member that hangs runs no callback
    hits: ClassVar[str] = "members"

    def inventory_problem(self, inventory: Inventory) -> str:
        """See ``ChecksInventory``. The member itself reports its id."""
        return inventory.lacks_reports()

    def seen(self, signs: GroupSnapshot, since_ns: int, among: Collection[int] = ()) -> StateMatch | None:
        """See ``ProtocolState``."""
        removed = signs.coordinator.removed if signs.coordinator else {}
        candidates = [m for m in signs.members if _counts(m, among)]
        times = [max([m.lost_ns, *(at for name, at in removed.items() if name in m.ids)]) for m in candidates]
        at_ns, member = max(zip(times, candidates, strict=True), key=lambda both: both[0], default=(0, None))
        return _met(at_ns, member) if member and at_ns >= since_ns else None


@dataclass(frozen=True)
class Rebalanced(_OfCoordinator):
    """The group began a new generation or epoch."""

    def seen(self, signs: GroupSnapshot, since_ns: int, among: Collection[int] = ()) -> StateMatch | None:
        """See ``ProtocolState``."""
        seen = signs.coordinator
        if seen is None or not seen.rebalanced_ns or seen.rebalanced_ns < since_ns:
            return None
        return StateMatch(seen.rebalanced_ns, Target(brokers=(seen.broker,)))


def lasting(signs: GroupSnapshot | None) -> dict[str, bool | None]:
    """Every lasting state by name, and whether any member or broker is in it; None: unknown."""
    if signs is None:
        return {serialization.name_of(state): None for state in LASTING}
    everybody = [member.index for member in signs.members]
    return {
        serialization.name_of(state): None
        if (signs.coordinator is None and state.hits == "brokers") or (signs.silent and state.hits == "members")
        else (seen := state.seen(signs, 0, everybody)) is not None and not seen.over
        for state in LASTING
    }


def met(state: ProtocolState, occurrence: StateMatch, signs: GroupSnapshot | None) -> dict[str, Any]:
    """Whether a state that was seen is still the same occurrence, in plain values."""
    again = state.seen(signs, occurrence.since_ns, occurrence.target.members) if signs else None
    return {
        "state": serialization.name_of(state),
        "since_ns": occurrence.since_ns,
        "met": again is not None and not again.over and again.since_ns == occurrence.since_ns,
    }


def _met(since_ns: int, member: MemberStatus, over: bool = False) -> StateMatch:
    return StateMatch(since_ns, Target(members=(member.index,)), member.consumers or (member.incarnation,), over)


def _counts(member: MemberStatus, among: Collection[int]) -> bool:
    return member.index in among if among else not member.disturbed


assigning = Assigning
commit_in_flight = CommitInFlight
coordinator_loading = CoordinatorLoading
fenced = Fenced
joining = Joining
rebalanced = Rebalanced
revoking = Revoking
syncing = Syncing
LASTING: tuple[ProtocolState, ...] = (
    Joining(),
    Syncing(),
    Assigning(),
    Revoking(),
    CommitInFlight(),
    CoordinatorLoading(),
)

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
