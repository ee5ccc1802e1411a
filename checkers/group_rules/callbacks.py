"""Rules about the callbacks of a client (assigned, revoked, lost): their order, correctness and timing."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterator
from itertools import pairwise
from typing import TYPE_CHECKING

from fencepost.checkers.detections import Detection, blamed
from fencepost.checkers.tables import Tables
from fencepost.checkers.tables.commits import NOT_A_MEMBER
from fencepost.checkers.tables.rows import FOREVER, NS, Interval, UnmatchedRevocation, Window

if TYPE_CHECKING:
    from fencepost.checkers.group_rules.rule import Rule

CLOSING_NS = 5 * NS  # the longest time from a member's last callback to the end of its close
RETURNED_NS = NS  # the longest time from the release of a partition inside a callback to the callback's return


def callback_imbalance(tables: Tables) -> Iterator[Detection]:
    """``callback-imbalance``: a partition is assigned twice in a row, or is revoked or lost without being owned.

    * cause ``assigned twice``: an assigned callback named the partition while its interval was open; times: the starts
      of the former and the new callback;
    * cause ``given up twice``: a revoked or lost callback named the partition while no interval was open; times: the
      start and end of that callback.

    excuse ``closing``: the member closed its consumer within 5 s after it was given up twice, and was assigned nothing
    in between. kafka-python 3.0 revokes once for a rebalance that others began, and again because it closes. members:
    the incarnation.
    """
    for (incarnation, tp), intervals in tables.intervals_of.items():
        for before, now in pairwise(intervals):
            if before.how == "reassigned":
                times = (before.assigned_begin_ns, now.assigned_begin_ns)
                yield Detection("callback-imbalance", tp, (incarnation,), "assigned twice", "", -1, *times)
    for stray in tables.strays:
        excuse = "closing" if _closing(tables, stray) else ""
        members, times = (stray.incarnation,), stray.window
        yield Detection("callback-imbalance", stray.tp, members, "given up twice", excuse, -1, *times)


def _closing(tables: Tables, stray: UnmatchedRevocation) -> bool:
    """Whether a member's last callback came while it closed its consumer."""
    life = tables.lives.get(stray.incarnation)
    last = Window(stray.window.end_ns, life.closed_ns if life else 0)
    owned = (one for (who, _), own in tables.intervals_of.items() if who == stray.incarnation for one in own)
    return 0 <= last.length_ns <= CLOSING_NS and not any(one.assigned_begin_ns > last.begin_ns for one in owned)


def early_assignment(tables: Tables) -> Iterator[Detection]:
    """``early-assignment``: a partition is assigned to a member while the former owner is still releasing it.

    Two intervals have different incarnations, and the later assigned callback began after the former owner's revoked
    callback had begun and before it returned. (If the revoked callback had not begun, the kind is
    ``assignment-overlap``. A revoked callback that never returned does not count.) The client releases the partition
    inside the callback, at its end. So a pair counts only if

    * a commit of the revoked callback was certainly answered after the assigned callback began,
    * or the revoked callback returned more than 1 s after that start, and no proven pause of its incarnation and no
      stall of the host meets the time in between.

    excuse ``zombie``: the coordinator's records show that the former owner had been removed by then. members: the
    former owner, the new owner; times: from the start of the assigned callback to the end of the revoked callback.
    """
    for intervals in tables.intervals_by_tp.values():  # in the order of their starts
        for former in (i for i in intervals if i.how == "revoked"):
            first = bisect_right(intervals, former.given_up_begin_ns, key=_assigned_ns)
            last = bisect_left(intervals, former.given_up_end_ns, key=_assigned_ns)
            for later in (i for i in intervals[first:last] if i.incarnation != former.incarnation):
                if _committing(tables, former, later) or _slow(tables, former, later):
                    excuse = "zombie" if tables.removed(former, former.given_up_end_ns) else ""
                    members = blamed(former.incarnation, later.incarnation)
                    times = (later.assigned_begin_ns, former.given_up_end_ns)
                    yield Detection("early-assignment", later.tp, members, "", excuse, -1, *times)


