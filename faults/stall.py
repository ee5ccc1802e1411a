"""A stall: a member's handler is slow with one record, so the member does not poll while its client keeps running.

The client's own threads send heartbeats until ``max.poll.interval.ms`` is over; then they leave the group, and the
program learns of that at its next poll.
"""

from __future__ import annotations

import signal
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from fencepost.clock import NS, now_ns
from fencepost.history import EventKind
from fencepost.interfaces import FaultContext, Injection, Target
from fencepost.interfaces.process import MemberNode
from fencepost.model import Inventory
from fencepost.model.impact import Impact
from fencepost.witnesses.base import CallbackInjection, Observation, all_of, witness
from fencepost.witnesses.processes import GONE, STOPPED, ProcessIdentity

PROOF_S = 15.0  # the longest wait for the first record of a member after an assignment
HEALED_S = 5.0


@dataclass(frozen=True)
class Stall:
    """Slows the handlers of members. Witness: each member reported the record in its handler, and its process runs;
    healed: it reported that its handler continued, and after how many seconds. Expects ``fenced`` only past
    ``max.poll.interval.ms``."""

    needs: ClassVar[frozenset[str]] = frozenset({"signal"})
    hits: ClassVar[frozenset[str]] = frozenset({"members"})
    heals: ClassVar[bool] = True
    impact: ClassVar[frozenset[Impact]] = frozenset({Impact.DELAYS})
    seen: ClassVar[str] = (
        "the member sends heartbeats but does not poll; after max.poll.interval.ms its client leaves the group, and "
        "the program learns of that at its next poll"
    )
    outlasts: ClassVar[str] = "max.poll.interval.ms"

    def inventory_problem(self, inventory: Inventory) -> str:
        """See ``ChecksInventory``."""
        return inventory.lacks_loop()

    def inject(self, world: FaultContext, target: Target) -> Injection:
        """Signal all targets to stall in the handler of their next record."""
        slow = [_Slow.of(world.members[m]) for m in target.members]
        for one in slow:
            one.signal(signal.SIGUSR1)

        def undo() -> None:
            for one in slow:
                one.signal(signal.SIGUSR2)

        return CallbackInjection(
            proven=lambda: witness(lambda: all_of({one.member.name: one.waits() for one in slow}), PROOF_S),
            undo=undo,
            healed=lambda: witness(lambda: all_of({one.member.name: one.went_on() for one in slow}), HEALED_S),
        )


@dataclass(frozen=True)
class _Slow:
    """One incarnation of a member whose handler the fault slows."""

    member: MemberNode
    life: ProcessIdentity
    since_ns: int

    @classmethod
    def of(cls, member: MemberNode) -> _Slow:
        return cls(member, ProcessIdentity.of(member), now_ns())

    def signal(self, number: int) -> None:
        """Signal only a process that has reported its start: before that, these signals would end it."""
        if self.life.state() != GONE and self.member.reported(EventKind.STARTED):
            self.member.signal(number)

    @property
    def stall(self) -> Mapping[str, Any] | None:
        """The event of its last stall since this fault began; None if there is none."""
        stalls = (e for e in self.member.reported(EventKind.STALL) if e["begin_ns"] >= self.since_ns)
        return next(reversed([*stalls]), None)

    def waits(self) -> Observation:
        """Whether its handler waits now, because of this fault."""
        state, stall = self.life.state(), self.stall
        if state in (GONE, STOPPED):
            return Observation(f"{self.life} is {state}")
        if stall is None or stall["end_ns"]:
            return Observation(f"the handler of {self.life} does not wait")
        return Observation("", f"the handler of {self.life} waits with {_record(stall)}", {"pid": self.life.pid})

    def went_on(self) -> Observation:
        """Whether the handler has continued. A member that has ended counts as healed."""
        stall = self.stall
        if self.life.state() == GONE:
            return Observation("", f"{self.life} is gone")
        if stall and not stall["end_ns"]:
            return Observation(f"the handler of {self.life} still waits with {_record(stall)}")
        if stall is None:
            return Observation("", f"the handler of {self.life} never waited")
        lasted_s = round((stall["end_ns"] - stall["begin_ns"]) / NS, 3)
        return Observation("", f"the handler of {self.life} continued after {lasted_s:g} s", {"stalled_s": lasted_s})


def _record(stall: Mapping[str, Any]) -> str:
    ((topic, partition, offset),) = stall["partitions"]
    return f"offset {offset} of {topic}-{partition}"
