"""The partitions that a member owns now, and the number of each assignment interval. Pure."""

from __future__ import annotations

from typing import Dict, Iterable, List, Tuple

Tp = Tuple[str, int]


class AssignmentNumbers:
    """Numbers the assignment intervals of each partition from 0.

    Attributes:
        intervals: partition owned now -> number of its interval. Only the methods may change it.
    """

    def __init__(self) -> None:
        """No partition is owned."""
        self.intervals: Dict[Tp, int] = {}
        self._used: Dict[Tp, int] = {}

    @property
    def ever(self) -> Iterable[Tp]:
        """Every partition that was owned at some time."""
        return self._used.keys()

    def assign(self, partitions: Iterable[Tp]) -> Dict[Tp, int]:
        """Begin an interval for each partition, also for one that is owned already; returns their numbers."""
        begun = {}
        for tp in partitions:
            begun[tp] = self._used.get(tp, 0)
            self._used[tp] = begun[tp] + 1
        self.intervals.update(begun)
        return begun

    def of(self, partitions: Iterable[Tp]) -> Dict[Tp, int]:
        """The numbers of the current intervals; -1 for a partition that is not owned."""
        return {tp: self.intervals.get(tp, -1) for tp in partitions}

    def revoke(self, partitions: Iterable[Tp]) -> None:
        """End the intervals of ``partitions``."""
        for tp in partitions:
            self.intervals.pop(tp, None)


def names(intervals: Dict[Tp, int]) -> Dict[str, int]:
    """Intervals as in an event's detail: ``{"orders-3": 0}``."""
    return {"%s-%d" % tp: number for tp, number in intervals.items()}


def rows(offsets: Dict[Tp, int]) -> List[List[object]]:
    """Offsets as an event's ``partitions``: ``[[topic, partition, offset], ...]``."""
    return [[topic, partition, offset] for (topic, partition), offset in offsets.items()]


def places(partitions: Iterable[Tp]) -> List[List[object]]:
    """Partitions as an event's ``partitions``, without offsets."""
    return [[topic, partition, None] for topic, partition in partitions]
