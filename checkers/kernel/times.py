"""Kernel rules about times of processing: processing-overlap, work-after-reassignment, processing-after-revocation."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fencepost.checkers.detections import blamed
from fencepost.checkers.kernel.aggregates import Label, Totals
from fencepost.checkers.kernel.arrays import constant
from fencepost.checkers.kernel.owners import NOBODY
from fencepost.checkers.kernel.partitioning import joined
from fencepost.checkers.kernel.rows import Rows, Stream, inside
from fencepost.checkers.kernel.task_data import TaskData
from fencepost.checkers.tables.rows import FOREVER, Interval, Window

Array = NDArray[Any]


class Span(NamedTuple):
    """From the first start to the last end of the records that one incarnation processed in one interval."""

    begin_ns: int
    end_ns: int
    incarnation: str
    interval: int = 0


def processing_overlap(part: TaskData) -> None:
    """``processing-overlap``: single records are compared only where spans of different incarnations overlap.

    A task that has only a range of its partition returns its spans instead (``#span``), see ``boundaries``.
    """
    rows = part.rows.by_interval
    worked = rows.begun & (rows.done_ns > rows.begin_ns)  # others took no time: their spans could end before they begin
    spans = list(_spans(rows, worked))
    if part.task.rules == "offsets":
        for span in spans:
            label = Label((span.incarnation,), str(span.interval))
            part.aggregates.put("#span", part.tp, label, Totals(from_ns=span.begin_ns, to_ns=span.end_ns))
        return
    windows = part.task.spans if part.task.rules == "overlap" else meetings(spans)
    if windows:
        chosen = inside(rows.begin_ns, rows.done_ns, [Window(begin + 1, end - 1) for begin, end in windows])
        _compare(part, _pieces(part, rows.take(np.flatnonzero(chosen & worked))))


def _spans(rows: Rows, worked: Array) -> Iterator[Span]:
    for stream in rows.streams:
        span = slice(stream.begin, stream.end)
        begin, done, which = rows.begin_ns[span], rows.done_ns[span], worked[span]
        if not which.all():
            begin, done = begin[which], done[which]
        if len(begin):
            yield Span(int(begin.min()), int(done.max()), rows.names[stream.who], stream.interval)


def meetings(spans: Iterable[Span]) -> tuple[Window, ...]:
    """The windows in which spans of different incarnations overlap, merged where they overlap each other."""
    found: list[Window] = []
    running: list[Span] = []
    for span in sorted(spans):
        running = [other for other in running if other.end_ns > span.begin_ns]
        ends = [min(other.end_ns, span.end_ns) for other in running if other.incarnation != span.incarnation]
        if ends:
            found.append(Window(span.begin_ns, max(ends)))
        running.append(span)
    return tuple(Window(*window) for window in joined(found))


class _Pieces(NamedTuple):
    """Parts of the times in which rows were certainly processed. ``row`` is an index into ``rows``."""

    rows: Rows
    row: Array
    begin_ns: Array
    end_ns: Array
    frozen: Array  # by row


def _pieces(part: TaskData, rows: Rows) -> _Pieces:
    """The times of processing of the rows, minus the proven pauses of their incarnations. Each row took some time."""
    frozen, whole = np.zeros(len(rows), bool), np.ones(len(rows), bool)
    cut: list[tuple[int, int, int]] = []
    for who, name in enumerate(rows.names):
        pauses = sorted(part.tables.lives[name].paused) if name in part.tables.lives else []
        first, last = rows.bounds[who], rows.bounds[who + 1]
        inner = [Window(pause.begin_ns + 1, pause.end_ns - 1) for pause in pauses]
        touched = inside(rows.begin_ns[first:last], rows.done_ns[first:last], inner)
        for row in (first + np.flatnonzero(touched)).tolist():
            begin_ns, done_ns = int(rows.begin_ns[row]), int(rows.done_ns[row])
            frozen[row] = any(begin_ns < p.begin_ns and p.end_ns < done_ns for p in pauses)
            whole[row] = False
            cut += [(row, *piece) for piece in _minus(Window(begin_ns, done_ns), pauses)]
    index = np.flatnonzero(whole)
    rest, begin, end = (np.array([piece[n] for piece in cut], np.int64) for n in range(3))
    return _Pieces(
        rows,
        np.concatenate([index, rest]),
        np.concatenate([rows.begin_ns[index], begin]),
        np.concatenate([rows.done_ns[index], end]),
        frozen,
    )


def _minus(window: Window, pauses: Iterable[Window]) -> Iterator[Window]:
    begin_ns = window.begin_ns
    for pause in (*pauses, Window(window.end_ns, FOREVER)):
        if begin_ns < min(pause.begin_ns, window.end_ns):
            yield Window(begin_ns, min(pause.begin_ns, window.end_ns))
        begin_ns = max(begin_ns, pause.end_ns)


def _compare(part: TaskData, pieces: _Pieces) -> None:
    """Report pieces of two incarnations that overlap. The row of the earlier assignment is stale; if both are equally
    old, the row of the lesser name."""
    rows, frozen, names = pieces.rows, pieces.frozen, pieces.rows.names
    one, two = _meet(rows.who[pieces.row], pieces.begin_ns, pieces.end_ns)
    if not len(one):
        return
    first, second = pieces.row[one], pieces.row[two]
    seniority = np.zeros(len(rows), np.int64)
    for stream in rows.streams:
        interval = part.interval_of(stream.who, stream.interval)
        seniority[stream.begin : stream.end] = interval.assigned_begin_ns if interval else 0
    is_first = seniority[first] <= seniority[second]
    stale, other = np.where(is_first, first, second), np.where(is_first, second, first)
    count = np.zeros(len(stale), np.int64)  # a row counts once for each incarnation, however many records it met
    count[np.unique(stale * len(names) + rows.who[other], return_index=True)[1]] = 1
    part.aggregates.put_many(
        "processing-overlap",
        part.tp,
        [rows.who[stale], rows.who[other], frozen[stale]],
        lambda stale, other, frozen: Label(
            blamed(names[stale], names[other]), "", "in flight when frozen" if frozen else ""
        ),
        first=rows.offset[stale],
        from_ns=np.maximum(pieces.begin_ns[one], pieces.begin_ns[two]),
        to_ns=np.minimum(pieces.end_ns[one], pieces.end_ns[two]),
        count=count,
    )


def _meet(who: Array, begin: Array, end: Array) -> tuple[Array, Array]:
    """The pairs of overlapping pieces of different incarnations; the first of each pair is of the lesser incarnation.

    Pieces are searched in classes of similar length, so that a long one costs no more than a short one.
    """
    length = np.log2(np.maximum(end - begin, 1)).astype(np.int64)
    found: list[Array] = []
    for size in np.unique(length):
        some = np.flatnonzero(length == size)
        some = some[np.argsort(begin[some], kind="stable")]
        low = np.searchsorted(begin[some], begin - (end - begin)[some].max(), side="right")
        count = np.maximum(np.searchsorted(begin[some], end, side="left") - low, 0)
        one = np.repeat(np.arange(len(count)), count)
        two = some[np.arange(len(one)) - np.repeat(np.cumsum(count) - count, count) + low[one]]
        found.append(np.stack([one, two])[:, (who[one] < who[two]) & (end[two] > begin[one])])
    one, two = np.concatenate(found, axis=1) if found else np.empty((2, 0), np.int64)
    return one, two


def stale_work(part: TaskData) -> None:
    """``processing-after-revocation``, ``work-after-reassignment``: records were begun after the partition was revoked
    or lost, or was assigned to another member."""
    rows = part.rows.by_interval
    for stream in rows.streams:
        interval = part.interval_of(stream.who, stream.interval)
        if interval is not None:
            _stale(part, rows, stream, interval)


def _stale(part: TaskData, rows: Rows, stream: Stream, interval: Interval) -> None:
    begin_ns, done_ns = rows.begin_ns[stream.begin : stream.end], rows.done_ns[stream.begin : stream.end]
    offset, name = rows.offset[stream.begin : stream.end], rows.names[stream.who]
    begun = rows.begun[stream.begin : stream.end]
    late = np.zeros(len(begun), bool)
    if interval.how in ("revoked", "lost") and begin_ns.max() > interval.given_up_end_ns:
        late = begun & (begin_ns > interval.given_up_end_ns)
        late[late] = ~part.possibly_owned(name, begin_ns[late], interval)
    owners, owner, own = part.owners.names, part.owners.at(begin_ns, begun), part.owners.index.get(name, NOBODY)
    if constant(owner) and owner[0] in (NOBODY, own):  # as nearly always: one owner all the time
        stale = np.zeros(len(begun), bool)
    else:
        stale = begun & ~late & (owner != NOBODY) & (owner != own)
    for kind, which, label in (
        ("processing-after-revocation", late, lambda owner: Label((name,), interval.how)),
        ("work-after-reassignment", stale, lambda owner: Label((name, owners[owner]))),
    ):
        if not which.any():
            continue
        which = np.flatnonzero(which)
        part.aggregates.put_many(
            kind,
            part.tp,
            [np.zeros_like(owner[which]) if kind != "work-after-reassignment" else owner[which]],
            label,
            first=offset[which],
            from_ns=begin_ns[which],
            to_ns=np.where(done_ns[which] == 0, begin_ns[which], done_ns[which]),
        )
