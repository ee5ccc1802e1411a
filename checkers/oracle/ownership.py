"""Rules about ownership: two owners or two processing members at once, and work on partitions of other members."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations
from typing import TYPE_CHECKING, NamedTuple

from fencepost.checkers.detections import Detection, blamed
from fencepost.checkers.tables.records import Delivered
from fencepost.checkers.tables.rows import Interval, Window

if TYPE_CHECKING:
    from fencepost.checkers.oracle.history import History, Rule


def assignment_overlap(history: History) -> Iterator[Detection]:
    """``assignment-overlap``: two incarnations certainly own one partition at once (``Interval.certain`` overlap).

    One detection for each pair of intervals. An owner was *removed* if its interval ended by lost, or if the
    coordinator's records show that it had left the group by the end of the overlap. excuse ``zombie``: one of the two
    was removed; else a declared act that recreated the partition, as one of the two may still own its predecessor (see
    ``coordinator_overlap``). members: a removed owner first, then the one that was assigned earlier (by the end of the
    assigned callback, then incarnation); times: the overlap.
    """
    for a, b in combinations(history.tables.intervals, 2):
        both = a.certain.common(b.certain)
        if a.tp != b.tp or a.incarnation == b.incarnation or both.length_ns <= 0:
            continue
        removed = {i: i.how == "lost" or bool(history.tables.removed(i, both.end_ns)) for i in (a, b)}
        first, second = sorted((a, b), key=lambda i: (not removed[i], i.assigned_end_ns, i.incarnation))
        excuse = "zombie" if any(removed.values()) else history.tables.recreated(a.tp, both.begin_ns)
        yield Detection(
            "assignment-overlap", a.tp, blamed(first.incarnation, second.incarnation), "", excuse, -1, *both
        )


class _Piece(NamedTuple):
    """A period in which a row was certainly processed: its processing time is cut by pauses.

    ``seniority``: when its interval was assigned, and the incarnation. ``frozen``: a pause lay inside the processing.
    """

    window: Window
    row: Delivered
    seniority: tuple[int, str]
    frozen: bool


def processing_overlap(history: History) -> Iterator[Detection]:
    """``processing-overlap``: two incarnations are certainly processing records of one partition at once.

    A row with begin_ns and done_ns (any outcome) is processed from begin_ns to done_ns, minus the proven pauses of its
    incarnation; at no moment if done_ns is not above begin_ns. Of two overlapping rows of different incarnations, the
    *stale* one is the row whose interval was assigned earlier (assigned_begin_ns, 0 without an interval; then
    incarnation). One detection for each stale row and other incarnation. members: the stale row's incarnation, the
    other one; offset: the stale row's; times: the first begin and the last end of their overlaps; excuse ``in flight
    when frozen``: the stale row was begun before a proven pause of its incarnation began, and done after it ended.
    """
    for tp, rows in history.rows.items():
        pieces = sorted(piece for row in rows for piece in _pieces(history, row))
        overlaps: dict[tuple[Delivered, bool, str], list[Window]] = {}
        running: list[_Piece] = []
        for piece in pieces:
            running = [other for other in running if other.window.end_ns > piece.window.begin_ns]
            for other in running:
                if other.row.incarnation != piece.row.incarnation:
                    stale, owner = sorted((piece, other), key=lambda p: p.seniority)
                    key = (stale.row, stale.frozen, owner.row.incarnation)
                    overlaps.setdefault(key, []).append(piece.window.common(other.window))
            running.append(piece)
        for (stale_row, frozen, owner_name), windows in overlaps.items():
            members = blamed(stale_row.incarnation, owner_name)
            excuse = "in flight when frozen" if frozen else ""
            times = (min(w.begin_ns for w in windows), max(w.end_ns for w in windows))
            yield Detection("processing-overlap", tp, members, "", excuse, stale_row.offset, *times)


def _pieces(history: History, row: Delivered) -> Iterator[_Piece]:
    if not row.begin_ns or not row.done_ns:
        return
    life, interval = history.tables.lives.get(row.incarnation), history.interval(row)
    pauses = [p for p in (life.paused if life else ()) if p.begin_ns < row.done_ns and row.begin_ns < p.end_ns]
    seniority = (interval.assigned_begin_ns if interval else 0, row.incarnation)
    frozen = any(row.begin_ns < p.begin_ns and p.end_ns < row.done_ns for p in pauses)
    begin_ns = row.begin_ns
    for pause in (*sorted(pauses), Window(row.done_ns, row.done_ns)):
        if begin_ns < pause.begin_ns:
            yield _Piece(Window(begin_ns, pause.begin_ns), row, seniority, frozen)
        begin_ns = max(begin_ns, pause.end_ns)


def delivery_outside(history: History) -> Iterator[Detection]:
    """``delivery-outside-assignment``: a poll returned a record of a partition that the member did not own.

    The row has no interval, and the incarnation certainly did not own the partition at delivered_ns. members: the
    incarnation; times: delivered_ns.
    """
    for row in history.records.delivered:
        own = history.tables.intervals_of.get((row.incarnation, row.tp), ())
        if history.interval(row) is None and not any(i.possible_at(row.delivered_ns) for i in own):
            at_ns = row.delivered_ns
            yield Detection("delivery-outside-assignment", row.tp, (row.incarnation,), "", "", row.offset, at_ns, at_ns)


def stale_work(history: History) -> Iterator[Detection]:
    """``processing-after-revocation``, ``work-after-reassignment``: a row was begun when its incarnation was no longer
    the owner.

    Only rows with an interval. One detection for each row, of one kind:

    * ``processing-after-revocation``: its interval ended by revoked or lost (the cause), that callback had returned
      before begin_ns, and the incarnation had certainly not been assigned the partition again by then. members: the
      incarnation.
    * else ``work-after-reassignment``: at begin_ns another incarnation was certainly the owner by the coordinator's
      records (``Tables.certain_owner``). members: the incarnation, the owner.

    times: begin_ns, and done_ns (begin_ns if it was not done).
    """
    for tp, rows in history.rows.items():
        for row in rows:
            interval = history.interval(row)
            if not row.begin_ns or interval is None:
                continue
            times = (row.begin_ns, row.done_ns or row.begin_ns)
            owner = history.tables.certain_owner(tp, row.begin_ns)
            if returned_before(interval, row) and not owns_again(history, row):
                kind, members = "processing-after-revocation", (row.incarnation,)
                yield Detection(kind, tp, members, interval.how, "", row.offset, *times)
            elif owner and owner.incarnation != row.incarnation:
                yield Detection(
                    "work-after-reassignment", tp, (row.incarnation, owner.incarnation), "", "", row.offset, *times
                )


def returned_before(interval: Interval, row: Delivered) -> bool:
    """Whether the member's revoked or lost callback for the interval had returned before it began the row."""
    return interval.how in ("revoked", "lost") and interval.given_up_end_ns < row.begin_ns


def owns_again(history: History, row: Delivered) -> bool:
    """Whether the member may have owned the partition when it began the row, by any interval."""
    same = (i for i in history.tables.intervals if (i.incarnation, i.tp) == (row.incarnation, row.tp))
    return any(i.possible_at(row.begin_ns) for i in same)


RULES: dict[Rule, tuple[str, ...]] = {
    assignment_overlap: ("assignment-overlap",),
    processing_overlap: ("processing-overlap",),
    delivery_outside: ("delivery-outside-assignment",),
    stale_work: ("work-after-reassignment", "processing-after-revocation"),
}
