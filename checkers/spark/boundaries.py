"""Follow-up tasks, for anomalies that tasks over parts of a partition cannot judge alone. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from fencepost.checkers.kernel.aggregates import Aggregates, Label
from fencepost.checkers.kernel.partitioning import FIRST, LAST, RowGroup, Task, joined, task
from fencepost.checkers.kernel.times import Span, meetings


class Range(NamedTuple):
    """A range of offsets from ``low`` to before ``high``, with the first and last value in it (0: it has none).

    For keys, these are the times of the first start and the last finish; for sends, the lowest and the highest number.
    """

    low: int
    high: int
    first: int
    last: int


def boundary_tasks(aggregates: Aggregates, groups: Sequence[RowGroup]) -> list[Task]:
    """The follow-up tasks. Findings of key order in ``aggregates`` become final, except in their ranges."""
    again: list[Task] = []
    crossing: dict[int, list[Range]] = {}
    for tp, ranges in _edges(aggregates).items():
        crossing[tp] = _crossing(ranges)
        again += [task(groups, tp, r.low, r.high, "keys") for r in crossing[tp]]
    for (kind, tp, members, of, excuse), numbers in list(aggregates.items()):
        if kind == "#key-order":
            low = int(of.split()[0])
            if not any(r.low <= low < r.high for r in crossing.get(tp, ())):
                aggregates.put("key-order", tp, Label(members, "", excuse), numbers)
    return [*again, *_overlaps(aggregates, groups), *_sends(aggregates, groups)]


def _edges(aggregates: Aggregates) -> dict[int, list[Range]]:
    found: dict[int, list[Range]] = defaultdict(list)
    for (kind, tp, _, cause, _), numbers in aggregates.items():
        if kind == "#edge":
            low, high = map(int, cause.split())
            found[tp].append(Range(low, high, numbers.from_ns, numbers.to_ns))
    return found


def _crossing(ranges: Sequence[Range]) -> list[Range]:
    """The unions of ranges that must be judged together: the last value of one is above the first of a later one."""
    found: list[Range] = []
    for current in sorted(ranges):
        while found and current.first and current.first < max(earlier.last for earlier in found):
            before = found.pop()
            first = min(current.first, before.first or current.first)
            current = Range(before.low, current.high, first, max(current.last, before.last))
        found.append(current)
    return [r for r in found if all((r.low, r.high) != (single.low, single.high) for single in ranges)]


def _overlaps(aggregates: Aggregates, groups: Sequence[RowGroup]) -> Iterator[Task]:
    """Tasks for the times in which two incarnations may have processed records of one partition at once."""
    spans: dict[int, list[Span]] = defaultdict(list)
    for (kind, tp, members, interval, _), numbers in aggregates.items():
        if kind == "#span":
            spans[tp].append(Span(numbers.from_ns, numbers.to_ns, members[0], int(interval)))
    for tp, of_partition in spans.items():
        windows = meetings(of_partition)
        if windows:
            yield task(groups, tp, FIRST, LAST, "overlap", windows)


def _sends(aggregates: Aggregates, groups: Sequence[RowGroup]) -> Iterator[Task]:
    """Tasks for the ranges in which the numbers of a writer do not ascend, inside one range or across ranges."""
    of_writer: dict[tuple[int, str], list[Range]] = defaultdict(list)
    odd: dict[int, list[tuple[int, int]]] = defaultdict(list)
    for (kind, tp, members, cause, _), numbers in aggregates.items():
        if kind == "#sends":
            low, high = map(int, cause.split())
            # Numbers from 1 on; ``last`` is one higher, so that a number that is repeated in a later range counts, too.
            of_writer[tp, members[0]].append(Range(low, high, numbers.first + 1, numbers.last + 2))
            if numbers.count:
                odd[tp].append((low, high))
    for (tp, _), ranges in of_writer.items():
        odd[tp] += [(r.low, r.high) for r in _crossing(ranges)]
    for tp, unordered in odd.items():
        yield from (task(groups, tp, low, high, "sends") for low, high in joined(unordered))
