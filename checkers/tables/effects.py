"""The outputs of processing: effects outside the group's topics, dead letters, and copies of re-queued records, each in
the order of its store or topic. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from fencepost.checkers.tables.rows import FOREVER
from fencepost.history import HARNESS, EventKind
from fencepost.history.events import Event, placed

LETTER_NS = 10_000_000  # tolerance: the time of a dead letter's record is in milliseconds of the wall clock
NO_KEY = -1


class Effect(NamedTuple):
    """One write.

    Attributes:
        seq: its place in the store.
        tp, offset: of the record that caused it.
        incarnation: its writer; empty: unknown.
        token: the token of the lease under which it was written; 0: none.
        key: the number of the record's key.
        again: the offset of the copy of a re-queued record; FOREVER: it is no copy.
        retried_ns: when the dead letter was retried; FOREVER: never.
    """

    seq: int
    tp: int
    offset: int
    incarnation: str
    token: int
    at_ns: int
    key: int = NO_KEY
    again: int = FOREVER
    retried_ns: int = FOREVER


def effects(events: Iterable[Event], numbers: Mapping[tuple[str, int], int], kind: EventKind) -> tuple[Effect, ...]:
    """The effects that the events of a kind report, sorted."""
    found = (
        Effect(
            e["detail"].get("seq", 0),
            tp,
            -1 if e["offset"] is None else e["offset"],
            "" if e["actor"] == HARNESS else e["actor"],
            e["detail"].get("token", 0),
            e["begin_ns"],
            e["detail"].get("key", NO_KEY),
            e["detail"].get("again", FOREVER),
            e["detail"].get("retried_ns", FOREVER),
        )
        for e, tp in placed(events, numbers, kind)
    )
    return tuple(sorted(found))


def by_tp(effects: Iterable[Effect]) -> dict[int, list[Effect]]:
    """The effects by partition, in the given order."""
    found: dict[int, list[Effect]] = {}
    for effect in effects:
        found.setdefault(effect.tp, []).append(effect)
    return found


def offsets_of(effects: Iterable[Effect]) -> dict[int, frozenset[int]]:
    """The offsets of the records that have an effect, by partition."""
    return {tp: frozenset(effect.offset for effect in rows) for tp, rows in by_tp(effects).items()}


def by_key(letters: Iterable[Effect]) -> dict[int, list[Effect]]:
    """The dead letters or copies of records with a key, by partition, in the order of time."""
    keyed = (letter for letter in letters if letter.key != NO_KEY)
    return by_tp(sorted(keyed, key=lambda letter: (letter.at_ns, letter.offset, letter.seq)))
