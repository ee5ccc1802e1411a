"""Moving a position inside of an assignment."""

from __future__ import annotations

from typing import Any

from fencepost_member.events import EventLog
from fencepost_member.ownership import Tp, rows


def seek(adapter: Any, events: EventLog, tp: Tp, offset: int) -> None:
    """Have the next poll begin there, and say so; ``adapter`` satisfies ``Seeks``."""
    event = events.begin("seek", partitions=rows({tp: offset}))
    adapter.seek(tp, offset)
    events.end(event)
