"""What one stretch of a member's deliveries of a partition passes on to the next stretch. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fencepost.checkers.kernel.arrays import among
from fencepost.checkers.kernel.columns import NEEDED, Piece
from fencepost.checkers.kernel.rows import Rows, Stream
from fencepost.checkers.tables.seeks import Seek

Array = NDArray[Any]


@dataclass(frozen=True)
class Track:
    """The state of a stream after its last row, where the program moved its position.

    Attributes:
        at: the position of the stream; -1: before all offsets.
        over: the numbers of the moves that no longer explain anything.
        reached: the numbers of the moves whose target the rows have reached.
        first_poll: by number of a move, the first poll that returned records after the move began.
    """

    at: int = -1
    over: frozenset[int] = frozenset()
    reached: frozenset[int] = frozenset()
    first_poll: Mapping[int, int] = field(default_factory=dict)


def _none(_: int) -> Sequence[Seek]:
    return ()


class Carry(NamedTuple):
    """What the rules need to know of earlier deliveries to judge the next ones.

    Attributes:
        rows: of the last interval, the row with the highest offset and the rows of the last poll.
        reached: one above the highest offset of all.
        ord, delivered_ns: of the last row.
        height: the highest offset of the last interval; lowered by a seek back after an aborted transaction.
        heard_ns: the latest delivery of the last interval.
        track: the position in the last interval, if the program moved it there.
    """

    rows: Rows
    reached: int
    ord: int
    delivered_ns: int
    height: int
    heard_ns: int
    track: Track | None = None

    @classmethod
    def of(
        cls,
        rows: Rows,
        before: Carry | None,
        returns: Sequence[Seek] = (),
        moves: Callable[[int], Sequence[Seek]] = _none,
    ) -> Carry:
        """The carry after the deliveries ``rows`` of one incarnation; ``before``: the carry before them.

        Args:
            returns: the seeks back after aborted transactions, in the order of time.
            moves: the other moves of the program's position, in the order of time, by interval number.
        """
        ordered, stream = rows.by_interval, rows.streams[-1]
        offset, poll = (column[stream.begin : stream.end] for column in (ordered.offset, ordered.poll))
        kept = np.union1d(np.argmax(offset), np.flatnonzero(poll == poll.max()))
        reached = max(int(rows.offset.max()) + 1, before.reached if before else 0)
        last = int(rows.ord[-1]), int(rows.delivered_ns[-1])
        heard_ns = int(ordered.delivered_ns[stream.begin : stream.end].max())
        if before and stream.begin < len(before.rows):
            heard_ns = max(heard_ns, before.heard_ns)
        height, track, moved = int(offset.max()), None, moves(stream.interval)
        if returns or moved:
            tops = heights(ordered, stream, returns, before)
            height = int(tops[-1])
            track = places(ordered, stream, tops, poll, moved, before).track if moved else None
        return cls(ordered.take(stream.begin + kept), reached, *last, height, heard_ns, track)

    def piece(self) -> Piece:
        """The rows as a piece, to be placed before the next ones."""
        (name,) = self.rows.names
        columns = NEEDED["streams"]
        return Piece(name, lambda names: {name: getattr(self.rows, name) for name in names}, columns, len(self.rows))


def heights(ordered: Rows, stream: Stream, returns: Sequence[Seek], before: Carry | None) -> Array:
    """For each row of a stream, the highest offset before it (-1: none); a last element has the one after all rows.

    A seek back after an aborted transaction lowers it to just below its target, from the first row delivered since.
    For carried rows the elements mean nothing.
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


class StreamPositions(NamedTuple):
    """The position of a stream before each of its rows.

    Attributes:
        at: the position; the offsets between it and the row are skipped.
        gone_to: up to here the program skipped them.
        sought: whether the row follows a move back.
        track: the state after the last row.
    """

    at: Array
    gone_to: Array
    sought: Array
    track: Track


def places(
    ordered: Rows, stream: Stream, tops: Array, poll: Array, moves: Sequence[Seek], before: Carry | None
) -> StreamPositions:
    """The positions of a stream whose program moved its position, row by row: such streams are rare.

    Args:
        tops: the highest offset before each row, see ``heights``.
        poll: the polls of the rows.
        moves: the moves in the interval, in the order of their starts.
    """
    known = max(0, len(before.rows) - stream.begin) if before else 0
    track = (before.track if before and known else None) or Track()
    span = slice(stream.begin, stream.end)
    lower = within_polls(poll, ordered.offset[span], np.flatnonzero(ordered.offset[span] <= tops[:-1]))[1]
    at, over, reached, first_poll = track.at, set(track.over), set(track.reached), dict(track.first_poll)
    waiting = [n for n in range(len(moves)) if n not in over]
    columns = (ordered.offset[span], ordered.delivered_ns[span], poll, tops[:-1], lower)
    found = np.zeros((3, stream.end - stream.begin), np.int64)
    rows = zip(*(column[known:].tolist() for column in columns), strict=True)
    for row, (offset, delivered_ns, number, top, is_lower) in enumerate(rows, known):
        at = min(at, top)
        was, gone_to, sought = at, at, offset <= top
        begun = [n for n in waiting if moves[n].begin_ns <= delivered_ns]
        back = [n for n in begun if moves[n].offset <= offset]
        if offset > at:
            ahead = [n for n in back if moves[n].offset > at]
            reached.update(ahead)
            gone_to = moves[ahead[-1]].offset - 1 if ahead else at
            at = offset
        elif back and not is_lower:
            over.update(range(back[-1] + 1))
            was = gone_to = moves[back[-1]].offset - 1
            at = offset
        else:
            sought = False
        for n in begun:
            if moves[n].begin_ns < delivered_ns:
                first_poll[n] = min(first_poll.get(n, number), number)
        over.update(n for n in reached if first_poll.get(n, number) < number)
        reached -= over
        waiting = [n for n in waiting if n not in over] if over.intersection(waiting) else waiting
        found[:, row] = was, gone_to, sought
    return StreamPositions(
        found[0], found[1], found[2] == 1, Track(at, frozenset(over), frozenset(reached), first_poll)
    )


def within_polls(poll: Array, offset: Array, odd: Array) -> tuple[Array, Array]:
    """Two arrays, valid for the rows ``odd``: whether earlier rows are of the same poll, and whether the offset is not
    above all of these."""
    later, lower = np.zeros(len(poll), bool), np.zeros(len(poll), bool)
    if not len(odd):
        return later, lower
    near = among(poll, poll[odd])
    _, number = np.unique(poll[near], return_inverse=True)
    _, rank = np.unique(offset[near], return_inverse=True)
    order = np.argsort(number, kind="stable")
    height = number[order] * len(order) + rank[order]  # above every one of an earlier poll
    later[near[order[1:]]] = np.diff(number[order]) == 0
    lower[near[order[1:]]] = height[1:] <= np.maximum.accumulate(height)[:-1]
    return later, lower
