"""How large columns are looked at without much memory on the way. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
Columns = dict[str, Array]

STEP = 1 << 15  # rows of which a few columns stay in the nearer caches


def constant(column: Array) -> bool:
    """Whether a column is kept as one value for all of its rows, and takes no room."""
    return not any(column.strides)


def each(column: Array, says: Callable[[Array], Array]) -> Array:
    """What ``says`` tells of each value of a column, on its own; of one that is constant it is asked once."""
    if not len(column) or not constant(column):
        return says(column)
    return np.full(len(column), says(column[:1])[0])


def stepwise(rows: int) -> Iterator[slice]:
    """So many rows, a few at a time: what is made of these on the way stays in the processor's cache."""
    return (slice(begin, begin + STEP) for begin in range(0, rows, STEP))


def breaks(column: Array) -> Array:
    """The rows but the first whose value is not one above that of the row before."""
    before, after, found = column[:-1], column[1:], [np.empty(0, np.int64)]
    for some in stepwise(len(after)):
        found.append(some.start + 1 + np.flatnonzero(after[some] - before[some] != 1))
    return np.concatenate(found)


def among(column: Array, values: Array) -> Array:
    """Which rows of a column have one of some values. Where it ascends, as most do, few rows are looked at."""
    values = np.unique(values)
    if len(values) * 64 > len(column) or (column[1:] < column[:-1]).any():
        return np.flatnonzero(np.isin(column, values))
    lows, highs = (np.searchsorted(column, values, side=side) for side in ("left", "right"))
    return np.concatenate([np.arange(low, high) for low, high in zip(lows, highs, strict=True)])
