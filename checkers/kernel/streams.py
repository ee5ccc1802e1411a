"""Kernel rules about the order of deliveries inside one incarnation: rewind, poll-skip, history-incomplete."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fencepost.checkers.kernel.arrays import among, breaks
from fencepost.checkers.kernel.before import heights
from fencepost.checkers.kernel.part import Part
from fencepost.checkers.kernel.rows import Rows, Stream
from fencepost.checkers.kernel.tallies import Label
from fencepost.checkers.kernel.whole import Between
from fencepost.checkers.tables.rows import FOREVER, Window
from fencepost.checkers.tables.seeks import Seek

Array = NDArray[Any]
CAUSES = ("", "seek", "inside one poll")


def streams(part: Part) -> None:
    """``rewind`` and ``poll-skip``: delivered not above, or not right after, what its interval delivered before."""
    rows = part.rows.by_interval
    jumps = breaks(rows.offset)
    for stream in rows.streams:
        first, last = np.searchsorted(jumps, [stream.begin + 1, stream.end])
        returns = part.tables.returns_of.get((rows.names[stream.who], part.tp), ())
        if stream.interval >= 0 and (first < last or returns):
            _stream(part, rows, stream, returns)


def _stream(part: Part, rows: Rows, stream: Stream, returns: Sequence[Seek]) -> None:
    offset = rows.offset[stream.begin : stream.end]
    delivered_ns = rows.delivered_ns[stream.begin : stream.end]
    highest = heights(rows, stream, returns, part.before)[1:-1]  # before each row but the first
    back, ahead = 1 + np.flatnonzero(offset[1:] <= highest), 1 + np.flatnonzero(offset[1:] > highest + 1)
    back, ahead = (odd[odd >= part.fresh - stream.begin] for odd in (back, ahead))
    skipped = part.whole.between(highest[ahead - 1], offset[ahead])
    jumped = skipped.counts > 0
    ahead, skipped = ahead[jumped], Between(*(column[jumped] for column in skipped))
    if not len(ahead) and not len(back):
        return
    later, lower = _inside(part.polls(stream), offset, np.append(ahead, back))
    times = delivered_ns[ahead - 1], delivered_ns[ahead]
    _put(part, rows, stream, "poll-skip", later[ahead], times, skipped.firsts, skipped.lasts, skipped.counts)
    times = delivered_ns[back], delivered_ns[back]
    _put(part, rows, stream, "rewind", lower[back], times, offset[back])


def _inside(poll: Array, offset: Array, odd: Array) -> tuple[Array, Array]:
    """Which of the odd records come after another of their poll, and which are not above one of these."""
    near = among(poll, poll[odd])
    _, number = np.unique(poll[near], return_inverse=True)
    _, rank = np.unique(offset[near], return_inverse=True)
    order = np.argsort(number, kind="stable")
    height = number[order] * len(order) + rank[order]  # above every one of an earlier poll
    later, lower = np.zeros(len(poll), bool), np.zeros(len(poll), bool)
    later[near[order[1:]]] = np.diff(number[order]) == 0
    lower[near[order[1:]]] = height[1:] <= np.maximum.accumulate(height)[:-1]
    return later, lower


def _put(
    part: Part,
    rows: Rows,
    stream: Stream,
    kind: str,
    inside: Array,
    times: tuple[Array, Array],
    first: Array,
    last: Array | None = None,
    count: Array | None = None,
) -> None:
    act, says = part.declared(times[1])
    name = rows.names[stream.who]
    part.tallies.put_many(
        kind,
        part.tp,
        [np.where(inside, 2, times[1] >= sought_ns(part, stream)), act],
        lambda cause, act: Label((name,), CAUSES[cause], says(act)),
        first=first,
        last=last,
        from_ns=times[0],
        to_ns=times[1],
        count=count,
    )


def sought_ns(part: Part, stream: Stream) -> int:
    """When the program first began to seek in this interval; far away when it never did."""
    interval = part.interval_of(stream.who, stream.interval)
    since = interval.assigned_begin_ns if interval else 0
    name = part.rows.names[stream.who]
    seeks = part.tables.seeks_of.meeting((name, part.tp), Window(since, FOREVER))
    return next((seek.begin_ns for seek in seeks if not seek.aborted), FOREVER)


def delivery_outside(part: Part) -> None:
    """``delivery-outside-assignment``: delivered in no interval, when the member possibly had none."""
    rows = part.rows.by_interval
    for stream in rows.streams:
        if part.interval_of(stream.who, stream.interval) is not None:
            continue
        name, mine = rows.names[stream.who], slice(max(stream.begin, part.fresh), stream.end)
        outside = ~part.possibly_owned(name, rows.delivered_ns[mine])
        offsets, at_ns = rows.offset[mine][outside], rows.delivered_ns[mine][outside]
        codes = [np.zeros(len(offsets), np.int64)]
        times = {"from_ns": at_ns, "to_ns": at_ns}
        kind = "delivery-outside-assignment"
        part.tallies.put_many(kind, part.tp, codes, lambda _, name=name: Label((name,)), first=offsets, **times)


def history_incomplete(part: Part) -> None:
    """``history-incomplete``: a counter ``ord`` has a hole, or a number twice; a delivery before its assignment."""
    _counters(part, part.rows.take(slice(part.fresh, None)) if part.fresh else part.rows)
    rows = part.rows.by_interval
    for stream in rows.streams:
        interval = part.interval_of(stream.who, stream.interval)
        if interval is not None:
            _early(part, rows, stream, interval.assigned_begin_ns)


def _early(part: Part, rows: Rows, stream: Stream, assigned_ns: int) -> None:
    begin = max(stream.begin, part.fresh)
    early = begin + np.flatnonzero(rows.delivered_ns[begin : stream.end] < assigned_ns)
    part.tallies.put_many(
        "history-incomplete",
        part.tp,
        [rows.who[early]],
        lambda who: Label((rows.names[who],), "early"),
        first=rows.offset[early],
        from_ns=rows.delivered_ns[early],
        to_ns=np.full(len(early), assigned_ns),
    )


def _counters(part: Part, rows: Rows) -> None:
    first = np.array(rows.bounds[:-1], np.int64)
    odd = np.union1d(rows.breaks, first)
    is_first = np.isin(odd, first)
    last_ord, last_ns = (part.before.ord, part.before.delivered_ns) if part.before else (-1, 0)
    missing = rows.ord[odd] - np.where(is_first, last_ord, rows.ord[odd - 1]) - 1
    odd, is_first, missing = odd[missing != 0], is_first[missing != 0], missing[missing != 0]
    before = np.where(is_first, last_ns, rows.delivered_ns[odd - 1])
    part.tallies.put_many(
        "history-incomplete",
        part.tp,
        [rows.who[odd], missing > 0],
        lambda who, hole: Label((rows.names[who],), "hole" if hole else "twice"),
        first=rows.offset[odd],
        from_ns=before,
        to_ns=rows.delivered_ns[odd],
        count=np.maximum(missing, 1),
    )
