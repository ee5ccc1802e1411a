"""The behaviour of a correct member at the points where a planted bug (``planted_bugs``) may differ."""

from __future__ import annotations

import threading
from functools import partial
from typing import Any, Callable, Dict, Iterable, Optional

from fencepost_member.committing.commits import Committer, Work
from fencepost_member.committing.seeking import seek
from fencepost_member.ownership import AssignmentNumbers, Tp
from fencepost_member.recording.events import EventLog


class Behaviour:
    """A correct member: it processes all records at once, in the order of the poll, and commits processed offsets."""

    batch_atomic = False

    def __init__(self, adapter: Any, events: EventLog, ownership: AssignmentNumbers) -> None:
        """``adapter`` satisfies ``Adapter``, ``Seeks`` and ``StartOffsets``."""
        self._adapter, self._events, self._ownership = adapter, events, ownership
        self._commits = Committer(adapter, events)
        self._never = threading.Event()  # handlers wait on it

    def arrange(self, work: Work) -> Work:
        """The records to process now, in order, after a poll returned ``work``."""
        return work

    def offsets(self, offsets: Dict[Tp, int], mode: str) -> Dict[Tp, int]:
        """The offsets to commit when the policy requests ``offsets``; empty: no commit at all."""
        return offsets

    def assigned(self, partitions: Iterable[Tp]) -> None:
        """Called in the assigned callback, before the client begins the partitions."""

    def lost(self) -> None:
        """Called in the lost callback."""

    def ending(self) -> None:
        """Called when the member was asked to end and has committed, before its client is closed."""

    def handler(self, handler_s: float) -> Optional[Callable[[], object]]:
        """The handler for each record of the next poll, which takes ``handler_s``; None if that is 0."""
        return partial(self._never.wait, handler_s) if handler_s else None

    def seek(self, tp: Tp, offset: int) -> None:
        """Move the position within an assignment, and record it; a correct member never does."""
        seek(self._adapter, self._events, tp, offset)
