"""What brokers told of committed offsets, and which of these answers were older than they may be. Pure.

A member begins where its coordinator tells it to, whether that is right or not. An answer is *stale* when a later
commit had been acknowledged before brokers received the request: a coordinator that has just loaded the group may know
of commits that it does not tell yet. The order of commits is that of the coordinator's log, as ever.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from fencepost.checkers.tables.committed import Committed
from fencepost.checkers.tables.requests import LATE_NS, Request
from fencepost.checkers.tables.rows import FOREVER, Accepted, Interval, Window
from fencepost.checkers.tables.spans import Spans

if TYPE_CHECKING:
    from fencepost.checkers.tables.indices import Indexed

KIND = "stale-offset-answer"  # its cause is the kind of what followed from it; empty: nothing that is seen
TOLD = "told a member"  # its cause, too: somebody of the group got it
NOT_SEEN = "answer not seen"  # a cause: a stale answer may be why, and no broker shows which answer there was


def judged_as(kind: str, cause: str) -> str:
    """The kind that a promise has to judge: what follows from a stale answer breaks what it would break else, and is
    told as the brokers' doing."""
    return cause if kind == KIND and cause not in ("", TOLD) else kind


class Stale(NamedTuple):
    """An answer, and the last commit that was certainly acknowledged before it was asked for, and when that was."""

    answer: Request
    commit: Accepted
    acknowledged_ns: int


def stale(tables: Indexed) -> dict[Request, Stale]:
    """All stale answers, by partition and in the order of time.

    A commit is acknowledged when its member had its "ok", or a broker had answered its request; one of a transaction
    only for a request for stable offsets, and when its member had its "ok" and the transaction had ended in the
    coordinator's log: until then a coordinator may rightly tell others what was before.
    """
    found = {}
    for tp, fetches in tables.fetched_by_tp.items():
        rows = tables.accepted_of.get(tp, [])
        last = {row.offset: place for place, row in enumerate(rows)}
        suspects = [fetch for fetch in fetches if last.get(fetch.offset, -1) < len(rows) - 1]
        if not suspects:
            continue
        answered = _answered(tables, tp, rows)
        of_stable, of_all = (Committed([*known]) for known in (answered, _no_transactions(answered)))
        for fetch in suspects:
            committed, asked_ns = of_stable if fetch.stable else of_all, _asked_ns(tables, fetch)
            certain = committed.certain(asked_ns)
            if certain is None or fetch.offset in committed.between(asked_ns, fetch.served.end_ns):
                continue
            older = (row.offset for row in rows if row.order < certain.order)
            if fetch.offset < 0 or fetch.offset in older:
                found[fetch] = Stale(fetch, certain, certain.answered_ns)
    return found


def _answered(tables: Indexed, tp: int, rows: Sequence[Accepted]) -> list[Accepted]:
    """The commits of a partition, each with when it was acknowledged first, by its member or by a broker."""
    told: dict[int, int] = {}
    of_offset = Spans(rows, lambda row: row.offset, lambda row: row.written)
    for request in tables.asked_by_tp.get(tp, ()):
        if not (request.error or request.transactional):
            written = of_offset.meeting(request.offset, request.served)
            if row := min(written, key=lambda row: row.order, default=None):  # of equal ones it answers for the first
                at_ns = request.end_ns + request.uncertainty_ns
                told[row.order] = min(at_ns, told.get(row.order, FOREVER))
    known = ((row, told.get(row.order, FOREVER) if not row.transactional else FOREVER) for row in rows)
    answers = ((row, min(at_ns, row.answered_ns or FOREVER)) for row, at_ns in known)
    return [row._replace(answered_ns=at_ns if at_ns < FOREVER else 0) for row, at_ns in answers]


def _no_transactions(rows: Iterable[Accepted]) -> Iterator[Accepted]:
    return (row._replace(answered_ns=0) if row.transactional else row for row in rows)


def _asked_ns(tables: Indexed, fetch: Request) -> int:
    """The earliest moment at which brokers may have received a request for offsets that they answered.

    Its line may have been written late. But who answers leads the group's partition of the offsets topic; and a member
    asks in an assignment.
    """
    since_ns, until_ns = fetch.received.common(fetch.served)
    seats = [s for s in tables.seats if s.leader == fetch.broker and s.until_ns + LATE_NS >= since_ns]
    led_ns = min((seat.at_ns - seat.uncertainty_ns for seat in seats), default=0)
    assigned = tables.last_assigned(fetch.incarnation, fetch.tp, until_ns)
    assigned_ns = assigned.assigned_begin_ns if assigned else 0
    return max(since_ns, led_ns if led_ns <= until_ns else 0, assigned_ns)


def answers(tables: Indexed, interval: Interval, first_ns: int) -> list[Request]:
    """The answers that an incarnation may have begun an assignment interval by, which delivered first at ``first_ns``.

    Those that it may have got since it gave the partition up before.
    """
    before = tables.interval.get((interval.incarnation, interval.tp, interval.number - 1))
    since_ns = before.given_up_begin_ns if before else 0
    told = tables.fetched_of.meeting((interval.incarnation, interval.tp), Window(since_ns, first_ns))
    return [answer for answer in told if answer.received.end_ns >= since_ns]


def unseen(tables: Indexed, tp: int, asked: Window) -> tuple[int, ...]:
    """Which offsets a stale answer may have told somebody in a time, where no answer is seen.

    Those that were committed before the last one that was certainly in force; none unless another broker may have
    become the coordinator since that was written.
    """
    certain = tables.committed[tp].certain(asked.begin_ns) if tp in tables.committed else None
    if certain is None or not any(load.meets(Window(certain.written.begin_ns, asked.end_ns)) for load in tables.loads):
        return ()
    return tuple(row.offset for row in tables.accepted_of[tp] if row.order < certain.order and row.offset >= 0)


def by_asker(found: Mapping[Request, Stale]) -> dict[tuple[str, int], list[Stale]]:
    """Stale answers by who asked, and partition, in the order of time."""
    of: dict[tuple[str, int], list[Stale]] = {}
    for one in found.values():
        of.setdefault((one.answer.incarnation, one.answer.tp), []).append(one)
    return of
