"""Rules about what rebalances deal out, by the coordinator's log, and for how long they leave partitions to nobody, by
callbacks. Asked only where it is promised: others chose an assignor of which they know that it deals otherwise.
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
    """``unbalanced``: at rest, a member of the last round has at least two partitions more than another one.

    One sighting for each such rest. members: who has most, who has least; cause: the two numbers; times: the rest.
    excuse ``subscriptions``: a member had changed what it subscribes to by then.
    """
    for rest in tables.rests if tables.promised(PROMISE) else ():
        counts = Counter({**dict.fromkeys(rest.members, 0), **Counter(rest.owners.values())})
        ranked = sorted(counts, key=lambda name: (-counts[name], name))
        if len(ranked) > 1 and counts[ranked[0]] - counts[ranked[-1]] > 1:
            cause = f"{counts[ranked[0]]} and {counts[ranked[-1]]}"
            excuse = _subscriptions(tables, rest.window.end_ns)
            yield Detection("unbalanced", -1, (ranked[0], ranked[-1]), cause, excuse, -1, *rest.window)


def not_sticky(tables: Tables) -> Iterator[Detection]:
    """``not-sticky``: more partitions were taken from members that stayed than their new shares ask for.

    Of two rests after each other, if all rounds between them have the same members: those of the first one that are
    among them stay. Their new shares are even, the greater ones for who had most; what each had beyond its share must
    be taken from it, and nothing else.

    members: of whom partitions were taken; cause: how many, and how many had to be; times: from the end of the first
    rest to the begin of the other. excuse as of ``unbalanced``.
    """
    for before, after in pairwise(tables.rests) if tables.promised(PROMISE) else ():
        between = tables.rounds[before.number + 1 : after.number + 1]
        if not after.members or any(frozenset(tables.firsts(one.members)) != after.members for one in between):
            continue
        had = Counter(owner for owner in before.owners.values() if owner in after.members)
        taken = [o for tp, o in before.owners.items() if o in after.members and after.owners.get(tp) != o]
        share, greater = divmod(len(after.owners), len(after.members))
        must = sum(max(0, count - share - (n < greater)) for n, (_, count) in enumerate(had.most_common()))
        if len(taken) > must:
            cause, excuse = f"{len(taken)} instead of {must}", _subscriptions(tables, after.window.begin_ns)
            times = (before.window.end_ns, after.window.begin_ns)
            yield Detection("not-sticky", -1, tuple(sorted({*taken})), cause, excuse, -1, *times)


def long_pause(tables: Tables) -> Iterator[Detection]:
    """``long-pause``: between two owners a partition certainly had none for longer than is promised.

    By the members' callbacks: from when all that may have owned it had given it up, to when the next one may have been
    assigned it. Of black boxes by the coordinator's log: from when it was certainly taken from its owner to when it may
    have been given to the next one; in the eager protocol, whose members give up everything before they join, also from
    when a broker certainly had the owner's first request to join a generation, to when that may have begun. (Who dies
    or stands still has its partitions, for the coordinator.) Only until the first member leaves because the run is
    over. One sighting for each pause.

    members: who gave it up last, who was assigned it next; excuse ``nobody could``: no member lived and could run all
    the time, or the host stood still; times: the pause.
    """
    bounds = [p.get("pause_within_s") for p in tables.promised(PROMISE)]
    bound_ns = round(min((b for b in bounds if isinstance(b, int | float) and b > 0), default=0) * NS)
    pauses = (*_by_coordinator(tables), *_joining(tables)) if tables.black_box else _by_callbacks(tables)
    for tp, pause, former, later in pauses if bound_ns else ():
        if pause.length_ns > bound_ns and pause.end_ns < tables.closing_ns:
            excuse = "" if somebody(tables, pause) else "nobody could"
            yield Detection("long-pause", tp, blamed(former, later), "", excuse, -1, *pause)


Pause = tuple[int, Window, str, str]  # partition, when, who gave it up last, who was given it next


def _by_callbacks(tables: Tables) -> Iterator[Pause]:
    """By callbacks."""
    for tp, intervals in tables.intervals_by_tp.items():  # in the order of their begins
        last: Interval | None = None
        for interval in intervals:
            if last:
                pause = Window(last.possible.end_ns, interval.possible.begin_ns)
                yield tp, pause, last.incarnation, interval.incarnation
            last = max(last or interval, interval, key=lambda i: i.possible.end_ns)


def _by_coordinator(tables: Tables) -> Iterator[Pause]:
    """By the coordinator's log, in which the partition was nobody's."""
    for tp, rows in tables.given_of.items():
        for former, taken, given in zip(rows, rows[1:], rows[2:], strict=False):
            if not taken.member_id:
                pause = Window(taken.at_ns + taken.uncertainty_ns, given.at_ns - given.uncertainty_ns)
                yield tp, pause, former.incarnation, given.incarnation


def _joining(tables: Tables) -> Iterator[Pause]:
    """By requests to join a generation, until its record."""
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
    """``rebalance-on-static-bounce``: a static member is soon back under its name, and the group rebalanced (KIP-345).

    A life of a static id began to give up its partitions (else: ended) while the group rested, and the next life of
    that id was assigned some, sooner after that than the session time-out less a heartbeat; between the two the rest
    was over, as a round began. Not where anything else may be why: since the rest began until then another member
    started, ended, subscribed anew or was gone, a new coordinator took over, a partition had another leader or was
    made, or a step that is not about that member alone was in effect. A black box began to give up when it was asked to
    end, else ended, and was assigned what the coordinator gave it.

    members: the earlier life and the later one; times: from the give-up to the assignment.
    """
    ended = [rest.window for rest in tables.rests if rest.number + 1 < len(tables.rounds)]  # as another round began
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
    """Whether something else than these lives of one member may have been a reason to rebalance."""
    moments = [at_ns for _, at_ns, _ in tables.terms]
    moments += [led.at_ns for led in tables.leaders]  # a partition that is made has one, too
    moments += [gone.at_ns for gone in tables.gone if gone.incarnation not in names]
    for life in tables.lives.values():
        if life.incarnation not in names:
            moments += [life.started_ns, life.ended_ns, *(window.begin_ns for window in life.subscribed)]
    steps = (step for step in tables.steps if step.begun_ns and not (step.members and {*step.members} <= names))
    others = any(step.in_effect.meets(around) for step in steps)
    return others or any(around.begin_ns <= at_ns <= around.end_ns for at_ns in moments)


def _subscriptions(tables: Tables, until_ns: int) -> str:
    changed = (window for life in tables.lives.values() for window in life.subscribed)
    return "subscriptions" if any(window.begin_ns <= until_ns for window in changed) else ""


RULES: dict[Rule, tuple[str, ...]] = {
    unbalanced: ("unbalanced",),
    not_sticky: ("not-sticky",),
    long_pause: ("long-pause",),
    rebalance_on_static_bounce: ("rebalance-on-static-bounce",),
}
