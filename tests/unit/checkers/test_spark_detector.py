"""What the driver makes of a run before and after Spark performs it; here, in this process, somebody else performs."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from history import odd_histories
from history.builder import HistoryBuilder
from history.test_kernel_equals_oracle import NARROW, STRICT

from fencepost.checkers import faults, judge
from fencepost.checkers.counts import Bounds
from fencepost.checkers.kernel import RULES
from fencepost.checkers.kernel.aggregates import Aggregates
from fencepost.checkers.kernel.context import KernelContext
from fencepost.checkers.kernel.partitioning import Task
from fencepost.checkers.spark import detector
from fencepost.checkers.tables import load
from fencepost.errors import ProvisionError
from fencepost.reports.glossary import GLOSSARY


class Here:
    """An engine of two cores without Spark."""

    cores, elsewhere = 2, False

    def __init__(self) -> None:
        self.turns: list[Any] = []

    def map(self, perform: Callable[[int], Any], count: int) -> list[Any]:
        self.turns = [pickle.loads(pickle.dumps(perform(number))) for number in range(count)]
        return self.turns

    def ship(self, archive: Path) -> None:
        raise AssertionError("nothing is to be shipped to this process")

    def cancel_without_executors(self) -> bool:
        return False


@pytest.mark.parametrize("seed", range(5))
def test_tasks_that_go_to_workers_in_turns_find_what_they_find_here(tmp_path: Path, seed: int) -> None:
    run, here = odd_histories.tell(tmp_path, seed), Here()
    spark: Any = SimpleNamespace(get=lambda: here)
    tables = load(run)
    expected = detector.find_here(run, tables, STRICT)
    assert detector.find(run, tables, STRICT, spark) == expected
    assert len(here.turns) == detector.BUNDLES_EACH * here.cores
    assert detector.detector(spark)(run, tables, STRICT) == expected
    assert detector.find(run, tables, STRICT, spark, NARROW) == expected


def test_a_history_that_workers_do_not_see_is_told_so(tmp_path: Path) -> None:
    h = HistoryBuilder(tmp_path / "run")
    h.write(3)
    run = h.seal()
    judged, tasks = KernelContext(load(run), STRICT, {}), [Task(0, 0, 0)]
    with pytest.raises(ProvisionError, match=f"they do not see {tmp_path}/gone: put the run folder on storage"):
        detector._on_spark(Here(), tmp_path / "gone", judged, tasks)


def test_the_warm_up_is_a_turn_for_each_core_and_more() -> None:
    here = Here()
    detector.warm_up(here)
    assert len(here.turns) == detector.BUNDLES_EACH * here.cores
    assert {numbers.count for aggregates in here.turns for numbers in aggregates.values()} == {0}


def test_the_rules_of_tasks_and_of_the_driver_have_all_kinds_but_those_of_faults_and_files(tmp_path: Path) -> None:
    driver = detector._rules_of_driver(
        Aggregates(), [], KernelContext(load(HistoryBuilder(tmp_path, 1).seal()), Bounds(), {})
    )
    found = {kind for kinds in [*driver.values(), *RULES["all"].values()] for kind in kinds}
    assert found == GLOSSARY.keys() - {*faults.KINDS, judge.KIND_OF_FILES}
