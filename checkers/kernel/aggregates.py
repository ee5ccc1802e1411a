"""Sightings added up where they are found: what a task sends back instead of records.

A tally has the key of an anomaly (kind, partition, members, cause, excuse) and its numbers. Tallies of several tasks
add up to the anomaly that ``detections.aggregate`` makes of the single sightings. Kinds that begin with ``#`` are no
anomalies but what the judge wants to know besides: counts of facts, spans, rules that failed.
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
    """What a group of sightings has in common, besides kind and partition."""

    members: tuple[str, ...] = ()
    cause: str = ""
    excuse: str = ""


class Totals(NamedTuple):
    """What adds up: the sum of counts, the extremes of offsets (-1: none) and times (0: none)."""

    count: int = 1  # type: ignore[assignment]  # hides tuple.count, which nobody wants of numbers
    first: int = -1
    last: int = -1
    from_ns: int = 0
    to_ns: int = 0

    def __add__(self, other: Totals) -> Totals:  # type: ignore[override]
        """Both together."""
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
    """The tallies of one task, or of all."""

    @classmethod
    def sum(cls, parts: Iterable[Aggregates]) -> Aggregates:
        """What several tasks found, added up."""
        found = cls()
        for part in parts:
            for key, numbers in part.items():
                found._add(key, numbers)
        return found

    def put(self, kind: str, tp: int, label: Label = NOBODY, numbers: Totals = ONE) -> None:
        """Add numbers to one tally."""
        self._add((kind, tp, *label), numbers)

    def _add(self, key: Key, numbers: Totals) -> None:
        self[key] = self[key] + numbers if key in self else numbers

    def put_sightings(self, sightings: Iterable[Detection]) -> None:
        """Add sightings one by one, for rules with few of them."""
        for s in sightings:
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
        """Add many sightings at once, one per element of the arrays.

        Args:
            codes: integers that tell the groups; ``label`` is called with those of each different group.
            first, last: offsets, not negative (``last`` is ``first`` when it is not given).
            count: how many each stands for, 1 when it is not given.
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
        for place, those in zip(order[starts], numbers, strict=True):
            self.put(kind, tp, label(*(int(code[place]) for code in codes)), Totals(*(int(n) for n in those)))

    def anomalies(self, partitions: Mapping[int, Partition]) -> list[Anomaly]:
        """The anomalies that the tallies add up to, sorted."""
        found = []
        for (kind, tp, members, cause, excuse), n in self.items():
            if not kind.startswith("#"):
                name = partitions[tp].name if tp in partitions else ("", -1)
                found.append(Anomaly(kind, *name, members, cause, excuse, n.first, n.last, n.from_ns, n.to_ns, n.count))
        return sorted(found)


def _grouped(codes: Sequence[Array]) -> tuple[Array, Array]:
    """The elements in the order of their groups, and where in that order each group begins."""
    combined = np.zeros(len(codes[0]), np.int64)
    for code in codes:
        different, of = np.unique(code, return_inverse=True)
        combined = np.unique(combined * len(different) + of, return_inverse=True)[1]
    order = np.argsort(combined, kind="stable")
    return order, np.flatnonzero(np.diff(combined[order], prepend=-1))


def _earliest(times: Array, starts: Array) -> Array:
    """The smallest time of each group that is not 0; 0 when there is none."""
    never = np.iinfo(np.int64).max
    earliest = np.minimum.reduceat(np.where(times == 0, never, times), starts)
    return np.where(earliest == never, 0, earliest)
