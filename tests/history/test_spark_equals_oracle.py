"""Spark finds what the oracle finds, to the value: in hand-written histories, in random lives, and in very odd ones.

Each history is judged four times: by the oracle, by the kernel in this process, by the kernel with every partition cut
into ranges of a few records, and on Spark. The nightly run adds 200 histories of each teller that nobody has
seen before.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest

from fencepost.checkers.counts import Bounds
from fencepost.checkers.spark import detector
from fencepost.checkers.spark.session import Spark
from fencepost.checkers.tables import load
from history.builder import HistoryBuilder
from history.shrinking import SHRINKING_S, Tell, check_each, fresh
from history.test_commit_kinds import STORIES
from history.test_kernel_equals_oracle import FIRST, KINDS, NARROW, STRICT, agreed

pytestmark = [pytest.mark.spark, pytest.mark.timeout(SHRINKING_S)]
EACH = 10  # histories of a test
BATCHES = 20  # of fresh ones, by night


@pytest.fixture
def spark(chaos_spark: Spark) -> Spark:
    """The one of the whole test run."""
    return chaos_spark


@pytest.mark.slow
@pytest.mark.parametrize("classic", [False, True], ids=["consumer", "classic"])
@pytest.mark.parametrize("wrong", [True, False], ids=["wrong", "near-miss"])
def test_hand_written_histories(tmp_path: Path, spark: Spark, wrong: bool, classic: bool) -> None:
    for number, story in enumerate(STORIES):
        if number % 2 == classic:  # each story in one of the two protocols
            h = HistoryBuilder(tmp_path / story.__name__, 2, classic=classic)
            story(h, wrong)
            agree(h.seal(), Bounds(), spark)


@KINDS
@pytest.mark.parametrize("first", [0, *(pytest.param(n, marks=pytest.mark.slow) for n in range(EACH, FIRST, EACH))])
def test_random_histories(tmp_path: Path, spark: Spark, tell: Tell, first: int) -> None:
    agree_each(tell, tmp_path, range(first, first + EACH), spark)


@pytest.mark.slow
@KINDS
@pytest.mark.parametrize("batch", range(BATCHES))
def test_fresh_histories(request: pytest.FixtureRequest, tmp_path: Path, spark: Spark, tell: Tell, batch: int) -> None:
    agree_each(tell, tmp_path, fresh(request, batch, EACH), spark)


def agree_each(tell: Tell, folder: Path, seeds: range, spark: Spark) -> None:
    """The first of them is cut on Spark, too."""
    check_each(tell, folder, seeds[:1], partial(agree, bounds=STRICT, spark=spark, cut_on_spark=True))
    check_each(tell, folder, seeds[1:], partial(agree, bounds=STRICT, spark=spark))


def agree(run: Path, bounds: Bounds, spark: Spark, *, cut_on_spark: bool = False) -> None:
    expected, tables = agreed(run, bounds), load(run)
    assert detector.find(run, tables, bounds, spark) == expected
    if cut_on_spark:
        assert detector.find(run, tables, bounds, spark, NARROW) == expected
