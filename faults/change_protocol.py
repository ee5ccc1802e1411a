"""A migration while the group works: members are bounced, and come back by another rebalance protocol (KIP-848).

The first one to come makes the coordinator convert the group, with everybody in it; members of both kinds then work
side by side, until the last one of the former kind has left.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

from fencepost.errors import ScenarioError
from fencepost.faults._bounced import Bounced, Terms, bounce
from fencepost.interfaces import Injection, Target, World
from fencepost.model import Inventory, serialization
from fencepost.model.settings import ASSIGNORS, PROTOCOLS, lacks_protocol
from fencepost.witnesses import members
from fencepost.witnesses.witness import Sight

KINDS = {"eager": "classic", "cooperative": "classic", "consumer": "consumer"}


@dataclass(frozen=True)
class ChangeProtocol:
    """Bounces members to another protocol. Witness: the new life has it, was assigned something (or told that there is
    nothing for it), and the coordinator describes the member as one of that kind; healed: it was bounced again, and the
    same is so of what it had before.

    Attributes:
        to: ``consumer``; or, of a group with the consumer protocol, ``eager`` or ``cooperative``.
        stays: the change is not taken back: there is nothing to heal, and whatever ends the member later, it comes back
            with this protocol. Of all members, one after the other, that is a migration.
    """

    to: str = "consumer"
    stays: bool = False
    needs: ClassVar[frozenset[str]] = frozenset({"signal", "migration"})
    hits: ClassVar[frozenset[str]] = frozenset({"members"})
    seen: ClassVar[str] = (
        "the member leaves; when it is back, the coordinator converts the group, and the others take part on, by their "
        "own protocol, in what is now a group of the other kind"
    )

    def __post_init__(self) -> None:
        serialization.settle(self)
        if self.to not in PROTOCOLS:
            raise ScenarioError(f"found to={self.to!r}; protocols are {', '.join(PROTOCOLS)}")

    @property
    def heals(self) -> bool:
        """Whether the change is taken back."""
        return not self.stays

    def leaves(self, inventory: Inventory) -> Inventory:
        """See ``Stays``."""
        return replace(inventory, protocol=self.to)

    def lacking(self, inventory: Inventory) -> str:
        """See ``Names``."""
        if lacking := inventory.lacks_loop() or lacks_protocol(inventory.kafka, "consumer"):
            return lacking
        if KINDS[self.to] == KINDS[inventory.protocol]:
            kinds = "both are classic" if self.to != inventory.protocol else "it has that"
            return f"a group with the protocol {inventory.protocol!r} has none to change to {self.to!r}: {kinds}"
        if inventory.protocol == "cooperative":
            return (
                "coordinators convert no group whose assignor adds data of its own, as cooperative-sticky ones do "
                "(GROUP_ID_NOT_FOUND); it can be a group with the protocol 'eager'"
            )
        other = next((client for client in inventory.clients if self.to not in client.assignors), None)
        return f"client {other} cannot take part with the protocol {self.to!r}" if other else ""

    def inject(self, world: World, target: Target) -> Injection:
        """Ask all of them to end; they come back changed once they have."""

        after = Terms(self.to, next(iter(ASSIGNORS[self.to]), ""))
        return bounce(
            world,
            target,
            lambda before: after,
            lambda one: _taken_in(world, one, one.after),
            lambda one: _taken_in(world, one, one.before),
            self.stays,
        )


def _taken_in(world: World, one: Bounced, terms: Terms) -> Sight:
    told = one.taken_in(terms)
    return told if told.missing else members.takes_part(world, one.number, KINDS[terms.protocol])
