"""The measures of a verdict: counts of records, throughput, every rebalance, and stalls of the host."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from itertools import accumulate
from operator import itemgetter
from typing import Any, NamedTuple

from fencepost.checkers.counts import JudgedCounts
from fencepost.checkers.detections import member_of
from fencepost.checkers.tables import Tables
from fencepost.checkers.tables.rows import FOREVER, NS, AssignmentChange, PerformedStep, Window
from fencepost.model import Anomaly

STALL_SHARE = 0.1  # of a liveness finding's time


def measures(tables: Tables, facts: JudgedCounts, rounds: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """Counts of records, throughput in processed records a second, and the slowest recovery after a heal.

    ``rounds``: from ``rebalances``. Black boxes have no throughput, as they do not report when they process records.
    """
    span_ns = facts.last_ns - facts.first_ns
    recoveries = [s for step in tables.steps if (s := recovery_s(tables, step)) is not None]
    seen = {"records_delivered": facts.delivered, "records_processed": facts.finished}
    speed = {
        "processing_s": round(span_ns / NS, 3) if span_ns > 0 else 0.0,
        "throughput_per_s": round(facts.finished * NS / span_ns, 1) if span_ns > 0 else 0.0,
    }
    return {
        "records_acknowledged": facts.acknowledged,
        "records_in_log": facts.visible,
        **({"records_committed": facts.judged} if tables.black_box else seen),
        "commits": len(tables.accepted if tables.black_box else tables.commits),
        "members": len(tables.lives),
        "rebalances": len(tables.rounds),
        "partitions_moved": sum(one["moved"] for one in rounds),
        **({} if tables.black_box else speed),
        "recovery_s": max(recoveries, default=None),
        "host_stalls": len(tables.stalls),
        "host_stalled_s": round(sum(s.length_ns for s in tables.stalls) / NS, 3),
    }


def recovery_s(tables: Tables, step: PerformedStep) -> float | None:
    """The seconds from the proof that a step was healed until every partition certainly had an owner; None: never."""
    if not step.healed_ns or not tables.partitions:
        return None
    after = Window(step.healed_ns + 1, FOREVER)
    first = (next(tables.certain_by_tp.meeting(tp, after), None) for tp in tables.by_name.partitions)
    owned = [max(i.certain.begin_ns, step.healed_ns) if i else 0 for i in first]
    return round((max(owned) - step.healed_ns) / NS, 3) if all(owned) else None


def rebalances(tables: Tables) -> tuple[dict[str, Any], ...]:
    """Every rebalance: its times, members, reason, reassigned partitions, and the last fault step that fired before it
    began."""
    fired = sorted((s.begun_ns, s.step) for s in tables.steps if s.begun_ns)
    latest = [None, *accumulate((step for _, step in fired), max)]  # by the number of steps that have fired
    return tuple(
        {
            "generation": r.generation,
            "term": r.term,
            "begin_ns": r.begin_ns,
            "end_ns": r.end_ns,
            "begin_s": round((r.begin_ns - tables.origin_ns) / NS, 3),
            "took_s": round((r.end_ns - r.begin_ns) / NS, 3),
            "members": list(r.members),
            "reason": r.reason,
            **deal._asdict(),
            "step": latest[bisect_right(fired, r.begin_ns, key=itemgetter(0))],
        }
        for r, deal in zip(tables.rounds, deals(tables), strict=True)
    )


class Deal(NamedTuple):
    """The assignment after a round, by the coordinator's records until the next round.

    A member counts as the same in all of its incarnations.

    Attributes:
        moved: how many partitions were assigned to a member that was not their last owner.
        most, least: the greatest and the smallest number of partitions that a member had.
    """

    moved: int
    most: int
    least: int


def deals(tables: Tables) -> list[Deal]:
    """One deal for each round.

    In a cooperative rebalance of two rounds, moving partitions have no owner after the first. The partitions of a
    leaving member count as its own until the round that its leaving starts, if it starts one.
    """
    ends, left = [r.end_ns for r in tables.rounds], {gone.order for gone in tables.gone}
    given: defaultdict[int, list[AssignmentChange]] = defaultdict(list)
    for one in tables.given:
        number = bisect_right(ends, one.at_ns) - 1
        leaves = not one.member_id and one.order in left and number >= 0 and one.at_ns > ends[number]
        given[number + leaves].append(one)
    has, last, found = dict[int, str](), dict[int, str](), []
    for number in range(-1, len(ends)):
        moved = 0
        for one in given[number]:
            has[one.tp] = owner = _member(one.incarnation or one.member_id)
            if owner:
                moved += last.get(one.tp, owner) != owner
                last[one.tp] = owner
        if number >= 0:
            counts = Counter({_member(name): 0 for name in tables.rounds[number].members})
            counts.update(filter(None, has.values()))
            found.append(Deal(moved, max(counts.values(), default=0), min(counts.values(), default=0)))
    return found


def owners(tables: Tables) -> tuple[dict[str, Any], ...]:
    """The owners of each partition, by the coordinator's records.

    Ownership began between ``begin_ns`` and ``assigned_ns``, and lasted until another member had the partition, at
    ``end_ns`` or later (0: it never ended).
    """
    found = []
    for tp, partition in tables.partitions.items():
        for one, until_ns in tables.coordinator_owners(tp):
            owner = {**partition.name._asdict(), "owner": one.incarnation or one.member_id}
            begin = {"begin_ns": one.at_ns - one.uncertainty_ns, "assigned_ns": one.at_ns + one.uncertainty_ns}
            found.append({**owner, **begin, "end_ns": until_ns if until_ns < FOREVER else 0})
    return tuple(found)


def _member(name: str) -> str:
    """The member of an incarnation; a member id that belongs to no known incarnation is returned unchanged."""
    return member_of(name) or name


def stalled(tables: Tables, anomaly: Anomaly) -> bool:
    """Whether the host stood still for so much of an anomaly's time that the anomaly proves nothing about the group."""
    window = Window(anomaly.from_ns, anomaly.to_ns)
    stood_ns = sum(stall.common(window).length_ns for stall in tables.stalled.meeting(None, window))
    return stood_ns > STALL_SHARE * max(1, window.length_ns)
