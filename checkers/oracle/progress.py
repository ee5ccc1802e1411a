"""Rules about getting on that look at records: partitions and members that stand still."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import TYPE_CHECKING

from fencepost.checkers.coordination.members import Hand, Work, stuck_members, unpolled
from fencepost.checkers.sightings import Sighting, people
from fencepost.checkers.tables.rows import FOREVER, Window

if TYPE_CHECKING:
    from fencepost.checkers.oracle import History, Rule


def stuck_partition(history: History) -> Iterator[Sighting]:
    """``stuck-partition``: records wait in the quiet window, and nothing is delivered for over ``bounds.stuck_ns``.

    The moments of delivery of a partition (all incarnations) cut the quiet window into gaps. A record *waits* in a gap
    when it is visible, acknowledged, not below the group's start, and above every offset delivered up to the gap's
    begin; it waits from its acknowledgement or the gap's begin, whichever is later, to the gap's end. One sighting for
    each gap in which a record waits longer than the bound: offset: the smallest such; times: from the earliest begin of
    such a wait to the end of the gap.

    members: who certainly owned it when the bound was over (the earliest assigned, then incarnation); cause ``unowned``
    when nobody did; excuse ``no leader``: the partition had none at some time between.
    """
    quiet, bound = history.tables.quiet, history.bounds.stuck_ns
    for tp, log in history.log.items():
        delivered = [(row.delivered_ns, row.offset) for row in history.rows.get(tp, ())]
        inside = {at_ns for at_ns, _ in delivered if quiet.begin_ns < at_ns < quiet.end_ns}
        acked = {o: history.acknowledged[tp, o].acked_ns for o in log if (tp, o) in history.acknowledged}
        gaps = [gap for gap in pairwise(sorted({*quiet, *inside})) if gap[1] - gap[0] > bound]
        for begin_ns, end_ns in gaps:
            highest = max((o for at_ns, o in delivered if at_ns <= begin_ns), default=-1)
            first = max(history.start(tp), highest + 1)
            waiting = {o: max(begin_ns, at_ns) for o, at_ns in acked.items() if o >= first}
            late = {o: since for o, since in waiting.items() if end_ns - since > bound}
            if late:
                since = min(late.values())
                owner = _owner(history, tp, since + bound)
                excuse = "no leader" if history.tables.leaderless(tp, since, end_ns) else ""
                cause = "" if owner else "unowned"
                yield Sighting("stuck-partition", tp, people(owner), cause, excuse, min(late), since, end_ns)


def _owner(history: History, tp: int, at_ns: int) -> str:
    owners = [i for i in history.tables.intervals if i.tp == tp and i.certain.begin_ns <= at_ns <= i.certain.end_ns]
    return min(((i.assigned_begin_ns, i.incarnation) for i in owners), default=(0, ""))[1]


def stuck_member(history: History) -> Iterator[Sighting]:
    """``stuck-member``: a member owns partitions and is in the group, and neither polls nor works for too long.

    Looked at are the times longer than ``bounds.stuck_ns`` from one poll of an incarnation to the next, from the last
    one to its end, as far as they lie in the quiet window (and before the first member left because it was over), while
    it owned a partition by its own callbacks, after all proven pauses of it, and before the last heartbeat that the
    coordinator took from it (or answered by the wish that it join again). Whoever the coordinator removed, also because
    of ``max.poll.interval.ms``, sends none that is taken.

    The moments when it began or finished a record cut these times. One sighting for each piece that is still longer
    than the bound; times: the piece. cause ``slow handler``, partition and offset: of a record that it had begun by
    then, and not finished before the end of the piece (the smallest partition and offset); else no partition. members:
    the incarnation.

    (Histories from before polls were recorded have none; polls less than 1 s apart are not told of.)
    """
    bound_ns = history.bounds.stuck_ns
    times = unpolled(history.tables, bound_ns)

    def work(number: int) -> Work:
        incarnation, window = times[number]
        rows = [row for row in history.records.delivered if row.incarnation == incarnation]
        moments = (ns for row in rows for ns in (row.begin_ns, row.done_ns))
        signs = [Window(ns, ns) for ns in moments if window.begin_ns < ns < window.end_ns]
        begun = (row for row in rows if row.begin_ns)
        return Work(signs, [Hand(Window(r.begin_ns, r.done_ns or FOREVER), r.tp, r.offset) for r in begun])

    return stuck_members(times, bound_ns, work)


RULES: dict[Rule, tuple[str, ...]] = {
    stuck_partition: ("stuck-partition",),
    stuck_member: ("stuck-member",),
}
