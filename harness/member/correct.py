"""What a correct member does where one that is wrong on purpose (``planted``) may do something else."""

from __future__ import annotations

import threading
from functools import partial
from typing import Any, Callable, Dict, Iterable, Optional

from fencepost_member.commits import Commits, Work
from fencepost_member.events import EventLog
from fencepost_member.ownership import Ownership, Tp
from fencepost_member.seeking import seek


class Correct:
    """What a correct member does: every record at once, in the order of the poll; it commits what it finished."""

    undivided = False

    def __init__(self, adapter: Any, events: EventLog, ownership: Ownership) -> None:
        """``adapter`` satisfies ``Adapter``, ``Seeks`` and ``Starts``."""
        self._adapter, self._events, self._ownership = adapter, events, ownership
        self._commits = Commits(adapter, events)
        self._never = threading.Event()  # handlers wait on it

    def arrange(self, work: Work) -> Work:
        """What to process now, in which order, after a poll returned ``work``."""
        return work

    def offsets(self, offsets: Dict[Tp, int], mode: str) -> Dict[Tp, int]:
        """What to commit where the policy says ``offsets``; nothing: no commit at all."""
        return offsets

    def assigned(self, partitions: Iterable[Tp]) -> None:
        """In the assigned callback, before the client takes the partitions."""

    def lost(self) -> None:
        """In the lost callback."""

    def handler(self, handler_s: float) -> Optional[Callable[[], object]]:
        """What handles each record of a poll; None: nothing does, and nothing costs any time."""
        return partial(self._never.wait, handler_s) if handler_s else None

    def seek(self, tp: Tp, offset: int) -> None:
        """Move the position inside of an assignment, and say so; no member that is right ever does."""
        seek(self._adapter, self._events, tp, offset)
