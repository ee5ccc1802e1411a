"""Spark finds what the oracle finds, to the value: in hand-written histories, in random lives, and in very odd ones.

Each history is judged four times: by the oracle, by the kernel in this process, by the kernel with every partition cut
into ranges of a few records, and on Spark. The nightly run adds 400 histories that nobody has seen before.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from fencepost.checkers.facts import Bounds
from fencepost.checkers.spark import finder
from fencepost.checkers.spark.session import Spark
from fencepost.checkers.tables import load
from history import fresh, odd_histories, random_histories
from history.builder import HistoryBuilder
from history.test_commit_kinds import CASES as COMMIT_CASES
from history.test_kernel_equals_oracle import FIRST, KINDS, NARROW, STRICT, agreed
from history.test_kinds import CASES

pytestmark = pytest.mark.spark
EACH = 10  # histories of a test
BATCHES = 20  # of fresh ones, by night


@pytest.fixture
def spark(chaos_spark: Spark) -> Spark:
    """The one of the whole test run."""
    return chaos_spark


@pytest.mark.parametrize("classic", [False, True], ids=["consumer", "classic"])
@pytest.mark.parametrize("wrong", [True, False], ids=["wrong", "near-miss"])
def test_hand_written_histories(tmp_path: Path, spark: Spark, wrong: bool, classic: bool) -> None:
    for number, story in enumerate([*CASES, *COMMIT_CASES]):
        if number % 2 == classic:  # each story in one of the two protocols
            h = HistoryBuilder(tmp_path / story.__name__, 2, classic=classic)
            story(h, wrong)
            agree(h.seal(), Bounds(), spark)


@pytest.mark.parametrize("first", range(0, FIRST, EACH))
def test_random_lives(tmp_path: Path, spark: Spark, first: int) -> None:
    for seed in range(first, first + EACH):
        agree(random_histories.wild(tmp_path, seed), STRICT, spark)


@pytest.mark.parametrize("first", range(0, FIRST, EACH))
def test_odd_histories(tmp_path: Path, spark: Spark, first: int) -> None:
    for seed in range(first, first + EACH):
        agree(odd_histories.tell(tmp_path, seed), STRICT, spark, cut_on_spark=seed % EACH == 0)


@pytest.mark.slow
@KINDS
@pytest.mark.parametrize("batch", range(BATCHES))
def test_fresh_histories(
    request: pytest.FixtureRequest, tmp_path: Path, spark: Spark, tell: Callable[[Path, int], Path], batch: int
) -> None:
    for number, run in enumerate(fresh.histories(request, tmp_path, tell, batch, EACH)):
        agree(run, STRICT, spark, cut_on_spark=number == 0)


def agree(run: Path, bounds: Bounds, spark: Spark, *, cut_on_spark: bool = False) -> None:
    expected, tables = agreed(run, bounds), load(run)
    assert finder.find(run, tables, bounds, spark) == expected
    if cut_on_spark:
        assert finder.find(run, tables, bounds, spark, NARROW) == expected
