"""Rules about the outputs of processing: effects outside the group's topics, dead letters, and copies of re-queued
records."""

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
    """``missing-effect``: a visible record of the domain that has no effect, if the scenario promises effects.

    members: the passer's incarnation (see ``unseen``); times: its begin_ns (0: no member reported a passer); excuse: a
    declared act on the partition.
    """
    for tp in history.log if history.tables.promised("effects") else ():
        made = history.tables.affected.get(tp, frozenset())
        yield from _missing(history, "missing-effect", tp, history.log[tp], made)


def dead_letter_missing(history: History) -> Iterator[Detection]:
    """``dead-letter-missing``: a visible record of the domain that cannot be processed and has no dead letter, if the
    scenario promises dead letters (``Parked``).

    A record cannot be processed if a member parked it and no member processed it; or if the workload made it so
    (``Tables.poison_every``), even if a member reports it as done: a program may swallow the error.

    members, times, excuse: as for ``missing-effect``.
    """
    for tp in history.log if history.tables.promised("parked") else ():
        poisoned = [offset for offset in history.log[tp] if _unprocessable(history, tp, offset)]
        yield from _missing(history, "dead-letter-missing", tp, poisoned, history.tables.buried.get(tp, frozenset()))


def per_entity_order(history: History) -> Iterator[Detection]:
    """``per-entity-order``: a record is processed while an earlier one of its key waits in a dead letter or a copy.

    Dead letters count only if the scenario promises order (``Parked``). A *letter* of a row is a dead letter or a copy
    of a record with the same key, in the same partition and at a lower offset. A copy must lie at a higher offset than
    the row. Records without a key have no letters. A detection is a row in the state done that has a letter such that

    * the row was begun more than ``LETTER_NS`` after the letter was written;
    * it was done more than ``LETTER_NS`` before the letter was retried: a row that was done later may have waited for
      the retry;
    * a dead letter's own record was not done before the row was begun: otherwise the letter's writer was no longer the
      owner, or its report was lost.

    members: the incarnation, and the writer of the first such letter (by time, offset, and place in its store); cause
    ``re-queued``: that letter is a copy; excuse: a declared act on the partition; times: the letter's, and the row's
    begin_ns.
    """
    promised = any(promise.get("in_order") for promise in history.tables.promised("parked"))
    for tp, rows in history.rows.items():
        letters = [one for one in history.tables.letters_of.get(tp, ()) if promised or one.again < FOREVER]
        own_ns = {one.offset: _first_done(history, tp, one.offset) for one in letters}
        for row in rows:
            earlier = (one for one in letters if one.key == row.key and one.offset < row.offset < one.again)
            earlier = (one for one in earlier if one.again < FOREVER or row.begin_ns <= own_ns[one.offset])
            waiting = (
                one
                for one in earlier
                if one.at_ns + LETTER_NS < row.begin_ns and row.done_ns < one.retried_ns - LETTER_NS
            )
            letter = next(waiting, None)
            if letter and row.state == RecordState.DONE:
                members, times = blamed(row.incarnation, letter.incarnation), (letter.at_ns, row.begin_ns)
                excuse, cause = history.declared(tp, FOREVER), "re-queued" if letter.again < FOREVER else ""
                yield Detection("per-entity-order", tp, members, cause, excuse, row.offset, *times)


def _first_done(history: History, tp: int, offset: int) -> int:
    rows = history.of_offset.get((tp, offset), ())
    return min((row.done_ns for row in rows if row.state == RecordState.DONE), default=FOREVER)


def requeue_missing(history: History) -> Iterator[Detection]:
    """``requeue-missing``: a record that a member re-queued has no copy in its partition, if the scenario promises
    copies (``Requeued``).

    Only visible records of the domain that a member parked and no member processed. members, times, excuse: as for
    ``missing-effect``.
    """
    for tp in history.log if history.tables.promised("requeued") else ():
        parked = [offset for offset in history.log[tp] if _parked(history, tp, offset)]
        yield from _missing(history, "requeue-missing", tp, parked, history.tables.requeued.get(tp, frozenset()))


def requeued_and_done(history: History) -> Iterator[Detection]:
    """``requeued-and-done``: a record was processed and also re-queued, so that its copy is processed again.

    One detection for each such record, by its first copy (by ``seq``) and its first row in the state done (by done_ns,
    then incarnation). members: the writer of the copy, and the incarnation of that row; cause ``one owner``: both are
    one incarnation, which was assigned the partition once; excuse: a declared act on the partition; times: the copy's,
    and done_ns.
    """
    first = {(copy.tp, copy.offset): copy for copy in reversed(history.tables.copies)}
    for (tp, offset), copy in first.items():
        done = [row for row in history.of_offset.get((tp, offset), ()) if row.state == RecordState.DONE]
        if done:
            done_ns, processor = min((row.done_ns, row.incarnation) for row in done)
            cause, excuse = history.tables.one_owner(tp, copy.incarnation, processor), history.declared(tp, FOREVER)
            members, times = blamed(copy.incarnation, processor), (copy.at_ns, done_ns)
            yield Detection("requeued-and-done", tp, members, cause, excuse, offset, *times)


def _missing(
    history: History, kind: str, tp: int, expected: Iterable[int], present: Collection[int]
) -> Iterator[Detection]:
    """A detection for each of the ``expected`` offsets in the domain that is not among the ``present`` ones."""
    domain, excuse, passing = history.domain(tp), history.declared(tp, FOREVER), passes(history, tp)
    for offset in expected:
        if offset in domain and offset not in present:
            passer = next((c for c in passing if c.offset > offset), None)
            at_ns = passer.begin_ns if passer else 0
            yield Detection(kind, tp, blamed(passer.incarnation if passer else ""), "", excuse, offset, at_ns, at_ns)


def _unprocessable(history: History, tp: int, offset: int) -> bool:
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
