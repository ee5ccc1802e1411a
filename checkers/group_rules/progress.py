"""Rules about getting on: partitions that nobody owns, groups that never rest, and members that ended by themselves."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

from fencepost.checkers.detections import Detection, blamed, member_of
from fencepost.checkers.tables import Tables
from fencepost.checkers.tables.rows import FOREVER, NS, Life, Step, Window
from fencepost.history import NAME_TAKEN
from fencepost.model.impact import Impact

if TYPE_CHECKING:
    from fencepost.checkers.group_rules.rule import Rule

WITHIN_S = 30.0  # unless progress is promised within another time
STABLE_NS = 5 * NS  # so long without a new round, and the group was stable


def _within_ns(tables: Tables) -> int:
    """The bound of the promise of progress; of several, the longest."""
    promised = [*tables.promised("progress"), *tables.promised("outside")]
    bounds = [p.get("within_s", WITHIN_S) for p in promised]
    return round(max((float(b) for b in bounds if isinstance(b, int | float)), default=WITHIN_S) * NS)


def orphaned_partition(tables: Tables) -> Iterator[Detection]:
    """``orphaned-partition``: in the quiet window the coordinator certainly left a partition to nobody for too long.

    That is longer than progress is promised within (else 30 s), between one of its records that took the partition
    away (or the window's begin) and the next that gave it to somebody (or the window's end), while nobody may have
    owned it by its own callbacks, one and the same member lived and was not paused, and the host never stood still.
    None where no member was given anything in the whole run, and for a partition that was made after the first record
    of an assignment: clients may not know of it.

    excuse ``no leader``: the partition had none at some time between. times: that time.
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
    """The part of a time before, or behind, the intervals in which somebody may have owned a partition."""
    for owned in [i.possible for i in tables.intervals_by_tp.meeting(tp, window)]:
        if owned.meets(window) and owned.begin_ns <= window.begin_ns:
            window = Window(owned.end_ns, window.end_ns)
        elif owned.meets(window):
            window = Window(window.begin_ns, owned.begin_ns)
    return window


def somebody(tables: Tables, window: Window) -> bool:
    """Whether a member could have had a partition all the time."""
    then = tables.alive.meeting(None, Window(window.begin_ns, window.begin_ns))
    alive = (life for life in then if life.alive.end_ns >= window.end_ns)
    fit = any(not any(pause.meets(window) for pause in life.paused) for life in alive)
    return fit and not tables.host_stalled(window)


def never_stable(tables: Tables) -> Iterator[Detection]:
    """``never-stable``: in the quiet window one round follows another, for longer than progress is promised within.

    From the last moment that a member started or ended, or that the coordinator let go of one whose process had ended
    (or of one that is not known), to when the first member leaves because the window is over, there certainly were
    never 5 s without a new round, and the host did not stand still. members: those of the last round; times: that time.
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
    """``dead-member``: a member ended by itself, and no fault of the plan had ended it (``Impact.ENDS``).

    Nor given its name to another one (``Impact.DUPLICATES``) for whose sake the brokers refused one of both meanwhile.
    Nor a life before it, where its client gave up: a static member that comes back before its dead life's session is
    over is refused (KIP-848), and that is the fault's.

    Its life ended by ``crashed``: the harness neither asked it to end nor killed it (the kernel may have, for want of
    memory), and after the warm-up: where a group never worked there was no progress to lose. members: the incarnation;
    cause: the error for which its client gave up, else the signal that ended it, if any; times: its last sign and its
    end.
    """
    worked_ns = tables.phases.get("warm-up", Window(0, 0)).end_ns or FOREVER
    ended_ns = _first_ends(tables.steps)
    for life in tables.lives.values():
        alone = life.how == "crashed" and life.ended_ns > worked_ns
        names = [life.incarnation, *([member_of(life.incarnation)] if life.fatal else [])]
        free = all(ended_ns.get(name, FOREVER) > life.ended_ns for name in names)
        if alone and free and not _had_a_namesake(tables, life):
            times = (life.last_sign_ns or life.started_ns, life.ended_ns)
            yield Detection("dead-member", -1, (life.incarnation,), life.fatal or life.signal, "", -1, *times)


def _had_a_namesake(tables: Tables, life: Life) -> bool:
    """Whether its client was refused for its name while a step had made two processes share it."""
    if not life.instance_id or life.fatal not in NAME_TAKEN:
        return False
    for step in tables.steps:
        shared = [other.instance_id for name in step.members if (other := tables.lives.get(name))]
        during = 0 < step.begun_ns <= life.ended_ns <= (step.healed_ns or FOREVER)
        if Impact.DUPLICATES in step.impact and life.instance_id in shared and during:
            return True
    return False


def _first_ends(steps: Iterable[Step]) -> Mapping[str, int]:
    """When a step first ended each incarnation, and each member in any life."""
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
}
