"""The times in which the group must deliver: after each step of the plan, and during it for members that it spares.

All detectors share this part of ``slow-recovery`` and ``collateral-stall``; each examines the records itself. The
oracle's rules have the definitions.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from fencepost.checkers.detections import member_of
from fencepost.checkers.tables import Tables
from fencepost.checkers.tables.rows import FOREVER, NS, PerformedStep, Window

PAUSED = "paused by its owner"
LEAST_NORMAL_NS = NS  # a record that waits for so long is never too late, however short waits are as a rule
CHANGES = ("metadata", "subscription")  # words in a client's reason to join that no fault of a member causes


class Bystander(NamedTuple):
    """A time in which a step was in effect, and a partition certainly belonged to a member that no step hit."""

    step: PerformedStep
    incarnation: str
    window: Window


def recoveries(tables: Tables, bound_ns: int) -> list[tuple[PerformedStep, Window]]:
    """The windows after steps that are longer than the bound; none if the bound is 0.

    A window begins at the end of a step, if no other step was in effect then. It ends when the next step begins, or
    when the first member leaves because the quiet window is over.
    """
    found = []
    for step in tables.steps if bound_ns else ():
        over_ns = step.in_effect.end_ns
        others = [s for s in tables.steps if s is not step and s.begun_ns and s.in_effect.end_ns >= over_ns]
        until_ns = min([tables.calm.end_ns, *(s.begun_ns for s in others)])
        if step.begun_ns and step.proven_ns and until_ns - over_ns > bound_ns:
            found.append((step, Window(over_ns, until_ns)))
    return found


def begun_steps(tables: Tables) -> list[PerformedStep]:
    """The steps that began, in the order of their beginnings."""
    return sorted((s for s in tables.steps if s.begun_ns), key=lambda s: (s.begun_ns, s.step))


def before_faults(tables: Tables) -> Window:
    """The time in which waits are normal: from the end of the warm-up to the beginning of the first step."""
    warm_ns = tables.phases.get("warm-up", Window(0, 0)).end_ns
    return Window(warm_ns, next((step.begun_ns for step in begun_steps(tables)), FOREVER))


def under_load(tables: Tables, bound_ns: int) -> list[tuple[PerformedStep, Window]]:
    """The recoveries, as far as they are within the time in which producers write; longer than the bound."""
    cut = ((step, Window(w.begin_ns, min(w.end_ns, tables.calm.begin_ns))) for step, w in recoveries(tables, bound_ns))
    return [(step, window) for step, window in cut if window.length_ns > bound_ns]


class NormalWait(NamedTuple):
    """How long records of a partition wait as a rule.

    Attributes:
        bound_ns: they may wait for so long.
        known: whether the waits before the first step show it; otherwise the bound may be too low.
    """

    bound_ns: int
    known: bool

    @classmethod
    def of(cls, longest_ns: int, unfinished_ns: int) -> NormalWait:
        """From the longest wait that ended before the first step (-1: none did), and the longest that did not."""
        bound_ns = max(LEAST_NORMAL_NS, longest_ns + longest_ns // 5)
        return cls(bound_ns, longest_ns >= 0 and unfinished_ns <= bound_ns)


def faults_measured(tables: Tables) -> int:
    """The number of steps that took effect, and whose recovery every promise of recovery can judge."""
    measured = [sum(1 for s in tables.steps if s.begun_ns and s.proven_ns)]
    for promise in tables.promised("recovers"):
        for name, windows in (("first_record_within_s", recoveries), ("lag_normal_within_s", under_load)):
            if isinstance(bound_s := promise.get(name), int | float):
                measured.append(len(windows(tables, round(bound_s * NS))))
    return min(measured)


def bystanders(tables: Tables, bound_ns: int) -> Mapping[int, list[Bystander]]:
    """For each partition, the bystanders' times longer than the bound.

    There are none in the eager protocol, where every rebalance stops all members. A step that hits brokers, or targets
    that it chose itself, touches every member: each broker has replicas of most partitions, and one broker is the
    coordinator.
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
    """The incarnations that certainly owned a partition in a window, each with its time, by the members' callbacks.

    For black boxes by the coordinator's log, while the process lived and was not asked to end.
    """
    if not tables.black_box:
        yield from ((one.incarnation, one.certain) for one in tables.certain_by_tp.meeting(tp, during))
        return
    for given, until_ns in tables.coordinator_owners(tp):
        if life := tables.lives.get(given.incarnation):
            end_ns = min(until_ns, life.asked_ns or FOREVER, life.ended_ns or FOREVER)
            yield life.incarnation, Window(given.at_ns + given.uncertainty_ns, end_ns)


def _touches(step: PerformedStep, incarnation: str) -> bool:
    return not step.members or member_of(incarnation) in map(member_of, step.members)


def another_cause(tables: Tables, step: PerformedStep, window: Window) -> str:
    """A reason for a rebalance in ``window`` other than ``step``; empty if no rebalance or no such reason is known."""
    rounds = [r for r in tables.rounds if Window(r.begin_ns, r.end_ns + r.uncertainty_ns).meets(window)]
    if not rounds:
        return ""
    reason = next((r.reason for r in rounds if any(word in r.reason for word in CHANGES)), "")
    since = Window(step.begun_ns, window.end_ns)
    moved = any(since.begin_ns <= ns <= since.end_ns for ns in _starts_and_ends(tables, step))
    return f"rebalance: {reason}" if reason else "rebalance: other members came or went" if moved else ""


def _starts_and_ends(tables: Tables, step: PerformedStep) -> Iterator[int]:
    """The times at which members that the step did not hit started or ended."""
    hit = {member_of(name) for name in step.members}
    for life in tables.lives.values():
        if member_of(life.incarnation) not in hit:
            yield from (life.started_ns, life.ended_ns or FOREVER)
