"""Planted bugs: members that stop making progress. See ``planted_bugs``.

``die-silently``
    Some time after the warm-up the process exits while it processes records, with exit code 0 and without a message:
    it neither commits nor leaves the group.
``stop-polling``
    Some time after the warm-up the member waits ``WAIT_S`` between a poll and the processing of its records, as for a
    lock, and then continues. The client's own threads send heartbeats meanwhile.
``never-ends``
    Asked to end, the member waits for something that never happens, and does not close its client.
"""

from __future__ import annotations

import os
import threading
from typing import Any

from fencepost_member.behaviour import Behaviour
from fencepost_member.committing.commits import Work
from fencepost_member.ownership import AssignmentNumbers
from fencepost_member.planted_bugs.bug_trigger import EVERY_S, BugTrigger
from fencepost_member.recording.events import EventLog

WAIT_S = 14.0


class DieSilently(Behaviour):
    """The bug ``die-silently``, see the module."""

    def __init__(self, adapter: Any, events: EventLog, ownership: AssignmentNumbers) -> None:
        """The bug is due one period after the warm-up."""
        super().__init__(adapter, events, ownership)
        self._turns = BugTrigger(events.folder, EVERY_S, 1)

    def arrange(self, work: Work) -> Work:
        """Correct until the bug is due."""
        if work and self._turns.due:
            self._turns.fired()
            self._turn()
        return work

    def _turn(self) -> None:
        os._exit(0)


class StopPolling(DieSilently):
    """The bug ``stop-polling``, see the module."""

    def _turn(self) -> None:
        threading.Event().wait(WAIT_S)


class NeverEnds(Behaviour):
    """The bug ``never-ends``, see the module."""

    def ending(self) -> None:
        """Wait for ever."""
        self._never.wait()


BUGS = {"die-silently": DieSilently, "stop-polling": StopPolling, "never-ends": NeverEnds}
