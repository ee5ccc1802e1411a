"""A stall: the handler of the record in hand is slow, so that the member does not poll, while its client lives on.

The client's own threads go on to send heartbeats until ``max.poll.interval.ms`` is over; then they leave the group, and
the program hears of it when it polls again.
"""

from __future__ import annotations

import signal
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from fencepost.clock import NS, now_ns
from fencepost.history import EventKind
from fencepost.interfaces import Injection, Target, World
from fencepost.interfaces.process import Member
from fencepost.model import Inventory
from fencepost.model.impact import Impact
from fencepost.witnesses.processes import GONE, STOPPED, Life
from fencepost.witnesses.witness import Injected, Sight, all_of, witness

PROOF_S = 15.0  # until a record comes to a member that has just got its partitions
HEALED_S = 5.0


@dataclass(frozen=True)
class Stall:
    """Makes handlers of members slow. Witness: each told which record it waits with, and its process runs; healed: it
    told that it went on, and how long that took. Expects ``fenced`` only when past ``max.poll.interval.ms``."""

    needs: ClassVar[frozenset[str]] = frozenset({"signal"})
    hits: ClassVar[frozenset[str]] = frozenset({"members"})
    heals: ClassVar[bool] = True
    impact: ClassVar[frozenset[Impact]] = frozenset({Impact.DELAYS})
    seen: ClassVar[str] = (
        "its heartbeats go on and it polls no more; past max.poll.interval.ms its client leaves the group, and it "
        "hears of that when it polls again"
    )
    outlasts: ClassVar[str] = "max.poll.interval.ms"

    def lacking(self, inventory: Inventory) -> str:
        """See ``Names``."""
        return inventory.lacks_loop()

    def inject(self, world: World, target: Target) -> Injection:
        """Tell all of them to be slow from their next record on."""
        slow = [_Slow.of(world.members[m]) for m in target.members]
        for one in slow:
            one.tell(signal.SIGUSR1)

        def undo() -> None:
            for one in slow:
                one.tell(signal.SIGUSR2)

        return Injected(
            proven=lambda: witness(lambda: all_of({one.member.name: one.waits() for one in slow}), PROOF_S),
            undo=undo,
            healed=lambda: witness(lambda: all_of({one.member.name: one.went_on() for one in slow}), HEALED_S),
        )


@dataclass(frozen=True)
class _Slow:
    """One life of a member that is to be slow."""

    member: Member
    life: Life
    since_ns: int

    @classmethod
    def of(cls, member: Member) -> _Slow:
        return cls(member, Life.of(member), now_ns())

    def tell(self, number: int) -> None:
        """Only a life that listens: to others these signals are deadly."""
        if self.life.state() != GONE and self.member.told(EventKind.STARTED):
            self.member.signal(number)

    @property
    def told(self) -> Mapping[str, Any] | None:
        """Its last stall of ours."""
        stalls = (e for e in self.member.told(EventKind.STALL) if e["begin_ns"] >= self.since_ns)
        return next(reversed([*stalls]), None)

    def waits(self) -> Sight:
        """Whether it waits now, of its own."""
        state, told = self.life.state(), self.told
        if state in (GONE, STOPPED):
            return Sight(f"{self.life} is {state}")
        if told is None or told["end_ns"]:
            return Sight(f"{self.life} waits with no record")
        return Sight("", f"{self.life} waits with {_record(told)} in hand", {"pid": self.life.pid})

    def went_on(self) -> Sight:
        """Whether it waits no more; one that was killed meanwhile is healed by its end."""
        told = self.told
        if self.life.state() == GONE:
            return Sight("", f"{self.life} is gone")
        if told and not told["end_ns"]:
            return Sight(f"{self.life} still waits with {_record(told)} in hand")
        if told is None:
            return Sight("", f"{self.life} never waited")
        lasted_s = round((told["end_ns"] - told["begin_ns"]) / NS, 3)
        return Sight("", f"{self.life} went on after {lasted_s:g} s", {"stalled_s": lasted_s})


def _record(told: Mapping[str, Any]) -> str:
    ((topic, partition, offset),) = told["partitions"]
    return f"{topic}-{partition} at {offset}"
