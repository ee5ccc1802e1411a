"""Rules about progress: partitions without an owner, groups that are never stable, members that ended by themselves."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

from fencepost.checkers.detections import Detection, blamed, member_of
from fencepost.checkers.tables import Tables
from fencepost.checkers.tables.rows import FOREVER, NS, Life, PerformedStep, Window
from fencepost.history import NAME_TAKEN
from fencepost.model.impact import ASKED_S, Impact

if TYPE_CHECKING:
    from fencepost.checkers.group_rules.rule import Rule

WITHIN_S = 30.0  # the bound if no promise sets another one
STABLE_NS = 5 * NS  # a group is stable after a time of this length without a rebalance


def _within_ns(tables: Tables) -> int:
    return round(_bound_s(tables, "within_s", WITHIN_S) * NS)


def _bound_s(tables: Tables, name: str, default: float) -> float:
    """A bound of the promise of progress; of several, the longest."""
    promised = [*tables.promised("progress"), *tables.promised("outside")]
    bounds = [p.get(name, default) for p in promised]
    return max((float(b) for b in bounds if isinstance(b, int | float)), default=default)


def orphaned_partition(tables: Tables) -> Iterator[Detection]:
    """``orphaned-partition``: in the quiet window, a partition certainly had no owner for too long.

    By the coordinator's log: from a record that revoked the partition (or the start of the window) to the next record
    that assigned it (or the end of the window). The time is longer than the bound of the promise of progress (else
    30 s); by their callbacks no member may have owned the partition; some member lived and was not paused all that
    time; and the host never stood still. Two cases do not count: a run in which no partition was ever assigned, and a
    partition that was created after the first assignment record, because clients may not know it.

    excuse ``no leader``: the partition had no leader at some time in between. times: that time.
    """
    if not tables.given:
        return
    quiet, bound_ns = tables.calm, _within_ns(tables)
    first_ns = min(g.at_ns for g in tables.given)
    made_ns = {tp: at_ns for at_ns, _, tp, _ in reversed(tables.leaders)}
    for tp in tables.partitions:
        rows = tables.given_of.get(tp, [])
        begins = [(0, ""), *((g.at_ns + g.uncertainty_ns, g.member_id) for g in rows)]
        ends = [*(g.at_ns - g.uncertainty_ns for g in rows), quiet.end_ns]
        if made_ns.get(tp, 0) >= first_ns:
            continue
        for (from_ns, owner), to_ns in zip(begins, ends, strict=True):
            alone = Window(from_ns, to_ns).common(quiet)
            if not owner and alone.length_ns > bound_ns:  # as a rule not
                alone = _unowned(tables, tp, alone)
            if not owner and alone.length_ns > bound_ns and somebody(tables, alone):
                excuse = "no leader" if tables.leaderless(tp, *alone) else ""
                yield Detection("orphaned-partition", tp, (), "", excuse, -1, *alone)


def _unowned(tables: Tables, tp: int, window: Window) -> Window:
    """The part of a window before, or after, the intervals in which a member may have owned a partition."""
    for owned in [i.possible for i in tables.intervals_by_tp.meeting(tp, window)]:
        if owned.meets(window) and owned.begin_ns <= window.begin_ns:
            window = Window(owned.end_ns, window.end_ns)
        elif owned.meets(window):
            window = Window(window.begin_ns, owned.begin_ns)
    return window


def somebody(tables: Tables, window: Window) -> bool:
    """Whether one member could have owned a partition all the time: it lived, was not paused, and the host ran."""
    then = tables.alive.meeting(None, Window(window.begin_ns, window.begin_ns))
    alive = (life for life in then if life.alive.end_ns >= window.end_ns)
    fit = any(not any(pause.meets(window) for pause in life.paused) for life in alive)
    return fit and not tables.host_stalled(window)


def never_stable(tables: Tables) -> Iterator[Detection]:
    """``never-stable``: in the quiet window, rebalances follow each other for longer than the bound of progress.

    The time begins when the last member started or ended, or when the coordinator removed the last member whose process
    had ended or is unknown. It ends when the first member leaves because the window is over. In that time there
    certainly never were 5 s without a new rebalance, and the host did not stand still. members: the members of the last
    rebalance; times: that time; count: the number of rebalances.
    """
    quiet = tables.calm
    if not quiet.end_ns:
        return
    starts = [life.started_ns for life in tables.lives.values()]
    departures = [g.at_ns + g.uncertainty_ns for g in tables.gone if _ended(tables, g.incarnation, quiet.end_ns)]
    ends = [life.ended_ns for life in tables.lives.values()]
    since = max([quiet.begin_ns, *(ns for ns in (*starts, *departures, *ends) if ns < quiet.end_ns)])
    window = Window(since, quiet.end_ns)
    inside = [r for r in tables.rounds if window.begin_ns <= r.end_ns <= window.end_ns]
    early = [since, *(r.end_ns - r.uncertainty_ns for r in inside)]
    late = [*(r.end_ns + r.uncertainty_ns for r in inside), window.end_ns]
    restless = all(to_ns - from_ns < STABLE_NS for from_ns, to_ns in zip(early, late, strict=True))
    if inside and window.length_ns > _within_ns(tables) and restless and not tables.host_stalled(window):
        yield Detection("never-stable", -1, blamed(*inside[-1].members), "", "", -1, *window, len(inside))


def _ended(tables: Tables, incarnation: str, by_ns: int) -> bool:
    life = tables.lives.get(incarnation)
    return life is None or 0 < life.ended_ns <= by_ns


def dead_member(tables: Tables) -> Iterator[Detection]:
    """``dead-member``: a member ended by itself, and no fault of the plan explains it.

    Its life ended by ``crashed``: the harness neither asked it to end nor killed it (the kernel may have killed it
    because memory was short). It ended after the warm-up: a group that never worked had no progress to lose. A fault
    explains the end if

    * it ended this incarnation (``Impact.ENDS``);
    * it had ended the member before, in any life, and the client failed with a fatal error: the brokers refuse a static
      member that returns before the session of its former life is over (KIP-848);
    * it gave the member's name to a second process (``Impact.DUPLICATES``), and the brokers refused the member because
      of its name during the fault.

    members: the incarnation; cause: the fatal error of its client, else the signal that ended it, if any; times: its
    last sign of life and its end.
    """
    worked_ns = tables.phases.get("warm-up", Window(0, 0)).end_ns or FOREVER
    ended_ns = _first_ends(tables.steps)
    for life in tables.lives.values():
        alone = life.how == "crashed" and life.ended_ns > worked_ns
        names = [life.incarnation, *([member_of(life.incarnation)] if life.fatal else [])]
        unexplained = all(ended_ns.get(name, FOREVER) > life.ended_ns for name in names)
        if alone and unexplained and not _had_a_namesake(tables, life):
            times = (life.last_sign_ns or life.started_ns, life.ended_ns)
            yield Detection("dead-member", -1, (life.incarnation,), life.fatal or life.signal, "", -1, *times)


def hung_shutdown(tables: Tables) -> Iterator[Detection]:
    """``hung-shutdown``: a member was asked to end (SIGTERM), and its process lived on for longer than the bound.

    The bound is ``ends_within_s`` of the promise of progress, else 15 s. It does not count if the process was stopped
    (SIGSTOP), or if the host stood still, before the bound was over; nor if a member that reports itself never reported
    anything: it may not have begun to handle signals.

    members: the incarnation; cause: ``after its client was closed``, if that had returned; times: from the request to
    the end of the process, whether it ended by itself or was killed. excuse ``another fault``: before the bound
    was over, a step was in effect that hit brokers, this member in any of its lives, or the whole cluster, and does not
    just ask members to end (``Impact.ASKS``); or such a step had ended less than the bound before.
    """
    bound_ns = round(_bound_s(tables, "ends_within_s", ASKED_S) * NS)
    for life in tables.lives.values():
        hung = Window(life.asked_ns, life.ended_ns) if life.asked_ns and life.ended_ns else Window(0, 0)
        first = Window(life.asked_ns, life.asked_ns + bound_ns)
        frozen = any(pause.meets(first) for pause in life.paused)
        began = tables.black_box or life.last_sign_ns
        if hung.length_ns > bound_ns and began and not frozen and not tables.host_stalled(first):
            closed = 0 < life.closed_ns <= life.ended_ns
            excuse = "another fault" if _disturbed(tables, life, first, bound_ns) else ""
            cause = "after its client was closed" if closed else ""
            yield Detection("hung-shutdown", -1, (life.incarnation,), cause, excuse, -1, *hung)


def _disturbed(tables: Tables, life: Life, window: Window, after_ns: int) -> bool:
    """Whether a step may have delayed the end of a member in a window, or ended at most ``after_ns`` before it."""
    own, since = member_of(life.incarnation), Window(window.begin_ns - after_ns, window.end_ns)
    for step in tables.steps:
        hit = not step.members or own in map(member_of, step.members)  # a step on brokers names no members
        asks = Impact.ASKS in step.impact and not step.brokers
        if step.begun_ns and hit and not asks and step.in_effect.meets(since):
            return True
    return False


def _had_a_namesake(tables: Tables, life: Life) -> bool:
    """Whether the brokers refused a client because of its name while a step had made two processes share that name."""
    if not life.instance_id or life.fatal not in NAME_TAKEN:
        return False
    for step in tables.steps:
        shared = [other.instance_id for name in step.members if (other := tables.lives.get(name))]
        during = 0 < step.begun_ns <= life.ended_ns <= (step.healed_ns or FOREVER)
        if Impact.DUPLICATES in step.impact and life.instance_id in shared and during:
            return True
    return False


def _first_ends(steps: Iterable[PerformedStep]) -> Mapping[str, int]:
    """The first time at which a step ended each incarnation, and each member in any of its incarnations."""
    found: dict[str, int] = {}
    for step in steps:
        for incarnation in step.members if Impact.ENDS in step.impact else ():
            for name in (incarnation, member_of(incarnation)):
                found[name] = min(step.begun_ns, found.get(name, FOREVER))
    return found


RULES: dict[Rule, tuple[str, ...]] = {
    orphaned_partition: ("orphaned-partition",),
    never_stable: ("never-stable",),
    dead_member: ("dead-member",),
    hung_shutdown: ("hung-shutdown",),
}
