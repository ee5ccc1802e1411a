"""Kernel rules about records that are processed again: in another assignment interval, too late, or over and over."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fencepost.checkers.detections import EXPIRED, Detection, blamed
from fencepost.checkers.kernel.aggregates import Label
from fencepost.checkers.kernel.rows import Rows, of_streams
from fencepost.checkers.kernel.task_data import TaskData
from fencepost.checkers.tables.answers import KIND, NOT_SEEN
from fencepost.checkers.tables.rows import FOREVER, Interval, Window
from fencepost.checkers.tables.seeks import Seek
from fencepost.checkers.tables.starts import Begun, begun

Array = NDArray[Any]
UNKNOWN = np.iinfo(np.int64).min


def repeats(part: TaskData) -> None:
    """The kinds of redelivery, and ``stale-offset-answer``: a record was finished again in another interval."""
    rows = part.rows.in_turn(part.refinished)
    if not len(rows):
        return
    since_ns = _since_ns(part, rows)
    order = np.lexsort((since_ns, rows.offset))
    rows, since_ns = rows.take(order), since_ns[order]
    other = (np.diff(rows.who) != 0) | (np.diff(rows.interval) != 0)
    pairs = np.flatnonzero((np.diff(rows.offset) == 0) & other)
    former, later = rows.take(pairs), rows.take(pairs + 1)
    in_force, reported, stale, unseen = (least <= later.offset for least in _began(part, later))
    below = ~in_force & (stale | ~reported)
    act, excuse_of = part.declared(later.delivered_ns)
    act = np.where(act > 0, act, part.declared(since_ns[pairs + 1])[0])
    expired = _expired(part, former, later)

    went = _after_move(part, later)
    left = went | _before_move(part, former)

    def by_stale_answer(later_who: int, former_who: int, act: int) -> Label:
        return Label(blamed(rows.names[later_who], rows.names[former_who]), "redelivery-below-commit", excuse_of(act))

    def below_commit(later_who: int, former_who: int, act: int, went: int, unseen: int) -> Label:
        cause, excuse = part.tables.by_seek(went > 0, excuse_of(act))
        return Label(blamed(rows.names[later_who], rows.names[former_who]), cause or NOT_SEEN * unseen, excuse)

    _put(part, KIND, [later.who, former.who, act], by_stale_answer, later, below & stale)
    codes = [later.who, former.who, act, went, unseen]
    _put(part, "redelivery-below-commit", codes, below_commit, later, below & ~stale)
    reasons = {
        stream: _reason(part, *stream)
        for stream in set(zip(former.who.tolist(), former.interval.tolist(), strict=True))
    }

    def again(former_who: int, interval: int, later_who: int, act: int, expired: int, left: int) -> Label:
        members = blamed(rows.names[former_who], rows.names[later_who])
        reason = EXPIRED if expired else reasons[former_who, interval][1]
        return Label(members, *part.tables.by_seek(left > 0, excuse_of(act) or reason))

    kinds = [reasons[stream][0] for stream in zip(former.who.tolist(), former.interval.tolist(), strict=True)]
    avoidable = np.array([kind == "avoidable-redelivery" for kind in kinds], bool) & ~expired
    for kind, chosen in (("redelivery", ~avoidable), ("avoidable-redelivery", avoidable)):
        _put(part, kind, [former.who, former.interval, later.who, act, expired, left], again, later, ~below & chosen)


def _expired(part: TaskData, former: Rows, later: Rows) -> Array:
    """Which records were done again after a committed offset above them had expired in between."""
    found = np.zeros(len(later), bool)
    for expiry in part.tables.expiries.get(part.tp, ()):
        begin_ns, end_ns = expiry.written
        between = (former.done_ns <= end_ns) & (begin_ns <= later.delivered_ns)
        found |= between & (later.offset < expiry.offset)
    return found


def _after_move(part: TaskData, rows: Rows) -> Array:
    """Which rows were delivered after their program, in their interval, moved its position to their offset or below."""
    return _by_moves(part, rows, part.moves, lambda move: rows.delivered_ns >= move.begin_ns)


def _before_move(part: TaskData, rows: Rows) -> Array:
    """Which rows were done before their program, in their interval, moved its position to their offset or below."""

    def moves(name: str, number: int) -> Sequence[Seek]:
        interval = part.tables.interval.get((name, part.tp, number))
        return part.tables.left_behind(interval) if interval else ()

    return _by_moves(part, rows, moves, lambda move: rows.done_ns <= move.begin_ns)


def _by_moves(
    part: TaskData, rows: Rows, moves: Callable[[str, int], Sequence[Seek]], when: Callable[[Seek], Array]
) -> Array:
    found = np.zeros(len(rows), bool)
    if part.tp in part.tables.moves_by_tp:
        for who, number in set(zip(rows.who.tolist(), rows.interval.tolist(), strict=True)):
            own = (rows.who == who) & (rows.interval == number)
            for move in moves(rows.names[who], number):
                found |= own & (rows.offset >= move.offset) & when(move)
    return found


def _since_ns(part: TaskData, rows: Rows) -> Array:
    """When the interval of each row was assigned; for a row without an interval, when the row was delivered."""

    def assigned_ns(who: int, number: int) -> int:
        interval = part.interval_of(who, number)
        return interval.assigned_begin_ns if interval else UNKNOWN

    since_ns = of_streams(rows.who, rows.interval, assigned_ns)
    return np.where(since_ns == UNKNOWN, rows.delivered_ns, since_ns)


def _put(part: TaskData, kind: str, codes: list[Array], label: Any, later: Rows, which: Array) -> None:
    times = later.done_ns[which]
    some = [code[which] for code in codes]
    part.aggregates.put_many(kind, part.tp, some, label, first=later.offset[which], from_ns=times, to_ns=times)


def _began(part: TaskData, later: Rows) -> tuple[Array, Array, Array, Array]:
    """At which offsets, or below, the interval of each row may have begun, see ``Begun``.

    An answer counts as the first delivered offset of the interval if it is not above that; otherwise it does not count.
    """

    def least(who: int, number: int) -> tuple[Begun, int]:
        interval = part.interval_of(who, number)
        if interval is None:
            return Begun(UNKNOWN), FOREVER
        first = part.first_delivered(interval.incarnation, number)
        first_ns = first.delivered_ns if first else 0
        in_force = min(part.tables.committed_between(part.tp, interval.assigned_begin_ns, first_ns))
        return begun(part.tables, interval, first_ns, in_force), first.offset if first else FOREVER

    streams = {stream: least(*stream) for stream in set(zip(later.who.tolist(), later.interval.tolist(), strict=True))}
    in_force = of_streams(later.who, later.interval, lambda *stream: streams[stream][0].in_force)
    for index in np.flatnonzero(in_force == UNKNOWN):
        at_ns = int(later.delivered_ns[index])
        in_force[index] = min(part.tables.committed_between(part.tp, at_ns, at_ns))
    reported, stale, unseen = (
        of_streams(later.who, later.interval, partial(_at_first, streams, name))
        for name in ("reported", "stale", "unseen")
    )
    return in_force, reported, stale, unseen


def _at_first(streams: Mapping[tuple[int, int], tuple[Begun, int]], name: str, who: int, number: int) -> int:
    """The first delivered offset of an interval if ``name`` of its ``Begun`` is not above that offset, else FOREVER."""
    began, first = streams[who, number]
    return first if getattr(began, name) <= first else FOREVER


def _reason(part: TaskData, who: int, number: int) -> tuple[str, str]:
    """The kind of a redelivery after this interval, and why its owner could not commit all it had finished."""
    interval = part.interval_of(who, number)
    excuse = _excuse(part, interval) if interval else ""
    return "avoidable-redelivery" if interval and interval.how and not excuse else "redelivery", excuse


def _excuse(part: TaskData, interval: Interval) -> str:
    if interval.how in ("died", "lost"):
        return "former owner died" if interval.how == "died" else "former owner lost it"
    given_up_ns = interval.given_up_end_ns or FOREVER
    if part.tables.removed(interval, given_up_ns):
        return "former owner was removed"
    if interval.how not in ("revoked", "closed"):
        return ""
    last = max(part.tables.commits_in(interval), key=lambda c: c.begin_ns, default=None)
    if last is None or last.outcome == "ok":
        return ""
    return "final commit was refused" if last.outcome == "fail" else "final commit was not answered"


def stale_effect(part: TaskData) -> None:
    """``stale-effect``: a row was done after a row of a later assignment.

    Each such row is compared with the rows of its record that were done before it.
    """
    rows = part.rows.take(part.refinished)
    if not len(rows):
        return
    rows = rows.take(np.lexsort((rows.done_ns, rows.offset)))  # of equal times the smaller incarnation is first
    rank = np.unique(_since_ns(part, rows), return_inverse=True)[1]
    begin = np.flatnonzero(np.diff(rows.offset, prepend=-2))
    first = np.repeat(begin, np.diff(np.append(begin, len(rows))))
    latest = np.maximum.accumulate(first * len(rows) + rank) - first * len(rows)
    for index in np.flatnonzero(latest > rank).tolist():
        part.aggregates.put_detections(_stale_effect(part, rows, int(first[index]), index))


def _stale_effect(part: TaskData, rows: Rows, first: int, index: int) -> Iterator[Detection]:
    """Compare the row ``index`` with the rows from ``first`` on that finished its record before it."""
    own = part.interval_of(int(rows.who[index]), int(rows.interval[index]))
    if own is None:
        return
    done_ns = int(rows.done_ns[index])
    for before in range(first, index):
        other = part.interval_of(int(rows.who[before]), int(rows.interval[before]))
        later = other and other.incarnation != own.incarnation and other.assigned_begin_ns > own.assigned_begin_ns
        if other and later and rows.done_ns[before] < done_ns:
            excuse = _why_late(part, own, Window(int(rows.begin_ns[index]), done_ns))
            members, times = (own.incarnation, other.incarnation), (int(rows.done_ns[before]), done_ns)
            yield Detection("stale-effect", part.tp, members, "", excuse, int(rows.offset[index]), *times)
            return


def _why_late(part: TaskData, own: Interval, work: Window) -> str:
    tables, name = part.tables, own.incarnation
    if own.how in ("revoked", "lost") and own.given_up_end_ns < work.begin_ns:
        owned = tables.intervals_of.meeting((name, part.tp), Window(work.begin_ns, work.begin_ns))
        if all(interval == own for interval in owned):
            return ""
    pauses = tables.lives[name].paused if name in tables.lives else ()
    if any(work.begin_ns < pause.begin_ns and pause.end_ns < work.end_ns for pause in pauses):
        return "in flight when frozen"
    owner = tables.certain_owner(part.tp, work.begin_ns)
    return "not told yet" if owner and owner.incarnation != name else "begun as its owner"


def redelivery_loop(part: TaskData) -> None:
    """``redelivery-loop``: too many deliveries of one offset, or several while no offset above it was committed."""
    bounds = part.judged.bounds
    often = part.deliveries > min(2, bounds.loop_deliveries)
    if not often.any():
        return
    rows = part.rows.in_turn(np.flatnonzero(part.where.of(often)))
    begin = np.flatnonzero(np.diff(rows.offset, prepend=-2))
    end = np.append(begin[1:], len(rows)) - 1
    count, first, last = end - begin + 1, rows.delivered_ns[begin], rows.delivered_ns[end]
    looping = count > bounds.loop_deliveries
    for index in np.flatnonzero(looping):
        looping[index] = count[index] > bounds.deliveries_of(part.tables.steps, int(first[index]), int(last[index]))
    standing = ~looping & (count >= 3) & (last - first > bounds.loop_ns)
    for index in np.flatnonzero(standing):
        times = int(first[index]), int(last[index])
        standing[index] = not _moved(part, int(rows.offset[begin[index]]), *times) and not _faulty(part, *times)
    chosen, by_program = looping | standing, np.zeros(len(count), bool)
    for place in np.flatnonzero(chosen).tolist():
        window = Window(int(first[place]), int(last[place]))
        by_client = int(count[place]) - part.tables.moves_over(part.tp, int(rows.offset[begin[place]]), window)
        by_program[place] = by_client <= (bounds.deliveries_of(part.tables.steps, *window) if looping[place] else 2)
    part.aggregates.put_many(
        "redelivery-loop",
        part.tp,
        [rows.who[end][chosen], looping[chosen], by_program[chosen]],
        lambda who, looping, by_program: Label(
            (rows.names[who],), "count" if looping else "standing", part.tables.sought if by_program else ""
        ),
        first=rows.offset[begin][chosen],
        from_ns=first[chosen],
        to_ns=last[chosen],
    )


def _moved(part: TaskData, offset: int, first_ns: int, last_ns: int) -> bool:
    accepted = part.tables.accepted_of.meeting(part.tp, Window(first_ns, last_ns))
    return any(commit.offset > offset for commit in accepted)


def _faulty(part: TaskData, first_ns: int, last_ns: int) -> bool:
    around = Window(first_ns - part.judged.bounds.loop_ns, last_ns)
    return any(step.begun_ns and step.in_effect.meets(around) for step in part.tables.steps)
