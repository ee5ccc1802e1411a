"""When programs had their clients fetch nothing of a partition, from their events. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from fencepost.checkers.tables.rows import Life, Window
from fencepost.history import EventKind
from fencepost.history.events import Event, death_ns, placed


class Paused(NamedTuple):
    """A partition was paused by its owner."""

    tp: int
    incarnation: str
    window: Window


def paused(
    events: Iterable[Event], lives: Mapping[str, Life], numbers: Mapping[tuple[str, int], int]
) -> tuple[Paused, ...]:
    """One row per pause, as they were told; one that was never over lasts as long as the incarnation."""
    return tuple(
        Paused(tp, event["actor"], Window(event["begin_ns"], event["end_ns"] or death_ns(lives.get(event["actor"]))))
        for event, tp in placed(events, numbers, EventKind.PAUSED)
    )
