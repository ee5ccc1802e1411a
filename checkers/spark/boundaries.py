"""What tasks over parts of a partition could not judge alone, and the tasks that judge it. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from fencepost.checkers.kernel.aggregates import Aggregates, Label
from fencepost.checkers.kernel.partitioning import FIRST, LAST, RowGroup, Task, joined, task
from fencepost.checkers.kernel.times import Span, meetings


class Range(NamedTuple):
    """A range of offsets: the first and the last of what it holds (0: nothing).

    Of keys that is when its first record was begun and its last one finished, of sends their numbers.
    """

    low: int
    high: int
    first: int
    last: int


def boundary_tasks(tallies: Aggregates, groups: Sequence[RowGroup]) -> list[Task]:
    """The further tasks. What ranges found of keys alone becomes valid in ``tallies``, unless it is judged again."""
    again: list[Task] = []
    crossing: dict[int, list[Range]] = {}
    for tp, ranges in _edges(tallies).items():
        crossing[tp] = _crossing(ranges)
        again += [task(groups, tp, r.low, r.high, "keys") for r in crossing[tp]]
    for (kind, tp, members, of, excuse), numbers in list(tallies.items()):
        if kind == "#key-order":
            low = int(of.split()[0])
            if not any(r.low <= low < r.high for r in crossing.get(tp, ())):
                tallies.put("key-order", tp, Label(members, "", excuse), numbers)
    return [*again, *_overlaps(tallies, groups), *_sends(tallies, groups)]


def _edges(tallies: Aggregates) -> dict[int, list[Range]]:
    found: dict[int, list[Range]] = defaultdict(list)
    for (kind, tp, _, cause, _), numbers in tallies.items():
        if kind == "#edge":
            low, high = map(int, cause.split())
            found[tp].append(Range(low, high, numbers.from_ns, numbers.to_ns))
    return found


def _crossing(ranges: Sequence[Range]) -> list[Range]:
    """Ranges belong together from the first one whose last comes after the first of a later one; those that do."""
    found: list[Range] = []
    for one in sorted(ranges):
        while found and one.first and one.first < max(earlier.last for earlier in found):
            before = found.pop()
            first = min(one.first, before.first or one.first)
            one = Range(before.low, one.high, first, max(one.last, before.last))
        found.append(one)
    return [r for r in found if all((r.low, r.high) != (one.low, one.high) for one in ranges)]


def _overlaps(tallies: Aggregates, groups: Sequence[RowGroup]) -> Iterator[Task]:
    """Where the work of two incarnations met in time."""
    spans: dict[int, list[Span]] = defaultdict(list)
    for (kind, tp, members, interval, _), numbers in tallies.items():
        if kind == "#span":
            spans[tp].append(Span(numbers.from_ns, numbers.to_ns, members[0], int(interval)))
    for tp, those in spans.items():
        windows = meetings(those)
        if windows:
            yield task(groups, tp, FIRST, LAST, "overlap", windows)


def _sends(tallies: Aggregates, groups: Sequence[RowGroup]) -> Iterator[Task]:
    """Where the numbers of a writer do not ascend: inside of a range, or from one to another."""
    of_writer: dict[tuple[int, str], list[Range]] = defaultdict(list)
    odd: dict[int, list[tuple[int, int]]] = defaultdict(list)
    for (kind, tp, members, cause, _), numbers in tallies.items():
        if kind == "#sends":
            low, high = map(int, cause.split())
            # From 1 on, and the last one's successor: a number that comes again in a later range is out of order, too.
            of_writer[tp, members[0]].append(Range(low, high, numbers.first + 1, numbers.last + 2))
            if numbers.count:
                odd[tp].append((low, high))
    for (tp, _), ranges in of_writer.items():
        odd[tp] += [(r.low, r.high) for r in _crossing(ranges)]
    for tp, those in odd.items():
        yield from (task(groups, tp, low, high, "sends") for low, high in joined(those))
