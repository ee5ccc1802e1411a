"""The rule ``commit``, applied to a stored run of a user's program that was recorded by another rule. Pure.

The commits of a program are recorded by every rule, so this one can be applied later: a record was processed when the
program committed past it. What the other rules ask for (the next poll, a report, an effect) is recorded by them alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from fencepost.checkers.tables.processing_rules import ByCommits
from fencepost.checkers.tables.reading import Deliveries
from fencepost.checkers.tables.tables import Tables
from fencepost.errors import ScenarioError
from fencepost.history import EventKind
from fencepost.history.events import Event
from fencepost_member.config import EFFECT, PROCESSED, REPORTED

NEEDED = ("tp", "ord", "offset", "delivered_ns")  # columns of delivered records
ONLY_THEN = {
    "next-poll": "the poll after a record is recorded only by that rule",
    REPORTED: "the reports of a program are recorded only by that rule",
    EFFECT: "effects are listed only by that rule",
}
NEVER = 2**63 - 1


def by_another_rule(scenario: Mapping[str, Any], rule: str, own_program: bool) -> Mapping[str, Any]:
    """The content of ``scenario.json`` with another rule of the workload than its own.

    Raises:
        ScenarioError: there is no such rule, or a run that was recorded by another one does not show what it asks for.
    """
    if rule not in PROCESSED:
        raise ScenarioError(f"the rule is {rule!r}; known rules are {', '.join(PROCESSED)}")
    if not own_program:
        raise ScenarioError(
            f"this run cannot be judged by the rule {rule!r}: its members do not run a program of yours that was "
            "recorded, and other members record themselves when they process a record"
        )
    if rule in ONLY_THEN:
        raise ScenarioError(
            f"this run cannot be judged by the rule {rule!r}: {ONLY_THEN[rule]}. Run the scenario again with it"
        )
    asked = scenario["scenario"]
    return {**scenario, "scenario": {**asked, "workload": {**asked["workload"], "processed": rule}}}


def check_commits(events: Iterable[Event], tables: Tables) -> None:
    """Refuse the rule ``commit`` for a program whose own commits do not show what it has processed.

    Raises:
        ScenarioError: says why.
    """
    refused = "this run cannot be judged by the rule 'commit': "
    stored = [
        event["actor"]
        for event in events
        if event["kind"] == EventKind.STARTED
        and str((event["detail"].get("config") or {}).get("enable.auto.offset.store", True)).lower() == "false"
    ]
    if stored:
        raise ScenarioError(
            f"{refused}the program of {stored[0]} stores offsets for its client to commit, and this is recorded only "
            "by that rule. Run the scenario again with it"
        )
    if automatic := [commit.incarnation for commit in tables.commits if commit.mode == "auto"]:
        raise ScenarioError(
            f"{refused}the client of {automatic[0]} commits by itself, which does not show what was processed"
        )
    if not tables.commits:
        raise ScenarioError(f"{refused}no member committed anything")


def infer_from_own_commits(tables: Tables, deliveries: Iterable[Deliveries]) -> tuple[ByCommits, ...]:
    """When each incarnation began and processed the deliveries of each of its partitions.

    A record is processed by the first commit past it that the incarnation began after the delivery, and before the
    record could be delivered to it again: by another assignment of the partition, or by a move of the program's
    position. It begins when it is delivered and every earlier record of the assignment is processed; if some are not,
    at the moment at which it is processed itself. ``deliveries`` have the columns ``NEEDED``.
    """
    import numpy as np

    found = []
    for one in deliveries:
        order = np.lexsort((one.columns["ord"], one.columns["tp"]))
        tps, ords, offsets, delivered_ns = (one.columns[name][order] for name in NEEDED)
        for tp in np.unique(tps).tolist():
            mine = slice(*np.searchsorted(tps, [tp, tp + 1]).tolist())
            key, times = (one.incarnation, tp), (offsets[mine], delivered_ns[mine])
            starts = np.sort(
                [i.assigned_begin_ns for i in tables.intervals_by_tp.get(tp, ()) if i.incarnation == key[0]]
            )
            since = np.searchsorted(starts, times[1], side="right")
            until_ns = np.append(starts, NEVER)[since]
            for seek in tables.seeks_of.get(key, ()):
                again = (times[1] <= seek.begin_ns) & (times[0] >= seek.offset)
                until_ns[again] = np.minimum(until_ns[again], seek.begin_ns)
            done_ns = _committed_past(tables, key, *times)
            done_ns[done_ns >= until_ns] = NEVER
            begin_ns = np.zeros_like(done_ns)
            cuts = np.flatnonzero(since[1:] != since[:-1]) + 1
            for part in np.split(np.arange(len(since)), cuts):
                free_ns = np.maximum.accumulate(np.append(0, done_ns[part]))[:-1]
                begin_ns[part] = np.minimum(np.maximum(times[1][part], free_ns), done_ns[part])
            begin_ns[begin_ns == NEVER], done_ns[done_ns == NEVER] = 0, 0
            found.append(ByCommits(tp, one.incarnation, ords[mine], begin_ns, done_ns))
    return tuple(found)


def _committed_past(tables: Tables, key: tuple[str, int], offsets: Any, delivered_ns: Any) -> Any:
    """When an incarnation began its first commit past each record after the delivery; NEVER: there is none."""
    import numpy as np

    commits = sorted((c.begin_ns, c.offset) for c in tables.commits_of.get(key, ()))
    at_ns = np.array([*(at for at, _ in commits), NEVER], np.int64)
    past = np.array([*(offset for _, offset in commits), NEVER], np.int64)  # the last one stands for no commit
    first = np.searchsorted(np.maximum.accumulate(past), offsets, side="right")
    first = np.maximum(first, np.searchsorted(at_ns[:-1], delivered_ns))
    while len(low := np.flatnonzero(past[first] <= offsets)):  # only where an offset is committed after a greater one
        first[low] += 1
    return at_ns[first]