def _assigned_ns(interval: Interval) -> int:
    return interval.assigned_begin_ns


def _committing(tables: Tables, former: Interval, later: Interval) -> bool:
    """Whether a commit of the former owner's revoked callback certainly ended after the assigned callback began."""
    during = Window(former.given_up_begin_ns, former.given_up_end_ns)  # a commit that ended in it began before its end
    own = (c for c in tables.commits_of.meeting((former.incarnation, former.tp), during) if c.mode != "auto")
    return any(later.assigned_begin_ns < c.end_ns <= former.given_up_end_ns for c in own)


def _slow(tables: Tables, former: Interval, later: Interval) -> bool:
    """Whether the revoked callback returned late, and neither a pause nor a stall of the host explains it."""
    between = Window(later.assigned_begin_ns, former.given_up_end_ns)
    life = tables.lives.get(former.incarnation)
    paused = any(pause.meets(between) for pause in life.paused) if life else False
    return between.length_ns > RETURNED_NS and not paused and not tables.host_stalled(between)


def early_generation(tables: Tables) -> Iterator[Detection]:
    """``early-assignment``, cause ``generation``: the same across all partitions of an eager group.

    An eager member releases all its partitions before it rejoins, and the group assigns partitions only after all
    members have joined. So no assigned callback of a generation begins before every member in the coordinator's record
    of that generation has finished the revoked callback of the previous generation. A pair of callbacks counts if the
    revoked callback had not begun when the assigned callback began; if it had begun, the conditions for a single
    partition apply.

    The generation of an interval is trusted only if the coordinator's record confirms it: partitions of the previous
    generation were certainly assigned before the record was written, partitions of the new one certainly after it. A
    member whose id was removed in between does not count: the coordinator did not wait for it.

    One detection for each such pair of callbacks without a common partition. (Common partitions are covered by the rule
    above or by ``assignment-overlap``.) tp: the smallest assigned partition; members: the late member, the new owner;
    times: from the start of the assigned callback to the end of the revoked callback.
    """
    held: dict[int, dict[str, list[Interval]]] = defaultdict(lambda: defaultdict(list))
    for i in tables.intervals if tables.protocol == "eager" else ():
        held[i.generation][i.incarnation].append(i)
    for r in tables.rounds:
        written_ns, certain_ns = Window.around(r.end_ns, r.uncertainty_ns)
        for former, prior in held[r.generation - 1].items():
            olds = [i for i in prior if i.how == "revoked" and 0 < i.assigned_end_ns < written_ns < i.given_up_end_ns]
            for later, current in held[r.generation].items() if olds and former in r.members else ():
                new = next((i for i in current if i.assigned_begin_ns >= certain_ns), None)
                disjoint = not {i.tp for i in olds} & {i.tp for i in current}
                if new and disjoint and (old := next((i for i in olds if _still_has(tables, i, new)), None)):
                    members, times = blamed(former, later), (new.assigned_begin_ns, old.given_up_end_ns)
                    yield Detection("early-assignment", new.tp, members, "generation", "", -1, *times)


def _still_has(tables: Tables, old: Interval, new: Interval) -> bool:
    """Whether a member had certainly not released ``old`` when ``new`` was assigned, and was still in the group."""
    has = new.assigned_begin_ns < old.given_up_begin_ns or _committing(tables, old, new) or _slow(tables, old, new)
    return has and not tables.removed(old, old.given_up_end_ns)


