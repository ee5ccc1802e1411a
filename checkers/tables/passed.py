"""The records that each assignment of a user's program commits past: its instrument should have seen them. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from fencepost.checkers.tables.rows import Commit, Interval
from fencepost.checkers.tables.tables import Tables


class PassedRange(NamedTuple):
    """The offsets that an interval first passes by a commit: from its position to before the committed offset."""

    interval: Interval
    commit: Commit
    offsets: range


def passed(tables: Tables, tp: int) -> Iterator[PassedRange]:
    """The passed offsets of each interval and commit that was not certainly refused. There are none if members
    run Fencepost's own loop, which records every delivery.

    The position of an interval begins at the least offset that may have been in force at its assignment, and follows
    each move of the program's position. Offsets that a declared act made members skip are left out.
    """
    if not tables.own_program or tp not in tables.partitions:
        return
    led_past, _ = tables.passed_over(tp)
    for interval in tables.intervals_by_tp.get(tp, ()):
        begin_ns = interval.assigned_begin_ns
        reached, since_ns = min(tables.committed_between(tp, begin_ns, begin_ns)), begin_ns - 1
        at_end = reached < 0 and tables.resets_to_end  # then it began at an offset that only its first commit may show
        for commit in tables.commits_in(interval):
            for seek in tables.seeks_of.get((interval.incarnation, tp), ()):
                if since_ns < seek.begin_ns <= commit.begin_ns:
                    reached = seek.offset
            since_ns = commit.begin_ns
            if at_end and reached < 0:
                reached = commit.offset
            if commit.outcome != "fail" and commit.offset > reached:
                yield PassedRange(interval, commit, range(max(reached, led_past), commit.offset))
                reached = commit.offset
