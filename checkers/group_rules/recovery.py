"""When the steps of a plan oblige the group to deliver: after each of them, and, whom it does not hit, during it.

What all finders share of ``slow-recovery`` and ``collateral-stall``, whose records they look at themselves; see the
oracle's rules for the definitions.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from fencepost.checkers.detections import member_of
from fencepost.checkers.tables import Tables
from fencepost.checkers.tables.rows import FOREVER, Step, Window

PAUSED = "paused by its owner"
CHANGES = ("metadata", "subscription")  # words of a reason to join that no fault of a member gives


class Bystander(NamedTuple):
    """A time in which a step was in effect, and a partition certainly belonged to a member that nothing hit."""

    step: Step
    incarnation: str
    window: Window


def recoveries(tables: Tables, bound_ns: int) -> list[tuple[Step, Window]]:
    """From the end of each step that was alone then to when the next one begins, or the first member leaves because
    the quiet window is over; those that are longer than the bound. None without a bound."""
    found = []
    for step in tables.steps if bound_ns else ():
        over_ns = step.in_effect.end_ns
        others = [s for s in tables.steps if s is not step and s.begun_ns and s.in_effect.end_ns >= over_ns]
        until_ns = min([tables.calm.end_ns, *(s.begun_ns for s in others)])
        if step.begun_ns and step.proven_ns and until_ns - over_ns > bound_ns:
            found.append((step, Window(over_ns, until_ns)))
    return found


def bystanders(tables: Tables, bound_ns: int) -> Mapping[int, list[Bystander]]:
    """By partition, the times longer than the bound. None in the eager protocol, where every round stops everybody.

    A step that hits no members, but brokers or what it chose by itself, touches everything: each broker has replicas of
    most partitions, and one of them is the coordinator.
    """
    found: dict[int, list[Bystander]] = defaultdict(list)
    fired = [s for s in tables.steps if s.begun_ns]
    long = [s for s in fired if s.proven_ns and s.healed_ns - s.proven_ns > bound_ns and tables.calm.end_ns]
    for step in long if tables.protocol in ("cooperative", "consumer") else ():
        proven = Window(step.proven_ns, step.healed_ns)
        for tp in tables.partitions:
            for owner, certain in _owners(tables, tp, proven):
                window = proven.common(certain)
                if window.length_ns <= bound_ns:
                    continue
                hitting = (s for s in fired if s.in_effect.meets(window))
                if not any(_touches(s, owner) for s in hitting):
                    found[tp].append(Bystander(step, owner, window))
    return found


def _owners(tables: Tables, tp: int, during: Window) -> Iterator[tuple[str, Window]]:
    """Who certainly had a partition in a time, and when: by callbacks; of black boxes by the coordinator's log, as long
    as their process lived and was not asked to end."""
    if not tables.black_box:
        yield from ((one.incarnation, one.certain) for one in tables.certain_by_tp.meeting(tp, during))
        return
    for given, until_ns in tables.coordinator_owners(tp):
        if life := tables.lives.get(given.incarnation):
            end_ns = min(until_ns, life.asked_ns or FOREVER, life.ended_ns or FOREVER)
            yield life.incarnation, Window(given.at_ns + given.uncertainty_ns, end_ns)


def _touches(step: Step, incarnation: str) -> bool:
    return not step.members or member_of(incarnation) in map(member_of, step.members)


def another_cause(tables: Tables, step: Step, window: Window) -> str:
    """Why a rebalance in a time was not the step's doing; empty when there was none, or nothing shows that."""
    rounds = [r for r in tables.rounds if Window(r.begin_ns, r.end_ns + r.uncertainty_ns).meets(window)]
    if not rounds:
        return ""
    reason = next((r.reason for r in rounds if any(word in r.reason for word in CHANGES)), "")
    since = Window(step.begun_ns, window.end_ns)
    moved = any(since.begin_ns <= ns <= since.end_ns for ns in _comings_and_goings(tables, step))
    return f"rebalance: {reason}" if reason else "rebalance: other members came or went" if moved else ""


def _comings_and_goings(tables: Tables, step: Step) -> Iterator[int]:
    hit = {member_of(name) for name in step.members}
    for life in tables.lives.values():
        if member_of(life.incarnation) not in hit:
            yield from (life.started_ns, life.ended_ns or FOREVER)
