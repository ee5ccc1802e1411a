"""Rules about records that come again: in another interval (redelivery), in the same (rewind), late, or for ever."""

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

    The finished rows of one offset are taken in the order of their owners: by assigned_begin_ns of their intervals
    (without an interval: delivered_ns), then by delivered_ns, incarnation, ord. (Not by delivery: the poll of a zombie
    returns when it wakes.) Each after the first is *later*; the one just before it is *former*. The same incarnation
    and interval number: nothing here (see ``rewind``). Otherwise:

    * ``redelivery-below-commit``: every offset that somebody may have fetched (``Tables.committed_between``) from the
      begin of later's assigned callback to the first delivery in later's interval is above this record (without an
      interval: at later's delivery). members: later, former; excuse: a declared act before later's delivery, or
      before it was assigned (where it was told to start may be of a partition that is gone).
      If its interval began at this record or below, it also matters what brokers had told it (``answers``): where a
      stale answer was not above where it began, the kind is ``stale-offset-answer``, cause ``redelivery-below-commit``;
      and where another answer was not, it is one of the next. Of what is left, cause ``seek``: without such an act,
      later's program had moved its position to this record or below it, in later's interval and before its delivery: it
      went there itself, whatever is committed (for the excuse see ``rewind``); else ``answer not seen``: no answer is
      seen, and a stale one may be why (``unseen``).
    * else ``redelivery``, members: former, later, with the reason, the first that holds: ``committed offset expired``
      (one above this record did, between former's finish and later's delivery: ``Tables.expiries``; without that, the
      group would not have been told of this record once more, whatever became of former), ``former owner died``,
      ``former owner lost it`` (its interval ended by lost), ``former owner was removed`` (by the coordinator's records,
      by the end of giving up), ``final commit was refused`` or ``final commit was not answered`` (it revoked or closed,
      and its last commit of the partition in the interval had outcome fail, or info);
    * or without a reason when nobody saw former's interval end (or it has none);
    * else ``avoidable-redelivery``, members: former, later: it gave up cleanly.

    excuse of both: such an act, else the reason. Without these, cause ``seek``: as above, or former's program had moved
    its position to this record or below it, in former's interval, when it had finished the record: so the next owner
    begins there, where it would have gone on itself.

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
    went = any(move.offset <= offset for move in moves)
    began, first = _began(history, later)
    reported, stale, unseen = (least <= first <= offset for least in (began.reported, began.stale, began.unseen))
    if began.in_force > offset and (stale or not reported):
        members = blamed(later.incarnation, former.incarnation)
        if stale:
            return Detection(KIND, tp, members, "redelivery-below-commit", act, offset, *times)
        cause, excuse = history.tables.by_seek(went, act)
        return Detection("redelivery-below-commit", tp, members, cause or NOT_SEEN * unseen, excuse, offset, *times)
    interval = history.interval(former)
    expired = history.tables.expired(tp, offset, former.done_ns, later.delivered_ns)
    reason = EXPIRED if expired else _reason(history, interval) if interval else ""
    kind = "avoidable-redelivery" if interval and interval.how and not reason else "redelivery"
    left = history.tables.left_behind(interval) if interval else []
    went = went or any(move.offset <= offset and move.begin_ns >= former.done_ns for move in left)
    cause, excuse = history.tables.by_seek(went, act or reason)
    return Detection(kind, tp, blamed(former.incarnation, later.incarnation), cause, excuse, offset, *times)


def _began(history: History, row: Delivered) -> tuple[Begun, int]:
    """By what the owner's interval may have begun, and the first offset that was delivered in it."""
    interval = history.interval(row)
    first = history.streams[row.incarnation, row.tp, row.interval][0] if interval else row
    begin_ns = interval.assigned_begin_ns if interval else row.delivered_ns
    in_force = min(history.tables.committed_between(row.tp, begin_ns, first.delivered_ns))
    if interval is None:
        return Begun(in_force), first.offset
    return begun(history.tables, interval, first.delivered_ns, in_force), first.offset


def _reason(history: History, interval: Interval) -> str:
    """Why the owner of ``interval`` could not commit all that it had finished; empty: it could."""
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
    """``stale-effect``: a former owner finishes a record after a later one had finished it: its effect lands last.

    Of the finished rows of one offset that have intervals, each row that was done after a row of another incarnation
    whose interval was assigned later. (Where no later owner finished the record itself, but one of its key that comes
    after it, this row was its first finish, and ``key-order`` says so.)

    No member can take back what it is in the middle of, and none knows of an assignment before its client tells it by a
    callback (a refused commit says only that it failed; for going on after it see ``work-after-fencing``). So it is
    without excuse only where the row was begun after its own revoked or lost callback had returned, and the partition
    had not possibly come back; a fence of the program's own would have stopped that. Else the excuse is the first that
    holds: ``in flight when frozen`` (begun before a proven pause of its incarnation began, done after it ended);
    ``not told yet`` (at its begin the partition certainly belonged, by the coordinator's records, to another one);
    ``begun as its owner``.

    members: the former owner, and who of those later ones finished it first (by done_ns, incarnation); times: that
    finish, and the row's.
    """
    for tp, offset in sorted(history.of_offset):
        rows = [(row, i) for row in history.finished(tp, offset) if (i := history.interval(row))]
        for row, own in rows:
            of_others = ((o, i) for o, i in rows if o.incarnation != row.incarnation and o.done_ns < row.done_ns)
            later = [(o.done_ns, o.incarnation) for o, i in of_others if i.assigned_begin_ns > own.assigned_begin_ns]
            if later:
                done_ns, owner = min(later)
                members, excuse = (row.incarnation, owner), _why_late(history, own, row)
                yield Detection("stale-effect", tp, members, "", excuse, offset, done_ns, row.done_ns)


def _why_late(history: History, interval: Interval, row: Delivered) -> str:
    if returned_before(interval, row) and not owns_again(history, row):
        return ""
    paused = history.tables.lives[row.incarnation].paused
    if any(row.begin_ns < p.begin_ns and p.end_ns < row.done_ns for p in paused):
        return "in flight when frozen"
    owner = history.tables.certain_owner(row.tp, row.begin_ns)
    return "not told yet" if owner and owner.incarnation != row.incarnation else "begun as its owner"


def redelivery_loop(history: History) -> Iterator[Detection]:
    """``redelivery-loop``: one offset comes again and again.

    * cause ``count``: more rows of one offset than ``bounds.deliveries_of`` the faults around them explains;
    * else cause ``standing``: at least three rows, more than ``bounds.loop_ns`` from the first delivery to the last, in
      which no offset above it was (possibly) accepted and which no fault touched: none was in effect between
      ``loop_ns`` before the first delivery and the last one (a fault that was not healed stays in effect).

    members: the incarnation of the last delivery; times: first and last delivery; one sighting for each offset. excuse:
    where the program is the user's own, without as many rows as programs moved their positions to the record or below
    it, from the first delivery to the last, there are no more than ``deliveries_of`` and fewer than three, as the cause
    has it: it is the program that tries again. (Whether it ever gets on ``unconsumed`` says.)
    """
    for (tp, offset), rows in sorted(history.of_offset.items()):
        first, last = rows[0].delivered_ns, rows[-1].delivered_ns
        again = len(rows) >= 3 and last - first > history.bounds.loop_ns
        if len(rows) > history.bounds.deliveries_of(history.tables.steps, first, last):
            cause = "count"
        elif again and not _moved(history, tp, offset, first, last) and not _faulty(history, first, last):
            cause = "standing"
        else:
            continue
        by_client = len(rows) - history.tables.moves_over(tp, offset, Window(first, last))
        often = history.bounds.deliveries_of(history.tables.steps, first, last) if cause == "count" else 2
        excuse = history.tables.sought if by_client <= often else ""
        yield Detection("redelivery-loop", tp, (rows[-1].incarnation,), cause, excuse, offset, first, last)


def _moved(history: History, tp: int, offset: int, first_ns: int, last_ns: int) -> bool:
    """Whether an offset above ``offset`` may have been accepted between two moments."""
    between = Window(first_ns, last_ns)
    above = (a for a in history.tables.accepted if a.tp == tp and a.offset > offset)
    return any(a.written.meets(between) for a in above)


def _faulty(history: History, first_ns: int, last_ns: int) -> bool:
    around = Window(first_ns - history.bounds.loop_ns, last_ns)
    return any(s.begun_ns and s.in_effect.meets(around) for s in history.tables.steps)


def rewind(history: History) -> Iterator[Detection]:
    """``rewind``: inside one interval number of an (incarnation, tp), a row's offset is not above all before it.

    Where the program went back because its transaction was aborted (``Seek``), all before it are those since then, and
    what is below where it went.

    cause ``inside one poll``: nor is it above all before it of the same poll number (nothing that a program does comes
    between these); else ``seek``: the program had moved its position back to it, or to what it follows
    (``StreamPosition`` says exactly when). excuse: a declared act before the delivery; else, of cause ``seek``, that
    this was the user's
    own program: nobody else may move a position, and our own loops do so by a planted bug only (``Tables.sought``).
    members: the incarnation; times: delivered_ns.
    """
    for (incarnation, tp, _), rows in sorted(history.streams.items()):
        for row, place in places(history, rows):
            if row.offset <= place.highest:
                act, times = history.declared(tp, row.delivered_ns), (row.delivered_ns, row.delivered_ns)
                cause = "inside one poll" if row.offset <= place.of_poll else "seek" if place.sought else ""
                excuse = act or (history.tables.sought if cause == "seek" else "")
                yield Detection("rewind", tp, (incarnation,), cause, excuse, row.offset, *times)


class StreamPosition(NamedTuple):
    """Where a stream was just before one of its rows, and whether the program had moved it there.

    It gets from row to row, up to the highest offset, but where the program moved its position in that interval (and
    not because its transaction was aborted):

    * A row that is not above where the stream had got to follows the last move, by begin, that began by its delivery
      and went to its offset or below it; not so a row below another one of its poll. The stream goes on from there.
      Every move explains one such return, and all moves before one that does are over.
    * A row that is above it follows such moves that went to its offset or below it, and above where the stream had got
      to: what is below their goal is skipped by the last of them. They are over when the rows of a later poll have
      come: the poll that was under way when the program moved may not have known of it.

    Attributes:
        highest: of all rows before it, see ``heights``; of_poll: of those of the same poll number. -1: none.
        at: where the stream was: all in between is skipped. gone_to: up to here the program skipped it; ``at``: it did
            not.
        sought: the row follows a move back.
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
    first_poll: int = FOREVER  # that brought rows after it began


def places(history: History, rows: Sequence[Delivered]) -> Iterator[tuple[Delivered, StreamPosition]]:
    """Each row of a stream, with its place."""
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

    A transaction that was aborted takes that back to before where the program went, at the first row delivered since.
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
