"""The effects that records had in a store outside of Kafka, in the store's own order. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from fencepost.checkers.tables.lives import Event, placed
from fencepost.history import EventKind


class Effect(NamedTuple):
    """One write. ``seq`` is its place in the store; ``token`` that of the lease under which it was made, 0: none."""

    seq: int
    tp: int
    offset: int
    incarnation: str
    token: int
    at_ns: int


def effects(events: Iterable[Event], numbers: Mapping[tuple[str, int], int]) -> tuple[Effect, ...]:
    """What the events tell of a store."""
    found = (
        Effect(
            e["detail"].get("seq", 0),
            tp,
            -1 if e["offset"] is None else e["offset"],
            e["actor"],
            e["detail"].get("token", 0),
            e["begin_ns"],
        )
        for e, tp in placed(events, numbers, EventKind.EFFECT)
    )
    return tuple(sorted(found))
