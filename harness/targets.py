"""Selectors: what a step of the schedule hits, as values that are resolved when the step fires.

A selector sees the cluster and the group at that moment (``View``) and a number drawn from the seed; it never
looks at a clock or at chance of its own. Nothing matches: the runner asks again within a window.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from fencepost import codec
from fencepost.errors import ScenarioError
from fencepost.interfaces import Target
from fencepost.model import Inventory, TopicPartition, View


def _partition(name: str) -> TopicPartition:
    topic, dash, number = name.rpartition("-")
    if not dash or not topic or not number.isdecimal():
        raise ScenarioError(f"a topic-partition is written like orders-3, but {name!r} came")
    return TopicPartition(topic, int(number))


@dataclass(frozen=True)
class Member:
    """Member number ``index`` (from 0), alive or not, disturbed or not."""

    index: int
    hits: ClassVar[str] = "members"

    def __post_init__(self) -> None:
        codec.settle(self)

    def lacking(self, inventory: Inventory) -> str:
        """See ``Names``."""
        return inventory.lacks_member(self.index)

    def resolve(self, view: View, pick: float) -> Target | None:
        """The member, once it lives."""
        alive = any(m.index == self.index and m.alive for m in view.members)
        return Target(members=(self.index,)) if alive else None


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
class OwnerOf:
    """The member that owns a partition (``orders-3``), by its own callbacks."""

    partition: str
    hits: ClassVar[str] = "members"

    def __post_init__(self) -> None:
        codec.settle(self)
        _partition(self.partition)

    def lacking(self, inventory: Inventory) -> str:
        """See ``Names``."""
        return inventory.lacks_partition(_partition(self.partition))

    def resolve(self, view: View, pick: float) -> Target | None:
        """The owner, while there is exactly one that lives."""
        tp = _partition(self.partition)
        owners = [m.index for m in view.members if m.alive and tp in m.owned]
        return Target(members=(owners[0],)) if len(owners) == 1 else None


@dataclass(frozen=True)
class LeaderOf:
    """The broker that leads a partition (``orders-3``)."""

    partition: str
    hits: ClassVar[str] = "brokers"

    def __post_init__(self) -> None:
        codec.settle(self)
        _partition(self.partition)

    def lacking(self, inventory: Inventory) -> str:
        """See ``Names``."""
        return inventory.lacks_partition(_partition(self.partition))

    def resolve(self, view: View, pick: float) -> Target | None:
        """The leader, while there is one."""
        leader = view.leaders.get(_partition(self.partition), -1)
        return Target(brokers=(leader,)) if leader >= 0 else None


@dataclass(frozen=True)
class Coordinator:
    """The broker that coordinates the group."""

    hits: ClassVar[str] = "brokers"

    def resolve(self, view: View, pick: float) -> Target | None:
        """The coordinator, while FindCoordinator names one."""
        return Target(brokers=(view.coordinator,)) if view.coordinator >= 0 else None


member = Member
one_member = OneMember
all_members = AllMembers
owner_of = OwnerOf
leader_of = LeaderOf
coordinator = Coordinator

__all__ = ["all_members", "coordinator", "leader_of", "member", "one_member", "owner_of"]
