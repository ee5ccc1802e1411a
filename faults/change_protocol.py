"""A migration of a working group: members are bounced and restarted with another rebalance protocol (KIP-848).

When the first changed member joins, the coordinator converts the group with all its members. Members of both protocols
then work in one group until the last one with the former protocol has left.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

from fencepost.errors import ScenarioError
from fencepost.faults._bounced import Bounced, Terms, bounce
from fencepost.interfaces import FaultContext, Injection, Target
from fencepost.model import Inventory, serialization
from fencepost.model.impact import Impact
from fencepost.model.settings import ASSIGNORS, PROTOCOLS, lacks_protocol
from fencepost.witnesses import members
from fencepost.witnesses.base import Observation

KINDS = {"eager": "classic", "cooperative": "classic", "consumer": "consumer"}


@dataclass(frozen=True)
class ChangeProtocol:
    """Bounces members to another protocol. Witness: the new incarnation uses it and reported an assignment, which may
    be empty, and the coordinator describes the member as one with that protocol; healed: a second bounce restored the
    former protocol, with the same witness.

    Attributes:
        to: ``consumer``; or, for a group with the consumer protocol, ``eager`` or ``cooperative``.
        stays: the change is permanent: there is nothing to heal, and every later incarnation of the member keeps this
            protocol. Applied to all members, one after the other, it is a migration.
    """

    to: str = "consumer"
    stays: bool = False
    needs: ClassVar[frozenset[str]] = frozenset({"signal", "migration"})
    hits: ClassVar[frozenset[str]] = frozenset({"members"})
    impact: ClassVar[frozenset[Impact]] = frozenset({Impact.ASKS})
    seen: ClassVar[str] = (
        "the member leaves; when it rejoins, the coordinator converts the group, and the other members keep their "
        "own protocol in the converted group"
    )

    def __post_init__(self) -> None:
        serialization.validate_fields(self)
        if self.to not in PROTOCOLS:
            raise ScenarioError(f"found to={self.to!r}; protocols are {', '.join(PROTOCOLS)}")

    @property
    def heals(self) -> bool:
        """Whether the fault undoes the change."""
        return not self.stays

    def leaves(self, inventory: Inventory) -> Inventory:
        """See ``PermanentChange``."""
        return replace(inventory, protocol=self.to)

    def inventory_problem(self, inventory: Inventory) -> str:
        """See ``ChecksInventory``."""
        if problem := inventory.lacks_loop() or lacks_protocol(inventory.kafka, "consumer"):
            return problem
        if KINDS[self.to] == KINDS[inventory.protocol]:
            kinds = "both are classic" if self.to != inventory.protocol else "it already has that protocol"
            return f"a group with the protocol {inventory.protocol!r} cannot change to {self.to!r}: {kinds}"
        if inventory.protocol == "cooperative":
            return (
                "coordinators do not convert a group whose assignor adds data of its own, as cooperative-sticky does "
                "(GROUP_ID_NOT_FOUND); use a group with the protocol 'eager'"
            )
        other = next((client for client in inventory.clients if self.to not in client.assignors), None)
        return f"client {other} does not support the protocol {self.to!r}" if other else ""

    def inject(self, world: FaultContext, target: Target) -> Injection:
        """Ask all targets to end; they restart with the other protocol."""

        after = Terms(self.to, next(iter(ASSIGNORS[self.to]), ""))
        return bounce(
            world,
            target,
            lambda before: after,
            lambda one: _in_group(world, one, one.after),
            lambda one: _in_group(world, one, one.before),
            self.stays,
        )


def _in_group(world: FaultContext, one: Bounced, terms: Terms) -> Observation:
    sight = one.in_group(terms)
    return sight if sight.missing else members.takes_part(world, one.number, KINDS[terms.protocol])
