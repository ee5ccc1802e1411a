"""The committed offsets of one partition that a client may fetch at a given time. Pure."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from itertools import accumulate

from fencepost.checkers.tables.rows import OffsetCommit

NEVER = 1 << 64  # later than every time


class Committed:
    """The accepted commits of one partition, in the order of the coordinator's log, which may differ from clock order.

    Each commit is indexed by the earliest append, and the earliest answer, of *this and all later* commits.
    """

    def __init__(self, rows: Sequence[OffsetCommit]) -> None:
        """``rows`` may be empty."""
        self._rows = rows
        self._appended = _earliest_from_here(a.written.begin_ns for a in rows)
        self._answered = _earliest_from_here(a.answered_ns or NEVER for a in rows)

    def certain(self, at_ns: int) -> OffsetCommit | None:
        """The last commit that was certainly in force at ``at_ns``, because it had been answered by then."""
        place = bisect_right(self._answered, at_ns) - 1
        return self._rows[place] if place >= 0 else None

    def between(self, from_ns: int, to_ns: int) -> tuple[int, ...]:
        """See ``Tables.committed_between``."""
        from_ns, to_ns = sorted((from_ns, to_ns))
        certain = bisect_right(self._answered, from_ns) - 1  # the last commit that was answered by then
        after = self._rows[max(certain, 0) : bisect_right(self._appended, to_ns)]
        possible = (a.offset for a in after if a.written.begin_ns <= to_ns)
        return tuple(possible) if certain >= 0 else (-1, *possible)


def _earliest_from_here(times: Iterable[int]) -> list[int]:
    return [*accumulate(reversed([*times]), min)][::-1]
