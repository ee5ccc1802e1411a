"""Rules about getting on that look at records: partitions and members that stand still."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import accumulate
from typing import TYPE_CHECKING, NamedTuple

from fencepost.checkers.detections import Detection, blamed
from fencepost.checkers.group_rules.poll_gaps import Activity, HeldRecord, poll_gaps, stuck_members
from fencepost.checkers.group_rules.recovery import PAUSED, another_cause, bystanders, recoveries
from fencepost.checkers.tables.rows import FOREVER, Window

if TYPE_CHECKING:
    from fencepost.checkers.oracle.history import History, Rule


def stuck_partition(history: History) -> Iterator[Detection]:
    """``stuck-partition``: records wait in the quiet window, and nothing is delivered for over ``bounds.stuck_ns``.

    The moments of delivery of a partition (all incarnations) cut the quiet window into gaps. A record *waits* in a gap
    when it is visible, acknowledged, not below the group's start, and above every offset delivered up to the gap's
    begin; it waits from its acknowledgement or the gap's begin, whichever is later, to the gap's end. One sighting for
    each *stop*, a gap in which a record waits longer than the bound: offset: the smallest such; times: from the
    earliest begin of such a wait to the end of the gap.

    members: who certainly owned it when the bound was over (the earliest assigned, then incarnation), or whom the
    coordinator had given it where callbacks do not tell that (``Tables.unreachable_coordinator_owner``); cause
    ``unowned`` when nobody did, ``paused`` when the owner had itself paused it for so long that the rest of that time
    is not longer than the bound (that excuses nothing), ``forked`` when its consumer was polled in a process that was
    forked from its own, where nothing can come; excuse ``no leader``: the partition had none at some time between.

    Of black boxes the commits that took the partition on stand for deliveries of all below them, and the owner is the
    coordinator's. A gap goes from when the last one was certainly written to when the next one may have been.
    """
    quiet, bound_ns = history.tables.quiet, history.bounds.stuck_ns
    for tp in history.log:
        for stop in _stops(history, tp, quiet, bound_ns):
            owner = _owner(history, tp, stop.since_ns + bound_ns)
            cause = "forked" if history.tables.forked(owner) else "" if owner else "unowned"
            paused = "paused" if owner and _paused(history, tp, owner, stop, bound_ns) else ""
            yield _detection(history, "stuck-partition", tp, owner, paused or cause, stop)


class _Stop(NamedTuple):
    """A gap between deliveries in which records waited too long: the smallest of them, since when, the gap's end."""

    offset: int
    since_ns: int
    end_ns: int


class _Moment(NamedTuple):
    """When a partition was taken on, to an offset, and beyond it no further."""

    when: Window
    offset: int


def _moments(history: History, tp: int) -> list[_Moment]:
    """By deliveries; of black boxes by commits."""
    if history.tables.black_box:
        return [_Moment(advance.written, advance.offset - 1) for advance in history.tables.advances(tp)]
    return [_Moment(Window(row.delivered_ns, row.delivered_ns), row.offset) for row in history.rows.get(tp, ())]


def _stops(history: History, tp: int, window: Window, bound_ns: int) -> Iterator[_Stop]:
    """Where the moments of delivery of a partition cut a window into gaps, those in which a record waited too long."""
    moments = sorted(_moments(history, tp))
    inside = [m.when for m in moments if window.begin_ns < m.when.end_ns and m.when.begin_ns < window.end_ns]
    known = (history.acknowledged.get((tp, offset)) for offset in history.log[tp])
    acked = {sent.offset: sent.acked_ns for sent in known if sent}
    begins = accumulate([window.begin_ns, *(when.end_ns for when in inside)], max)
    for begin_ns, end_ns in zip(begins, [*(when.begin_ns for when in inside), window.end_ns], strict=True):
        highest = max((m.offset for m in moments if m.when.begin_ns <= begin_ns), default=-1)
        first = max(history.start(tp), highest + 1)
        waiting = {o: max(begin_ns, at_ns) for o, at_ns in acked.items() if o >= first}
        late = {o: since for o, since in waiting.items() if end_ns - since > bound_ns}
        if late:
            yield _Stop(min(late), min(late.values()), end_ns)


def _owner(history: History, tp: int, at_ns: int) -> str:
    if history.tables.black_box:
        return history.tables.coordinator_owner(tp, at_ns)
    owners = [i for i in history.tables.intervals if i.tp == tp and i.certain.begin_ns <= at_ns <= i.certain.end_ns]
    certain = min(((i.assigned_begin_ns, i.incarnation) for i in owners), default=(0, ""))[1]
    return certain or history.tables.unreachable_coordinator_owner(tp, at_ns)


def _paused(history: History, tp: int, owner: str, stop: _Stop, bound_ns: int) -> bool:
    return history.tables.paused_by(owner, tp, Window(stop.since_ns, stop.end_ns), bound_ns)


