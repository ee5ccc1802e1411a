"""The kernel finds what the oracle finds, to the value, in hundreds of random lives and very odd histories.

Each history is judged three times in this process: by the oracle, by the kernel, and by the kernel with every partition
cut into ranges of a few records. Spark performs the same kernel; ``test_spark_equals_oracle`` looks at a hundred more.
The nightly run adds 10,000 histories that nobody has seen before.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from fencepost.checkers import oracle
from fencepost.checkers.facts import Bounds, Facts
from fencepost.checkers.spark import finder
from fencepost.checkers.tables import load
from fencepost.checkers.tables.rows import NS
from fencepost.model import Anomaly
from history import fresh, odd_histories, random_histories

STRICT = Bounds(stuck_ns=5 * NS, recovers_ns=2 * NS, loop_deliveries=3, loop_ns=2 * NS)
NARROW = 3  # records of a range
FIRST, LAST, EACH = 50, 200, 50  # seeds below FIRST are judged on Spark, too
BATCHES, BATCH = 50, 100  # of fresh histories, by night
KINDS = pytest.mark.parametrize("tell", [random_histories.wild, odd_histories.tell], ids=["lives", "odd"])

Found = tuple[list[Anomaly], Facts]


@KINDS
@pytest.mark.parametrize("first", range(FIRST, LAST, EACH))
def test_random_histories(tmp_path: Path, tell: Callable[[Path, int], Path], first: int) -> None:
    for seed in range(first, first + EACH):
        agreed(tell(tmp_path, seed), STRICT)


@pytest.mark.slow
@KINDS
@pytest.mark.parametrize("batch", range(BATCHES))
def test_fresh_histories(
    request: pytest.FixtureRequest, tmp_path: Path, tell: Callable[[Path, int], Path], batch: int
) -> None:
    for run in fresh.histories(request, tmp_path, tell, batch, BATCH):
        agreed(run, STRICT)


def agreed(run: Path, bounds: Bounds) -> Found:
    """What the oracle finds, and the kernel too. However odd a history is, no rule may crash on it."""
    tables = load(run)
    expected = oracle.judge(run, tables, bounds)
    assert not expected[1].failed
    assert finder.find_here(run, tables, bounds) == expected
    assert finder.find_here(run, tables, bounds, NARROW) == expected
    return expected
