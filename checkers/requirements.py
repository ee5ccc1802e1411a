"""The conditions for "valid" of each check: certain parts of the history are whole, and enough facts were judged."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from fencepost.checkers.counts import JudgedCounts
from fencepost.checkers.group_rules.recovery import faults_measured
from fencepost.checkers.tables import Tables


@dataclass(frozen=True)
class Requirement:
    """The needs of one check.

    Attributes:
        parts: damage to one of these parts of the history makes the check unknown.
        unit: the noun for its facts, in the plural.
        remedy: what to do if there were too few facts.
        facts, minimum: how many facts the check judged, and how many it needs.
    """

    parts: frozenset[str]
    unit: str
    remedy: str
    facts: Callable[[Tables, JudgedCounts], int]
    minimum: Callable[[Tables], int]


def _asked_for(tables: Tables) -> int:
    return max(1, int(tables.asked.get("min_records") or 1))


def _asked_for_once(tables: Tables) -> int:
    """The minimum without duplicates: ``min_records`` counts processed records with duplicates, up to a tenth."""
    return max(1, _asked_for(tables) * 9 // 10)


def _partitions_after_heal(tables: Tables, facts: JudgedCounts) -> int:
    """Liveness is judged for every partition, if the run completed its drain and the log holds records."""
    return len(tables.by_name.partitions) if tables.quiet.end_ns and facts.visible else 0


_ALL = frozenset({"run", "scenario", "plan", "partitions", "events", "delivered"})
_LONGER = "make the run longer, or lower min_records of the scenario"
_OTHER = Requirement(_ALL | {"produced", "log"}, "deliveries", _LONGER, lambda t, f: f.delivered, lambda t: 1)
_NEEDS = {
    "delivery": Requirement(
        _ALL | {"produced", "log", "offsets"}, "committed records", _LONGER, lambda t, f: f.judged, _asked_for_once
    ),
    "order": Requirement(_ALL | {"log"}, "processed records", _LONGER, lambda t, f: f.begun, _asked_for),
    "ownership": Requirement(
        _ALL | {"offsets", "requests"},
        "assignments",
        "no member was ever assigned a partition: see its log",
        lambda t, f: len(t.by_name.intervals),
        lambda t: 1,
    ),
    "effects": Requirement(
        _ALL | {"log", "offsets", "effects"},
        "effects",
        "no record had one: this promise needs a workload with effects, such as exclusive_writes or transform",
        lambda t, f: len(t.effects),
        lambda t: 1,
    ),
    "parked": Requirement(
        _ALL | {"log", "offsets", "effects"},
        "dead letters",
        "nothing was parked: this promise needs the workload dead_letters, and records that cannot be processed",
        lambda t, f: len(t.dead_letters),
        lambda t: 1,
    ),
    "requeued": Requirement(
        _ALL | {"log", "offsets", "effects"},
        "copies of records",
        "nothing was re-queued: this promise needs the workload requeue, and records that take too long",
        lambda t, f: len(t.copies),
        lambda t: 1,
    ),
    "rebalances": Requirement(
        _ALL | {"offsets", "requests"},
        "rebalances that were followed by a stable period",
        "the group was never stable for 5 s: make the run longer, or plan fewer faults",
        lambda t, f: len(t.rests),
        lambda t: 1,
    ),
    "commits": Requirement(
        _ALL | {"produced", "log", "offsets", "requests"},
        "commits",
        "no commit was ever accepted: see the members' logs",
        lambda t, f: len(t.accepted),
        lambda t: 1,
    ),
    "outside": Requirement(
        _ALL | {"produced", "log", "offsets", "requests", "host"},
        "committed records",
        f"{_LONGER}; none count if the run did not complete its drain",
        lambda t, f: f.judged if t.quiet.end_ns else 0,
        _asked_for_once,
    ),
    "recovers": Requirement(
        _ALL | {"produced", "log", "host"},
        "faults",
        "after none of them was there as much time as is promised, before the next one began or chaos_s was over: "
        "leave more time between faults",
        lambda t, f: faults_measured(t),
        lambda t: 1,
    ),
    "progress": Requirement(
        _ALL | {"produced", "log", "offsets", "requests", "host"},
        "partitions",
        "the run did not complete its drain",
        _partitions_after_heal,
        lambda t: max(1, len(t.by_name.partitions)),
    ),
}


def requirement_of(check: str) -> Requirement:
    """The needs of a check by its name."""
    return _NEEDS.get(check, _OTHER)
