"""Kernel rules about what records must have left behind: missing-effect, dead-letter-missing."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from fencepost.checkers.kernel.delivery import passers
from fencepost.checkers.kernel.part import Part
from fencepost.checkers.kernel.tallies import Label
from fencepost.checkers.sightings import people
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


def _hopeless(part: Part) -> Array:
    """The places that were parked and never done, or were written so; invisible ones may be among them."""
    parked, done = (np.zeros(len(part.places), bool) for _ in range(2))
    for found, state in ((parked, State.PARKED), (done, State.DONE)):
        found[part.where.places(np.flatnonzero(part.rows.state == state))] = True
    found = parked & ~done
    if part.tables.poison_every:
        found |= (part.logged("writer") >= 0) & (part.logged("seq") % part.tables.poison_every == 0)
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
