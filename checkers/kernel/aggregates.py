"""Aggregates: a task adds up its detections and returns the sums instead of records.

An aggregate has the key of an anomaly (kind, partition, members, cause, excuse) and its numbers. The aggregates of
several tasks add up to the anomaly that ``detections.aggregate`` makes of the single detections. A kind that begins
with ``#`` is no anomaly, but other output of a task: counts of records, time spans, rules that failed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fencepost.checkers.detections import Detection
from fencepost.checkers.tables.rows import Partition
from fencepost.model import Anomaly

Array = NDArray[Any]


class Label(NamedTuple):
    """What a group of detections has in common, in addition to kind and partition."""

    members: tuple[str, ...] = ()
    cause: str = ""
    excuse: str = ""


class Totals(NamedTuple):
    """The numbers that add up: the sum of counts, the extremes of offsets (-1: none) and of times (0: none)."""

    count: int = 1  # type: ignore[assignment]  # hides tuple.count, which has no use here
    first: int = -1
    last: int = -1
    from_ns: int = 0
    to_ns: int = 0

    def __add__(self, other: Totals) -> Totals:  # type: ignore[override]
        """The sum of both."""
        return Totals(
            self.count + other.count,
            min((n for n in (self.first, other.first) if n >= 0), default=-1),
            max(self.last, other.last),
            min((n for n in (self.from_ns, other.from_ns) if n), default=0),
            max(self.to_ns, other.to_ns),
        )


NOBODY, ONE = Label(), Totals()
Key = tuple[str, int, tuple[str, ...], str, str]


class Aggregates(dict[Key, Totals]):
    """The aggregates of one task, or of all tasks."""

    @classmethod
    def sum(cls, parts: Iterable[Aggregates]) -> Aggregates:
        """The aggregates of several tasks, added up."""
        found = cls()
        for part in parts:
            for key, numbers in part.items():
                found._add(key, numbers)
        return found

    def put(self, kind: str, tp: int, label: Label = NOBODY, numbers: Totals = ONE) -> None:
        """Add numbers to one aggregate."""
        self._add((kind, tp, *label), numbers)

    def _add(self, key: Key, numbers: Totals) -> None:
        self[key] = self[key] + numbers if key in self else numbers

    def put_detections(self, detections: Iterable[Detection]) -> None:
        """Add detections one by one, for rules that find only a few."""
        for s in detections:
            at = max(s.offset, -1)
            self.put(s.kind, s.tp, Label(s.members, s.cause, s.excuse), Totals(s.count, at, at, s.from_ns, s.to_ns))

    def put_many(
        self,
        kind: str,
        tp: int,
        codes: Sequence[Array],
        label: Callable[..., Label],
        *,
        first: Array,
        from_ns: Array,
        to_ns: Array,
        last: Array | None = None,
        count: Array | None = None,
    ) -> None:
        """Add many detections at once, one per element of the arrays.

        Args:
            codes: integers that identify the groups; ``label`` is called once per group, with the codes of that group.
            first, last: offsets, not negative; ``last`` defaults to ``first``.
            count: how many detections each element stands for; defaults to 1.
        """
        if not len(first):
            return
        order, starts = _grouped(codes)
        each = np.ones(len(first), np.int64) if count is None else count
        numbers = zip(
            np.add.reduceat(each[order], starts),
            np.minimum.reduceat(first[order], starts),
            np.maximum.reduceat((first if last is None else last)[order], starts),
            _earliest(from_ns[order], starts),
            np.maximum.reduceat(to_ns[order], starts),
            strict=True,
        )
        for place, totals in zip(order[starts], numbers, strict=True):
            self.put(kind, tp, label(*(int(code[place]) for code in codes)), Totals(*(int(n) for n in totals)))

    def anomalies(self, partitions: Mapping[int, Partition]) -> list[Anomaly]:
        """The anomalies that the aggregates stand for, sorted."""
        found = []
        for (kind, tp, members, cause, excuse), n in self.items():
            if not kind.startswith("#"):
                name = partitions[tp].name if tp in partitions else ("", -1)
                found.append(Anomaly(kind, *name, members, cause, excuse, n.first, n.last, n.from_ns, n.to_ns, n.count))
        return sorted(found)


def _grouped(codes: Sequence[Array]) -> tuple[Array, Array]:
    """The indices of the elements, ordered by group, and where in that order each group begins."""
    combined = np.zeros(len(codes[0]), np.int64)
    for code in codes:
        different, of = np.unique(code, return_inverse=True)
        combined = np.unique(combined * len(different) + of, return_inverse=True)[1]
    order = np.argsort(combined, kind="stable")
    return order, np.flatnonzero(np.diff(combined[order], prepend=-1))


def _earliest(times: Array, starts: Array) -> Array:
    """The smallest time of each group that is not 0; 0 if all are 0."""
    never = np.iinfo(np.int64).max
    earliest = np.minimum.reduceat(np.where(times == 0, never, times), starts)
    return np.where(earliest == never, 0, earliest)