def needless_revocation(tables: Tables) -> Iterator[Detection]:
    """``needless-revocation``: a partition was revoked from a member and assigned to the same member again.

    Cooperative and consumer members keep such a partition. The interval ended by revoked, the next interval of the
    partition belongs to the same incarnation, and between the start of the former assigned callback and the end of the
    later one nothing changed that explains it:

    * every rebalance from the generation of the former interval to the generation of the later one is known, the
      generations did not restart, and all rebalances have the same members;
    * no incarnation started, ended or changed its subscription, and none may have left the group;
    * the coordinator assigned the partition to no other member, and no partition was created or recreated.

    members: the incarnation; times: from the start of the revoked callback to the end of the next assigned callback;
    excuse: a declared act before that end.
    """
    if tables.protocol not in ("cooperative", "consumer"):
        return
    for tp, intervals in tables.intervals_by_tp.items():
        for former, later in pairwise(intervals):
            between = Window(former.assigned_begin_ns, later.assigned_end_ns or FOREVER)
            same = former.incarnation == later.incarnation and former.how == "revoked"
            if same and not _explained(tables, former, between) and _same_members(tables, former, later):
                times = (former.given_up_begin_ns, later.assigned_end_ns)
                acts = (act for act in tables.acts_on(tp) if act.begin_ns <= between.end_ns)
                excuse = next((f"declared act: {act.what}" for act in acts), "")
                yield Detection("needless-revocation", tp, (former.incarnation,), "", excuse, -1, *times)


def _same_members(tables: Tables, former: Interval, later: Interval) -> bool:
    """Whether the rebalances from one interval to the other show the same members, with no gap and no restart."""
    rounds = tables.rounds_from(former.generation, later.generation, later.assigned_end_ns or FOREVER)
    known = {former.generation, later.generation} <= {r.generation for r in rounds}
    restarted = any(now.restarted or now.generation <= before.generation for before, now in pairwise(rounds))
    return known and not restarted and len({frozenset(r.members) for r in rounds}) == 1 and bool(rounds[0].members)


def _explained(tables: Tables, former: Interval, between: Window) -> bool:
    """Whether an owner, a member, a subscription or the set of partitions may have changed in ``between``."""
    given = tables.given_of.meeting(former.tp, between)
    others = any(g.member_id and g.incarnation != former.incarnation for g in given)
    return others or any(True for _ in tables.regrouped.meeting(None, between))


def lost_reported_as_revoked(tables: Tables) -> Iterator[Detection]:
    """``lost-reported-as-revoked``: a client knew that it was fenced, and called revoked instead of lost.

    A commit in an open interval of the partition was answered with UNKNOWN_MEMBER_ID or FENCED_INSTANCE_ID: the
    coordinator did not know the member any more. The client received this answer before the callback began that ended
    the interval, and that callback was revoked. (The answers to other requests are in the brokers' logs, but the time
    when the client received them is not. ILLEGAL_GENERATION does not count: it also answers a commit that was overtaken
    by a rebalance in which the member kept the partition.) If an incarnation closed, the intervals that ended after its
    last assignment do not count: it may have released them by itself.

    members: the incarnation; cause: the error; times: the answer, and the start of the callback.
    """
    of_incarnation = tables.intervals_by_incarnation.items()
    last_assigned_ns = {name: max(i.assigned_begin_ns for i in intervals) for name, intervals in of_incarnation}
    for (incarnation, tp), intervals in tables.intervals_of.items():
        life = tables.lives.get(incarnation)
        until_ns = last_assigned_ns[incarnation] if life is None or life.how == "closed" else FOREVER
        for i in (i for i in intervals if i.how == "revoked" and i.given_up_begin_ns < until_ns):
            commits = tables.commits_of.meeting((incarnation, tp), i.certain)
            fenced = (c for c in commits if c.error in NOT_A_MEMBER and c.end_ns)
            during = [c for c in fenced if i.certain.begin_ns < c.begin_ns and c.end_ns < i.given_up_begin_ns]
            for c in during[:1]:
                times = (c.end_ns, i.given_up_begin_ns)
                yield Detection("lost-reported-as-revoked", tp, (incarnation,), c.error, "", -1, *times)


RULES: dict[Rule, tuple[str, ...]] = {
    callback_imbalance: ("callback-imbalance",),
    early_assignment: ("early-assignment",),
    early_generation: ("early-assignment",),
    needless_revocation: ("needless-revocation",),
    lost_reported_as_revoked: ("lost-reported-as-revoked",),
}
