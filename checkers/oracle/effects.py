"""Rules about what records must have left behind, outside of the group's topics: effects, and dead letters."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from typing import TYPE_CHECKING

from fencepost.checkers.oracle.delivery import passes
from fencepost.checkers.sightings import Sighting, people
from fencepost.checkers.tables.effects import LETTER_NS
from fencepost.checkers.tables.rows import FOREVER
from fencepost.history import State

if TYPE_CHECKING:
    from fencepost.checkers.oracle import History, Rule


def missing_effect(history: History) -> Iterator[Sighting]:
    """``missing-effect``: a visible record of the domain that has no effect, where effects are promised.

    members: the passer's incarnation (see ``unseen``); times: its begin_ns (0: no member tells of it); excuse: a
    declared act on the partition.
    """
    for tp in history.log if history.tables.promised("effects") else ():
        made = history.tables.affected.get(tp, frozenset())
        yield from _lacking(history, "missing-effect", tp, history.log[tp], made)


def dead_letter_missing(history: History) -> Iterator[Sighting]:
    """``dead-letter-missing``: a visible record of the domain that cannot be processed and has no dead letter, where it
    is promised that those have one (``Parked``).

    It cannot be processed when a member parked it and none was done with it; and, whatever members say, when the
    workload wrote it so (``Tables.poison_every``): who swallows an error calls the record done.

    members, times, excuse: as of ``missing-effect``.
    """
    for tp in history.log if history.tables.promised("parked") else ():
        hopeless = [offset for offset in history.log[tp] if _hopeless(history, tp, offset)]
        yield from _lacking(history, "dead-letter-missing", tp, hopeless, history.tables.buried.get(tp, frozenset()))


def per_entity_order(history: History) -> Iterator[Sighting]:
    """``per-entity-order``: a record is processed although an earlier one of its key has a dead letter, where it is
    promised that nothing is (``Parked``).

    Of the rows that are done each that was begun more than ``LETTER_NS`` after a dead letter of its key (records
    without a key have none) and partition was written, of a lower offset.

    members: the incarnation, and who wrote the first such letter (by time, offset, and where it is); excuse: a declared
    act on the partition; times: that letter's, and the row's begin_ns.
    """
    if not any(promise.get("in_order") for promise in history.tables.promised("parked")):
        return
    for tp, rows in history.rows.items():
        letters = history.tables.letters_of.get(tp, ())
        for row in rows:
            letter = next((one for one in letters if one.key == row.key and one.offset < row.offset), None)
            if letter and letter.at_ns + LETTER_NS < row.begin_ns and row.state == State.DONE:
                members, times = people(row.incarnation, letter.incarnation), (letter.at_ns, row.begin_ns)
                excuse = history.declared(tp, FOREVER)
                yield Sighting("per-entity-order", tp, members, "", excuse, row.offset, *times)


def _lacking(history: History, kind: str, tp: int, wanted: Iterable[int], made: Collection[int]) -> Iterator[Sighting]:
    """A sighting for each of the ``wanted`` offsets in the domain that is not among the ``made`` ones."""
    domain, excuse, passing = history.domain(tp), history.declared(tp, FOREVER), passes(history, tp)
    for offset in wanted:
        if offset in domain and offset not in made:
            passer = next((c for c in passing if c.offset > offset), None)
            at_ns = passer.begin_ns if passer else 0
            yield Sighting(kind, tp, people(passer.incarnation if passer else ""), "", excuse, offset, at_ns, at_ns)


def _hopeless(history: History, tp: int, offset: int) -> bool:
    record, every = history.log[tp][offset], history.tables.poison_every
    if every and record.writer >= 0 and (record.seq + 1) % every == 0:
        return True
    states = {row.state for row in history.of_offset.get((tp, offset), ())}
    return State.PARKED in states and State.DONE not in states


RULES: dict[Rule, tuple[str, ...]] = {
    missing_effect: ("missing-effect",),
    dead_letter_missing: ("dead-letter-missing",),
    per_entity_order: ("per-entity-order",),
}
