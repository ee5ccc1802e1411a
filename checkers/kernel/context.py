"""What all tasks of a run have in common, and what of it travels to the worker that performs some of them."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

from fencepost.checkers.counts import Bounds
from fencepost.checkers.group_rules.poll_gaps import PollGap, poll_gaps
from fencepost.checkers.group_rules.recovery import Bystander, bystanders, recoveries
from fencepost.checkers.tables import Tables
from fencepost.checkers.tables.rows import Step, Window
from fencepost.checkers.tables.subset import Rows, TableSubset


@dataclass(frozen=True)
class KernelContext:
    """What all tasks of a run have in common. ``starts``: where the group starts in each partition.

    Attributes:
        tables: of all partitions, or of those of some tasks only.
        cut: the partitions of which no task holds everything.
        unpolled: when members did not poll for too long, for all that the small tables say.
        recoveries: the recoveries from steps. bystanders: by partition, when it was nobody's fault but its own.
    """

    tables: Tables
    bounds: Bounds
    starts: Mapping[int, int]
    cut: frozenset[int] = frozenset()
    unpolled: Sequence[PollGap] = ()
    recoveries: Sequence[tuple[Step, Window]] = ()
    bystanders: Mapping[int, list[Bystander]] = field(default_factory=dict)

    @classmethod
    def of(cls, tables: Tables, bounds: Bounds, starts: Mapping[int, int], cut: frozenset[int]) -> KernelContext:
        """With what takes the tables of all partitions to tell."""
        return cls(
            tables,
            bounds,
            starts,
            cut,
            poll_gaps(tables, bounds.stuck_ns),
            recoveries(tables, bounds.recovers_ns),
            bystanders(tables, bounds.stuck_ns),
        )

    def split(self, parts: Sequence[Collection[int]]) -> tuple[KernelContext, list[Rows]]:
        """What the tasks of all partitions need to know, and the rows that only those of some partitions do."""
        apart = TableSubset(self.tables)
        return replace(self, tables=apart.common), [apart.rows(tps) for tps in parts]

    def together(self, rows: Rows) -> KernelContext:
        """``self`` is what all need to know: the same with the rows of some partitions."""
        return replace(self, tables=replace(self.tables, **rows))
