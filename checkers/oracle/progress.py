"""Rules about progress that need records: partitions and members that make none."""

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

    The deliveries of a partition (by all incarnations) cut the quiet window into gaps. A record *waits* in a gap if it
    is visible, acknowledged, not below the group's start, and above every offset delivered up to the gap's start. It
    waits from its acknowledgement or the gap's start, whichever is later, to the gap's end. A *stop* is a gap in which
    a record waits longer than the bound. One detection for each stop. offset: the smallest such record; times: from the
    earliest start of such a wait to the end of the gap.

    members: the certain owner when the bound was over (the earliest assigned, then by incarnation), or the owner by the
    coordinator's log if callbacks cannot report it (``Tables.unreachable_coordinator_owner``). The cause is the first
    that holds:

    * ``paused``: the owner had paused the partition itself, and without its pauses the time is not longer than the
      bound (this excuses nothing);
    * ``forked``: its consumer was polled in a forked process, which receives no records;
    * ``unowned``: there was no owner.

    excuse ``no leader``: the partition had possibly no leader at some time between.

    For black boxes, a commit above all earlier ones stands for the delivery of all records below it, and the owner is
    the one in the coordinator's log. A gap goes from when the last such commit was certainly written to when the next
    one may have been written.
    """
    quiet, bound_ns = history.tables.quiet, history.bounds.stuck_ns
    for tp in history.log:
        for stop in _stops(history, tp, quiet, bound_ns):
            owner = owner_at(history, tp, stop.since_ns + bound_ns)
            cause = "forked" if history.tables.forked(owner) else "" if owner else "unowned"
            paused = "paused" if owner and _paused(history, tp, owner, stop, bound_ns) else ""
            yield _detection(history, "stuck-partition", tp, owner, paused or cause, stop)


class _Stop(NamedTuple):
    """A gap in which records waited too long: the smallest such offset, the start of the first wait, the gap's end."""

    offset: int
    since_ns: int
    end_ns: int


class _Advance(NamedTuple):
    """When a partition got to an offset: its records up to there were delivered."""

    when: Window
    offset: int


def _advances(history: History, tp: int) -> list[_Advance]:
    """The deliveries of a partition; for black boxes its commits."""
    if history.tables.black_box:
        return [_Advance(commit.written, commit.offset - 1) for commit in history.tables.advances(tp)]
    return [_Advance(Window(row.delivered_ns, row.delivered_ns), row.offset) for row in history.rows.get(tp, ())]


def _stops(history: History, tp: int, window: Window, bound_ns: int) -> Iterator[_Stop]:
    """The gaps between deliveries of a partition in a window in which a record waited longer than ``bound_ns``."""
    advances = sorted(_advances(history, tp))
    inside = [a.when for a in advances if window.begin_ns < a.when.end_ns and a.when.begin_ns < window.end_ns]
    known = (history.acknowledged.get((tp, offset)) for offset in history.log[tp])
    acked = {sent.offset: sent.acked_ns for sent in known if sent}
    begins = accumulate([window.begin_ns, *(when.end_ns for when in inside)], max)
    for begin_ns, end_ns in zip(begins, [*(when.begin_ns for when in inside), window.end_ns], strict=True):
        highest = max((a.offset for a in advances if a.when.begin_ns <= begin_ns), default=-1)
        first = max(history.start(tp), highest + 1)
        waiting = {o: max(begin_ns, at_ns) for o, at_ns in acked.items() if o >= first}
        late = {o: since for o, since in waiting.items() if end_ns - since > bound_ns}
        if late:
            yield _Stop(min(late), min(late.values()), end_ns)


