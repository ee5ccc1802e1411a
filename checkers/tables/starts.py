"""The brokers' answers that explain the start of an assignment, or a return to an earlier offset. Pure."""

from __future__ import annotations

from typing import NamedTuple

from fencepost.checkers.tables.answers import Stale, answers, unseen
from fencepost.checkers.tables.rows import FOREVER, Interval, Window
from fencepost.checkers.tables.tables import Tables


class Begun(NamedTuple):
    """The committed offsets that may explain the start of an assignment interval.

    Attributes:
        in_force: the least offset that was in force; -1: possibly no offset was in force.
        reported: the least offset in the brokers' answers to the incarnation; FOREVER: no answer is logged.
        stale: the least offset in its stale answers; FOREVER: no stale answer is logged.
        unseen: the least offset that an answer without a log line may have had, see ``answers.unseen``; FOREVER: there
            is no such offset, or answers are logged.
    """

    in_force: int
    reported: int = FOREVER
    stale: int = FOREVER
    unseen: int = FOREVER


def begun(tables: Tables, interval: Interval, first_ns: int, in_force: int) -> Begun:
    """The offsets that may explain the start of an interval whose first delivery was at ``first_ns``."""
    reported = answers(tables, interval, first_ns)
    if not reported:
        possible = unseen(tables, interval.tp, Window(interval.assigned_begin_ns, first_ns))
        return Begun(in_force, unseen=min(possible, default=FOREVER))
    old = (answer.offset for answer in reported if answer in tables.stale)
    return Begun(in_force, min(answer.offset for answer in reported), min(old, default=FOREVER))


def misled(tables: Tables, incarnation: str, tp: int, offset: int, until_ns: int) -> Stale | None:
    """The last stale answer by ``until_ns`` that may have sent an incarnation back to ``offset``; None: there is none.

    Such an answer has at most ``offset``, although a greater offset had been committed."""
    reported = (one for one in tables.stale_of.get((incarnation, tp), ()) if one.answer.served.begin_ns <= until_ns)
    back = [one for one in reported if one.answer.offset <= offset < one.commit.offset]
    return back[-1] if back else None


def may_be_misled(tables: Tables, incarnation: str, tp: int, offset: int, until_ns: int) -> bool:
    """Whether a stale answer that no broker logged may have sent an incarnation back to ``offset``.

    Only its last assignment by ``until_ns`` counts, and only if no answer during it is logged."""
    last = tables.last_assigned(incarnation, tp, until_ns)
    if last is None or answers(tables, last, until_ns):
        return False
    return min(unseen(tables, tp, Window(last.assigned_begin_ns, until_ns)), default=FOREVER) <= offset
