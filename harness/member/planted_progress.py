"""Members that stop getting on, on purpose. See ``planted``, which names them.

``die-silently``
    A while after its first records its process is gone in the middle of its work, with exit code 0 and not a word:
    no commit, no farewell to the group.
``stop-polling``
    A while after its first records it waits, as for a lock that nobody gives back, before it works on what it polled.
    The client's own threads go on to send heartbeats. In the end it goes on.
"""

from __future__ import annotations

import os
import threading
import time
from typing import Any

from fencepost_member.commits import Work
from fencepost_member.correct import Correct
from fencepost_member.events import EventLog
from fencepost_member.ownership import Ownership

AFTER_S = 4.0  # after the first records: the group has long been warm then
WAIT_S = 14.0


class _Late(Correct):
    """Turns bad once, in the middle of its work; ``_turn`` says how."""

    def __init__(self, adapter: Any, events: EventLog, ownership: Ownership) -> None:
        """It has seen no record yet."""
        super().__init__(adapter, events, ownership)
        self._due_s = 0.0

    def arrange(self, work: Work) -> Work:
        """As it should be, until its time has come."""
        if work:
            self._due_s = self._due_s or time.monotonic() + AFTER_S
            if time.monotonic() >= self._due_s:
                self._due_s = float("inf")
                self._turn()
        return work

    def _turn(self) -> None:
        raise NotImplementedError


class DieSilently(_Late):
    """See the module."""

    def _turn(self) -> None:
        os._exit(0)


class StopPolling(_Late):
    """See the module."""

    def _turn(self) -> None:
        threading.Event().wait(WAIT_S)


BUGS = {"die-silently": DieSilently, "stop-polling": StopPolling}
