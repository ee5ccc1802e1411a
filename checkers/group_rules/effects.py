"""Rules about effects outside of the group's topics, in the order that a store, or another topic, gave them.

Not by the members' done stamps: one that is stopped between its write and its stamp did nothing wrong.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from fencepost.checkers.detections import EXPIRED, Detection
from fencepost.checkers.tables import Tables
from fencepost.checkers.tables.answers import KIND, NOT_SEEN
from fencepost.checkers.tables.effects import Effect
from fencepost.checkers.tables.starts import may_be_misled, misled

if TYPE_CHECKING:
    from fencepost.checkers.group_rules.rule import Rule


def duplicate_effect(tables: Tables) -> Iterator[Detection]:
    """``duplicate-effect``, ``stale-offset-answer``: a record has more than one effect in the store.

    One sighting for each effect after the first one. members: who wrote it, and who wrote the first one, as far as
    that is known; excuse: a declared act before it; times: the first one's, and its. Where a stale answer had sent its
    writer back (``misled``), the kind is ``stale-offset-answer``, and this one its cause; cause ``answer not seen``: no
    answer is seen, and a stale one may have.
    """
    for before, effect in _again(tables.effects):
        members = tuple(filter(None, (effect.incarnation, before.incarnation)))
        kind, cause = _by_whom(tables, "duplicate-effect", effect, "")
        excuse, times = _excuse(tables, before, effect), (before.at_ns, effect.at_ns)
        yield Detection(kind, effect.tp, members, cause, excuse, effect.offset, *times)


def dead_letter_twice(tables: Tables) -> Iterator[Detection]:
    """``dead-letter-twice``, ``stale-offset-answer``: a record has more than one dead letter.

    One sighting for each after the first one. members, excuse, times: as of ``duplicate-effect``, and so is whose fault
    it is. cause ``one owner``: both are of one incarnation, which was assigned the partition once, so neither a death
    nor a rebalance came between.
    """
    return _twice(tables, "dead-letter-twice", tables.dead_letters)


def requeue_twice(tables: Tables) -> Iterator[Detection]:
    """``requeue-twice``, ``stale-offset-answer``: a record that was re-queued has more than one copy in the log.

    One sighting for each after the first one (by ``seq``), at the record's own offset. members, excuse, times, cause:
    as of ``dead-letter-twice``.
    """
    return _twice(tables, "requeue-twice", tables.copies)


def _twice(tables: Tables, kind: str, effects: Iterable[Effect]) -> Iterator[Detection]:
    for before, effect in _again(effects):
        members, times = (effect.incarnation, before.incarnation), (before.at_ns, effect.at_ns)
        blamed, cause = _by_whom(tables, kind, effect, tables.one_owner(effect.tp, *members))
        yield Detection(blamed, effect.tp, members, cause, _excuse(tables, before, effect), effect.offset, *times)


def _by_whom(tables: Tables, kind: str, effect: Effect, cause: str) -> tuple[str, str]:
    """Kind and cause of a second effect: brokers may have sent its writer back to the record."""
    where = (effect.incarnation, effect.tp, effect.offset, effect.at_ns)
    if misled(tables, *where):
        return KIND, kind
    return kind, cause or NOT_SEEN * may_be_misled(tables, *where)


def _excuse(tables: Tables, before: Effect, effect: Effect) -> str:
    """A declared act; the first one may be of the record that had this offset before its partition was made again. Or
    that the offset that was committed above the record expired in between; nobody knows when those of nobody were."""
    act = tables.declared(effect.tp, effect.at_ns) or tables.recreated(effect.tp, before.at_ns)
    since_ns = before.at_ns if before.incarnation else 0
    return act or (EXPIRED if tables.expired(effect.tp, effect.offset, since_ns, effect.at_ns) else "")


def _again(effects: Iterable[Effect]) -> Iterator[tuple[Effect, Effect]]:
    """Of each record its first effect, with each other one."""
    first: dict[tuple[int, int], Effect] = {}
    for effect in effects:
        before = first.setdefault((effect.tp, effect.offset), effect)
        if before is not effect:
            yield before, effect


def stale_write(tables: Tables) -> Iterator[Detection]:
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
            yield Detection("stale-write", effect.tp, members, "", "", effect.offset, latest.at_ns, effect.at_ns)


RULES: dict[Rule, tuple[str, ...]] = {
    duplicate_effect: ("duplicate-effect", "stale-offset-answer"),
    dead_letter_twice: ("dead-letter-twice", "stale-offset-answer"),
    requeue_twice: ("requeue-twice", "stale-offset-answer"),
    stale_write: ("stale-write",),
}
