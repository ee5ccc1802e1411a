"""A member's deliveries of a partition, stretch by stretch: what is to be remembered from one to the next. Pure."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from fencepost.checkers.kernel.columns import NEEDED, Piece
from fencepost.checkers.kernel.rows import Rows


class Before(NamedTuple):
    """What to remember of deliveries when those after them are judged.

    Attributes:
        rows: of the last interval, the one with the highest offset and those of the last poll.
        reached: above all offsets.
        ord, delivered_ns: of the last one.
    """

    rows: Rows
    reached: int
    ord: int
    delivered_ns: int

    @classmethod
    def of(cls, rows: Rows, before: Before | None) -> Before:
        """Of the deliveries of one incarnation, and what was to be remembered of those before."""
        ordered, stream = rows.by_interval, rows.streams[-1]
        offset, poll = (column[stream.begin : stream.end] for column in (ordered.offset, ordered.poll))
        kept = np.union1d(np.argmax(offset), np.flatnonzero(poll == poll.max()))
        reached = max(int(rows.offset.max()) + 1, before.reached if before else 0)
        return cls(ordered.take(stream.begin + kept), reached, int(rows.ord[-1]), int(rows.delivered_ns[-1]))

    def piece(self) -> Piece:
        """The rows, to be put before others."""
        (name,) = self.rows.names
        columns = NEEDED["streams"]
        return Piece(name, lambda names: {name: getattr(self.rows, name) for name in names}, columns, len(self.rows))
