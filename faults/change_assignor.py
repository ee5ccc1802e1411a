"""A change of assignor: members are bounced, and come back with other assignors than the group has.

Done right it takes two bounces of all members: to a list of the new one and the old one, then to the new one alone.
Done wrong it is one bounce: the coordinator refuses who comes back with what the others do not know.
"""

from __future__ import annotations

import signal
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from fencepost import codec
from fencepost.errors import ScenarioError
from fencepost.evidence.processes import GONE, Life, ended
from fencepost.evidence.witness import Injected, Sight, all_of, witness
from fencepost.history import EventKind
from fencepost.interfaces import Evidence, Injection, Target, World
from fencepost.model import Inventory
from fencepost.process_interfaces import Member
from fencepost.settings import ASSIGNORS, STRATEGY

STOP_S = 15.0  # a member finishes, commits and leaves
PROOF_S = 30.0  # it may join only once the group is between two rebalances
REFUSED = "INCONSISTENT_GROUP_PROTOCOL"


@dataclass(frozen=True)
class ChangeAssignor:
    """Bounces members to other assignors. Witness: the new life has them, and was assigned something (or told that
    there is nothing for it); healed: it was bounced again, and the same is so of what it had before.

    Attributes:
        to: the assignors, the preferred one first, of which the group must have one. Empty, for the wrong way: one that
            the member does not have. Witness then: its client was refused for that, and was assigned nothing.
    """

    to: tuple[str, ...] = ()
    needs: ClassVar[frozenset[str]] = frozenset({"signal"})
    hits: ClassVar[frozenset[str]] = frozenset({"members"})
    heals: ClassVar[bool] = True
    seen: ClassVar[str] = (
        "the member leaves, and the coordinator refuses its next JoinGroup (INCONSISTENT_GROUP_PROTOCOL) as long as "
        "others are there that have none of its assignors; these take over its partitions"
    )

    def __post_init__(self) -> None:
        codec.settle(self)
        if len({_protocol_of(name) for name in self.to}) > 1:
            raise ScenarioError(f"found to={list(self.to)}; librdkafka takes eager or cooperative assignors, not both")

    def lacking(self, inventory: Inventory) -> str:
        """See ``Names``."""
        if lacking := inventory.lacks_loop():
            return lacking
        if not ASSIGNORS.get(inventory.protocol, ()):
            return f"with the protocol {inventory.protocol!r} the brokers assign: members have no assignor to change"
        if other := [name for name in self.to if _protocol_of(name) != inventory.protocol]:
            return f"no list leads a group with the protocol {inventory.protocol!r} to the assignor {other[0]!r}"
        alone = "a member that is alone agrees with itself: the group needs another one"
        return "" if self.to or inventory.members > 1 else alone

    def inject(self, world: World, target: Target) -> Injection:
        """Ask all of them to end; they come back changed once they have."""
        bounced = [_Bounced.of(world.members[m], ",".join(self.to)) for m in target.members]
        for one in bounced:
            one.member.signal(signal.SIGTERM)

        def proven() -> Evidence:
            stopped = witness(lambda: ended([one.life for one in bounced], {0: "cleanly"}), STOP_S)
            if not stopped.took_effect:
                return stopped
            for one in bounced:
                one.launch(one.after)
            sight = _Bounced.changed if self.to else _Bounced.refused
            return witness(lambda: all_of({one.member.name: sight(one) for one in bounced}), PROOF_S)

        def undo() -> None:
            for one in bounced:
                one.member.signal(signal.SIGTERM)
            for one in bounced:
                one.member.wait_ended(STOP_S)
                one.launch(one.before)

        look = lambda: all_of({one.member.name: one.taken_in(one.before) for one in bounced})  # noqa: E731
        return Injected(proven=proven, undo=undo, healed=lambda: witness(look, PROOF_S))


@dataclass(frozen=True)
class _Bounced:
    """A member, the life that was ended, and the assignors of it and of the next one."""

    member: Member
    life: Life
    before: str
    after: str

    @classmethod
    def of(cls, member: Member, to: str) -> _Bounced:
        before = _assignors(member)
        names = [name for names in ASSIGNORS.values() for name in names if name not in before.split(",")]
        return cls(member, Life.of(member), before, to or names[0])

    def launch(self, assignors: str) -> None:
        """Callbacks go by the kind of assignor."""
        self.member.launch(protocol=_protocol_of(assignors.split(",")[0]), assignors=assignors)

    def refused(self) -> Sight:
        life, told = Life.of(self.member), [e for e in self.member.told(EventKind.ERROR) if e["error"] == REFUSED]
        if life.state() == GONE:
            return Sight(f"{self.member.name} has no process")
        if owned := self.member.told(EventKind.ASSIGNED):
            return Sight(f"{life} was taken in, and assigned {len(owned[-1]['partitions'])} partitions")
        what = f"{life} was refused with {self.after}: {REFUSED}"
        return Sight("" if told else f"{life} was not refused", what, {"pid": life.pid})

    def changed(self) -> Sight:
        return self.taken_in(self.after)

    def taken_in(self, assignors: str) -> Sight:
        life, has = Life.of(self.member), _assignors(self.member)
        if life.state() == GONE or has != assignors:
            return Sight(f"{life} lives with {has or 'nothing yet'}, not with {assignors}")
        missing = "" if self.member.told(EventKind.ASSIGNED) else f"{life} is not in the group"
        return Sight(missing, f"{life} is in the group with {has}", {"pid": life.pid, "assignors": has})


def _assignors(member: Member) -> str:
    """Those of its present or last life; empty before it told."""
    config: Mapping[str, str] = next((e["detail"]["config"] for e in member.told(EventKind.STARTED)), {})
    return str(config.get(STRATEGY, "")).replace(" ", "")


def _protocol_of(assignor: str) -> str:
    found = next((protocol for protocol, names in ASSIGNORS.items() if assignor in names), "")
    if not found:
        known = ", ".join(name for names in ASSIGNORS.values() for name in names)
        raise ScenarioError(f"found the assignor {assignor!r}; known are {known}")
    return found
