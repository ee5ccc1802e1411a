"""The rivals of the judge's benchmark find as many of each kind as the judge, in the smallest histories of each."""

from __future__ import annotations

import importlib
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from fencepost.checkers import oracle
from fencepost.checkers.counts import Bounds
from fencepost.checkers.tables import load
from history.builder import HistoryBuilder
from history.test_commit_kinds import CASES as COMMITS
from history.test_kinds import CASES, Story

pytestmark = pytest.mark.slow
BENCHMARKS = Path(__file__).parents[1] / "benchmarks"
OF_POSITIONS = ("rewind", "poll-skip")
OF_SENDS = ("duplicate-write", "nonmonotonic-send")


@pytest.fixture
def load_script(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The benchmark's scripts find each other as scripts do."""
    monkeypatch.syspath_prepend(BENCHMARKS)
    return importlib.import_module


@pytest.mark.parametrize("wrong", [True, False], ids=["wrong", "right"])
@pytest.mark.parametrize("story", CASES, ids=lambda story: story.__name__)
@pytest.mark.parametrize("engine", ["duckdb", "polars"])
def test_rivals_find_what_the_judge_finds(
    tmp_path: Path, load_script: Any, engine: str, story: Story, wrong: bool
) -> None:
    run = told(tmp_path, story, wrong)
    found, expected = load_script(f"rival_{engine}").judge(run), judged(run, load_script("rivals"))
    tables = load(run)  # rivals know neither that a transaction that was aborted takes a position back, nor copies
    unknown = (OF_POSITIONS if tables.returns_of else ()) + (OF_SENDS if tables.copies else ())
    found, expected = ({k: n for k, n in of.items() if k not in unknown} for of in (found, expected))
    assert found == expected


@pytest.mark.spark
@pytest.mark.timeout(1800)
def test_plain_spark_finds_each_kind(tmp_path: Path, load_script: Any) -> None:
    rivals, rival = load_script("rivals"), load_script("rival_spark")
    known = set[str]()
    try:
        for story, partitions in [*((story, 1) for story in CASES), *((story, 2) for story in COMMITS)]:
            run = told(tmp_path / story.__name__, story, True, partitions)
            expected = judged(run, rivals)
            tables = load(run)
            if set(expected) - known and not tables.returns_of and not tables.copies:
                known |= set(expected)
                assert rival.judge(run) == expected, story.__name__
    finally:
        rival.session().stop()  # others start one with settings of their own
    assert known == set(rivals.KINDS.values())


def told(folder: Path, story: Story, wrong: bool, partitions: int = 1) -> Path:
    h = HistoryBuilder(folder, partitions)
    story(h, wrong)
    return h.seal()


def judged(run: Path, rivals: Any) -> dict[str, int]:
    """The judge's answer, as that of a rival."""
    counts: Counter[str] = Counter()
    for anomaly in oracle.detect(run, load(run), Bounds())[0]:
        counts[anomaly.kind] += anomaly.count
    return dict(rivals.answer((kind, count) for kind, count in counts.items() if kind in rivals.KINDS))
