"""Whether the expected effect was caused by this step and not by another.

An effect counts for a step only if it certainly began after the step began, and

* before the step had *settled*: a session time-out and ``SETTLING_NS`` after it was over (healed; begun, where nothing
  heals). By then the coordinator has evicted the members that were cut off, and they have noticed it and rejoined;
* before the members began to leave because the drain had ended;
* before another step began that may also have caused it: an effect in doubt counts for the later step.

Steps may overlap, so which steps are such *rivals* depends on the effect. Any step may make the group rebalance. Only a
step that hits no member may move a coordinator. A member may be removed by a step that hits this member, and also by a
step that hits no member once the first step is over (until then the effect counts for the first step).

For example, the session time-out is 45 s, step A pauses member 1 from 10 s to 60 s, and step B kills member 2 at 70 s.
A new generation at 30 s counts for A. One at 80 s counts for B, because B may have caused it. If member 1 leaves the
coordinator's records at 80 s, that counts for A: A settles only at 110 s (60 + 45 + 5), and B does not hit member 1.

If a step hits members and overlaps with rivals, also with earlier ones that are still in effect, it has reached
``rebalanced`` only if one of its own members left the group's records, which makes a group rebalance.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable

from fencepost.checkers.tables import Tables
from fencepost.checkers.tables.rows import FOREVER, NS, MemberRemoval, PerformedStep, Window
from fencepost.model.settings import DEFAULT_MS, SESSION

SETTLING_NS = 5 * NS  # for heartbeats, finding the coordinator and rejoining


def reached(tables: Tables, step: PerformedStep) -> bool:
    """Whether the step had its expected effect; an unknown expectation is never reached.

    ``fenced``: every member that it hit lost a partition, or left the coordinator's records. ``rebalanced``: a new
    generation or epoch began (without the coordinator's records: an assigned callback). ``coordinator_moved``: the
    offsets log continued in another term.
    """
    if not step.begun_ns:
        return False
    if step.expect == "fenced":
        return bool(step.members) and all(_fenced(tables, step, name) for name in step.members)
    if step.expect == "rebalanced":
        return _rebalanced(tables, step)
    return step.expect == "coordinator_moved" and _coordinator_moved(tables, step)


def _over_ns(step: PerformedStep) -> int:
    return (step.healed_ns or FOREVER) if step.heals else step.begun_ns


def _own_time(tables: Tables, step: PerformedStep, rival: Callable[[PerformedStep], bool]) -> Window:
    """The window in which an effect must begin to count for the step; later rivals shorten it."""
    config = (tables.asked.get("group") or {}).get("config") or {}
    session_ns = int(config.get(SESSION, DEFAULT_MS[SESSION])) * 1_000_000
    later = (s.begun_ns for s in tables.steps if s.begun_ns > step.begun_ns and rival(s))
    settled_ns = min(FOREVER, _over_ns(step) + session_ns + SETTLING_NS)
    return Window(step.begun_ns, min(settled_ns, tables.closing_ns, *later))


def _inside(window: Window, at_ns: int, uncertainty_ns: int = 0) -> bool:
    return window.begin_ns <= at_ns - uncertainty_ns and at_ns + uncertainty_ns < window.end_ns


def _rebalanced(tables: Tables, step: PerformedStep) -> bool:
    window = _own_time(tables, step, lambda other: True)
    earlier = (_over_ns(s) for s in tables.steps if 0 < s.begun_ns < step.begun_ns)
    shared_ns = max(earlier, default=0) if step.members else 0
    near = slice(*(bisect_left(tables.begins, (ns, 0)) for ns in window))
    alone = (begin_ns > shared_ns and _inside(window, begin_ns, blur_ns) for begin_ns, blur_ns in tables.begins[near])
    return any(alone) or any(_gone(tables, step, name) for name in step.members)


def _coordinator_moved(tables: Tables, step: PerformedStep) -> bool:
    window = _own_time(tables, step, lambda other: not other.members)
    before = max((term for term, at_ns, blur_ns in tables.terms if at_ns - blur_ns < step.begun_ns), default=None)
    new = (t for t in tables.terms if before is not None and t[0] > before)
    return any(_inside(window, at_ns, blur_ns) for _, at_ns, blur_ns in new)


def _time_of(tables: Tables, step: PerformedStep, incarnation: str) -> Window:
    over_ns = _over_ns(step)
    return _own_time(tables, step, lambda s: incarnation in s.members or (not s.members and s.begun_ns > over_ns))


def _gone(tables: Tables, step: PerformedStep, incarnation: str) -> list[MemberRemoval]:
    window = _time_of(tables, step, incarnation)
    gone = tables.gone_by_incarnation.get(incarnation, ())
    return [g for g in gone if _inside(window, g.at_ns, g.uncertainty_ns)]


def _fenced(tables: Tables, step: PerformedStep, incarnation: str) -> bool:
    """Whether a member's callback reported a lost partition, or the member left the coordinator's records while it was
    hit or owned a partition, or before it was assigned one again (under another member id; a member that leaves on its
    own does not return)."""
    own = tables.intervals_by_incarnation.get(incarnation, ())
    window = _time_of(tables, step, incarnation)
    if any(i.how == "lost" and _inside(window, i.given_up_begin_ns) for i in own):
        return True
    gone = _gone(tables, step, incarnation)
    held = any(g.at_ns <= (step.undone_ns or FOREVER) for g in gone)
    back = any(i.assigned_begin_ns >= g.at_ns - g.uncertainty_ns for i in own for g in gone)
    return held or back or any(tables.removed(i, i.given_up_begin_ns if i.how else FOREVER) in gone for i in own)
