"""The kernel finds what the oracle finds, to the value, in hundreds of random lives and very odd histories.

Each history is judged three times in this process: by the oracle, by the kernel, and by the kernel with every partition
cut into ranges of a few records and each of these taken for many (``AS_IF_LARGE``). Spark performs the same kernel;
``test_spark_equals_oracle`` looks at a hundred more.
The nightly run adds 10,000 histories that nobody has seen before.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from fencepost.checkers import kernel, oracle
from fencepost.checkers.facts import Bounds, Facts
from fencepost.checkers.spark import finder
from fencepost.checkers.tables import load
from fencepost.checkers.tables.rows import NS
from fencepost.model import Anomaly
from history import fresh, odd_histories, random_histories
from history.builder import HistoryBuilder

STRICT = Bounds(stuck_ns=5 * NS, recovers_ns=2 * NS, loop_deliveries=3, loop_ns=2 * NS)
NARROW = 3  # records of a range
AS_IF_LARGE = {"columns.MANY": 0, "places.SHORT": 0, "places.SPARSE": 0}  # what the kernel does for large tasks only
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
    with pytest.MonkeyPatch.context() as patch:
        for name, value in AS_IF_LARGE.items():
            patch.setattr(f"{kernel.__name__}.{name}", value)
        assert finder.find_here(run, tables, bounds, NARROW) == expected
    return expected


# What random histories showed: each once told finders apart.


def test_two_deliveries_of_a_record_under_one_number(tmp_path: Path) -> None:
    """A history that is damaged: which poll brought the one that is looked at, its number does not tell."""
    h = HistoryBuilder(tmp_path)
    h.write(2)
    a = h.member(0)
    a.assigned(1)
    a.deliver(0, 2).begin(2)
    a.deliver(0, 3, ord=0).begin(3)
    a.commit(1, 4)
    a.lost(5)
    a.die(6)
    (unseen,) = (anomaly for anomaly in agreed(h.seal(), STRICT)[0] if anomaly.kind == "unseen")
    assert unseen.excuse == "in hand when its owner was evicted"
