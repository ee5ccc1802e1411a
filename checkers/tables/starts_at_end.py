"""Where a group starts if its members begin at the end of the log without a committed offset. Pure.

Which record such a member receives first depends on when it asked for the end of the partition. So the group starts at
the lowest delivered offset. Where the owner at the end of the warm-up received nothing, it starts with the first record
that was sent after that owner had certainly asked, if that is lower. A partition that is added later starts with its
first record.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any

from fencepost.checkers.tables.rows import NS, Interval, Partition

SETTLED_NS = 2 * NS  # after the warm-up each owner has asked for its position


def started_ns(
    partitions: Iterable[Partition],
    intervals: Iterable[Interval],
    received: Collection[tuple[str, int, int]],
    warm_ns: int,
) -> dict[int, int]:
    """From when on records of each partition are the group's; only partitions of which this is known.

    Args:
        partitions: those of the run. A recreated one is left out: positions in its predecessor decide where it begins.
        intervals: of all members.
        received: the intervals in which a record was delivered: incarnation, partition, number.
        warm_ns: the end of the warm-up.
    """
    every = [*partitions]
    renewed = {(p.name.topic.removesuffix(" (deleted)"), p.name.partition) for p in every if p.gone}
    owned = [i for i in intervals if i.assigned_begin_ns <= warm_ns]
    before = {i.tp for i in owned}
    now = [i for i in owned if not i.given_up_end_ns or i.given_up_end_ns > warm_ns]
    consuming = {i.tp for i in now if (i.incarnation, i.tp, i.number) in received}
    return {
        p.tp: warm_ns + (SETTLED_NS if p.tp in before else 0)
        for p in every
        if not p.gone and p.tp not in consuming and (p.name.topic, p.name.partition) not in renewed
    }


def first_written(sends: Iterable[Mapping[str, Any]], after_ns: Mapping[int, int]) -> dict[int, int]:
    """The lowest offset, by partition, of the records that were sent after a time.

    Args:
        sends: columns of acknowledged sends: ``tp``, ``offset``, ``sent_ns``; the offset -1 is unknown.
        after_ns: the time for each partition; others are left out.
    """
    found: dict[int, int] = {}
    for columns in sends:
        for tp, at_ns in after_ns.items():
            later = (columns["tp"] == tp) & (columns["sent_ns"] > at_ns) & (columns["offset"] >= 0)
            if later.any():
                lowest = int(columns["offset"][later].min())
                found[tp] = min(found.get(tp, lowest), lowest)
    return found
