"""The data that all tasks of a run share, and the part of it that a worker receives with its tasks."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

from fencepost.checkers.counts import Bounds
from fencepost.checkers.group_rules.poll_gaps import PollGap, poll_gaps
from fencepost.checkers.group_rules.recovery import Bystander, bystanders, recoveries, under_load
from fencepost.checkers.tables import Tables
from fencepost.checkers.tables.rows import PerformedStep, Window
from fencepost.checkers.tables.subset import Rows, TableSubset


@dataclass(frozen=True)
class KernelContext:
    """The data that all tasks of a run share. ``starts``: the offset at which the group starts in each partition.

    Attributes:
        tables: of all partitions, or only of those of some tasks.
        cut: the partitions that are cut into several tasks.
        unpolled: the times in which members did not poll for too long, by the small tables alone.
        recoveries: the recovery after each step.
        catch_ups: the same for the bound of lag, while producers write.
        bystanders: by partition, the times in which a step was in effect that did not hit the partition's owner.
    """

    tables: Tables
    bounds: Bounds
    starts: Mapping[int, int]
    cut: frozenset[int] = frozenset()
    unpolled: Sequence[PollGap] = ()
    recoveries: Sequence[tuple[PerformedStep, Window]] = ()
    catch_ups: Sequence[tuple[PerformedStep, Window]] = ()
    bystanders: Mapping[int, list[Bystander]] = field(default_factory=dict)

    @classmethod
    def of(cls, tables: Tables, bounds: Bounds, starts: Mapping[int, int], cut: frozenset[int]) -> KernelContext:
        """With the values that are computed from the tables of all partitions."""
        return cls(
            tables,
            bounds,
            starts,
            cut,
            poll_gaps(tables, bounds.stuck_ns),
            recoveries(tables, bounds.recovers_ns),
            under_load(tables, bounds.catches_up_ns),
            bystanders(tables, bounds.stuck_ns),
        )

    def split(self, parts: Sequence[Collection[int]]) -> tuple[KernelContext, list[Rows]]:
        """The context without the rows that belong to single partitions, and these rows for each of the ``parts``."""
        subset = TableSubset(self.tables)
        return replace(self, tables=subset.common), [subset.rows(tps) for tps in parts]

    def together(self, rows: Rows) -> KernelContext:
        """The context with the rows of some partitions, if ``self`` is the common part that ``split`` returned."""
        return replace(self, tables=replace(self.tables, **rows))
