"""The generator of big histories plants what it says: the kernel and the oracle find exactly that, in every shape."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from benchmarks import synthetic

from fencepost.checkers import oracle
from fencepost.checkers.counts import Bounds
from fencepost.checkers.spark import detector
from fencepost.checkers.tables import load

OTHERS = [("uniform", 0), *((name, 1) for name in synthetic.SHAPES if name != "uniform")]


@pytest.mark.parametrize(
    ("name", "dirt"),
    [("uniform", 1), *(pytest.param(*one, marks=pytest.mark.slow) for one in OTHERS)],
)
def test_what_was_planted_is_found_and_nothing_else(tmp_path: Path, name: str, dirt: int) -> None:
    shape = synthetic.shape(name, 10_000, dirt=dirt, seed=len(name))
    run = synthetic.write(tmp_path, shape)
    tables = load(run)
    assert not tables.damage
    found, facts = detector.find_here(run, tables, Bounds())
    counts: Counter[str] = Counter()
    for anomaly in found:
        counts[anomaly.kind] += anomaly.count
    assert counts == synthetic.planted(shape)
    assert not facts.failed
    assert (found, facts) == oracle.detect(run, tables, Bounds())
