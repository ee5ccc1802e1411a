"""Selectors: what a step of the schedule hits, as values that are resolved when the step fires.

A selector sees the cluster and the group at that moment (``View``) and a number drawn from the seed; it never
looks at a clock or at chance of its own. Nothing matches: the runner asks again within a window.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from fencepost.errors import ScenarioError
from fencepost.interfaces import Target
from fencepost.model import Inventory, TopicPartition, View, serialization


def partition_of(name: str) -> TopicPartition:
    """The partition that is written like ``orders-3``. Raises ScenarioError: none is."""
    topic, dash, number = name.rpartition("-")
    if not dash or not topic or not number.isdecimal():
        raise ScenarioError(f"a topic-partition is written like orders-3, but {name!r} came")
    return TopicPartition(topic, int(number))


def _some(numbers: tuple[int, ...], example: str) -> None:
    if not numbers or len(set(numbers)) < len(numbers):
        raise ScenarioError(f"wanted are different numbers, at least one, as in {example}, but {numbers!r} came")


@dataclass(frozen=True)
class Member:
    """Member number ``index`` (from 0), alive or not, disturbed or not."""

    index: int
    hits: ClassVar[str] = "members"

    def __post_init__(self) -> None:
        serialization.settle(self)

    def lacking(self, inventory: Inventory) -> str:
        """See ``Names``."""
        return inventory.lacks_member(self.index)

    def resolve(self, view: View, pick: float) -> Target | None:
        """The member, once it lives."""
        alive = any(m.index == self.index and m.alive for m in view.members)
        return Target(members=(self.index,)) if alive else None


@dataclass(frozen=True)
class Members:
    """Members with these numbers (from 0), once all of them live."""

    indices: tuple[int, ...]
    hits: ClassVar[str] = "members"

    def __post_init__(self) -> None:
        serialization.settle(self)
        _some(self.indices, "members((0, 2))")

    def lacking(self, inventory: Inventory) -> str:
        """See ``Names``."""
        return next(filter(None, map(inventory.lacks_member, self.indices)), "")

    def resolve(self, view: View, pick: float) -> Target | None:
        """All of them, or none while one of them is dead."""
        alive = {m.index for m in view.members if m.alive}
        return Target(members=self.indices) if alive.issuperset(self.indices) else None


@dataclass(frozen=True)
class OneMember:
    """One member that lives and that no other fault disturbs; which one is drawn from the seed."""

    hits: ClassVar[str] = "members"

    def resolve(self, view: View, pick: float) -> Target | None:
        """The drawn member among those eligible now."""
        eligible = [m.index for m in view.members if m.alive and not m.disturbed]
        return Target(members=(eligible[int(pick * len(eligible))],)) if eligible else None


@dataclass(frozen=True)
class AllMembers:
    """Every member that lives."""

    hits: ClassVar[str] = "members"

    def resolve(self, view: View, pick: float) -> Target | None:
        """All of them, in the order of their numbers."""
        alive = tuple(m.index for m in view.members if m.alive)
        return Target(members=alive) if alive else None


@dataclass(frozen=True)
class Idle:
    """The first ``count`` members without a process that no other fault disturbs: spare ones, and who left for good."""

    count: int = 1
    hits: ClassVar[str] = "idle members"

    def __post_init__(self) -> None:
        serialization.settle(self)
        if self.count < 1:
            raise ScenarioError(f"idle wants a count of 1 or more, but {self.count} came")

    def lacking(self, inventory: Inventory) -> str:
        """See ``Names``. Who was started stays, so more may never be free at a time."""
        if self.count <= inventory.spare_members:
            return ""
        return f"{self.count} idle wanted, but the group has {inventory.spare_members} spare members: raise its spare"

    def resolve(self, view: View, pick: float) -> Target | None:
        """They, once there are so many."""
        found = tuple(m.index for m in view.members if not m.alive and not m.disturbed)[: self.count]
        return Target(members=found) if len(found) == self.count else None


@dataclass(frozen=True)
class OwnerOf:
    """The member that owns a partition (``orders-3``), by its own callbacks."""

    partition: str
    hits: ClassVar[str] = "members"

    def __post_init__(self) -> None:
        serialization.settle(self)
        partition_of(self.partition)

    def lacking(self, inventory: Inventory) -> str:
        """See ``Names``."""
        return inventory.lacks_telling() or inventory.lacks_partition(partition_of(self.partition))

    def resolve(self, view: View, pick: float) -> Target | None:
        """The owner, while there is exactly one that lives."""
        tp = partition_of(self.partition)
        owners = [m.index for m in view.members if m.alive and tp in m.owned]
        return Target(members=(owners[0],)) if len(owners) == 1 else None


@dataclass(frozen=True)
class LeaderOf:
    """The broker that leads a partition (``orders-3``)."""

    partition: str
    hits: ClassVar[str] = "brokers"

    def __post_init__(self) -> None:
        serialization.settle(self)
        partition_of(self.partition)

    def lacking(self, inventory: Inventory) -> str:
        """See ``Names``."""
        return inventory.lacks_partition(partition_of(self.partition))

    def resolve(self, view: View, pick: float) -> Target | None:
        """The leader, while there is one."""
        leader = view.leaders.get(partition_of(self.partition), -1)
        return Target(brokers=(leader,)) if leader >= 0 else None


@dataclass(frozen=True)
class Coordinator:
    """The broker that coordinates the group."""

    hits: ClassVar[str] = "brokers"

    def resolve(self, view: View, pick: float) -> Target | None:
        """The coordinator, while FindCoordinator names one."""
        return Target(brokers=(view.coordinator,)) if view.coordinator >= 0 else None


@dataclass(frozen=True)
class Brokers:
    """Brokers with these numbers (from 1), alive or not."""

    ids: tuple[int, ...]
    hits: ClassVar[str] = "brokers"

    def __post_init__(self) -> None:
        serialization.settle(self)
        _some(self.ids, "brokers((1, 3))")

    def lacking(self, inventory: Inventory) -> str:
        """See ``Names``."""
        return next(filter(None, map(inventory.lacks_broker, self.ids)), "")

    def resolve(self, view: View, pick: float) -> Target | None:
        """They themselves."""
        return Target(brokers=self.ids)


member = Member
members = Members
one_member = OneMember
all_members = AllMembers
owner_of = OwnerOf
leader_of = LeaderOf
coordinator = Coordinator
idle = Idle
brokers = Brokers

__all__ = ["all_members", "brokers", "coordinator", "idle", "leader_of", "member", "members", "one_member", "owner_of"]