def _detection(
    history: History, kind: str, tp: int, owner: str, cause: str, stop: _Stop, excuse: str = ""
) -> Detection:
    times = (stop.since_ns, stop.end_ns)
    leaderless = "no leader" if history.tables.leaderless(tp, *times) else ""
    return Detection(kind, tp, blamed(owner), cause, leaderless or excuse, stop.offset, *times)


def slow_recovery(history: History) -> Iterator[Detection]:
    """``slow-recovery``: after a step was over, records wait in a partition for over ``bounds.recovers_ns``.

    For each step that took effect and is over: proven healed, or, where it does not heal, proven. The *recovery* goes
    from there to the begin of the next step, to the end of the quiet window, or to when the first member left because
    that was over. None when another step was in effect when this one was over, and none without a promise
    (``recovers_ns`` 0). One sighting when the first gap of the recovery is a stop, as in ``stuck-partition``: from its
    begin to the first delivery of the partition in it.

    members, excuse and times as in ``stuck-partition``; cause: the step's name.
    """
    bound_ns = history.bounds.recovers_ns
    for step, recovery in recoveries(history.tables, bound_ns):
        for tp in history.log:
            inside = (m.when.begin_ns for m in _moments(history, tp) if m.when.end_ns > recovery.begin_ns)
            first = Window(recovery.begin_ns, min([recovery.end_ns, *inside]))
            for stop in _stops(history, tp, first, bound_ns):
                owner = _owner(history, tp, stop.since_ns + bound_ns)
                yield _detection(history, "slow-recovery", tp, owner, step.name, stop)


def collateral_stall(history: History) -> Iterator[Detection]:
    """``collateral-stall``: records wait for over ``bounds.stuck_ns`` in a partition that a fault does not touch.

    For each step that hits members (not one that hits brokers, or nobody in particular: these touch every partition),
    proven and healed, and each partition, the time in which the step was proven and a member certainly owned the
    partition by its callbacks, if no step in effect in that time touches that member (a life before or after it
    counts as it), or any broker. One sighting for each stop in it, as in ``stuck-partition``. Not in the eager
    protocol, in which every rebalance stops everybody, and only if the run got through its drain.

    A black box certainly owns what the coordinator's log says, until its process ended or was asked to.

    members: the owner; cause: the step's name; times as in ``stuck-partition``. excuse ``no leader``, as there; else
    ``paused by its owner``, for as long as there; else, where a rebalance met the time, ``rebalance: <reason>`` when a
    member joined because of metadata or subscriptions, ``rebalance: other members came or went`` when a process of a
    member that the step does not hit started or ended since the step's begin.
    """
    bound_ns = history.bounds.stuck_ns
    for tp, those in bystanders(history.tables, bound_ns).items():
        for step, owner, window in those:
            for stop in _stops(history, tp, window, bound_ns):
                paused = _paused(history, tp, owner, stop, bound_ns)
                excuse = PAUSED if paused else another_cause(history.tables, step, Window(stop.since_ns, stop.end_ns))
                yield _detection(history, "collateral-stall", tp, owner, step.name, stop, excuse)


def stuck_member(history: History) -> Iterator[Detection]:
    """``stuck-member``: a member owns partitions and is in the group, and neither polls nor works for too long.

    Looked at are the times longer than ``bounds.stuck_ns`` from one poll of an incarnation (one that waits for records
    for long: from its end) to the next, from the last one to its end, as far as they lie in the quiet window (and
    before the first member left because it was over), while it owned a partition by its own callbacks, after all proven
    pauses of it, and before the last heartbeat that the coordinator took from it (or answered by the wish that it join
    again). Whoever the coordinator removed, also because of ``max.poll.interval.ms``, sends none that is taken.

    The moments when it began or finished a record cut these times. One sighting for each piece that is still longer
    than the bound; times: the piece. cause ``slow handler``, partition and offset: of a record that it had begun by
    then, and not finished before the end of the piece (the smallest partition and offset); else no partition. members:
    the incarnation. Where effects tell what is processed, nobody knows when, so who was given any record before the end
    of such a time may have been at work in it.

    (Histories from before polls were recorded have none; polls less than 1 s apart are not told of.)
    """
    bound_ns = history.bounds.stuck_ns
    times = poll_gaps(history.tables, bound_ns)

    def work(number: int) -> Activity:
        incarnation, window = times[number]
        rows = [row for row in history.records.delivered if row.incarnation == incarnation]
        if history.tables.by_effect:
            given = any(row.delivered_ns < window.end_ns for row in rows)
            return Activity([window] if given else [], [])
        moments = (ns for row in rows for ns in (row.begin_ns, row.done_ns))
        signs = [Window(ns, ns) for ns in moments if window.begin_ns < ns < window.end_ns]
        begun = (row for row in rows if row.begin_ns)
        return Activity(signs, [HeldRecord(Window(r.begin_ns, r.done_ns or FOREVER), r.tp, r.offset) for r in begun])

    return stuck_members(times, bound_ns, work)


RULES: dict[Rule, tuple[str, ...]] = {
    stuck_partition: ("stuck-partition",),
    slow_recovery: ("slow-recovery",),
    collateral_stall: ("collateral-stall",),
    stuck_member: ("stuck-member",),
}
