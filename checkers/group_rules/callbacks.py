"""Rules about the callbacks by which a client tells its program what it owns: are they in order, right and in time?"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterator
from itertools import pairwise
from typing import TYPE_CHECKING

from fencepost.checkers.detections import Detection, blamed
from fencepost.checkers.tables import Tables
from fencepost.checkers.tables.commits import NOT_A_MEMBER
from fencepost.checkers.tables.rows import FOREVER, NS, Interval, Window

if TYPE_CHECKING:
    from fencepost.checkers.group_rules.rule import Rule

RETURNED_NS = NS  # within so long a callback returns after it told the client that the partition is given up


def callback_imbalance(tables: Tables) -> Iterator[Detection]:
    """``callback-imbalance``: a member is told a partition twice, or to give up what it does not have.

    * cause ``assigned twice``: assigned while its interval was open; times: the former and the new callback's begin;
    * cause ``given up twice``: a revoked or lost callback names it while no interval is open; times: that callback's.

    members: the incarnation.
    """
    for (incarnation, tp), intervals in tables.intervals_of.items():
        for before, now in pairwise(intervals):
            if before.how == "reassigned":
                times = (before.assigned_begin_ns, now.assigned_begin_ns)
                yield Detection("callback-imbalance", tp, (incarnation,), "assigned twice", "", -1, *times)
    for stray in tables.strays:
        yield Detection("callback-imbalance", stray.tp, (stray.incarnation,), "given up twice", "", -1, *stray.window)


def early_assignment(tables: Tables) -> Iterator[Detection]:
    """``early-assignment``: a partition is assigned to a member while the former one is still giving it up.

    Of two intervals of different incarnations: the later one's assigned callback began after the revoked callback of
    the other one had begun and before it returned. (When that callback had not begun yet it is ``assignment-overlap``;
    one that never returned is none.) The client is told that the partition is given up from inside of the callback, at
    its end; so it counts only

    * where a commit that the callback made was certainly answered after the assigned callback began,
    * or the callback returned more than 1 s after that, and no proven pause of its incarnation and no stall of the host
      meets the time between.

    excuse ``zombie``: the coordinator's records show the former owner gone by then. members: the former owner, the new
    one; times: from the assigned callback's begin to the revoked one's end.
    """
    for intervals in tables.intervals_by_tp.values():  # in the order of their begins
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
    """Whether the former owner's callback was certainly not through with its commits when the other one began."""
    during = Window(former.given_up_begin_ns, former.given_up_end_ns)  # what ended in it began before its end
    own = (c for c in tables.commits_of.meeting((former.incarnation, former.tp), during) if c.mode != "auto")
    return any(later.assigned_begin_ns < c.end_ns <= former.given_up_end_ns for c in own)


def _slow(tables: Tables, former: Interval, later: Interval) -> bool:
    between = Window(later.assigned_begin_ns, former.given_up_end_ns)
    life = tables.lives.get(former.incarnation)
    paused = any(pause.meets(between) for pause in life.paused) if life else False
    return between.length_ns > RETURNED_NS and not paused and not tables.host_stalled(between)


def early_generation(tables: Tables) -> Iterator[Detection]:
    """``early-assignment``, cause ``generation``: the same over all partitions of an eager group.

    An eager member gives everything up before it joins again, and nobody is assigned anything before all have joined.
    So none is assigned a partition of a generation before each member that the coordinator's record of it names is
    through with the revoked callback for its partitions of the generation before. It counts where that callback had not
    begun yet; where it had, as for a single partition.

    Which generation an interval is of is believed only where the record agrees: that of the one before was assigned
    before it was certainly written, that of the new one was not. Whose id was removed meanwhile was not waited for.

    One sighting for each such pair of callbacks without a partition in common (of one in common the rule above tells,
    or ``assignment-overlap``). tp: the least that was assigned; members: the late one, the one it was assigned to;
    times: from the assigned callback's begin to the revoked one's end.
    """
    held: dict[int, dict[str, list[Interval]]] = defaultdict(lambda: defaultdict(list))
    for i in tables.intervals if tables.protocol == "eager" else ():
        held[i.generation][i.incarnation].append(i)
    for r in tables.rounds:
        written_ns = r.end_ns - r.uncertainty_ns
        for former, theirs in held[r.generation - 1].items():
            olds = [i for i in theirs if i.how == "revoked" and 0 < i.assigned_end_ns < written_ns < i.given_up_end_ns]
            for later, its in held[r.generation].items() if olds and former in r.members else ():
                new = next((i for i in its if i.assigned_begin_ns >= written_ns), None)
                apart = not {i.tp for i in olds} & {i.tp for i in its}
                if new and apart and (old := next((i for i in olds if _still_has(tables, i, new)), None)):
                    members, times = blamed(former, later), (new.assigned_begin_ns, old.given_up_end_ns)
                    yield Detection("early-assignment", new.tp, members, "generation", "", -1, *times)


