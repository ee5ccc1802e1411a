"""Moves the position within an assignment."""

from __future__ import annotations

from typing import Any

from fencepost_member.ownership import Tp, rows
from fencepost_member.recording.events import EventLog


def seek(adapter: Any, events: EventLog, tp: Tp, offset: int) -> None:
    """Move the position of ``tp`` to ``offset`` and record it; ``adapter`` satisfies ``Seeks``."""
    event = events.begin("seek", partitions=rows({tp: offset}))
    adapter.seek(tp, offset)
    events.end(event)
