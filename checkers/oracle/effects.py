"""Rules about what records must have left behind, outside of the group's topics: effects, and dead letters."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from typing import TYPE_CHECKING

from fencepost.checkers.detections import Detection, blamed
from fencepost.checkers.oracle.delivery import passes
from fencepost.checkers.tables.effects import LETTER_NS
from fencepost.checkers.tables.rows import FOREVER
from fencepost.history import RecordState

if TYPE_CHECKING:
    from fencepost.checkers.oracle.history import History, Rule


def missing_effect(history: History) -> Iterator[Detection]:
    """``missing-effect``: a visible record of the domain that has no effect, where effects are promised.

    members: the passer's incarnation (see ``unseen``); times: its begin_ns (0: no member tells of it); excuse: a
    declared act on the partition.
    """
    for tp in history.log if history.tables.promised("effects") else ():
        made = history.tables.affected.get(tp, frozenset())
        yield from _missing(history, "missing-effect", tp, history.log[tp], made)


def dead_letter_missing(history: History) -> Iterator[Detection]:
    """``dead-letter-missing``: a visible record of the domain that cannot be processed and has no dead letter, where it
    is promised that those have one (``Parked``).

    It cannot be processed when a member parked it and none was done with it; and, whatever members say, when the
    workload wrote it so (``Tables.poison_every``): who swallows an error calls the record done.

    members, times, excuse: as of ``missing-effect``.
    """
    for tp in history.log if history.tables.promised("parked") else ():
        hopeless = [offset for offset in history.log[tp] if _hopeless(history, tp, offset)]
        yield from _missing(history, "dead-letter-missing", tp, hopeless, history.tables.buried.get(tp, frozenset()))


def per_entity_order(history: History) -> Iterator[Detection]:
    """``per-entity-order``: a record is processed although an earlier one of its key has a dead letter that was not
    retried yet, where it is promised that nothing is (``Parked``), or lies behind it, as it was re-queued.

    Of the rows that are done each that was begun more than ``LETTER_NS`` after a dead letter, or a copy at a higher
    offset than its own, of its key (records without a key have none) and partition was written, of a record at a lower
    offset, and done more than ``LETTER_NS`` before that letter was retried (what was begun by then may have waited).
    A letter does not count for what is begun after its own record was done by anybody: its writer was no longer the
    owner, or nobody heard of it.

    members: the incarnation, and who wrote the first such letter or copy (by time, offset, and where it is); cause
    ``re-queued``: it is a copy; excuse: a declared act on the partition; times: that one's, and the row's begin_ns.
    """
    promised = any(promise.get("in_order") for promise in history.tables.promised("parked"))
    for tp, rows in history.rows.items():
        letters = [one for one in history.tables.letters_of.get(tp, ()) if promised or one.again < FOREVER]
        own_ns = {one.offset: _first_done(history, tp, one.offset) for one in letters}
        for row in rows:
            mine = (one for one in letters if one.key == row.key and one.offset < row.offset < one.again)
            mine = (one for one in mine if one.again < FOREVER or row.begin_ns <= own_ns[one.offset])
            stood = (
                one for one in mine if one.at_ns + LETTER_NS < row.begin_ns and row.done_ns < one.retried_ns - LETTER_NS
            )
            letter = next(stood, None)
            if letter and row.state == RecordState.DONE:
                members, times = blamed(row.incarnation, letter.incarnation), (letter.at_ns, row.begin_ns)
                excuse, cause = history.declared(tp, FOREVER), "re-queued" if letter.again < FOREVER else ""
                yield Detection("per-entity-order", tp, members, cause, excuse, row.offset, *times)


def _first_done(history: History, tp: int, offset: int) -> int:
    rows = history.of_offset.get((tp, offset), ())
    return min((row.done_ns for row in rows if row.state == RecordState.DONE), default=FOREVER)


def requeue_missing(history: History) -> Iterator[Detection]:
    """``requeue-missing``: a visible record of the domain that a member finished as re-queued, with which none was
    done, and of which there is no copy in its partition, where those are promised (``Requeued``).

    members, times, excuse: as of ``missing-effect``.
    """
    for tp in history.log if history.tables.promised("requeued") else ():
        parked = [offset for offset in history.log[tp] if _parked(history, tp, offset)]
        yield from _missing(history, "requeue-missing", tp, parked, history.tables.requeued.get(tp, frozenset()))


def requeued_and_done(history: History) -> Iterator[Detection]:
    """``requeued-and-done``: of a record with which a member was done there is a copy, which is to be processed, too.

    One sighting for each such record, by its first copy (by ``seq``) and its first row that is done (by done_ns, then
    incarnation). members: who wrote the copy, and who was done; cause ``one owner``: they are one incarnation, which
    was assigned the partition once; excuse: a declared act on the partition; times: the copy's, and done_ns.
    """
    first = {(copy.tp, copy.offset): copy for copy in reversed(history.tables.copies)}
    for (tp, offset), copy in first.items():
        done = [row for row in history.of_offset.get((tp, offset), ()) if row.state == RecordState.DONE]
        if done:
            done_ns, who = min((row.done_ns, row.incarnation) for row in done)
            cause, excuse = history.tables.one_owner(tp, copy.incarnation, who), history.declared(tp, FOREVER)
            members, times = blamed(copy.incarnation, who), (copy.at_ns, done_ns)
            yield Detection("requeued-and-done", tp, members, cause, excuse, offset, *times)


def _missing(history: History, kind: str, tp: int, wanted: Iterable[int], made: Collection[int]) -> Iterator[Detection]:
    """A sighting for each of the ``wanted`` offsets in the domain that is not among the ``made`` ones."""
    domain, excuse, passing = history.domain(tp), history.declared(tp, FOREVER), passes(history, tp)
    for offset in wanted:
        if offset in domain and offset not in made:
            passer = next((c for c in passing if c.offset > offset), None)
            at_ns = passer.begin_ns if passer else 0
            yield Detection(kind, tp, blamed(passer.incarnation if passer else ""), "", excuse, offset, at_ns, at_ns)


def _hopeless(history: History, tp: int, offset: int) -> bool:
    record, every = history.log[tp][offset], history.tables.poison_every
    if every and record.writer >= 0 and (record.seq + 1) % every == 0:
        return True
    return _parked(history, tp, offset)


def _parked(history: History, tp: int, offset: int) -> bool:
    states = {row.state for row in history.of_offset.get((tp, offset), ())}
    return RecordState.PARKED in states and RecordState.DONE not in states


RULES: dict[Rule, tuple[str, ...]] = {
    missing_effect: ("missing-effect",),
    dead_letter_missing: ("dead-letter-missing",),
    per_entity_order: ("per-entity-order",),
    requeue_missing: ("requeue-missing",),
    requeued_and_done: ("requeued-and-done",),
}
