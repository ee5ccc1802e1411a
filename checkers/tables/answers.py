"""The brokers' answers to fetches of committed offsets, and the stale ones among them. Pure.

A member begins at the offset in its coordinator's answer, even if the answer is wrong. An answer is *stale* if a later
commit had been acknowledged before a broker received the request. The answers of a coordinator that has just loaded the
group may not include all commits in its log. The order of commits is the order of the coordinator's log.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from fencepost.checkers.tables.committed import Committed
from fencepost.checkers.tables.interval_index import IntervalIndex
from fencepost.checkers.tables.requests import LATE_NS, Request
from fencepost.checkers.tables.rows import FOREVER, Interval, OffsetCommit, Window

if TYPE_CHECKING:
    from fencepost.checkers.tables.indexes import Indexes

KIND = "stale-offset-answer"  # its cause is the kind of its consequence; empty: no consequence is seen
REPORTED = "told a member"  # another cause of ``KIND``: a member of the group received the answer
NOT_SEEN = "answer not seen"  # a cause of other kinds: a stale answer may explain them, and no broker logged the answer


def judged_as(kind: str, cause: str) -> str:
    """The kind by which a promise judges: a consequence of a stale answer counts as the kind that it would be without
    the answer."""
    return cause if kind == KIND and cause not in ("", REPORTED) else kind


class Stale(NamedTuple):
    """A stale answer, the last commit that was certainly acknowledged before its request, and when that was certain."""

    answer: Request
    commit: OffsetCommit
    acknowledged_ns: int


def stale(tables: Indexes) -> dict[Request, Stale]:
    """All stale answers, by partition and in the order of time.

    A commit is acknowledged when its member has received "ok", or a broker has answered its request. A commit of a
    transaction counts only for fetches of stable offsets, and only after its member has received "ok" and the
    transaction has ended in the coordinator's log. Until then a coordinator may answer with the previous offset.
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


def _answered(tables: Indexes, tp: int, rows: Sequence[OffsetCommit]) -> list[OffsetCommit]:
    """The commits of a partition; ``answered_ns`` is the first acknowledgement, by its member or by a broker."""
    known_ns: dict[int, int] = {}
    of_offset = IntervalIndex(rows, lambda row: row.offset, lambda row: row.written)
    for request in tables.asked_by_tp.get(tp, ()):
        if not (request.error or request.transactional):
            written = of_offset.meeting(request.offset, request.served)
            if row := min(written, key=lambda row: row.order, default=None):  # of equal commits, the first
                at_ns = request.end_ns + request.uncertainty_ns
                known_ns[row.order] = min(at_ns, known_ns.get(row.order, FOREVER))
    known = ((row, known_ns.get(row.order, FOREVER) if not row.transactional else FOREVER) for row in rows)
    answers = ((row, min(at_ns, row.answered_ns or FOREVER)) for row, at_ns in known)
    return [row._replace(answered_ns=at_ns if at_ns < FOREVER else 0) for row, at_ns in answers]


def _no_transactions(rows: Iterable[OffsetCommit]) -> Iterator[OffsetCommit]:
    return (row._replace(answered_ns=0) if row.transactional else row for row in rows)


def _asked_ns(tables: Indexes, fetch: Request) -> int:
    """The earliest time at which a broker may have received an answered fetch of offsets.

    The broker may have logged the request late. But it did not receive the request before it became the leader of the
    group's partition of the offsets topic, nor before the member was assigned the partition.
    """
    since_ns, until_ns = fetch.received.common(fetch.served)
    seats = [s for s in tables.seats if s.leader == fetch.broker and s.until_ns + LATE_NS >= since_ns]
    led_ns = min((seat.at_ns - seat.uncertainty_ns for seat in seats), default=0)
    assigned = tables.last_assigned(fetch.incarnation, fetch.tp, until_ns)
    assigned_ns = assigned.assigned_begin_ns if assigned else 0
    return max(since_ns, led_ns if led_ns <= until_ns else 0, assigned_ns)


def answers(tables: Indexes, interval: Interval, first_ns: int) -> list[Request]:
    """The answers that may have set the start of an assignment interval whose first delivery was at ``first_ns``.

    The incarnation may have received these answers since the end of its previous interval of the partition.
    """
    before = tables.interval.get((interval.incarnation, interval.tp, interval.number - 1))
    since_ns = before.given_up_begin_ns if before else 0
    fetched = tables.fetched_of.meeting((interval.incarnation, interval.tp), Window(since_ns, first_ns))
    return [answer for answer in fetched if answer.received.end_ns >= since_ns]


def unseen(tables: Indexes, tp: int, asked: Window) -> tuple[int, ...]:
    """The offsets that a stale answer to a request in the window ``asked`` may have contained, if no answer is logged.

    These are the offsets of the commits before the last one that was certainly in force. There are none if no other
    broker can have become the coordinator since that last commit was written.
    """
    certain = tables.committed[tp].certain(asked.begin_ns) if tp in tables.committed else None
    if certain is None or not any(load.meets(Window(certain.written.begin_ns, asked.end_ns)) for load in tables.loads):
        return ()
    return tuple(row.offset for row in tables.accepted_of[tp] if row.order < certain.order and row.offset >= 0)


def by_asker(found: Mapping[Request, Stale]) -> dict[tuple[str, int], list[Stale]]:
    """Stale answers by (requesting incarnation, tp), in the order of time."""
    of: dict[tuple[str, int], list[Stale]] = {}
    for one in found.values():
        of.setdefault((one.answer.incarnation, one.answer.tp), []).append(one)
    return of
