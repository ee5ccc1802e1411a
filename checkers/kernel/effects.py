"""Kernel rules about what records leave behind: missing-effect, dead-letter-missing, per-entity-order."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from fencepost.checkers.kernel.delivery import passers
from fencepost.checkers.kernel.part import Part
from fencepost.checkers.kernel.tallies import Label
from fencepost.checkers.sightings import people
from fencepost.checkers.tables.effects import LETTER_NS
from fencepost.checkers.tables.rows import FOREVER
from fencepost.history import State

Array = NDArray[Any]


def missing_effect(part: Part) -> None:
    """``missing-effect``: a visible record of the domain that has no effect, where effects are promised."""
    if part.tables.promised("effects"):
        _lacking(part, "missing-effect", part.visible, part.tables.affected.get(part.tp, frozenset()))


def dead_letter_missing(part: Part) -> None:
    """``dead-letter-missing``: one that cannot be processed and has no dead letter, where that is promised."""
    if part.tables.promised("parked"):
        buried = part.tables.buried.get(part.tp, frozenset())
        _lacking(part, "dead-letter-missing", part.visible & _hopeless(part), buried)


def per_entity_order(part: Part) -> None:
    """``per-entity-order``: done although an earlier record of the key has a dead letter, where that is promised."""
    letters, rows = part.tables.letters_of.get(part.tp, ()), part.rows
    if not letters or not any(promise.get("in_order") for promise in part.tables.promised("parked")):
        return
    first = np.full(len(rows), -1)  # of the letters that lie before a row, under its key
    keys, at_ns = (
        np.array(column, np.int64) for column in zip(*((one.key, one.at_ns) for one in letters), strict=True)
    )
    for key in np.unique(keys).tolist():
        mine = np.flatnonzero(rows.key == key)
        for number in np.flatnonzero(keys == key)[::-1].tolist():
            first[mine[rows.offset[mine] > letters[number].offset]] = number
    late = np.flatnonzero((first >= 0) & (rows.state == State.DONE) & (at_ns[first] + LETTER_NS < rows.begin_ns))
    excuse = part.tables.declared(part.tp, FOREVER)
    part.tallies.put_many(
        "per-entity-order",
        part.tp,
        [rows.who[late], first[late]],
        lambda who, number: Label(people(rows.names[who], letters[number].incarnation), "", excuse),
        first=rows.offset[late],
        from_ns=at_ns[first[late]],
        to_ns=rows.begin_ns[late],
    )


def _hopeless(part: Part) -> Array:
    """The places that were parked and never done, or were written so; invisible ones may be among them."""
    parked, done = (np.zeros(len(part.places), bool) for _ in range(2))
    for found, state in ((parked, State.PARKED), (done, State.DONE)):
        found[part.where.places(np.flatnonzero(part.rows.state == state))] = True
    found = parked & ~done
    if part.tables.poison_every:
        found |= (part.logged("writer") >= 0) & ((part.logged("seq") + 1) % part.tables.poison_every == 0)
    return found


def _lacking(part: Part, kind: str, wanted: Array, made: frozenset[int]) -> None:
    """The ``wanted`` places of the domain whose offsets are not among the ``made`` ones."""
    low, high = part.places.below(part.start), part.places.below(part.stop)
    offsets = part.places.offsets(low + np.flatnonzero(wanted[low:high]))
    missing = offsets[~np.isin(offsets, np.fromiter(made, np.int64))]
    if not len(missing):
        return
    names, passer, at_ns = passers(part, missing)
    excuse = part.tables.declared(part.tp, FOREVER)
    part.tallies.put_many(
        kind,
        part.tp,
        [passer],
        lambda passer: Label(people(names[passer]), "", excuse),
        first=missing,
        from_ns=at_ns,
        to_ns=at_ns,
    )
