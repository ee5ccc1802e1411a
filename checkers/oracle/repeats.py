"""Rules about repeated records: in another interval (redelivery), in the same one (rewind), late, or in a loop."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

from fencepost.checkers.detections import EXPIRED, Detection, blamed
from fencepost.checkers.oracle.ownership import owns_again, returned_before
from fencepost.checkers.tables.answers import KIND, NOT_SEEN
from fencepost.checkers.tables.records import Delivered
from fencepost.checkers.tables.rows import FOREVER, Interval, Window
from fencepost.checkers.tables.seeks import Seek
from fencepost.checkers.tables.starts import Begun, begun

if TYPE_CHECKING:
    from fencepost.checkers.oracle.history import History, Rule


def repeats(history: History) -> Iterator[Detection]:
    """``redelivery-below-commit``, ``stale-offset-answer``, ``redelivery``, ``avoidable-redelivery``: finished again.

    The finished rows of one offset are sorted by owner: by assigned_begin_ns of their intervals (without an interval:
    delivered_ns), then by delivered_ns, incarnation, ord. They are not sorted by delivery, because the poll of a zombie
    returns when it wakes up. Each row after the first is *later*; the row just before it is *former*. Two rows of the
    same incarnation and interval number are no detection (see ``rewind``).

    *Committed above*: every committed offset that later may have fetched (``Tables.committed_between``) is above this
    record. It may have fetched between the start of its assigned callback and the first delivery in its interval
    (without an interval: at its delivery). An answer of a broker (``answers``) *explains* later's start if later's
    interval began at this record or below it, and the answer is not above the offset at which it began.

    The kind is the first that holds:

    1. ``stale-offset-answer``, cause ``redelivery-below-commit``: committed above, and a stale answer explains the
       start. members: later, former.
    2. ``redelivery-below-commit``: committed above, and no answer explains the start. members: later, former.
    3. ``redelivery``: former has no interval, or the end of its interval is unknown, or there is a reason (below) why
       the group went back before this record. members: former, later.
    4. ``avoidable-redelivery``: former released the partition cleanly. members: former, later.

    The reason is the first that holds; without an interval only 1 can hold, with an unknown end only 1 and 4:

    1. ``committed offset expired``: one above this record expired between former's finish and later's delivery
       (``Tables.expiries``). Otherwise the group would not have gone back, whatever happened to former.
    2. ``former owner died``.
    3. ``former owner lost it``: its interval ended by lost.
    4. ``former owner was removed``, by the coordinator's records, before the end of its revocation.
    5. ``final commit was refused``, or ``final commit was not answered``: its interval ended by revoked or closed, and
       its last commit of the partition in the interval had the outcome fail, or info.

    excuse: a declared act before later's delivery, or before later was assigned the partition (its start may be that of
    a deleted partition); else, for kinds 3 and 4, the reason.

    cause of kinds 2 to 4: ``seek``, without such an excuse, if later's program had moved its position to this record or
    below it, in later's interval and before its delivery: the committed offset did not matter (for the excuse see
    ``rewind``). For kinds 3 and 4 also if former's program had, in former's interval and after it had finished the
    record: the next owner starts where former itself would have continued. For kind 2, else ``answer not seen``:
    later's interval began at this record or below it, no answer was logged, and a stale one may be the reason
    (``unseen``).

    times: done_ns of later.
    """
    for (tp, offset), _ in sorted(history.of_offset.items()):
        rows = sorted(history.finished(tp, offset), key=partial(_since_ns, history))
        for former, later in pairwise(rows):
            if (former.incarnation, former.interval) != (later.incarnation, later.interval):
                yield _repeat(history, former, later)


def _since_ns(history: History, row: Delivered) -> int:
    interval = history.interval(row)
    return interval.assigned_begin_ns if interval else row.delivered_ns


def _repeat(history: History, former: Delivered, later: Delivered) -> Detection:
    tp, offset, times = later.tp, later.offset, (later.done_ns, later.done_ns)
    act = history.declared(tp, later.delivered_ns) or history.declared(tp, _since_ns(history, later))
    moves = history.tables.moves_in(later.incarnation, tp, history.interval(later), later.delivered_ns)
    moved = any(move.offset <= offset for move in moves)
    began, first = _began(history, later)
    reported, stale, unseen = (least <= first <= offset for least in (began.reported, began.stale, began.unseen))
    if began.in_force > offset and (stale or not reported):
        members = blamed(later.incarnation, former.incarnation)
        if stale:
            return Detection(KIND, tp, members, "redelivery-below-commit", act, offset, *times)
        cause, excuse = history.tables.by_seek(moved, act)
        return Detection("redelivery-below-commit", tp, members, cause or NOT_SEEN * unseen, excuse, offset, *times)
    interval = history.interval(former)
    expired = history.tables.expired(tp, offset, former.done_ns, later.delivered_ns)
    reason = EXPIRED if expired else _reason(history, interval) if interval else ""
    kind = "avoidable-redelivery" if interval and interval.how and not reason else "redelivery"
    left = history.tables.left_behind(interval) if interval else []
    moved = moved or any(move.offset <= offset and move.begin_ns >= former.done_ns for move in left)
    cause, excuse = history.tables.by_seek(moved, act or reason)
    return Detection(kind, tp, blamed(former.incarnation, later.incarnation), cause, excuse, offset, *times)


def _began(history: History, row: Delivered) -> tuple[Begun, int]:
    """The offsets at which the interval of a row may have begun, and the first offset that was delivered in it."""
    interval = history.interval(row)
    first = history.streams[row.incarnation, row.tp, row.interval][0] if interval else row
    begin_ns = interval.assigned_begin_ns if interval else row.delivered_ns
    in_force = min(history.tables.committed_between(row.tp, begin_ns, first.delivered_ns))
    if interval is None:
        return Begun(in_force), first.offset
    return begun(history.tables, interval, first.delivered_ns, in_force), first.offset


def _reason(history: History, interval: Interval) -> str:
    """Why the owner of ``interval`` could not commit everything that it had finished; empty: it could."""
    if interval.how == "died":
        return "former owner died"
    if interval.how == "lost":
        return "former owner lost it"
    given_up = interval.given_up_end_ns or FOREVER
    if history.tables.removed(interval, given_up):
        return "former owner was removed"
    own = [c for c in history.tables.commits if (c.tp, c.incarnation) == (interval.tp, interval.incarnation)]
    own = [c for c in own if interval.assigned_begin_ns <= c.begin_ns <= given_up]
    last = max(own, key=lambda c: c.begin_ns, default=None)
    if interval.how in ("revoked", "closed") and last and last.outcome != "ok":
        return "final commit was refused" if last.outcome == "fail" else "final commit was not answered"
    return ""


def stale_effect(history: History) -> Iterator[Detection]:
    """``stale-effect``: a former owner finishes a record after a later owner has finished it: its effect is the last.

    A detection is a finished row with an interval that was done after a row of the same offset and another incarnation
    whose interval was assigned later. (If a later owner finished only a higher record of the same key, this row is the
    first finish of its record, and ``key-order`` reports it.)

    A member cannot undo what it is processing, and it learns of a reassignment only from a callback of its client. (A
    refused commit says only that the commit failed; see ``work-after-fencing`` for processing after it.) So there is no
    excuse only if the row was begun after its own revoked or lost callback had returned, and the member certainly had
    not been assigned the partition again: the program could have prevented that. Otherwise the excuse is the first that
    holds:

    * ``in flight when frozen``: begun before a proven pause of its incarnation began, and done after it ended;
    * ``not told yet``: at its start another incarnation was certainly the owner by the coordinator's records;
    * ``begun as its owner``.

    members: the former owner, and the later owner that finished the record first (by done_ns, incarnation); times: that
    finish, and the row's.
    """
    for tp, offset in sorted(history.of_offset):
        rows = [(row, i) for row in history.finished(tp, offset) if (i := history.interval(row))]
        for row, own in rows:
            of_others = ((o, i) for o, i in rows if o.incarnation != row.incarnation and o.done_ns < row.done_ns)
            later = [(o.done_ns, o.incarnation) for o, i in of_others if i.assigned_begin_ns > own.assigned_begin_ns]
            if later:
                done_ns, owner = min(later)
                members, excuse = (row.incarnation, owner), _excuse_of_late(history, own, row)
                yield Detection("stale-effect", tp, members, "", excuse, offset, done_ns, row.done_ns)


def _excuse_of_late(history: History, interval: Interval, row: Delivered) -> str:
    if returned_before(interval, row) and not owns_again(history, row):
        return ""
    paused = history.tables.lives[row.incarnation].paused
    if any(row.begin_ns < p.begin_ns and p.end_ns < row.done_ns for p in paused):
        return "in flight when frozen"
    owner = history.tables.certain_owner(row.tp, row.begin_ns)
    return "not told yet" if owner and owner.incarnation != row.incarnation else "begun as its owner"


def redelivery_loop(history: History) -> Iterator[Detection]:
    """``redelivery-loop``: one offset is delivered again and again. One detection for each offset.

    * cause ``count``: it has more rows than ``bounds.deliveries_of`` permits for the faults around them;
    * else cause ``standing``: at least three rows, with more than ``bounds.loop_ns`` from the first delivery to the
      last. In that time certainly no commit above the offset was accepted, and no fault was in effect between
      ``loop_ns`` before the first delivery and the last one (a fault that was not healed stays in effect).

    members: the incarnation of the last delivery; times: first and last delivery. excuse, only for a user's program: it
    moved its position back and tried again. One row is subtracted for each time that programs moved their positions to
    the record or below it, from the first delivery to the last; then no more than ``deliveries_of`` rows (``count``),
    or fewer than three (``standing``), must be left. (``unconsumed`` reports if the program never gets past the
    record.)
    """
    for (tp, offset), rows in sorted(history.of_offset.items()):
        first, last = rows[0].delivered_ns, rows[-1].delivered_ns
        again = len(rows) >= 3 and last - first > history.bounds.loop_ns
        if len(rows) > history.bounds.deliveries_of(history.tables.steps, first, last):
            cause = "count"
        elif again and not _committed_above(history, tp, offset, first, last) and not _faulty(history, first, last):
            cause = "standing"
        else:
            continue
        by_client = len(rows) - history.tables.moves_over(tp, offset, Window(first, last))
        permitted = history.bounds.deliveries_of(history.tables.steps, first, last) if cause == "count" else 2
        excuse = history.tables.sought if by_client <= permitted else ""
        yield Detection("redelivery-loop", tp, (rows[-1].incarnation,), cause, excuse, offset, first, last)


def _committed_above(history: History, tp: int, offset: int, first_ns: int, last_ns: int) -> bool:
    """Whether a commit above ``offset`` may have been accepted between two times."""
    between = Window(first_ns, last_ns)
    above = (a for a in history.tables.accepted if a.tp == tp and a.offset > offset)
    return any(a.written.meets(between) for a in above)


def _faulty(history: History, first_ns: int, last_ns: int) -> bool:
    around = Window(first_ns - history.bounds.loop_ns, last_ns)
    return any(s.begun_ns and s.in_effect.meets(around) for s in history.tables.steps)


def rewind(history: History) -> Iterator[Detection]:
    """``rewind``: inside one interval number of an (incarnation, tp), a row's offset is not above all earlier rows.

    If the program moved back because its transaction was aborted (``Seek``), the earlier rows count only since then, or
    below the offset to which it moved.

    cause ``inside one poll``: the offset is not above the earlier rows of the same poll number either (no action of a
    program lies between them); else ``seek``: the program had moved its position back, to this row or to the rows that
    it follows (``StreamPosition`` defines when). excuse: a declared act before the delivery; else, for cause ``seek``,
    that this is the user's own program (``Tables.sought``): only such a program may move its position; our own loops do
    so only by a planted bug. members: the incarnation; times: delivered_ns.
    """
    for (incarnation, tp, _), rows in sorted(history.streams.items()):
        for row, place in places(history, rows):
            if row.offset <= place.highest:
                act, times = history.declared(tp, row.delivered_ns), (row.delivered_ns, row.delivered_ns)
                cause = "inside one poll" if row.offset <= place.of_poll else "seek" if place.sought else ""
                excuse = act or (history.tables.sought if cause == "seek" else "")
                yield Detection("rewind", tp, (incarnation,), cause, excuse, row.offset, *times)


class StreamPosition(NamedTuple):
    """The position of a stream just before one of its rows, and whether the program had moved it there.

    The position is the highest offset so far, unless the program moved it in that interval. A move because of an
    aborted transaction only lowers it (``heights``). Other moves:

    * A row at or below the position is explained by the last move, by start, that began by its delivery and went to its
      offset or below it; but not if the row is at or below an earlier row of its poll. The stream continues from the
      goal of that move. A move explains only one such return, and ends all earlier moves.
    * A row above the position is explained by the moves that began by its delivery and went to its offset or below it,
      and above the position: the last of them skipped the records below its goal. Such a move ends when rows of a later
      poll than the first one after its start are delivered: a poll in progress when the program moved may not have
      noticed the move.

    Attributes:
        highest: the highest offset of all earlier rows, see ``heights``; -1: none.
        of_poll: the highest offset of the earlier rows with the same poll number; -1: none.
        at: the position; the records between it and the row were skipped.
        gone_to: the program skipped the records up to this offset; equal to ``at``: it skipped none.
        sought: the row is at or below ``highest`` because of a move back.
    """

    highest: int
    of_poll: int
    at: int
    gone_to: int
    sought: bool


@dataclass(eq=False)
class _Move:
    seek: Seek
    reached: bool = False
    first_poll: int = FOREVER  # the first poll that returned rows after the move began


def places(history: History, rows: Sequence[Delivered]) -> Iterator[tuple[Delivered, StreamPosition]]:
    """Each row of a stream, with the position of the stream just before it."""
    interval, first = history.interval(rows[0]), rows[0]
    moves = [_Move(seek) for seek in history.tables.moves_in(first.incarnation, first.tp, interval)]
    at, of_poll = -1, defaultdict[int, int](lambda: -1)
    for row, highest in heights(history, rows):
        at, before = min(at, highest), of_poll[row.poll]
        fitting = [m for m in moves if m.seek.begin_ns <= row.delivered_ns and m.seek.offset <= row.offset]
        if row.offset > at:
            ahead = [m for m in fitting if m.seek.offset > at]
            for move in ahead:
                move.reached = True
            gone_to = ahead[-1].seek.offset - 1 if ahead else at
            yield row, StreamPosition(highest, before, at, gone_to, row.offset <= highest)
            at = row.offset
        elif fitting and row.offset > before:
            moves = moves[moves.index(fitting[-1]) + 1 :]
            goal = fitting[-1].seek.offset - 1
            yield row, StreamPosition(highest, before, goal, goal, True)
            at = row.offset
        else:
            yield row, StreamPosition(highest, before, at, at, False)
        for move in moves:
            if move.seek.begin_ns < row.delivered_ns:
                move.first_poll = min(move.first_poll, row.poll)
        moves = [m for m in moves if not (m.reached and m.first_poll < row.poll)]
        of_poll[row.poll] = max(before, row.offset)


def heights(history: History, rows: Iterable[Delivered]) -> Iterator[tuple[Delivered, int]]:
    """Each row of a stream with the highest offset before it (-1: none).

    When the program moved back because its transaction was aborted, that offset drops to below the goal of the move, at
    the first row delivered since.
    """
    highest, since_ns = -1, -1
    for row in rows:
        for seek in history.tables.returns_of.get((row.incarnation, row.tp), ()):
            if since_ns < seek.begin_ns <= row.delivered_ns:
                highest = min(highest, seek.offset - 1)
        yield row, highest
        highest, since_ns = max(highest, row.offset), max(since_ns, row.delivered_ns)


RULES: dict[Rule, tuple[str, ...]] = {
    repeats: ("redelivery", "avoidable-redelivery", "redelivery-below-commit", "stale-offset-answer"),
    stale_effect: ("stale-effect",),
    redelivery_loop: ("redelivery-loop",),
    rewind: ("rewind",),
}
