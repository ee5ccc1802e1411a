"""A change of assignor: members are bounced, and come back with other assignors than the group has.

Done right it takes two bounces of all members: to a list of the new one and the old one, then to the new one alone.
Done wrong it is one bounce: the coordinator refuses who comes back with what the others do not know.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from fencepost.errors import ScenarioError
from fencepost.faults._bounced import Bounced, Terms, bounce
from fencepost.history import EventKind
from fencepost.interfaces import Injection, Target, World
from fencepost.model import Inventory, serialization
from fencepost.model.settings import ASSIGNORS
from fencepost.witnesses.processes import GONE, Life
from fencepost.witnesses.witness import Sight

REFUSED = "INCONSISTENT_GROUP_PROTOCOL"


@dataclass(frozen=True)
class ChangeAssignor:
    """Bounces members to other assignors. Witness: the new life has them, and was assigned something (or told that
    there is nothing for it); healed: it was bounced again, and the same is so of what it had before.

    Attributes:
        to: the assignors, the preferred one first, of which the group must have one. Empty, for the wrong way: one that
            the member does not have. Witness then: its client was refused for that, and was assigned nothing.
        stays: the change is not taken back: there is nothing to heal, and whatever ends the member later, it comes back
            with these.
    """

    to: tuple[str, ...] = ()
    stays: bool = False
    needs: ClassVar[frozenset[str]] = frozenset({"signal"})
    hits: ClassVar[frozenset[str]] = frozenset({"members"})
    seen: ClassVar[str] = (
        "the member leaves, and the coordinator refuses its next JoinGroup (INCONSISTENT_GROUP_PROTOCOL) as long as "
        "others are there that have none of its assignors; these take over its partitions"
    )

    def __post_init__(self) -> None:
        serialization.settle(self)
        if len({_protocol_of(name) for name in self.to}) > 1:
            raise ScenarioError(f"found to={list(self.to)}; librdkafka takes eager or cooperative assignors, not both")
        if self.stays and not self.to:
            raise ScenarioError("who is refused for its assignor cannot stay so: stays needs the assignors, to=[...]")

    @property
    def heals(self) -> bool:
        """Whether the change is taken back."""
        return not self.stays

    def leaves(self, inventory: Inventory) -> Inventory:
        """See ``Stays``: the list leads to an assignor of the same protocol."""
        return inventory

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
        return bounce(
            world,
            target,
            self._next,
            (lambda one: one.taken_in(one.after)) if self.to else _refused,
            lambda one: one.taken_in(one.before),
            self.stays,
        )

    def _next(self, before: Terms) -> Terms:
        has = before.assignors.split(",")
        names = self.to or [name for names in ASSIGNORS.values() for name in names if name not in has][:1]
        return Terms(_protocol_of(names[0]), ",".join(names))


def _refused(one: Bounced) -> Sight:
    life, told = Life.of(one.member), [e for e in one.member.told(EventKind.ERROR) if e["error"] == REFUSED]
    if life.state() == GONE:
        return Sight(f"{one.member.name} has no process")
    if owned := one.member.told(EventKind.ASSIGNED):
        return Sight(f"{life} was taken in, and assigned {len(owned[-1]['partitions'])} partitions")
    what = f"{life} was refused with {one.after}: {REFUSED}"
    return Sight("" if told else f"{life} was not refused", what, {"pid": life.pid})


def _protocol_of(assignor: str) -> str:
    found = next((protocol for protocol, names in ASSIGNORS.items() if assignor in names), "")
    if not found:
        known = ", ".join(name for names in ASSIGNORS.values() for name in names)
        raise ScenarioError(f"found the assignor {assignor!r}; known are {known}")
    return found
