"""Rules about effects outside of the group's topics, in the order that a store, or another topic, gave them.

Not by the members' done stamps: one that is stopped between its write and its stamp did nothing wrong.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from fencepost.checkers.sightings import Sighting
from fencepost.checkers.tables import Tables
from fencepost.checkers.tables.effects import Effect

if TYPE_CHECKING:
    from fencepost.checkers.coordination import Rule


def duplicate_effect(tables: Tables) -> Iterator[Sighting]:
    """``duplicate-effect``: a record has more than one effect in the store.

    One sighting for each effect after the first one. members: who wrote it, and who wrote the first one, as far as
    that is known; excuse: a declared act before it; times: the first one's, and its.
    """
    for before, effect in _again(tables.effects):
        members = tuple(filter(None, (effect.incarnation, before.incarnation)))
        excuse, times = _excuse(tables, before, effect), (before.at_ns, effect.at_ns)
        yield Sighting("duplicate-effect", effect.tp, members, "", excuse, effect.offset, *times)


def dead_letter_twice(tables: Tables) -> Iterator[Sighting]:
    """``dead-letter-twice``: a record has more than one dead letter.

    One sighting for each after the first one. members, excuse, times: as of ``duplicate-effect``. cause ``one owner``:
    both are of one incarnation, which was assigned the partition once, so neither a death nor a rebalance came between.
    """
    return _twice(tables, "dead-letter-twice", tables.dead_letters)


def requeue_twice(tables: Tables) -> Iterator[Sighting]:
    """``requeue-twice``: of a record that was re-queued there is more than one copy in the log.

    One sighting for each after the first one (by ``seq``), at the record's own offset. members, excuse, times, cause:
    as of ``dead-letter-twice``.
    """
    return _twice(tables, "requeue-twice", tables.copies)


def _twice(tables: Tables, kind: str, effects: Iterable[Effect]) -> Iterator[Sighting]:
    for before, effect in _again(effects):
        members, times = (effect.incarnation, before.incarnation), (before.at_ns, effect.at_ns)
        cause, excuse = tables.one_owner(effect.tp, *members), _excuse(tables, before, effect)
        yield Sighting(kind, effect.tp, members, cause, excuse, effect.offset, *times)


def _excuse(tables: Tables, before: Effect, effect: Effect) -> str:
    """A declared act; the first one may be of the record that had this offset before its partition was made again."""
    return tables.declared(effect.tp, effect.at_ns) or tables.remade(effect.tp, before.at_ns)


def _again(effects: Iterable[Effect]) -> Iterator[tuple[Effect, Effect]]:
    """Of each record its first effect, with each other one."""
    first: dict[tuple[int, int], Effect] = {}
    for effect in effects:
        before = first.setdefault((effect.tp, effect.offset), effect)
        if before is not effect:
            yield before, effect


def stale_write(tables: Tables) -> Iterator[Sighting]:
    """``stale-write``: an effect is in the store after one in its partition that was made under a newer token.

    members: who wrote it, and who wrote the first one under the newest token by then; times: that one's, and its.
    """
    newest: dict[int, Effect] = {}
    for effect in tables.effects:
        latest = newest.setdefault(effect.tp, effect)
        if effect.token > latest.token:
            newest[effect.tp] = effect
        elif effect.token < latest.token:
            members = (effect.incarnation, latest.incarnation)
            yield Sighting("stale-write", effect.tp, members, "", "", effect.offset, latest.at_ns, effect.at_ns)


RULES: dict[Rule, tuple[str, ...]] = {
    duplicate_effect: ("duplicate-effect",),
    dead_letter_twice: ("dead-letter-twice",),
    requeue_twice: ("requeue-twice",),
    stale_write: ("stale-write",),
}