def _still_has(tables: Tables, old: Interval, new: Interval) -> bool:
    """Whether a member had certainly not given up ``old`` when ``new`` was assigned, and was in the group."""
    has = new.assigned_begin_ns < old.given_up_begin_ns or _committing(tables, old, new) or _slow(tables, old, new)
    return has and not tables.removed(old, old.given_up_end_ns)


def needless_revocation(tables: Tables) -> Iterator[Detection]:
    """``needless-revocation``: cooperative and consumer members keep what they get again; this one had to give it up.

    The interval ended by revoked, the partition's next interval is the same incarnation's, and between the begin of
    the former and the end of the later assigned callback nothing changed that explains it:

    * every round from the former one's generation to the later one's is known, none began anew, and all have the same
      members;
    * no incarnation started, ended or changed what it subscribes to, and none may have left the group;
    * the coordinator gave the partition to nobody else, and no partition was made, nor deleted and made again.

    members: the incarnation; times: from the revoked callback's begin to the next assigned one's end; excuse: a
    declared act before that end.
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
    """Whether the rounds show that the members stayed the same from the one interval to the other."""
    rounds = tables.rounds_from(former.generation, later.generation, later.assigned_end_ns or FOREVER)
    known = {former.generation, later.generation} <= {r.generation for r in rounds}
    anew = any(now.restarted or now.generation <= before.generation for before, now in pairwise(rounds))
    return known and not anew and len({frozenset(r.members) for r in rounds}) == 1 and bool(rounds[0].members)


def _explained(tables: Tables, former: Interval, between: Window) -> bool:
    """Whether a member, an owner or the partitions may have changed in a time."""
    given = tables.given_of.meeting(former.tp, between)
    others = any(g.member_id and g.incarnation != former.incarnation for g in given)
    return others or any(True for _ in tables.regrouped.meeting(None, between))


def lost_reported_as_revoked(tables: Tables) -> Iterator[Detection]:
    """``lost-reported-as-revoked``: a member knew that it was fenced, and its program was told revoked instead of lost.

    It had the answer to a commit of an open interval of the partition, refused as by a coordinator that does not know
    the member (UNKNOWN_MEMBER_ID, FENCED_INSTANCE_ID), before the callback began that ended the interval, by revoked.
    (What a broker answered to other requests is logged, but not when the client heard it; ILLEGAL_GENERATION is also
    the answer to a commit that was overtaken by a round in which the member kept the partition.) What an incarnation
    that closed gave up with nothing assigned to it afterwards is none: it may have given that up by itself.

    members: the incarnation; cause: the error; times: the answer, and the callback's begin.
    """
    mine = tables.intervals_by_incarnation.items()
    last_assigned_ns = {incarnation: max(i.assigned_begin_ns for i in intervals) for incarnation, intervals in mine}
    for (incarnation, tp), intervals in tables.intervals_of.items():
        life = tables.lives.get(incarnation)
        until_ns = last_assigned_ns[incarnation] if life is None or life.how == "closed" else FOREVER
        for i in (i for i in intervals if i.how == "revoked" and i.given_up_begin_ns < until_ns):
            those = tables.commits_of.meeting((incarnation, tp), i.certain)
            fenced = (c for c in those if c.error in NOT_A_MEMBER and c.end_ns)
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
