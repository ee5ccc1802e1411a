"""What all tasks of a run have in common. It travels to every worker."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from fencepost.checkers.coordination.aftermath import Bystander, bystanders, recoveries
from fencepost.checkers.coordination.members import Unpolled, unpolled
from fencepost.checkers.facts import Bounds
from fencepost.checkers.tables import Tables
from fencepost.checkers.tables.rows import Step, Window


@dataclass(frozen=True)
class Judged:
    """What all tasks of a run have in common. ``starts``: where the group starts in each partition.

    ``cut``: the partitions of which no task holds everything.
    """

    tables: Tables
    bounds: Bounds
    starts: Mapping[int, int]
    cut: frozenset[int] = frozenset()

    @cached_property
    def unpolled(self) -> list[Unpolled]:
        """When members did not poll for too long, for all that the small tables say."""
        return unpolled(self.tables, self.bounds.stuck_ns)

    @cached_property
    def recoveries(self) -> list[tuple[Step, Window]]:
        """The recoveries from steps."""
        return recoveries(self.tables, self.bounds.recovers_ns)

    @cached_property
    def bystanders(self) -> Mapping[int, list[Bystander]]:
        """By partition, when it was nobody's fault but its own."""
        return bystanders(self.tables, self.bounds.stuck_ns)
