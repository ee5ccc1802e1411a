"""A member's deliveries of a partition, stretch by stretch: what is to be remembered from one to the next. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fencepost.checkers.kernel.columns import NEEDED, Piece
from fencepost.checkers.kernel.rows import Rows, Stream
from fencepost.checkers.tables.seeks import Seek

Array = NDArray[Any]


class Before(NamedTuple):
    """What to remember of deliveries when those after them are judged.

    Attributes:
        rows: of the last interval, the one with the highest offset and those of the last poll.
        reached: above all offsets.
        ord, delivered_ns: of the last one.
        height, heard_ns: of the last interval, the highest offset, which an aborted transaction takes back; the latest
            delivery.
    """

    rows: Rows
    reached: int
    ord: int
    delivered_ns: int
    height: int
    heard_ns: int

    @classmethod
    def of(cls, rows: Rows, before: Before | None, returns: Sequence[Seek] = ()) -> Before:
        """Of the deliveries of one incarnation, and what was to be remembered of those before.

        Args:
            returns: when it went back because a transaction was aborted, in the order of time.
        """
        ordered, stream = rows.by_interval, rows.streams[-1]
        offset, poll = (column[stream.begin : stream.end] for column in (ordered.offset, ordered.poll))
        kept = np.union1d(np.argmax(offset), np.flatnonzero(poll == poll.max()))
        reached = max(int(rows.offset.max()) + 1, before.reached if before else 0)
        last = int(rows.ord[-1]), int(rows.delivered_ns[-1])
        heard_ns = int(ordered.delivered_ns[stream.begin : stream.end].max())
        if before and stream.begin < len(before.rows):
            heard_ns = max(heard_ns, before.heard_ns)
        height = int(heights(ordered, stream, returns, before)[-1] if returns else offset.max())
        return cls(ordered.take(stream.begin + kept), reached, *last, height, heard_ns)

    def piece(self) -> Piece:
        """The rows, to be put before others."""
        (name,) = self.rows.names
        columns = NEEDED["streams"]
        return Piece(name, lambda names: {name: getattr(self.rows, name) for name in names}, columns, len(self.rows))


def heights(ordered: Rows, stream: Stream, returns: Sequence[Seek], before: Before | None) -> Array:
    """Before each row of a stream the highest offset until then (-1: none), and after the last one.

    An aborted transaction takes it back to before where the program went, at the first row delivered since. Of rows
    that are remembered it tells nothing.
    """
    known = max(0, len(before.rows) - stream.begin) if before else 0
    top, heard_ns = (before.height, before.heard_ns) if before and known else (-1, -1)
    offset = ordered.offset[stream.begin + known : stream.end]
    later = [seek for seek in returns if seek.begin_ns > heard_ns]
    cuts = [(0, top)]
    if later:
        clock = np.maximum.accumulate(ordered.delivered_ns[stream.begin + known : stream.end])
        begins = np.searchsorted(clock, [seek.begin_ns for seek in later])
        cuts += [(int(at), seek.offset - 1) for at, seek in zip(begins, later, strict=True) if at < len(offset)]
    found = np.full(stream.end - stream.begin + 1, top, np.int64)
    for (begin, floor), (end, _) in pairwise([*cuts, (len(offset), 0)]):
        reached = np.maximum.accumulate(np.append(min(top, floor), offset[begin:end]))
        found[known + begin : known + end + 1], top = reached, int(reached[-1])
    return found
