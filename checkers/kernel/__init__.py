"""The kernel: judges one task (a partition, or a range of one), returns aggregates. Pure, except that it reads files.

A record is read once, where the task runs (in a Python worker of Spark, or in this process), into numpy arrays. Most
rules begin with a screen: a few operations per record, which select nothing if the group is correct. Only the selected
records are judged exactly. A rule finds in one task what the oracle's rule for the same kinds finds in a run.

A partition of many million records is cut into several tasks. A single task cannot judge processing that overlaps in
time, or keys and sends across the edge of its range. It returns aggregates about these, from which ``boundaries`` makes
further tasks; usually there are none.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path

from fencepost.checkers.kernel import (
    commits,
    delivery,
    effects,
    keys,
    members,
    recovery,
    repeats,
    stalls,
    streams,
    times,
    writes,
)
from fencepost.checkers.kernel.aggregates import Aggregates, Label
from fencepost.checkers.kernel.carry import Carry
from fencepost.checkers.kernel.columns import DamagedFile, Files
from fencepost.checkers.kernel.context import KernelContext
from fencepost.checkers.kernel.partitioning import Task
from fencepost.checkers.kernel.task_data import TaskData
from fencepost.checkers.tables.reading import first_line

_LOG = logging.getLogger(__name__)
Rule = Callable[[TaskData], None]

SENDS = ("duplicate-write", "nonmonotonic-send")
# Three groups of rules, by what a task of a cut partition has:
# - OFFSETS: all deliveries, sends and log records of a range of offsets, in the order of offsets;
# - STREAMS: the deliveries of one incarnation, in the order in which it received them; no sends, no log;
# - STUCK: the times of delivery and of the log of a whole partition.
# ``columns.NEEDED`` lists their columns. A partition that is not cut is one task with all rules.
OFFSETS: dict[Rule, tuple[str, ...]] = {
    delivery.facts: (),
    delivery.lost_and_vanished: ("lost-write", "phantom", "delivered-then-lost", "aborted-read"),
    delivery.inconsistent_offsets: ("inconsistent-offsets",),
    delivery.unseen: ("unseen",),
    delivery.unrecorded_delivery: ("unrecorded-delivery",),
    effects.missing_effect: ("missing-effect",),
    effects.dead_letter_missing: ("dead-letter-missing",),
    effects.per_entity_order: ("per-entity-order",),
    effects.requeue_missing: ("requeue-missing",),
    effects.requeued_and_done: ("requeued-and-done",),
    delivery.unconsumed: ("unconsumed",),
    repeats.repeats: ("redelivery", "avoidable-redelivery", "redelivery-below-commit", "stale-offset-answer"),
    repeats.stale_effect: ("stale-effect",),
    repeats.redelivery_loop: ("redelivery-loop",),
    recovery.done_again: ("too-many-duplicates",),
    keys.key_order: ("key-order",),
    commits.commit_ahead: ("commit-ahead",),
    commits.commit_before_send: ("commit-beyond-end",),
    commits.off_by_one: ("off-by-one",),
    commits.work_after_fencing: ("work-after-fencing",),
    times.processing_overlap: ("processing-overlap",),
    times.stale_work: ("work-after-reassignment", "processing-after-revocation"),
    writes.send_order: SENDS,
    members.stuck_member: ("stuck-member",),
}
STREAMS: dict[Rule, tuple[str, ...]] = {
    streams.streams: ("rewind", "poll-skip"),
    commits.wrong_start: ("wrong-start", "stale-offset-answer"),
    streams.delivery_outside: ("delivery-outside-assignment",),
    streams.history_incomplete: ("history-incomplete",),
}
STUCK: dict[Rule, tuple[str, ...]] = {
    stalls.standing_still: ("stuck-partition", "slow-recovery", "collateral-stall"),
    recovery.slow_catch_up: ("slow-catch-up",),
}
RULES: dict[str, dict[Rule, tuple[str, ...]]] = {
    "all": {**OFFSETS, **STREAMS, **STUCK},
    "offsets": OFFSETS,
    "streams": STREAMS,
    "stuck": STUCK,
    "keys": {keys.key_order: ("key-order",)},
    "overlap": {times.processing_overlap: ("processing-overlap",)},
    "sends": {writes.send_order: SENDS},
}


def perform(history: Path, judged: KernelContext, tasks: Iterable[Task]) -> Aggregates:
    """Judge some tasks. A rule that crashes fails only its own kinds (``#failed``)."""
    aggregates = Aggregates()
    with Files(history, judged.tables.inferred_of) as files:
        for task in tasks:
            for part in _parts(TaskData(judged, files, task, aggregates)):
                for rule, kinds in RULES[task.rules].items():
                    _run_rule(part, rule, kinds)
    return aggregates


def _parts(part: TaskData) -> Iterator[TaskData]:
    """The task itself; for the rules ``streams``, each stretch of it, with the ``Carry`` of the stretches before."""
    if part.task.rules != "streams":
        yield part
        return
    first, *others = part.task.spans
    yield (stretch := replace(part, task=part.task.stretch(*first)))
    for span in others:
        try:
            returns = part.tables.returns_of.get((stretch.rows.names[0], part.tp), ())
            moves = partial(part.moves, stretch.rows.names[0])
            before = Carry.of(stretch.rows, stretch.before, returns, moves)
        except DamagedFile:
            return  # the rules have already reported the damaged file
        yield (stretch := replace(part, task=part.task.stretch(*span), before=before))


def _run_rule(part: TaskData, rule: Rule, kinds: tuple[str, ...]) -> None:
    try:
        rule(part)
    except DamagedFile as error:
        part.aggregates.put("#damaged", -1, Label((error.name,), error.what))
        part.aggregates.put("#failed", -1, Label(kinds, str(error)))
    except Exception as error:
        _LOG.exception("the rule %s failed on %s", rule.__name__, part.task)
        reason = f"the rule {rule.__name__} failed: {type(error).__name__}: {first_line(error)}"
        part.aggregates.put("#failed", -1, Label(kinds, reason))
