"""A duplicate instance: two processes use one ``group.instance.id``, and the brokers accept only one of them.

Under the classic protocol the coordinator accepts the newcomer and fences the former process. Under the consumer
protocol the coordinator refuses the newcomer until the former process has left.
"""

from __future__ import annotations

import signal
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from fencepost.errors import FencepostError
from fencepost.history import NAME_TAKEN, EventKind
from fencepost.interfaces import Evidence, FaultContext, Injection, Target
from fencepost.interfaces.process import MemberNode
from fencepost.model import Inventory, serialization
from fencepost.model.impact import ASKED_S, Impact
from fencepost.schedule.selectors import Idle
from fencepost.witnesses.base import CallbackInjection, Observation, all_of, witness
from fencepost.witnesses.processes import GONE, ProcessIdentity, SuspendHold, pids

PROOF_S = 30.0


@dataclass(frozen=True)
class DuplicateInstance:
    """Starts an idle member under the ``group.instance.id`` of another member. Witness: the brokers refused one of the
    two clients because of the id and its process ended, and the other runs; healed: the newcomer is gone, and the
    member runs.

    Attributes:
        asleep: the member is stopped (SIGSTOP) until the coordinator has accepted or refused the newcomer, and then
            continued.
    """

    asleep: bool = False
    needs: ClassVar[frozenset[str]] = frozenset({"signal"})
    hits: ClassVar[frozenset[str]] = frozenset({"members"})
    heals: ClassVar[bool] = True
    impact: ClassVar[frozenset[Impact]] = frozenset({Impact.DUPLICATES, Impact.DELAYS})
    seen: ClassVar[str] = (
        "two processes use one instance id: with the classic protocol the coordinator fences the former one; with the "
        "consumer protocol it refuses the newcomer until the former one has left"
    )

    def __post_init__(self) -> None:
        serialization.validate_fields(self)

    def inventory_problem(self, inventory: Inventory) -> str:
        """See ``ChecksInventory``."""
        if silent := inventory.lacks_reports():
            return silent
        if not any(inventory.static):
            return "members have no group.instance.id: make the group static"
        return "" if inventory.spare_members else "a second process needs a spare member: raise the group's spare"

    def inject(self, world: FaultContext, target: Target) -> Injection:
        """Start a second process with the instance id of each target.

        Raises:
            FencepostError: there are too few idle members, or a member has no instance id to share.
        """
        idle = Idle(len(target.members)).resolve(world.view(), 0)
        if idle is None:
            raise FencepostError(
                f"there are too few idle members to share the name of {target}: raise the group's spare"
            )
        both = zip(target.members, idle.members, strict=True)
        pairs = [_Pair.of(world.members[m], world.members[i], self.asleep) for m, i in both]
        for pair in pairs:
            pair.begin()

        def undo() -> None:
            for pair in pairs:
                pair.undo()

        return CallbackInjection(
            proven=lambda: _proven(pairs, self.asleep),
            undo=undo,
            healed=lambda: witness(lambda: all_of({pair.member.name: pair.healed() for pair in pairs}), PROOF_S),
        )


@dataclass(frozen=True)
class _Pair:
    """A member, which may be stopped, and the newcomer with the same instance id."""

    member: MemberNode
    life: ProcessIdentity
    instance_id: str
    newcomer: MemberNode
    stop: SuspendHold | None

    @classmethod
    def of(cls, member: MemberNode, newcomer: MemberNode, asleep: bool) -> _Pair:
        instance_id = next((e["detail"]["instance_id"] for e in member.reported(EventKind.STARTED)), None)
        if not instance_id:
            raise FencepostError(f"{member.name} has no group.instance.id that a second process could share")
        life = ProcessIdentity.of(member)
        return cls(member, life, instance_id, newcomer, SuspendHold(life) if asleep else None)

    def begin(self) -> None:
        self.newcomer.launch(instance_id=self.instance_id)

    def answered(self) -> Observation:
        """Whether the newcomer reported that the coordinator accepted or refused it."""
        known = self.newcomer.reported(EventKind.ASSIGNED) or _fatal_error(self.newcomer)
        return Observation("" if known else f"{self.newcomer.name} was neither assigned anything nor refused")

    def decided(self) -> Observation:
        """Whether one of the two was refused and is gone, while the other runs."""
        lives = {self.member.name: self.life, self.newcomer.name: ProcessIdentity.of(self.newcomer)}
        gone = [m for m in (self.member, self.newcomer) if lives[m.name].state() == GONE]
        data = {"pids": pids(lives.values()), "refused": {m.name: _fatal_error(m) for m in gone}}
        if len(gone) != 1 or not _fatal_error(gone[0]):
            ways = ", ".join(f"{m.name} {_fatal_error(m) or 'without an error'}" for m in gone) or "none is gone"
            names = f"{self.member.name} and {self.newcomer.name}"
            return Observation(f"expected one of {names} to be refused and gone, found: {ways}", "", data)
        (stays,) = (m for m in (self.member, self.newcomer) if m is not gone[0])
        return Observation(
            "", f"{stays.name} keeps the name, {gone[0].name} was refused: {_fatal_error(gone[0])}", data
        )

    def wake(self) -> None:
        if self.stop:
            self.stop.let_go()

    def undo(self) -> None:
        self.wake()
        self.newcomer.signal(signal.SIGTERM)
        self.newcomer.wait_ended(ASKED_S)
        self.member.start()

    def healed(self) -> Observation:
        if ProcessIdentity.of(self.newcomer).state() != GONE:
            return Observation(f"{self.newcomer.name} still runs")
        now = ProcessIdentity.of(self.member)
        return Observation(f"{now} is gone" if now.state() == GONE else "", f"{now} is the only one with its name")


def _fatal_error(member: MemberNode) -> str:
    """The fatal error of a client that was refused because of its instance id; empty if there is none."""
    fatal = (e["error"] for e in member.reported(EventKind.ERROR) if e["detail"].get("fatal"))
    return next((name for name in fatal if name in NAME_TAKEN), "")


def _proven(pairs: Sequence[_Pair], asleep: bool) -> Evidence:
    if asleep:
        answered = witness(lambda: all_of({pair.member.name: pair.answered() for pair in pairs}), PROOF_S)
        for pair in pairs:
            pair.wake()
        if not answered.took_effect:
            return answered
    return witness(lambda: all_of({pair.member.name: pair.decided() for pair in pairs}), PROOF_S, every_s=0.05)
