"""Kernel rules about who worked when: processing-overlap, stale-backlog, processing-after-revocation."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fencepost.checkers.kernel.part import Part
from fencepost.checkers.kernel.ranges import joined
from fencepost.checkers.kernel.rows import Rows, Stream
from fencepost.checkers.kernel.tallies import Label, Numbers
from fencepost.checkers.sightings import people
from fencepost.checkers.tables.rows import FOREVER, Interval, Window

Array = NDArray[Any]


class Span(NamedTuple):
    """From the first begin to the last end of the records that one incarnation processed in one interval."""

    begin_ns: int
    end_ns: int
    incarnation: str
    interval: int = 0


def processing_overlap(part: Part) -> None:
    """``processing-overlap``: only where spans of different incarnations meet are single records compared."""
    rows = part.rows.by_interval
    worked = (rows.begin_ns > 0) & (rows.done_ns > 0)
    spans = list(_spans(rows, worked))
    if part.task.rules == "offsets":
        for span in spans:
            label = Label((span.incarnation,), str(span.interval))
            part.tallies.put("#span", part.tp, label, Numbers(from_ns=span.begin_ns, to_ns=span.end_ns))
        return
    given = part.task.argument if part.task.rules == "overlap" else meetings(spans)
    windows = () if isinstance(given, str) else given
    if windows:
        chosen = np.zeros(len(rows), bool)
        for begin_ns, end_ns in windows:
            chosen |= (rows.begin_ns < end_ns) & (rows.done_ns > begin_ns)
        _compare(part, _pieces(part, rows.take(np.flatnonzero(chosen & worked))))


def _spans(rows: Rows, worked: Array) -> Iterator[Span]:
    for stream in rows.streams:
        mine = slice(stream.begin, stream.end)
        begin, done, which = rows.begin_ns[mine], rows.done_ns[mine], worked[mine]
        if not which.all():
            begin, done = begin[which], done[which]
        if len(begin):
            yield Span(int(begin.min()), int(done.max()), rows.names[stream.who], stream.interval)


def meetings(spans: Iterable[Span]) -> tuple[Window, ...]:
    """The windows in which spans of different incarnations meet, joined where they overlap."""
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
    """Parts of the time in which rows were certainly processed. ``row`` is an index into ``rows``."""

    rows: Rows
    row: Array
    begin_ns: Array
    end_ns: Array
    frozen: Array  # by row

    def of(self, who: int) -> _Pieces:
        """Those of one incarnation, in the order of their begins."""
        mine = np.flatnonzero(self.rows.who[self.row] == who)
        mine = mine[np.argsort(self.begin_ns[mine], kind="stable")]
        return self._replace(row=self.row[mine], begin_ns=self.begin_ns[mine], end_ns=self.end_ns[mine])


def _pieces(part: Part, rows: Rows) -> _Pieces:
    """Rows minus the proven pauses of their incarnations."""
    frozen, whole = np.zeros(len(rows), bool), rows.begin_ns < rows.done_ns
    cut: list[tuple[int, int, int]] = []
    for who, name in enumerate(rows.names):
        pauses = sorted(part.tables.lives[name].paused) if name in part.tables.lives else []
        touched = np.zeros(len(rows), bool)
        for pause in pauses:
            touched |= (rows.who == who) & (rows.begin_ns < pause.end_ns) & (rows.done_ns > pause.begin_ns)
        for row in np.flatnonzero(touched).tolist():
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


def _compare(part: Part, pieces: _Pieces) -> None:
    """Every two incarnations: which of their pieces overlap, and whose row is the stale one."""
    rows = pieces.rows
    seniority = np.zeros(len(rows), np.int64)
    for stream in rows.streams:
        interval = part.interval_of(stream.who, stream.interval)
        seniority[stream.begin : stream.end] = interval.assigned_begin_ns if interval else 0
    present = sorted({stream.who for stream in rows.streams})
    for first in present:
        for second in present[present.index(first) + 1 :]:
            _compare_two(part, pieces.of(first), pieces.of(second), seniority)


def _compare_two(part: Part, one: _Pieces, two: _Pieces, seniority: Array) -> None:
    """``one`` is the incarnation of the smaller name, which is the stale one when both are equally old."""
    rows, frozen = one.rows, one.frozen
    left, right = _meet(one, two)
    if not len(left):
        return
    first, second = one.row[left], two.row[right]
    is_first = seniority[first] <= seniority[second]
    stale, other = np.where(is_first, first, second), np.where(is_first, second, first)
    begin_ns = np.maximum(one.begin_ns[left], two.begin_ns[right])
    end_ns = np.minimum(one.end_ns[left], two.end_ns[right])
    _, each = np.unique(stale, return_index=True)  # a row counts once, however many records it met
    count = np.zeros(len(stale), np.int64)
    count[each] = 1
    names = rows.names
    part.tallies.put_many(
        "processing-overlap",
        part.tp,
        [rows.who[stale], rows.who[other], frozen[stale]],
        lambda stale, other, frozen: Label(
            people(names[stale], names[other]), "", "in flight when frozen" if frozen else ""
        ),
        first=rows.offset[stale],
        from_ns=begin_ns,
        to_ns=end_ns,
        count=count,
    )


def _meet(one: _Pieces, two: _Pieces) -> tuple[Array, Array]:
    """The pairs of pieces that overlap.

    ``two`` is looked through in classes of about equal length, so that a long piece costs no more than a short one.
    """
    length = np.log2(np.maximum(two.end_ns - two.begin_ns, 1)).astype(np.int64)
    found: list[tuple[Array, Array]] = []
    for size in np.unique(length):
        mine = np.flatnonzero(length == size)
        begin, end = two.begin_ns[mine], two.end_ns[mine]
        low = np.searchsorted(begin, one.begin_ns - (end - begin).max(), side="right")
        count = np.maximum(np.searchsorted(begin, one.end_ns, side="left") - low, 0)
        left = np.repeat(np.arange(len(count)), count)
        right = np.arange(len(left)) - np.repeat(np.cumsum(count) - count, count) + low[left]
        meet = end[right] > one.begin_ns[left]
        found.append((left[meet], mine[right[meet]]))
    return tuple(np.concatenate([pair[n] for pair in found]) if found else np.empty(0, int) for n in (0, 1))  # type: ignore[return-value]


def stale_work(part: Part) -> None:
    """``processing-after-revocation`` and ``stale-backlog``: begun although given up, or given away."""
    rows = part.rows.by_interval
    for stream in rows.streams:
        interval = part.interval_of(stream.who, stream.interval)
        if interval is not None:
            _stale(part, rows, stream, interval)


def _stale(part: Part, rows: Rows, stream: Stream, interval: Interval) -> None:
    begin_ns, done_ns = rows.begin_ns[stream.begin : stream.end], rows.done_ns[stream.begin : stream.end]
    offset, name = rows.offset[stream.begin : stream.end], rows.names[stream.who]
    begun = begin_ns > 0
    late = np.zeros(len(begun), bool)
    if interval.how in ("revoked", "lost"):
        late = begun & (begin_ns > interval.given_up_end_ns)
        for other in part.tables.intervals if late.any() else ():
            if (other.incarnation, other.tp) == (name, part.tp) and other != interval:
                until_ns = other.given_up_end_ns if other.how else FOREVER
                late &= ~((other.assigned_begin_ns <= begin_ns) & (begin_ns <= until_ns))
    owners, owner = _owners(part, begin_ns, begun)
    stale = begun & ~late & (owner >= 0)
    if name in owners:
        stale &= owner != owners.index(name)
    to_ns = np.where(done_ns == 0, begin_ns, done_ns)
    for kind, which, label in (
        ("processing-after-revocation", late, lambda owner: Label((name,), interval.how)),
        ("stale-backlog", stale, lambda owner: Label((name, owners[owner]))),
    ):
        part.tallies.put_many(
            kind,
            part.tp,
            [np.zeros_like(owner[which]) if kind != "stale-backlog" else owner[which]],
            label,
            first=offset[which],
            from_ns=begin_ns[which],
            to_ns=to_ns[which],
        )


def _owners(part: Part, times: Array, wanted: Array) -> tuple[list[str], Array]:
    """Who certainly owned the partition at each moment, by the coordinator: names, and indices, -1 for nobody."""
    rows = [given for given in part.tables.given if given.tp == part.tp]
    names = sorted({given.incarnation for given in rows if given.incarnation})
    if not rows or not wanted.any():
        return names, np.full(len(times), -1)
    earliest = np.array([given.at_ns - given.uncertainty_ns for given in rows])
    latest = np.array([given.at_ns + given.uncertainty_ns for given in rows])
    code = np.array([names.index(given.incarnation) if given.incarnation else -1 for given in rows])
    if (np.diff(earliest) < 0).any():  # the order of the log is not that of the clock: ask one by one
        asked = [part.tables.certain_owner(part.tp, at) if at > 0 else None for at in times.tolist()]
        return names, np.array([names.index(given.incarnation) if given else -1 for given in asked])
    some = times[wanted]
    low, high = (int(np.searchsorted(earliest, at, side="right")) - 1 for at in (some.min(), some.max()))
    if low == high and low >= 0 and latest[low] <= some.min():
        return names, np.full(len(times), code[low])
    last = np.searchsorted(earliest, times, side="right") - 1
    certain = (last >= 0) & (latest[last] <= times)
    return names, np.where(certain, code[last], -1)
