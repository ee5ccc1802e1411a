"""The kernel: judges one task, which is a partition or a part of one, and returns tallies. Pure but for reading files.

A record is read once, where the task runs (in a Python worker of Spark, or in this process), into numpy arrays. Most
rules begin with a screen that costs a few operations per record and is silent for a group that works well; what it lets
through is looked at exactly. Every rule does for one task what the rule of its name in the oracle does for a run.

A partition of many million records is several tasks. What they cannot see alone (work that overlaps in time, keys
over the edge of a range) they tell of in tallies, from which ``seams`` makes further tasks, as a rule none.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from pathlib import Path

from fencepost.checkers import kernel_delivery, kernel_keys, kernel_repeats, kernel_streams, kernel_stuck, kernel_times
from fencepost.checkers.columns import Files
from fencepost.checkers.kernel_part import Judged, Part
from fencepost.checkers.ranges import Task
from fencepost.checkers.tallies import Label, Tallies

_LOG = logging.getLogger(__name__)
Rule = Callable[[Part], None]

OFFSETS: dict[Rule, tuple[str, ...]] = {
    kernel_delivery.facts: (),
    kernel_delivery.lost_write: ("lost-write",),
    kernel_delivery.phantom: ("phantom",),
    kernel_delivery.unseen: ("unseen",),
    kernel_delivery.unconsumed: ("unconsumed",),
    kernel_repeats.repeats: ("redelivery", "avoidable-redelivery", "redelivery-below-commit"),
    kernel_repeats.redelivery_loop: ("redelivery-loop",),
    kernel_keys.key_order: ("key-order",),
    kernel_times.processing_overlap: ("processing-overlap",),
    kernel_times.stale_work: ("stale-backlog", "processing-after-revocation"),
}
STREAMS: dict[Rule, tuple[str, ...]] = {
    kernel_streams.streams: ("rewind", "poll-skip"),
    kernel_streams.history_incomplete: ("history-incomplete",),
}
STUCK: dict[Rule, tuple[str, ...]] = {kernel_stuck.stuck_partition: ("stuck-partition",)}
RULES: dict[str, dict[Rule, tuple[str, ...]]] = {
    "all": {**OFFSETS, **STREAMS, **STUCK},
    "offsets": OFFSETS,
    "streams": STREAMS,
    "stuck": STUCK,
    "keys": {kernel_keys.key_order: ("key-order",)},
    "overlap": {kernel_times.processing_overlap: ("processing-overlap",)},
}


def perform(history: Path, judged: Judged, tasks: Iterable[Task]) -> Tallies:
    """Judge some tasks. A rule that crashes fails its kinds (``#failed``) and no others."""
    tallies = Tallies()
    with Files(history) as files:
        for task in tasks:
            part = Part(judged, files, task, tallies)
            for rule, kinds in RULES[task.rules].items():
                try:
                    rule(part)
                except Exception as error:
                    _LOG.exception("the rule %s failed on %s", rule.__name__, task)
                    reason = f"the rule {rule.__name__} failed: {type(error).__name__}: {error}"
                    tallies.put("#failed", -1, Label(kinds, reason))
    return tallies
