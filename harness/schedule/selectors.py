"""Selectors: the targets of schedule steps, as values that are resolved when the step fires.

A selector sees the cluster and the group at that moment (``View``) and a number drawn from the seed; it never
reads a clock or draws randomly. If nothing matches, the runner asks again within a window.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from fencepost.errors import ScenarioError
from fencepost.interfaces import Target
from fencepost.model import Inventory, TopicPartition, View, serialization


def partition_of(name: str) -> TopicPartition:
    """The partition of a name like ``orders-3``. Raises ScenarioError: the name has another form."""
    topic, dash, number = name.rpartition("-")
    if not dash or not topic or not number.isdecimal():
        raise ScenarioError(f"found the partition {name!r}; write topic and number, as in orders-3")
    return TopicPartition(topic, int(number))


def _some(numbers: tuple[int, ...], example: str) -> None:
    if not numbers or len(set(numbers)) < len(numbers):
        raise ScenarioError(f"found the numbers {numbers!r}; use one or more distinct ones, as in {example}")


@dataclass(frozen=True)
class Member:
    """Member number ``index`` (from 0), whether it runs or not, disturbed or not."""

    index: int
    hits: ClassVar[str] = "members"

    def __post_init__(self) -> None:
        serialization.validate_fields(self)

    def inventory_problem(self, inventory: Inventory) -> str:
        """See ``ChecksInventory``."""
        return inventory.lacks_member(self.index)

    def resolve(self, view: View, pick: float) -> Target | None:
        """The member, once it runs."""
        alive = any(m.index == self.index and m.alive for m in view.members)
        return Target(members=(self.index,)) if alive else None


@dataclass(frozen=True)
class Members:
    """Members with these numbers (from 0), once all of them run."""

    indices: tuple[int, ...]
    hits: ClassVar[str] = "members"

    def __post_init__(self) -> None:
        serialization.validate_fields(self)
        _some(self.indices, "members((0, 2))")

    def inventory_problem(self, inventory: Inventory) -> str:
        """See ``ChecksInventory``."""
        return next(filter(None, map(inventory.lacks_member, self.indices)), "")

    def resolve(self, view: View, pick: float) -> Target | None:
        """All of them, or none while one of them does not run."""
        alive = {m.index for m in view.members if m.alive}
        return Target(members=self.indices) if alive.issuperset(self.indices) else None


@dataclass(frozen=True)
class OneMember:
    """One running member that no other fault disturbs, drawn from the seed."""

    hits: ClassVar[str] = "members"

    def resolve(self, view: View, pick: float) -> Target | None:
        """The drawn member among those eligible now."""
        eligible = [m.index for m in view.members if m.alive and not m.disturbed]
        return Target(members=(eligible[int(pick * len(eligible))],)) if eligible else None


@dataclass(frozen=True)
class AllMembers:
    """Every member that runs."""

    hits: ClassVar[str] = "members"

    def resolve(self, view: View, pick: float) -> Target | None:
        """All of them, in the order of their numbers."""
        alive = tuple(m.index for m in view.members if m.alive)
        return Target(members=alive) if alive else None


@dataclass(frozen=True)
class Idle:
    """The first ``count`` members without a process that no other fault disturbs: spare ones, and ones that left."""

    count: int = 1
    hits: ClassVar[str] = "idle members"

    def __post_init__(self) -> None:
        serialization.validate_fields(self)
        if self.count < 1:
            raise ScenarioError(f"found idle with count={self.count}; use 1 or more")

    def inventory_problem(self, inventory: Inventory) -> str:
        """See ``ChecksInventory``. A started member stays, so more members may never be idle at a time."""
        if self.count <= inventory.spare_members:
            return ""
        return (
            f"idle({self.count}) needs {self.count} spare members, the group has {inventory.spare_members}: raise spare"
        )

    def resolve(self, view: View, pick: float) -> Target | None:
        """The idle members, once there are enough."""
        found = tuple(m.index for m in view.members if not m.alive and not m.disturbed)[: self.count]
        return Target(members=found) if len(found) == self.count else None


@dataclass(frozen=True)
class OwnerOf:
    """The member that owns a partition (``orders-3``), by its own callbacks."""

    partition: str
    hits: ClassVar[str] = "members"

    def __post_init__(self) -> None:
        serialization.validate_fields(self)
        partition_of(self.partition)

    def inventory_problem(self, inventory: Inventory) -> str:
        """See ``ChecksInventory``."""
        return inventory.lacks_reports() or inventory.lacks_partition(partition_of(self.partition))

    def resolve(self, view: View, pick: float) -> Target | None:
        """The owner, while exactly one running member owns it."""
        tp = partition_of(self.partition)
        owners = [m.index for m in view.members if m.alive and tp in m.owned]
        return Target(members=(owners[0],)) if len(owners) == 1 else None


@dataclass(frozen=True)
class LeaderOf:
    """The broker that leads a partition (``orders-3``)."""

    partition: str
    hits: ClassVar[str] = "brokers"

    def __post_init__(self) -> None:
        serialization.validate_fields(self)
        partition_of(self.partition)

    def inventory_problem(self, inventory: Inventory) -> str:
        """See ``ChecksInventory``."""
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
        """The coordinator, while FindCoordinator returns one."""
        return Target(brokers=(view.coordinator,)) if view.coordinator >= 0 else None


@dataclass(frozen=True)
class Brokers:
    """Brokers with these numbers (from 1), whether they run or not."""

    ids: tuple[int, ...]
    hits: ClassVar[str] = "brokers"

    def __post_init__(self) -> None:
        serialization.validate_fields(self)
        _some(self.ids, "brokers((1, 3))")

    def inventory_problem(self, inventory: Inventory) -> str:
        """See ``ChecksInventory``."""
        return next(filter(None, map(inventory.lacks_broker, self.ids)), "")

    def resolve(self, view: View, pick: float) -> Target | None:
        """Always all of them."""
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
