"""The oracle: every finding in plain, slow Python. **This is the specification**; Spark must find the same anomalies.

``detect`` runs each of ``RULES`` in turn. A rule is a generator of detections; ``detections.aggregate`` sums these up
as anomalies. The docstring of a rule defines exactly which record is a detection, and its kind, cause, excuse, members,
offset, times and count. The rules are in nine modules:

* ``delivery``: deliveries against the log, and whether the history is complete;
* ``effects``: the outputs of processing, such as effects and dead letters;
* ``repeats``: records that are delivered or processed more than once;
* ``order``: the order of deliveries and of processing;
* ``ownership``: which member owned a partition when;
* ``commits``: commits against records;
* ``writes``: sends against the log;
* ``progress``: partitions and members that make no progress;
* ``recovery``: what a fault leaves behind.

Words used in the rules:

* a *row* is one delivered record of one incarnation; it is *begun* when ``begin_ns`` > 0, *finished* when its state is
  done or parked; rows of one (incarnation, tp) are in the order of ``ord``;
* the *interval* of a row is the assignment interval with its number; a row has none if the number is -1, or if that
  interval has no assigned event;
* the *domain* of a partition: its visible offsets from the group's start to before its final committed offset;
* *members* lists the member to blame first; *times* are ``from_ns`` and ``to_ns``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path

from fencepost.checkers import group_rules
from fencepost.checkers.counts import Bounds, JudgedCounts
from fencepost.checkers.detections import aggregate, run_rules
from fencepost.checkers.oracle import commits, delivery, effects, order, ownership, progress, recovery, repeats, writes
from fencepost.checkers.oracle.history import FINISHED, History, Rule
from fencepost.checkers.tables import Tables
from fencepost.checkers.tables.processing_rules import as_processed
from fencepost.checkers.tables.records import Records, load_records
from fencepost.history import SendOutcome
from fencepost.model import Anomaly

RULES: dict[Rule, tuple[str, ...]] = {
    **delivery.RULES,
    **effects.RULES,
    **repeats.RULES,
    **order.RULES,
    **ownership.RULES,
    **commits.RULES,
    **writes.RULES,
    **progress.RULES,
    **recovery.RULES,
}


def detect(run: Path, tables: Tables, bounds: Bounds) -> tuple[list[Anomaly], JudgedCounts]:
    """The oracle, as a detector for ``checkers.judge.judge``."""
    history = History(tables, _processed(load_records(run), tables), bounds)
    found, failed = run_rules(RULES, history)
    also, also_failed = run_rules(group_rules.RULES, tables)
    return aggregate([*found, *also], tables.partitions), facts(history, {**failed, **also_failed})


def _processed(records: Records, tables: Tables) -> Records:
    """The records, with the state and times of each delivery by the rule of processing."""
    rules = tables.inferred_of
    rows = (as_processed(row, rules.get((row.incarnation, row.tp), ())) for row in records.delivered)
    return replace(records, delivered=tuple(rows))


def facts(history: History, failed: Mapping[str, str]) -> JudgedCounts:
    """How many records were judged, and which kinds could not be judged."""
    rows = history.records.delivered
    return JudgedCounts(
        acknowledged=sum(p.outcome == SendOutcome.OK for p in history.records.produced),
        visible=len(history.records.log),
        judged=sum(sum(map(history.domain(tp).__contains__, _judged_offsets(history, tp))) for tp in history.log),
        delivered=len(rows),
        begun=sum(row.begin_ns > 0 for row in rows),
        finished=sum(row.state in FINISHED for row in rows),
        first_ns=min((row.delivered_ns for row in rows), default=0),
        last_ns=max((row.done_ns for row in rows), default=0),
        failed=failed,
        damage=history.records.damage,
    )


def _judged_offsets(history: History, tp: int) -> Iterable[int]:
    """The offsets of a partition that can be judged: the visible ones, and the finished ones if it is compacted."""
    log, rows = history.log[tp], history.rows.get(tp, ()) if tp in history.tables.compacted else ()
    return {*log, *(row.offset for row in rows if history.is_finished(row))}
