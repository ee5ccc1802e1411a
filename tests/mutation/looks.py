"""What is told of the run folders that a test left: a mutant that changes nothing of that is not worth running it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from history.test_kernel_equals_oracle import AS_IF_LARGE, NARROW, STRICT

from fencepost.checkers import kernel, oracle
from fencepost.checkers.judge import judge
from fencepost.checkers.spark import detector
from fencepost.checkers.tables import load


def verdict(run: Path) -> object:
    """All that a reader sees: tables, oracle, promises, certainty and sentences make it."""
    return judge(run, oracle.detect)


def strictly(run: Path) -> object:
    """Findings by bounds that random histories reach."""
    return oracle.detect(run, load(run), STRICT)


def by_kernel(run: Path) -> object:
    """The same with numpy: as it is, and as if every task were large."""
    tables = load(run)
    found = detector.find_here(run, tables, STRICT)
    with pytest.MonkeyPatch.context() as patch:
        for name, value in AS_IF_LARGE.items():
            patch.setattr(f"{kernel.__name__}.{name}", value)
        return found, detector.find_here(run, tables, STRICT, NARROW)


Look = Callable[[Path], object]


def looks_of(test: pytest.Item) -> tuple[Look, ...]:
    """Those that show what the test looks at."""
    return (strictly, by_kernel) if test.path.name == "corpus.py" else (verdict,)


def told(look: Look, run: Path) -> object:
    """What it gives, or the error that comes instead."""
    try:
        return look(run)
    except Exception as error:
        return type(error), str(error)


def runs(folder: Path) -> Iterator[Path]:
    """The run folders in ``folder``, damaged ones too."""
    return (path.parent for path in sorted(folder.rglob("history")) if path.is_dir())
