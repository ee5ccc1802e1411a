"""Members that stop getting on, on purpose. See ``planted``.

``die-silently``
    A while after the warm-up its process is gone in the middle of its work, with exit code 0 and not a word: no commit,
    no farewell to the group.
``stop-polling``
    A while after the warm-up it waits, as for a lock that nobody gives back, before it works on what it polled. The
    client's own threads go on to send heartbeats. In the end it goes on.
"""

from __future__ import annotations

import os
import threading
from typing import Any

from fencepost_member.commits import Work
from fencepost_member.correct import Correct
from fencepost_member.events import EventLog
from fencepost_member.ownership import Ownership
from fencepost_member.planted.turns import EVERY_S, Turns

WAIT_S = 14.0


class DieSilently(Correct):
    """See the module."""

    def __init__(self, adapter: Any, events: EventLog, ownership: Ownership) -> None:
        """Its end is due after one period."""
        super().__init__(adapter, events, ownership)
        self._turns = Turns(events.folder, EVERY_S, 1)

    def arrange(self, work: Work) -> Work:
        """As it should be, until its time has come."""
        if work and self._turns.due:
            self._turns.taken()
            self._turn()
        return work

    def _turn(self) -> None:
        os._exit(0)


class StopPolling(DieSilently):
    """See the module."""

    def _turn(self) -> None:
        threading.Event().wait(WAIT_S)


BUGS = {"die-silently": DieSilently, "stop-polling": StopPolling}