def owner_at(history: History, tp: int, at_ns: int) -> str:
    """The incarnation that owned a partition at a moment, see ``stuck_partition``; empty: there was none."""
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

    For each step that took effect and is over: proven healed, or, if it does not heal, proven. The *recovery* goes from
    then to the earliest of the start of the next step, the end of the quiet window, and the time at which the first
    member left because that window was over. There is none if another step was in effect when this one was over, or
    without a promise (``recovers_ns`` 0). One detection if the first gap of the recovery, up to the first delivery of
    the partition in it, is a stop as in ``stuck-partition``.

    members, excuse and times as in ``stuck-partition``; cause: the step's name.
    """
    bound_ns = history.bounds.recovers_ns
    for step, recovery in recoveries(history.tables, bound_ns):
        for tp in history.log:
            inside = (a.when.begin_ns for a in _advances(history, tp) if a.when.end_ns > recovery.begin_ns)
            first = Window(recovery.begin_ns, min([recovery.end_ns, *inside]))
            for stop in _stops(history, tp, first, bound_ns):
                owner = owner_at(history, tp, stop.since_ns + bound_ns)
                yield _detection(history, "slow-recovery", tp, owner, step.name, stop)


def collateral_stall(history: History) -> Iterator[Detection]:
    """``collateral-stall``: records wait for over ``bounds.stuck_ns`` in a partition that a fault does not touch.

    For each step that was proven and healed, and each partition: the time between proof and healing in which a member
    certainly owned the partition by its callbacks. It counts only if every step in effect in that time hits other
    members only; other incarnations of a member count as that member. A step that hits brokers, or no particular
    member, touches every partition. One detection for each stop in that time, as in ``stuck-partition``. Not in the
    eager protocol, in which every rebalance stops all members, and only if the run completed its drain.

    A black box certainly owns the partitions that the coordinator's log assigns to it, until its process ended or was
    asked to end.

    members: the owner; cause: the step's name; times as in ``stuck-partition``. The excuse is the first that holds:

    * ``no leader``, as in ``stuck-partition``;
    * ``paused by its owner``, with the same bound as there;
    * ``rebalance: <reason>``: the stop met a rebalance that a member had joined because of metadata or subscriptions;
    * ``rebalance: other members came or went``: the stop met a rebalance, and since the step's start a process of a
      member that the step does not hit had started or ended.
    """
    bound_ns = history.bounds.stuck_ns
    for tp, untouched in bystanders(history.tables, bound_ns).items():
        for step, owner, window in untouched:
            for stop in _stops(history, tp, window, bound_ns):
                paused = _paused(history, tp, owner, stop, bound_ns)
                excuse = PAUSED if paused else another_cause(history.tables, step, Window(stop.since_ns, stop.end_ns))
                yield _detection(history, "collateral-stall", tp, owner, step.name, stop, excuse)


def stuck_member(history: History) -> Iterator[Detection]:
    """``stuck-member``: a member owns partitions and is in the group, and neither polls nor works for too long.

    A *poll gap* is the time from one poll of an incarnation to its next one, or from its last poll to its end. After a
    poll that waited long for records, the gap begins at the end of that poll. Only the part of a gap counts that lies

    * in the quiet window, before the first member left because that window was over;
    * in a time in which the incarnation owned a partition by its own callbacks;
    * after all its proven pauses;
    * before its last heartbeat that the coordinator accepted, or answered with a request to rejoin. The coordinator
      accepts no heartbeat of a member that it removed, also because of ``max.poll.interval.ms``.

    The times at which the incarnation began or finished a record cut these parts into pieces. One detection for each
    piece that is longer than ``bounds.stuck_ns``; times: the piece. cause ``slow handler``, with partition and offset:
    the member had begun this record by the start of the piece and did not finish it before its end (the smallest
    partition and offset); otherwise no partition. members: the incarnation. Where effects decide what is processed, the
    times of processing are unknown: a member that had received any record before the end of a part may have been
    processing in it, so there is no detection.

    Histories without recorded polls have no poll gaps. Polls less than 1 s apart are not recorded.
    """
    bound_ns = history.bounds.stuck_ns
    times = poll_gaps(history.tables, bound_ns)

    def work(number: int) -> Activity:
        incarnation, window = times[number]
        rows = [row for row in history.records.delivered if row.incarnation == incarnation]
        if history.tables.by_effect:
            received = any(row.delivered_ns < window.end_ns for row in rows)
            return Activity([window] if received else [], [])
        worked = (ns for row in rows for ns in (row.begin_ns, row.done_ns))
        signs = [Window(ns, ns) for ns in worked if window.begin_ns < ns < window.end_ns]
        begun = (row for row in rows if row.begin_ns)
        return Activity(signs, [HeldRecord(Window(r.begin_ns, r.done_ns or FOREVER), r.tp, r.offset) for r in begun])

    return stuck_members(times, bound_ns, work)


RULES: dict[Rule, tuple[str, ...]] = {
    stuck_partition: ("stuck-partition",),
    slow_recovery: ("slow-recovery",),
    collateral_stall: ("collateral-stall",),
    stuck_member: ("stuck-member",),
}
