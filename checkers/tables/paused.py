"""When programs had paused a partition in their client, from their events. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from fencepost.checkers.tables.rows import Life, Window
from fencepost.history import EventKind
from fencepost.history.events import Event, death_ns, placed


class PausedInterval(NamedTuple):
    """The owner had paused the partition during ``window``."""

    tp: int
    incarnation: str
    window: Window


def paused(
    events: Iterable[Event], lives: Mapping[str, Life], numbers: Mapping[tuple[str, int], int]
) -> tuple[PausedInterval, ...]:
    """One row per pause, in the order of the events; a pause without an end lasts as long as the incarnation."""
    return tuple(
        PausedInterval(
            tp, event["actor"], Window(event["begin_ns"], event["end_ns"] or death_ns(lives.get(event["actor"])))
        )
        for event, tp in placed(events, numbers, EventKind.PAUSED)
    )
