"""A change of subscription: members call ``subscribe()`` again while they live, and so take part in fewer topics.

A program that does so keeps its consumer, its member id and what it owns of the other topics; one that is started anew
with another configuration leaves the group and joins it again, which a bounce shows.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import ClassVar

from fencepost.interfaces import Injection, Target, World
from fencepost.model import Inventory, TopicPartition, serialization
from fencepost.witnesses import members
from fencepost.witnesses.witness import Injected, witness

# The coordinator tells of subscriptions once a rebalance is over, and that waits for all members.
PROOF_S = members.ROUND_S


@dataclass(frozen=True)
class ChangeSubscription:
    """Members drop topics, and take them back when it heals. Witness: the coordinator describes each of them as
    subscribed to the others alone; healed: each that lives, to all. (A new life begins with all of them.)

    Attributes:
        without: the topics that they drop; empty: the last one of the workload.
    """

    without: tuple[str, ...] = ()
    needs: ClassVar[frozenset[str]] = frozenset({"signal"})
    hits: ClassVar[frozenset[str]] = frozenset({"members"})
    heals: ClassVar[bool] = True
    seen: ClassVar[str] = (
        "the member goes on with its other topics, the group rebalances, and others get what it dropped; where nobody "
        "is left who wants a topic, its records wait"
    )

    def __post_init__(self) -> None:
        serialization.settle(self)

    def lacking(self, inventory: Inventory) -> str:
        """See ``Names``."""
        if lacking := inventory.lacks_loop():
            return lacking
        unknown = filter(None, (inventory.lacks_partition(TopicPartition(topic, 0)) for topic in self.without))
        left = set(inventory.topics) - set(self._dropped(tuple(inventory.topics)))
        none = "" if left else "a member that drops all its topics takes part in nothing: the workload needs one more"
        return next(unknown, none)

    def inject(self, world: World, target: Target) -> Injection:
        """Have all of them subscribe to what is left."""
        every = set(world.topics.values())
        dropped = [world.topics[topic] for topic in self._dropped(tuple(world.topics))]

        def subscribe(without: Collection[str]) -> None:
            for member in target.members:
                world.members[member].reconfigure(without=sorted(without))

        def alive() -> Target:
            return Target(members=tuple(m for m in target.members if world.members[m].pid is not None))

        subscribe(dropped)
        return Injected(
            proven=lambda: witness(
                lambda: members.subscribed(world, target, every - {*dropped}), PROOF_S, every_s=0.05
            ),
            undo=lambda: subscribe(()),
            healed=lambda: witness(lambda: members.subscribed(world, alive(), every), PROOF_S, every_s=0.05),
        )

    def _dropped(self, topics: tuple[str, ...]) -> tuple[str, ...]:
        return self.without or topics[-1:]
