"""Rules about rebalances: the assignment in the coordinator's log, and how long partitions have no owner.

They run only if the scenario promises ``Rebalances``: without the promise, the assignor may be one that is known to
assign otherwise.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import chain, pairwise
from typing import TYPE_CHECKING

from fencepost.checkers.detections import Detection, blamed
from fencepost.checkers.group_rules.progress import somebody
from fencepost.checkers.tables import Tables
from fencepost.checkers.tables.rows import NS, Interval, Life, Window

if TYPE_CHECKING:
    from fencepost.checkers.group_rules.rule import Rule

PROMISE = "rebalances"


def unbalanced(tables: Tables) -> Iterator[Detection]:
    """``unbalanced``: in a stable period, one member has at least two partitions more than another member.

    One detection for each such period. members: the member with the most partitions, the member with the fewest; cause:
    the two numbers; times: the period. excuse ``subscriptions``: a member had changed its subscription by then.
    """
    for rest in tables.rests if tables.promised(PROMISE) else ():
        counts = Counter({**dict.fromkeys(rest.members, 0), **Counter(rest.owners.values())})
        ranked = sorted(counts, key=lambda name: (-counts[name], name))
        if len(ranked) > 1 and counts[ranked[0]] - counts[ranked[-1]] > 1:
            cause = f"{counts[ranked[0]]} and {counts[ranked[-1]]}"
            excuse = _subscriptions(tables, rest.window.end_ns)
            yield Detection("unbalanced", -1, (ranked[0], ranked[-1]), cause, excuse, -1, *rest.window)


def not_sticky(tables: Tables) -> Iterator[Detection]:
    """``not-sticky``: more partitions were moved away from members that stayed than an even share requires.

    Two consecutive stable periods are compared if all rebalances between them have the same members. The members of
    the first period that are among them stay. Their new shares are even, and the members with the most partitions get
    the greater shares. Only the partitions beyond a member's share need to move away from it.

    members: the members that partitions were moved away from; cause: how many partitions moved, and how many had to;
    times: from the end of the first period to the start of the second. excuse: as for ``unbalanced``.
    """
    for before, after in pairwise(tables.rests) if tables.promised(PROMISE) else ():
        between = tables.rounds[before.number + 1 : after.number + 1]
        if not after.members or any(frozenset(tables.firsts(one.members)) != after.members for one in between):
            continue
        had = Counter(owner for owner in before.owners.values() if owner in after.members)
        moved = [o for tp, o in before.owners.items() if o in after.members and after.owners.get(tp) != o]
        share, greater = divmod(len(after.owners), len(after.members))
        must = sum(max(0, count - share - (n < greater)) for n, (_, count) in enumerate(had.most_common()))
        if len(moved) > must:
            cause, excuse = f"{len(moved)} instead of {must}", _subscriptions(tables, after.window.begin_ns)
            times = (before.window.end_ns, after.window.begin_ns)
            yield Detection("not-sticky", -1, tuple(sorted({*moved})), cause, excuse, -1, *times)


def long_pause(tables: Tables) -> Iterator[Detection]:
    """``long-pause``: between two owners, a partition certainly had no owner for longer than promised.

    By the members' callbacks: from the time when all members that may have owned the partition had released it, to the
    time when it may have been assigned to the next one. For black boxes by the coordinator's log: from the time when
    the partition was certainly revoked to the time when it may have been assigned again. In the eager protocol, whose
    members release all partitions before they join, the pause of a black box also lasts from the time when a broker
    certainly had the owner's first request to join a generation, to the time when that generation may have begun.
    (For the coordinator, a dead or frozen member keeps its partitions.) Pauses count only until the first member leaves
    because the run is over. One detection for each pause.

    members: the last member to release it, the next owner; excuse ``nobody could``: no member lived and ran all the
    time, or the host stood still; times: the pause.
    """
    bounds = [p.get("pause_within_s") for p in tables.promised(PROMISE)]
    bound_ns = round(min((b for b in bounds if isinstance(b, int | float) and b > 0), default=0) * NS)
    pauses = (*_by_coordinator(tables), *_joining(tables)) if tables.black_box else _by_callbacks(tables)
    for tp, pause, former, later in pauses if bound_ns else ():
        if pause.length_ns > bound_ns and pause.end_ns < tables.closing_ns:
            excuse = "" if somebody(tables, pause) else "nobody could"
            yield Detection("long-pause", tp, blamed(former, later), "", excuse, -1, *pause)


Pause = tuple[int, Window, str, str]  # partition, time without an owner, last owner, next owner


def _by_callbacks(tables: Tables) -> Iterator[Pause]:
    """The pauses between assignment intervals, by the members' callbacks."""
    for tp, intervals in tables.intervals_by_tp.items():  # in the order of their starts
        last: Interval | None = None
        for interval in intervals:
            if last:
                pause = Window(last.possible.end_ns, interval.possible.begin_ns)
                yield tp, pause, last.incarnation, interval.incarnation
            last = max(last or interval, interval, key=lambda i: i.possible.end_ns)


