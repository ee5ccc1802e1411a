"""Operations on large columns that need little additional memory. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
Columns = dict[str, Array]

STEP = 1 << 15  # rows: a few columns of this length fit into the processor's faster caches


def constant(column: Array) -> bool:
    """Whether a column stores one value for all of its rows, and so needs no memory."""
    return not any(column.strides)


def each(column: Array, function: Callable[[Array], Array]) -> Array:
    """``function`` of each value of a column; computed only once if the column is constant."""
    if not len(column) or not constant(column):
        return function(column)
    return np.full(len(column), function(column[:1])[0])


def stepwise(rows: int) -> Iterator[slice]:
    """Slices that cover ``rows`` rows, ``STEP`` at a time: intermediate results stay in the processor's cache."""
    return (slice(begin, begin + STEP) for begin in range(0, rows, STEP))


def breaks(column: Array) -> Array:
    """The rows, except the first, whose value is not the value of the row before plus 1."""
    before, after, found = column[:-1], column[1:], [np.empty(0, np.int64)]
    for some in stepwise(len(after)):
        found.append(some.start + 1 + np.flatnonzero(after[some] - before[some] != 1))
    return np.concatenate(found)


def among(column: Array, values: Array) -> Array:
    """The rows of a column whose value is one of ``values``. An ascending column, the usual case, is bisected."""
    values = np.unique(values)
    if len(values) * 64 > len(column) or (column[1:] < column[:-1]).any():
        return np.flatnonzero(np.isin(column, values))
    lows, highs = (np.searchsorted(column, values, side=side) for side in ("left", "right"))
    return np.concatenate([np.arange(low, high) for low, high in zip(lows, highs, strict=True)])
