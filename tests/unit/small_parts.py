"""What the kernel's rules look at, made of a few rows and small tables."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import numpy as np

from fencepost.checkers.facts import Bounds
from fencepost.checkers.kernel.before import Before
from fencepost.checkers.kernel.columns import Files
from fencepost.checkers.kernel.judged import Judged
from fencepost.checkers.kernel.part import Part
from fencepost.checkers.kernel.ranges import FIRST, LAST, Task
from fencepost.checkers.kernel.rows import Rows
from fencepost.checkers.tables import Tables
from fencepost.checkers.tables.rows import Interval
from fencepost.checkers.tables.seeks import Seek

TP = 3
WHOLE = Task(TP, FIRST, LAST)
STRETCH = Task(TP, FIRST, LAST, "streams")
USUAL = Bounds()

# Of an interval of ``a`` from 100 on, by a delivery at 120: did its program move its position?
MOVES = [
    (Seek(TP, "a", 30, 120), "seek"),
    (Seek(TP, "a", 30, 121), ""),
    (Seek(TP, "a", 30, 100), "seek"),
    (Seek(TP, "a", 30, 99), ""),
    (Seek(TP, "b", 30, 110), ""),
    (Seek(TP, "a", 30, 115, aborted=True), ""),
]


def rows(names: Sequence[str] = ("a",), **columns: Sequence[int]) -> Rows:
    """Delivered records, of which the columns that are not told are zeros, and ``ord`` counts."""
    (length,) = {len(column) for column in columns.values()}
    every: dict[str, Any] = dict.fromkeys(Rows.__dataclass_fields__, np.zeros(length, np.int64))
    every |= {name: np.array(column, np.int64) for name, column in {"ord": range(length), **columns}.items()}
    return Rows(**{**every, "names": tuple(names)})


def columns(names: Sequence[str], given: Sequence[Sequence[int]]) -> dict[str, Any]:
    """Rows as columns of these names."""
    return dict(zip(names, np.array(given, np.int64).reshape(-1, len(names)).T, strict=True))


def part(
    tables: Tables,
    given: Rows,
    task: Task = WHOLE,
    *,
    bounds: Bounds = USUAL,
    start: int = 0,
    before: Before | None = None,
    **known: Any,
) -> Any:
    """Of partition 3, where the group starts at ``start``; ``known``: what need not be read from files."""
    of = Part(Judged(tables, bounds, {TP: start}), cast("Files", None), task, before=before)
    vars(of).update(rows=given, **known)
    return of


def owned(name: str, number: int, begin_ns: int, end_ns: int = 0, how: str = "revoked") -> Interval:
    """An assignment interval, of 99 ns unless told; callbacks take 1. Without ``how`` nobody saw its end."""
    end_ns = end_ns or begin_ns + 99
    return Interval(TP, name, number, 1, f"id-{name}", begin_ns, begin_ns + 1, end_ns - 1, end_ns if how else 0, how)
