"""Waits for protocol states: checks every millisecond while a wait is open, and acts at once."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass

from fencepost.clock import NS, now_ns, ticks
from fencepost.errors import FencepostError
from fencepost.interfaces.group_snapshot import GroupSnapshot, ProtocolState, StateMatch

LOOK_EVERY_S = 0.001


@dataclass(eq=False)
class PendingTrigger:
    """One wait for a state.

    Attributes:
        state, since_ns, among: see ``ProtocolState.seen``.
        until_ns: when the wait ends.
        seen: called when the state is seen.
        missed: called when the wait ends without it.
    """

    state: ProtocolState
    since_ns: int
    seen: Callable[[StateMatch], None]
    among: Collection[int]
    until_ns: int
    missed: Callable[[], None]


class StateWatcher:
    """The open waits.

    Attributes:
        waits: waits that have not ended.
    """

    def __init__(self, signs: Callable[[], GroupSnapshot]) -> None:
        """``signs`` returns the state of the group; if it fails, it is called again at the next check."""
        self.waits: list[PendingTrigger] = []
        self._signs = signs

    def look(self, for_s: float) -> None:
        """Check the open waits for ``for_s`` seconds, and act when one ends; return at once if none is open."""
        end_ns = now_ns() + int(for_s * NS)
        for at_ns in ticks(LOOK_EVERY_S):
            if not self.waits or at_ns >= end_ns:
                return
            signs = self.now()
            for wait in list(self.waits):
                occurrence = wait.state.seen(signs, wait.since_ns, wait.among) if signs else None
                if occurrence is not None and wait in self.waits:
                    self.waits.remove(wait)
                    wait.seen(occurrence)
                elif at_ns > wait.until_ns and wait in self.waits:
                    self.waits.remove(wait)
                    wait.missed()

    def now(self) -> GroupSnapshot | None:
        """The current state of the group; None: it could not be read."""
        try:
            return self._signs()
        except FencepostError:
            return None
