"""What tasks over parts of a partition could not judge alone, and the tasks that judge it. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from fencepost.checkers.kernel.ranges import FIRST, LAST, Group, Task, task
from fencepost.checkers.kernel.tallies import Label, Tallies
from fencepost.checkers.kernel.times import Span, meetings


class Range(NamedTuple):
    """A range of offsets: when its first record was begun, and when its last one was finished (0: never)."""

    low: int
    high: int
    begun_ns: int
    finished_ns: int


def settle(tallies: Tallies, groups: Sequence[Group]) -> list[Task]:
    """The further tasks. What ranges found of keys alone becomes valid in ``tallies``, unless it is judged again."""
    again: list[Task] = []
    joined: dict[int, list[Range]] = {}
    for tp, ranges in _edges(tallies).items():
        joined[tp] = [r for r in _joined(ranges) if all((r.low, r.high) != (one.low, one.high) for one in ranges)]
        again += [task(groups, tp, r.low, r.high, "keys") for r in joined[tp]]
    for (kind, tp, members, cause, of), numbers in list(tallies.items()):
        if kind == "#key-order":
            low = int(of.split()[0])
            if not any(r.low <= low < r.high for r in joined.get(tp, ())):
                tallies.put("key-order", tp, Label(members, cause), numbers)
    return [*again, *_overlaps(tallies, groups)]


def _edges(tallies: Tallies) -> dict[int, list[Range]]:
    found: dict[int, list[Range]] = defaultdict(list)
    for (kind, tp, _, cause, _), numbers in tallies.items():
        if kind == "#edge":
            low, high = map(int, cause.split())
            found[tp].append(Range(low, high, numbers.from_ns, numbers.to_ns))
    return found


def _joined(ranges: Sequence[Range]) -> list[Range]:
    """Ranges belong together from the first one that finished something after a later one began something."""
    found: list[Range] = []
    for one in sorted(ranges):
        while found and one.begun_ns and one.begun_ns < max(earlier.finished_ns for earlier in found):
            last = found.pop()
            begun_ns = min(one.begun_ns, last.begun_ns or one.begun_ns)
            one = Range(last.low, one.high, begun_ns, max(one.finished_ns, last.finished_ns))
        found.append(one)
    return found


def _overlaps(tallies: Tallies, groups: Sequence[Group]) -> Iterator[Task]:
    """Where the work of two incarnations met in time."""
    spans: dict[int, list[Span]] = defaultdict(list)
    for (kind, tp, members, interval, _), numbers in tallies.items():
        if kind == "#span":
            spans[tp].append(Span(numbers.from_ns, numbers.to_ns, members[0], int(interval)))
    for tp, those in spans.items():
        windows = meetings(those)
        if windows:
            yield task(groups, tp, FIRST, LAST, "overlap", windows)