def _by_coordinator(tables: Tables) -> Iterator[Pause]:
    """The pauses in the coordinator's log, in which no member had the partition."""
    for tp, rows in tables.given_of.items():
        for former, revoked, given in zip(rows, rows[1:], rows[2:], strict=False):
            if not revoked.member_id:
                pause = Window(revoked.at_ns + revoked.uncertainty_ns, given.at_ns - given.uncertainty_ns)
                yield tp, pause, former.incarnation, given.incarnation


def _joining(tables: Tables) -> Iterator[Pause]:
    """The pauses from an owner's first request to join a generation until the record of that generation."""
    for before, now in pairwise(tables.rounds) if tables.protocol == "eager" else ():
        first: dict[str, int] = {}
        for join in tables.joins:
            if before.end_ns + before.uncertainty_ns < join.at_ns <= now.end_ns:
                first.setdefault(join.incarnation, join.at_ns)
        begun_ns = now.end_ns - now.uncertainty_ns
        for tp in tables.partitions if first else ():
            owner = tables.coordinator_owner(tp, before.end_ns + before.uncertainty_ns)
            if owner in first and tables.coordinator_owner(tp, first[owner]) == owner:
                later = tables.coordinator_owner(tp, now.end_ns + now.uncertainty_ns) or owner
                yield tp, Window(first[owner], begun_ns), owner, later


def rebalance_on_static_bounce(tables: Tables) -> Iterator[Detection]:
    """``rebalance-on-static-bounce``: a static member returned in time, and the group rebalanced anyway (KIP-345).

    An incarnation of a static id began to release its partitions (or else ended) in a stable period, and the next
    incarnation of that id was assigned partitions, within less than the session time-out minus one heartbeat interval.
    The stable period ended in between, because a rebalance began. It does not count if anything else may be the reason.
    Other reasons, from the start of the stable period to the assignment: another member started, ended, changed its
    subscription or left the coordinator's records; the coordinator moved; a partition changed its leader or was
    created; a step was in effect that did not hit this member alone.

    A black box began to release its partitions when it was asked to end, or else when it ended; its assignments are the
    coordinator's records.

    members: the earlier incarnation and the later one; times: from the start of the release to the assignment.
    """
    ended = [rest.window for rest in tables.rests if rest.number + 1 < len(tables.rounds)]  # by a further rebalance
    bounces = chain.from_iterable(map(pairwise, tables.of_static_id.values()))
    for before, after in bounces if tables.promised(PROMISE) else ():
        names, gone = (before.incarnation, after.incarnation), Window(_left_ns(tables, before), _back_ns(tables, after))
        if not 0 < gone.length_ns < tables.session_ns - tables.heartbeat_ns:
            continue
        for rest in ended:
            inside = rest.begin_ns < gone.begin_ns <= rest.end_ns <= gone.end_ns
            if inside and not _other_cause(tables, Window(rest.begin_ns, gone.end_ns), {*names}):
                yield Detection("rebalance-on-static-bounce", -1, blamed(*names), "", "", -1, *gone)


def _left_ns(tables: Tables, life: Life) -> int:
    if tables.black_box:
        return life.asked_ns or life.ended_ns
    own = tables.intervals_by_incarnation.get(life.incarnation, ())
    return max((i.given_up_begin_ns for i in own if i.how), default=life.ended_ns)


def _back_ns(tables: Tables, life: Life) -> int:
    if tables.black_box:
        given = (g.at_ns + g.uncertainty_ns for g in tables.given if g.incarnation == life.incarnation)
        return min(given, default=0)
    own = tables.intervals_by_incarnation.get(life.incarnation, ())
    return min((i.assigned_begin_ns for i in own), default=0)


def _other_cause(tables: Tables, around: Window, names: set[str]) -> bool:
    """Whether anything but these incarnations of one member may have been a reason to rebalance."""
    times = [at_ns for _, at_ns, _ in tables.terms]
    times += [led.at_ns for led in tables.leaders]  # this includes new partitions: each gets a leader
    times += [gone.at_ns for gone in tables.gone if gone.incarnation not in names]
    for life in tables.lives.values():
        if life.incarnation not in names:
            times += [life.started_ns, life.ended_ns, *(window.begin_ns for window in life.subscribed)]
    steps = (step for step in tables.steps if step.begun_ns and not (step.members and {*step.members} <= names))
    others = any(step.in_effect.meets(around) for step in steps)
    return others or any(around.begin_ns <= at_ns <= around.end_ns for at_ns in times)


def _subscriptions(tables: Tables, until_ns: int) -> str:
    changed = (window for life in tables.lives.values() for window in life.subscribed)
    return "subscriptions" if any(window.begin_ns <= until_ns for window in changed) else ""


RULES: dict[Rule, tuple[str, ...]] = {
    unbalanced: ("unbalanced",),
    not_sticky: ("not-sticky",),
    long_pause: ("long-pause",),
    rebalance_on_static_bounce: ("rebalance-on-static-bounce",),
}
