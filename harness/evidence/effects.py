"""What a store outside of Kafka holds in the end, told as events of those who wrote it: the store's order decides."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

from fencepost.history import EventKind
from fencepost_member.events import EventLog
from fencepost_member.store import FILE


def tell(history: Path, events: EventLog) -> None:
    """Note every effect in the store of this run, if it has one, or that it cannot be read. All members have ended."""
    path = history / FILE
    if not path.exists():
        return
    query = "SELECT seq, topic, partition, offset, actor, token, written_ns FROM effects ORDER BY seq"
    rows = []
    try:
        with closing(sqlite3.connect(path)) as store:
            rows = store.execute(query).fetchall()
    except sqlite3.Error as error:
        events.note(EventKind.UNRECORDED, detail={"text": f"the store {FILE} cannot be read: {error}"})
    for seq, topic, partition, offset, actor, token, written_ns in rows:
        where, detail = [[topic, partition, offset]], {"seq": seq, "token": token}
        times = {"begin_ns": written_ns, "end_ns": written_ns}
        events.note(EventKind.EFFECT, actor=actor, partitions=where, detail=detail, **times)
