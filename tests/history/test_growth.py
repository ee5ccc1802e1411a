"""No rule looks at every row for each row: four times as many of anything take about four times as many steps.

A step is a line of ``checkers`` that is executed (each turn of a loop, or of a comprehension, is one), counted for each
function, so that a small quadratic part does not hide in a large linear one. What numpy does at once is one step.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from types import FrameType

import pytest
from benchmarks.synthetic import Shape, write
from tracing import Note, traced

from fencepost.checkers import judge
from fencepost.checkers.counts import Bounds
from fencepost.checkers.spark import detector
from fencepost.checkers.tables import Tables, load
from fencepost.checkers.tables.rows import NS, DeclaredAction, LeaderChange, Window
from fencepost.checkers.tables.seeks import Seek

TIMES = 4
RATIO_MAX = 6  # n log n is below 5, and n² is 16
REST_NS = NS // 4  # how late a broker may have written a line bounds what a rule looks at, if rounds are as far apart
FEW = 3_000  # steps that tell of no growth
Steps = Counter[str]


@contextmanager
def counted() -> Iterator[Steps]:
    """Counts the steps of each function of ``checkers``."""
    steps: Steps = Counter()

    def note_of(frame: FrameType) -> Note | None:
        code = frame.f_code
        if "/checkers/" not in code.co_filename or "/oracle/" in code.co_filename:
            return None
        name = f"{code.co_filename.rpartition('/checkers/')[2]}:{code.co_qualname}"

        def note(_: int) -> None:
            steps[name] += 1

        return note

    with traced(note_of):
        yield steps


def quadratic(few: Steps, many: Steps) -> dict[str, tuple[int, int]]:
    """The functions whose steps grow faster than what they are given."""
    return {name: (few[name], n) for name, n in many.items() if n > max(FEW, RATIO_MAX * few[name])}


SHAPES: dict[str, Callable[[int], Shape]] = {
    "rounds": lambda n: _shape(handovers=40 * n, members=2),
    "partitions": lambda n: _shape(partitions=8 * n),
    "incarnations": lambda n: _shape(handovers=60, rounds_each_life=28 // n),
    "members": lambda n: _shape(partitions=16, members=4 * n),
    "commits": lambda n: _shape(commit_every=8 // n),
}


def _shape(**changes: int) -> Shape:
    size = {"partitions": 8, "members": 4, "handovers": 20, "redelivered": 2, "dirt": 1, "rest_ns": REST_NS, **changes}
    return Shape(records=16 * size["partitions"] * (size["handovers"] + 1), **size)


@pytest.mark.slow
@pytest.mark.parametrize("name", SHAPES)
def test_a_verdict_takes_steps_in_proportion_to_the_history(tmp_path: Path, name: str) -> None:
    steps = []
    for times in (1, TIMES):
        run = write(tmp_path, SHAPES[name](times))
        with counted() as taken:
            judge.judge(run, detector.find_here)
        steps.append(taken)
    assert quadratic(*steps) == {}


def _told(tables: Tables, n: int) -> Tables:
    """With ``n`` seeks, acts, stalls and changes of leaders among all else."""
    first, last = tables.intervals[0].assigned_begin_ns, tables.phases["drain"].end_ns
    times = [first + (last - first) * k // n for k in range(n)]
    i = tables.intervals[0]
    return replace(
        tables,
        seeks=tuple(Seek(i.tp, i.incarnation, 0, at_ns) for at_ns in times),
        acts=tuple(DeclaredAction("reset", k % 3, at_ns) for k, at_ns in enumerate(times)),
        stalls=tuple(Window(at_ns, at_ns + 1) for at_ns in times),
        leaders=tuple(LeaderChange(at_ns, 0, k % 3, k % 2 - 1) for k, at_ns in enumerate(times)),
    )


@pytest.mark.slow
@pytest.mark.parametrize("protocol", ["eager", "cooperative"])
def test_rules_take_steps_in_proportion_to_what_else_happened(tmp_path: Path, protocol: str) -> None:
    run = write(tmp_path, _shape())
    tables = load(run)
    asked = {**tables.asked, "group": {**tables.asked["group"], "protocol": protocol}}
    steps = []
    for n in (100, 100 * TIMES):
        reported = replace(_told(tables, n), scenario={"scenario": asked})
        with counted() as taken:
            detector.find_here(run, reported, Bounds(NS // 10, NS // 10, NS // 10, 0))
        steps.append(taken)
    assert quadratic(*steps) == {}
