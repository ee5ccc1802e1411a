"""By which answers of brokers members began where they did, or went back. Pure."""

from __future__ import annotations

from typing import NamedTuple

from fencepost.checkers.tables.answers import Stale, answers, unseen
from fencepost.checkers.tables.rows import FOREVER, Interval, Window
from fencepost.checkers.tables.tables import Tables


class Begun(NamedTuple):
    """By what an assignment interval may have begun at, or below, an offset.

    Attributes:
        in_force: the least offset that was in force; -1: none may have been.
        reported: the least one that the incarnation was told; FOREVER: nothing is seen.
        stale: the least of those that were stale answers, likewise.
        unseen: the least one that it may have been told, see there; FOREVER where answers are seen.
    """

    in_force: int
    reported: int = FOREVER
    stale: int = FOREVER
    unseen: int = FOREVER


def begun(tables: Tables, interval: Interval, first_ns: int, in_force: int) -> Begun:
    """The same of an interval that delivered first at ``first_ns``."""
    reported = answers(tables, interval, first_ns)
    if not reported:
        may = unseen(tables, interval.tp, Window(interval.assigned_begin_ns, first_ns))
        return Begun(in_force, unseen=min(may, default=FOREVER))
    old = (answer.offset for answer in reported if answer in tables.stale)
    return Begun(in_force, min(answer.offset for answer in reported), min(old, default=FOREVER))


def misled(tables: Tables, incarnation: str, tp: int, offset: int, until_ns: int) -> Stale | None:
    """The last stale answer by which an incarnation may have gone back to an offset, and not as far as it had been
    committed, until some moment; None: there is none."""
    reported = (one for one in tables.stale_of.get((incarnation, tp), ()) if one.answer.served.begin_ns <= until_ns)
    back = [one for one in reported if one.answer.offset <= offset < one.commit.offset]
    return back[-1] if back else None


def may_be_misled(tables: Tables, incarnation: str, tp: int, offset: int, until_ns: int) -> bool:
    """Whether a stale answer may have sent an incarnation back to an offset in its last assignment up to a moment, of
    which no answer is seen."""
    last = tables.last_assigned(incarnation, tp, until_ns)
    if last is None or answers(tables, last, until_ns):
        return False
    return min(unseen(tables, tp, Window(last.assigned_begin_ns, until_ns)), default=FOREVER) <= offset
