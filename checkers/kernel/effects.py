"""Kernel rules about the outputs of processing: effects, dead letters, and copies of re-queued records."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fencepost.checkers.detections import blamed
from fencepost.checkers.kernel.aggregates import Label, Totals
from fencepost.checkers.kernel.delivery import passers
from fencepost.checkers.kernel.task_data import TaskData
from fencepost.checkers.tables.effects import LETTER_NS, Effect
from fencepost.checkers.tables.rows import FOREVER
from fencepost.history import RecordState

Array = NDArray[Any]


def missing_effect(part: TaskData) -> None:
    """``missing-effect``: a visible record of the domain that has no effect, where effects are promised."""
    if part.tables.promised("effects"):
        _missing(part, "missing-effect", part.visible, part.tables.affected.get(part.tp, frozenset()))


def dead_letter_missing(part: TaskData) -> None:
    """``dead-letter-missing``: a visible record of the domain that cannot be processed and has no dead letter, where
    dead letters are promised."""
    if part.tables.promised("parked"):
        buried = part.tables.buried.get(part.tp, frozenset())
        _missing(part, "dead-letter-missing", part.visible & _unprocessable(part), buried)


def per_entity_order(part: TaskData) -> None:
    """``per-entity-order``: a record was processed although an earlier one of its key has a dead letter that was not
    yet retried (where such records must wait), or was re-queued behind it."""
    promised, rows = any(promise.get("in_order") for promise in part.tables.promised("parked")), part.rows
    letters = [one for one in part.tables.letters_of.get(part.tp, ()) if promised or one.again < FOREVER]
    if not letters:
        return
    first = np.full(len(rows), -1)  # for each row, the first letter of its key that stands before it
    at_ns = np.array([one.at_ns for one in letters], np.int64)
    behind = _behind(part, letters)
    parked = {number: letters[number].offset for number in behind if letters[number].again == FOREVER}
    done_ns = part.whole.done(parked.values()) if parked else {}
    for number in sorted(behind, reverse=True):
        own_ns = done_ns.get(parked.get(number, -1), FOREVER)  # a record that was begun later need not wait
        first[behind[number][rows.begin_ns[behind[number]] <= own_ns]] = number
    late = np.flatnonzero(first >= 0)
    excuse = part.tables.declared(part.tp, FOREVER)
    part.aggregates.put_many(
        "per-entity-order",
        part.tp,
        [rows.who[late], first[late]],
        lambda who, number: Label(
            blamed(rows.names[who], letters[number].incarnation),
            "re-queued" if letters[number].again < FOREVER else "",
            excuse,
        ),
        first=rows.offset[late],
        from_ns=at_ns[first[late]],
        to_ns=rows.begin_ns[late],
    )


def requeue_missing(part: TaskData) -> None:
    """``requeue-missing``: a visible record of the domain was re-queued and never done, and has no copy, where copies
    are promised."""
    if part.tables.promised("requeued"):
        _missing(part, "requeue-missing", part.visible & _parked(part), part.tables.requeued.get(part.tp, frozenset()))


def requeued_and_done(part: TaskData) -> None:
    """``requeued-and-done``: a member was done with a record that has a copy."""
    first = {copy.offset: copy for copy in reversed(part.tables.copies_of.get(part.tp, ()))}
    if not first:
        return
    rows, excuse = part.rows, part.tables.declared(part.tp, FOREVER)
    done = np.flatnonzero((rows.state == RecordState.DONE) & np.isin(rows.offset, list(first)))
    earliest: dict[int, tuple[int, str]] = {}
    for row in done.tolist():
        offset, ended = int(rows.offset[row]), (int(rows.done_ns[row]), rows.names[rows.who[row]])
        earliest[offset] = min(ended, earliest.get(offset, ended))
    for offset, (done_ns, name) in earliest.items():
        copy = first[offset]
        cause, members = part.tables.one_owner(part.tp, copy.incarnation, name), blamed(copy.incarnation, name)
        numbers = Totals(1, offset, offset, copy.at_ns, done_ns)
        part.aggregates.put("requeued-and-done", part.tp, Label(members, cause, excuse), numbers)


def _behind(part: TaskData, letters: list[Effect]) -> dict[int, Array]:
    """For each letter, by number, the rows of its key that are done and behind it; letters without any are left out."""
    rows, numbers, found = part.rows, defaultdict[int, list[int]](list), dict[int, Array]()
    for number, letter in enumerate(letters):
        numbers[letter.key].append(number)
    for key, of_key in numbers.items():
        done = np.flatnonzero((rows.key == key) & (rows.state == RecordState.DONE))
        for number in of_key if len(done) else ():
            stands = _stands(letters[number], rows.offset[done], rows.begin_ns[done], rows.done_ns[done])
            if stands.any():
                found[number] = done[stands]
    return found


def _stands(letter: Effect, offset: Array, begin_ns: Array, done_ns: Array) -> Array:
    """Whether a letter stands before a row: its record is at a lower offset, and its copy (if any) at a higher one; the
    row was begun after the letter was written, and done before the letter was retried."""
    before = (letter.offset < offset) & (offset < letter.again)
    return before & (letter.at_ns + LETTER_NS < begin_ns) & (done_ns < letter.retried_ns - LETTER_NS)


def _parked(part: TaskData) -> Array:
    """Which places were parked and never done."""
    parked, done = (np.zeros(len(part.places), bool) for _ in range(2))
    for found, state in ((parked, RecordState.PARKED), (done, RecordState.DONE)):
        found[part.where.places(np.flatnonzero(part.rows.state == state))] = True
    return parked & ~done


def _unprocessable(part: TaskData) -> Array:
    """Which places, visible or not, cannot be processed: parked and never done, or written so by the workload."""
    found = _parked(part)
    if part.tables.poison_every:
        found |= (part.logged("writer") >= 0) & ((part.logged("seq") + 1) % part.tables.poison_every == 0)
    return found


def _missing(part: TaskData, kind: str, expected: Array, made: frozenset[int]) -> None:
    """Report the ``expected`` places of the domain whose offsets are not in ``made``."""
    low, high = part.places.below(part.start), part.places.below(part.stop)
    offsets = part.places.offsets(low + np.flatnonzero(expected[low:high]))
    missing = offsets[~np.isin(offsets, np.fromiter(made, np.int64))]
    if not len(missing):
        return
    names, passer, at_ns = passers(part, missing)
    excuse = part.tables.declared(part.tp, FOREVER)
    part.aggregates.put_many(
        kind,
        part.tp,
        [passer],
        lambda passer: Label(blamed(names[passer]), "", excuse),
        first=missing,
        from_ns=at_ns,
        to_ns=at_ns,
    )
