"""Kernel rules about the deliveries of one incarnation: rewind, poll-skip, delivery-outside-assignment,
history-incomplete."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fencepost.checkers.kernel.aggregates import Label
from fencepost.checkers.kernel.arrays import breaks
from fencepost.checkers.kernel.carry import heights, places, within_polls
from fencepost.checkers.kernel.partition_lookup import Between
from fencepost.checkers.kernel.rows import Rows, Stream
from fencepost.checkers.kernel.task_data import TaskData
from fencepost.checkers.tables.seeks import Seek

Array = NDArray[Any]
CAUSES = ("", "seek", "inside one poll")
INSIDE = CAUSES.index("inside one poll")


def streams(part: TaskData) -> None:
    """``rewind``, ``poll-skip``: an offset is not above the earlier ones of its interval, or not right after them."""
    rows = part.rows.by_interval
    jumps = breaks(rows.offset)
    for stream in rows.streams:
        first, last = np.searchsorted(jumps, [stream.begin + 1, stream.end])
        returns = part.tables.returns_of.get((rows.names[stream.who], part.tp), ())
        if stream.interval >= 0 and (first < last or returns):
            _stream(part, rows, stream, returns)


def _stream(part: TaskData, rows: Rows, stream: Stream, returns: Sequence[Seek]) -> None:
    offset = rows.offset[stream.begin : stream.end]
    delivered_ns = rows.delivered_ns[stream.begin : stream.end]
    tops = heights(rows, stream, returns, part.before)
    highest = at = gone_to = tops[:-1]  # before each row
    sought, moves = np.zeros(len(offset), bool), part.moves(rows.names[stream.who], stream.interval)
    if moves:
        at, gone_to, sought, _ = places(rows, stream, tops, part.polls(stream), moves, part.before)
    fresh = np.arange(len(offset)) >= max(1, part.fresh - stream.begin)
    back, ahead = np.flatnonzero(fresh & (offset <= highest)), np.flatnonzero(fresh & (offset > at + 1))
    if not len(ahead) and not len(back):
        return
    later, lower = within_polls(part.polls(stream), offset, np.append(ahead, back))
    gone_to = np.where(later, at, gone_to)
    for cause, low, high in (("", gone_to, offset), ("seek", at, gone_to + 1)):
        skipped = part.whole.between(low[ahead], high[ahead])
        which = skipped.counts > 0
        some, skipped = ahead[which], Between(*(column[which] for column in skipped))
        times = delivered_ns[some - 1], delivered_ns[some]
        causes = np.where(later[some], INSIDE, CAUSES.index(cause))
        _put(part, rows, stream, "poll-skip", causes, times, skipped.firsts, skipped.lasts, skipped.counts)
    times = delivered_ns[back], delivered_ns[back]
    _put(part, rows, stream, "rewind", np.where(lower[back], INSIDE, sought[back]), times, offset[back])


def _put(
    part: TaskData,
    rows: Rows,
    stream: Stream,
    kind: str,
    causes: Array,
    times: tuple[Array, Array],
    first: Array,
    last: Array | None = None,
    count: Array | None = None,
) -> None:
    act, excuse_of = part.declared(times[1])
    name = rows.names[stream.who]
    by_program = {"seek": part.tables.sought}
    part.aggregates.put_many(
        kind,
        part.tp,
        [causes, act],
        lambda cause, act: Label((name,), CAUSES[cause], excuse_of(act) or by_program.get(CAUSES[cause], "")),
        first=first,
        last=last,
        from_ns=times[0],
        to_ns=times[1],
        count=count,
    )


def delivery_outside(part: TaskData) -> None:
    """``delivery-outside-assignment``: delivered in no interval, when the member cannot have owned the partition."""
    rows = part.rows.by_interval
    for stream in rows.streams:
        if part.interval_of(stream.who, stream.interval) is not None:
            continue
        name, fresh = rows.names[stream.who], slice(max(stream.begin, part.fresh), stream.end)
        outside = ~part.possibly_owned(name, rows.delivered_ns[fresh])
        offsets, at_ns = rows.offset[fresh][outside], rows.delivered_ns[fresh][outside]
        codes = [np.zeros(len(offsets), np.int64)]
        times = {"from_ns": at_ns, "to_ns": at_ns}
        kind = "delivery-outside-assignment"
        part.aggregates.put_many(kind, part.tp, codes, lambda _, name=name: Label((name,)), first=offsets, **times)


def history_incomplete(part: TaskData) -> None:
    """``history-incomplete``: a counter ``ord`` has a hole or a duplicate, or a delivery precedes its assignment."""
    _counters(part, part.rows.take(slice(part.fresh, None)) if part.fresh else part.rows)
    rows = part.rows.by_interval
    for stream in rows.streams:
        interval = part.interval_of(stream.who, stream.interval)
        if interval is not None:
            _early(part, rows, stream, interval.assigned_begin_ns)


def _early(part: TaskData, rows: Rows, stream: Stream, assigned_ns: int) -> None:
    begin = max(stream.begin, part.fresh)
    early = begin + np.flatnonzero(rows.delivered_ns[begin : stream.end] < assigned_ns)
    part.aggregates.put_many(
        "history-incomplete",
        part.tp,
        [rows.who[early]],
        lambda who: Label((rows.names[who],), "early"),
        first=rows.offset[early],
        from_ns=rows.delivered_ns[early],
        to_ns=np.full(len(early), assigned_ns),
    )


def _counters(part: TaskData, rows: Rows) -> None:
    first = np.array(rows.bounds[:-1], np.int64)
    odd = np.union1d(rows.breaks, first)
    is_first = np.isin(odd, first)
    last_ord, last_ns = (part.before.ord, part.before.delivered_ns) if part.before else (-1, 0)
    missing = rows.ord[odd] - np.where(is_first, last_ord, rows.ord[odd - 1]) - 1
    odd, is_first, missing = odd[missing != 0], is_first[missing != 0], missing[missing != 0]
    before = np.where(is_first, last_ns, rows.delivered_ns[odd - 1])
    part.aggregates.put_many(
        "history-incomplete",
        part.tp,
        [rows.who[odd], missing > 0],
        lambda who, hole: Label((rows.names[who],), "hole" if hole else "twice"),
        first=rows.offset[odd],
        from_ns=before,
        to_ns=rows.delivered_ns[odd],
        count=np.maximum(missing, 1),
    )
