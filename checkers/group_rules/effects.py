"""Rules about effects outside the group's topics, in the order of the store or topic that holds the effects.

The members' own times of completion are not used: a member that is stopped after its write and before it records the
time did nothing wrong.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from fencepost.checkers.detections import EXPIRED, Detection
from fencepost.checkers.tables import Tables
from fencepost.checkers.tables.answers import KIND, NOT_SEEN
from fencepost.checkers.tables.effects import NO_KEY, Effect
from fencepost.checkers.tables.rows import FOREVER
from fencepost.checkers.tables.starts import may_be_misled, misled

if TYPE_CHECKING:
    from fencepost.checkers.group_rules.rule import Rule


def duplicate_effect(tables: Tables) -> Iterator[Detection]:
    """``duplicate-effect``, ``stale-offset-answer``: a record has more than one effect in the store.

    One detection for each effect after the first one. members: the writer of this effect and the writer of the first
    one, if they are known; excuse: see ``_excuse``; times: of the first effect, and of this one. If a stale answer had
    sent the writer back to the record (``misled``), the kind is ``stale-offset-answer``, and ``duplicate-effect`` is
    its cause. cause ``answer not seen``: a stale answer may have sent it back, and no answer is logged.
    """
    for before, effect in _again(tables.effects):
        members = tuple(filter(None, (effect.incarnation, before.incarnation)))
        kind, cause = _by_whom(tables, "duplicate-effect", effect, "")
        excuse, times = _excuse(tables, before, effect), (before.at_ns, effect.at_ns)
        yield Detection(kind, effect.tp, members, cause, excuse, effect.offset, *times)


def dead_letter_twice(tables: Tables) -> Iterator[Detection]:
    """``dead-letter-twice``, ``stale-offset-answer``: a record has more than one dead letter.

    One detection for each dead letter after the first one. members, excuse, times, and the treatment of stale answers:
    as for ``duplicate-effect``. cause ``one owner``: one incarnation wrote both and was assigned the partition only
    once, so neither a death nor a rebalance happened in between.
    """
    return _twice(tables, "dead-letter-twice", tables.dead_letters)


def requeue_twice(tables: Tables) -> Iterator[Detection]:
    """``requeue-twice``, ``stale-offset-answer``: a record that was re-queued has more than one copy in the log.

    One detection for each copy after the first one (by ``seq``), at the offset of the original record. members, excuse,
    times, cause: as for ``dead-letter-twice``.
    """
    return _twice(tables, "requeue-twice", tables.copies)


def _twice(tables: Tables, kind: str, effects: Iterable[Effect]) -> Iterator[Detection]:
    for before, effect in _again(effects):
        members, times = (effect.incarnation, before.incarnation), (before.at_ns, effect.at_ns)
        blamed, cause = _by_whom(tables, kind, effect, tables.one_owner(effect.tp, *members))
        yield Detection(blamed, effect.tp, members, cause, _excuse(tables, before, effect), effect.offset, *times)


def _by_whom(tables: Tables, kind: str, effect: Effect, cause: str) -> tuple[str, str]:
    """Kind and cause of a second effect; a stale answer of a broker may have sent its writer back to the record."""
    where = (effect.incarnation, effect.tp, effect.offset, effect.at_ns)
    if misled(tables, *where):
        return KIND, kind
    return kind, cause or NOT_SEEN * may_be_misled(tables, *where)


def _excuse(tables: Tables, before: Effect, effect: Effect) -> str:
    """The excuse of a second effect: a declared act, or the expiry of a committed offset above the record.

    If the partition was recreated, the first effect may belong to the record that had this offset before. The offset
    must have expired between the two effects; the time of a first effect without a known writer is unknown.
    """
    act = tables.declared(effect.tp, effect.at_ns) or tables.recreated(effect.tp, before.at_ns)
    since_ns = before.at_ns if before.incarnation else 0
    return act or (EXPIRED if tables.expired(effect.tp, effect.offset, since_ns, effect.at_ns) else "")


def _again(effects: Iterable[Effect]) -> Iterator[tuple[Effect, Effect]]:
    """Pairs of effects of one record: the first one, and each later one."""
    first: dict[tuple[int, int], Effect] = {}
    for effect in effects:
        before = first.setdefault((effect.tp, effect.offset), effect)
        if before is not effect:
            yield before, effect


def stale_write(tables: Tables) -> Iterator[Detection]:
    """``stale-write``: an effect follows, in the store, an effect of its partition that has a newer fencing token.

    members: the writer of this effect, and the writer of the first effect under the newest token so far; times: of
    that first effect, and of this one.
    """
    newest: dict[int, Effect] = {}
    for effect in tables.effects:
        latest = newest.setdefault(effect.tp, effect)
        if effect.token > latest.token:
            newest[effect.tp] = effect
        elif effect.token < latest.token:
            members = (effect.incarnation, latest.incarnation)
            yield Detection("stale-write", effect.tp, members, "", "", effect.offset, latest.at_ns, effect.at_ns)


def effects_out_of_order(tables: Tables) -> Iterator[Detection]:
    """``effects-out-of-order``: the first effect of a record follows an effect of a later record of its key.

    Only if effects are listed in the order in which they were written (``Tables.effects_in_order``); records without a
    key have no order. One detection for each such record; the list names no member and no time. excuse: a declared act
    on the partition, or on one of its name that was recreated.
    """
    if not tables.effects_in_order:
        return
    seen: set[tuple[int, int]] = set()
    latest: dict[tuple[int, int], Effect] = {}
    for effect in tables.effects:
        key, record = (effect.tp, effect.key), (effect.tp, effect.offset)
        if effect.key == NO_KEY or record in seen:
            continue
        seen.add(record)
        before = latest.setdefault(key, effect)
        if effect.offset < before.offset:
            excuse = tables.declared(effect.tp, FOREVER) or tables.recreated(effect.tp, FOREVER)
            yield Detection("effects-out-of-order", effect.tp, (), "", excuse, effect.offset)
        else:
            latest[key] = effect


RULES: dict[Rule, tuple[str, ...]] = {
    duplicate_effect: ("duplicate-effect", "stale-offset-answer"),
    dead_letter_twice: ("dead-letter-twice", "stale-offset-answer"),
    requeue_twice: ("requeue-twice", "stale-offset-answer"),
    stale_write: ("stale-write",),
    effects_out_of_order: ("effects-out-of-order",),
}
