"""Each rule of the kernel beside those of the oracle that tell of the same kinds, on hundreds of small histories."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from history.test_kernel_equals_oracle import AS_IF_LARGE, NARROW
from small_histories import BOUNDS, Held, history

from fencepost.checkers import kernel, oracle
from fencepost.checkers.detections import Detection, aggregate
from fencepost.checkers.kernel import recovery
from fencepost.checkers.kernel.aggregates import Aggregates, Label
from fencepost.checkers.kernel.commits import off_by_one, off_by_one_of
from fencepost.checkers.kernel.context import KernelContext
from fencepost.checkers.kernel.members import stuck_member, stuck_member_of
from fencepost.checkers.kernel.partitioning import WIDTH, cut
from fencepost.checkers.kernel.task_data import TaskData
from fencepost.checkers.oracle import History
from fencepost.checkers.spark.boundaries import boundary_tasks
from fencepost.checkers.spark.detector import _starts
from fencepost.model import Anomaly

RULES = {rule: kinds for rule, kinds in kernel.RULES["all"].items() if kinds}
SEEDS, EACH = 240, 10
QUICK = 40  # the first ones; the others are for the nightly run
SHARED = {"stale-offset-answer"}  # what several rules tell of, each of what follows from it


def expected(of: History, kinds: tuple[str, ...]) -> list[Anomaly]:
    def seen() -> Iterator[Detection]:
        for rule, reported in oracle.RULES.items():
            if ({*reported} & {*kinds}) - SHARED and rule.__name__ != "commit_above_end":
                yield from (sighting for sighting in rule(of) if sighting.kind in kinds)

    return aggregate(seen(), of.tables.partitions)


def found(of: History, rule: kernel.Rule, width: int) -> list[Anomaly]:
    """By the tasks of which a partition holds so many records, and by those that ``boundary_tasks`` makes of these."""
    files = Held(of.records, width + 1)
    tasks = cut(files.groups, of.tables.partitions, width)
    parts = frozenset(task.tp for task in tasks if task.rules == "offsets")
    judged, aggregates = KernelContext.of(of.tables, BOUNDS, _starts(of.tables, files.groups), parts), Aggregates()
    for task in tasks:
        for part in kernel._parts(TaskData(judged, files, task, aggregates)):
            if rule in kernel.RULES[task.rules]:
                rule(part)
    more = Aggregates()
    for task in boundary_tasks(aggregates, files.groups):
        if rule in kernel.RULES[task.rules]:
            rule(TaskData(judged, files, task, more))
    for (kind, tp, *label), numbers in more.items():
        aggregates.put(kind, tp, Label(*label), numbers)
    if rule is off_by_one:
        aggregates.put_detections(off_by_one_of(aggregates, of.tables))
    if rule is recovery.done_again:
        recovery.too_many_duplicates(aggregates, BOUNDS.done_again)
    if rule is stuck_member:
        aggregates.put_detections(stuck_member_of(aggregates, judged))
    return aggregates.anomalies(of.tables.partitions)


EACH_RULE = pytest.mark.parametrize(("rule", "kinds"), RULES.items(), ids=[kinds[0] for kinds in RULES.values()])


@EACH_RULE
@pytest.mark.parametrize(
    "first",
    [pytest.param(n, marks=() if n < QUICK else pytest.mark.slow) for n in range(0, SEEDS, EACH)],
)
def test_the_kernel_finds_what_the_oracle_finds(first: int, rule: kernel.Rule, kinds: tuple[str, ...]) -> None:
    """Each second one with partitions cut into ranges of a few records, which are looked at as if they were many."""
    for seed in range(first, first + EACH):
        of = history(seed)
        with pytest.MonkeyPatch.context() as patch:
            for name, value in AS_IF_LARGE.items() if seed % 2 else ():
                patch.setattr(f"{kernel.__name__}.{name}", value)
            assert found(of, rule, NARROW if seed % 2 else WIDTH) == expected(of, kinds), seed


@pytest.mark.slow
@EACH_RULE
def test_there_is_something_to_find(rule: kernel.Rule, kinds: tuple[str, ...]) -> None:
    assert {anomaly.kind for seed in range(SEEDS) for anomaly in expected(history(seed), kinds)} == {*kinds}
