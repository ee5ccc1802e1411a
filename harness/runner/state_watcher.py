"""Waits for protocol states: looked for every millisecond while somebody waits, and acted on at once."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass

from fencepost.clock import NS, now_ns, ticks
from fencepost.errors import FencepostError
from fencepost.interfaces.signs import Occurrence, Signs, State

LOOK_EVERY_S = 0.001


@dataclass(eq=False)
class Wait:
    """Somebody who waits for a state.

    Attributes:
        state, since_ns, among: see ``State.seen``.
        until_ns: how long.
        seen: called when the state is there.
        missed: called when the time is over.
    """

    state: State
    since_ns: int
    seen: Callable[[Occurrence], None]
    among: Collection[int]
    until_ns: int
    missed: Callable[[], None]


class Watch:
    """Who waits, and for what.

    Attributes:
        waits: those that have not come to an end.
    """

    def __init__(self, signs: Callable[[], Signs]) -> None:
        """``signs``: how the group can be looked at; one that fails is tried again."""
        self.waits: list[Wait] = []
        self._signs = signs

    def look(self, for_s: float) -> None:
        """Look for what is waited for, for so long, and do what is to be done then; nobody waits: return at once."""
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

    def now(self) -> Signs | None:
        """The group as of now; None: it cannot be looked at."""
        try:
            return self._signs()
        except FencepostError:
            return None
