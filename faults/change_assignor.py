"""A change of assignor: members are bounced and restarted with assignors that differ from the group's.

A correct change needs two bounces of all members: first to a list of the new and the old assignor, then to the new one
alone. One bounce is wrong: the coordinator refuses a member that shares no assignor with the others.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from fencepost.errors import ScenarioError
from fencepost.faults._bounced import Bounced, Terms, bounce
from fencepost.history import EventKind
from fencepost.interfaces import FaultContext, Injection, Target
from fencepost.model import Inventory, serialization
from fencepost.model.impact import Impact
from fencepost.model.settings import ASSIGNORS
from fencepost.witnesses.base import Observation
from fencepost.witnesses.processes import GONE, ProcessIdentity

REFUSED = "INCONSISTENT_GROUP_PROTOCOL"


@dataclass(frozen=True)
class ChangeAssignor:
    """Bounces members to other assignors. Witness: the new incarnation uses them and reported an assignment, which may
    be empty; healed: a second bounce restored the former assignors, with the same witness.

    Attributes:
        to: the assignors, the preferred one first; the group must have one of them. Empty, for the wrong change: an
            assignor that the member does not have. Then the witness is that the coordinator refused its client because
            of the assignor, and assigned it nothing.
        stays: the change is permanent: there is nothing to heal, and every later incarnation of the member keeps these
            assignors.
    """

    to: tuple[str, ...] = ()
    stays: bool = False
    needs: ClassVar[frozenset[str]] = frozenset({"signal"})
    hits: ClassVar[frozenset[str]] = frozenset({"members"})
    impact: ClassVar[frozenset[Impact]] = frozenset({Impact.ASKS})
    seen: ClassVar[str] = (
        "the member leaves, and the coordinator refuses its next JoinGroup (INCONSISTENT_GROUP_PROTOCOL) while other "
        "members share none of its assignors; the others own its partitions"
    )

    def __post_init__(self) -> None:
        serialization.validate_fields(self)
        if len({_protocol_of(name) for name in self.to}) > 1:
            raise ScenarioError(
                f"found to={list(self.to)}; librdkafka accepts eager or cooperative assignors, not both"
            )
        if self.stays and not self.to:
            raise ScenarioError("found stays=true without to; a permanent change needs the new assignors, to=[...]")

    @property
    def heals(self) -> bool:
        """Whether the fault undoes the change."""
        return not self.stays

    def leaves(self, inventory: Inventory) -> Inventory:
        """See ``PermanentChange``: the listed assignors have the same protocol."""
        return inventory

    def inventory_problem(self, inventory: Inventory) -> str:
        """See ``ChecksInventory``."""
        if problem := inventory.lacks_loop():
            return problem
        if not ASSIGNORS.get(inventory.protocol, ()):
            return f"with the protocol {inventory.protocol!r} the brokers assign: members have no assignor to change"
        if other := [name for name in self.to if _protocol_of(name) != inventory.protocol]:
            return f"no list leads a group with the protocol {inventory.protocol!r} to the assignor {other[0]!r}"
        alone = "the only member of a group always agrees with itself: the group needs another member"
        return "" if self.to or inventory.members > 1 else alone

    def inject(self, world: FaultContext, target: Target) -> Injection:
        """Ask all targets to end; they restart with the other assignors."""
        return bounce(
            world,
            target,
            self._next,
            (lambda one: one.in_group(one.after)) if self.to else _refused,
            lambda one: one.in_group(one.before),
            self.stays,
        )

    def _next(self, before: Terms) -> Terms:
        has = before.assignors.split(",")
        names = self.to or [name for names in ASSIGNORS.values() for name in names if name not in has][:1]
        return Terms(_protocol_of(names[0]), ",".join(names))


def _refused(one: Bounced) -> Observation:
    life, refusals = (
        ProcessIdentity.of(one.member),
        [e for e in one.member.reported(EventKind.ERROR) if e["error"] == REFUSED],
    )
    if life.state() == GONE:
        return Observation(f"{one.member.name} has no process")
    if owned := one.member.reported(EventKind.ASSIGNED):
        return Observation(f"{life} was accepted and assigned {len(owned[-1]['partitions'])} partitions")
    what = f"{life} was refused with {one.after}: {REFUSED}"
    return Observation("" if refusals else f"{life} was not refused", what, {"pid": life.pid})


def _protocol_of(assignor: str) -> str:
    found = next((protocol for protocol, names in ASSIGNORS.items() if assignor in names), "")
    if not found:
        known = ", ".join(name for names in ASSIGNORS.values() for name in names)
        raise ScenarioError(f"found the assignor {assignor!r}; known assignors are {known}")
    return found
