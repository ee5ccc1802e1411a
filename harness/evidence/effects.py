"""Writes the effects of records as events of the members that caused them.

Effects are in a store, or in a topic that members wrote; dead letters are effects too. The order in that store or topic
counts, not the order in which members observed them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

from fencepost.history import EventKind
from fencepost_member import databases
from fencepost_member.recording.events import EventLog


class RecordedEffect(NamedTuple):
    """An effect of the record at ``offset``.

    ``token``: the fencing token of the lease under which it was written; 0: none. ``key``: the number of the record's
    key; -1: none, or unknown. ``again``: the offset of the re-queued copy of the record; -1: none. ``retried_ns``: when
    the dead letter was retried; 0: never.
    """

    topic: str
    partition: int
    offset: int
    actor: str
    begin_ns: int
    end_ns: int
    token: int = 0
    key: int = -1
    again: int = -1
    retried_ns: int = 0


def record(effects: Iterable[RecordedEffect], events: EventLog, kind: EventKind = EventKind.EFFECT) -> None:
    """Write each effect as an event of this kind; ``effects`` must be in their order."""
    for seq, effect in enumerate(effects, 1):
        where, detail = [[*effect[:3]]], {"seq": seq, "token": effect.token, "key": effect.key}
        if effect.again >= 0:
            detail["again"] = effect.again
        if effect.retried_ns:
            detail["retried_ns"] = effect.retried_ns
        times = {"begin_ns": effect.begin_ns, "end_ns": effect.end_ns}
        events.note(kind, actor=effect.actor, partitions=where, detail=detail, **times)


def record_unknown(events: EventLog, why: str, parts: Sequence[str] = ("effects",)) -> None:
    """Write an event that not every effect is known; ``parts``: the parts of the history that are incomplete for it."""
    events.note(EventKind.UNRECORDED, detail={"text": why, "parts": parts})


def of_store(history: Path, events: EventLog) -> None:
    """Record every effect in the store of this run, if it has one, or that it cannot be read. All members must have
    ended."""
    if not databases.there(history):
        return
    query = 'SELECT topic, partition, "offset", actor, written_ns, written_ns, token FROM effects ORDER BY seq'
    try:
        with closing(databases.opened(history)) as store:
            record([RecordedEffect(*row) for row in store.execute(query).fetchall()], events)
    except databases.errors() as error:
        record_unknown(events, f"the store of the run cannot be read: {error}")
