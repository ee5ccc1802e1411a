"""A change of subscription: running members call ``subscribe()`` again with fewer topics.

Such a member keeps its consumer, its member id and its partitions of the other topics. A program that is restarted with
another configuration leaves the group and rejoins instead; a bounce shows that.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import ClassVar

from fencepost.interfaces import FaultContext, Injection, Target
from fencepost.model import Inventory, TopicPartition, serialization
from fencepost.witnesses import members
from fencepost.witnesses.base import CallbackInjection, witness

# The coordinator shows subscriptions once a rebalance is over, and a rebalance waits for all members.
PROOF_S = members.ROUND_S


@dataclass(frozen=True)
class ChangeSubscription:
    """Members unsubscribe from topics, and subscribe again when it heals. Witness: the coordinator describes each of
    them as subscribed to the other topics only; healed: it describes each running member as subscribed to all topics.
    (A new incarnation subscribes to all.)

    Attributes:
        without: the topics that they drop; empty: the last one of the workload.
    """

    without: tuple[str, ...] = ()
    needs: ClassVar[frozenset[str]] = frozenset({"signal"})
    hits: ClassVar[frozenset[str]] = frozenset({"members"})
    heals: ClassVar[bool] = True
    seen: ClassVar[str] = (
        "the member keeps its other topics, the group rebalances, and others own the partitions that it dropped; "
        "records of a topic to which no member subscribes wait"
    )

    def __post_init__(self) -> None:
        serialization.validate_fields(self)

    def inventory_problem(self, inventory: Inventory) -> str:
        """See ``ChecksInventory``."""
        if problem := inventory.lacks_loop():
            return problem
        unknown = filter(None, (inventory.lacks_partition(TopicPartition(topic, 0)) for topic in self.without))
        left = set(inventory.topics) - set(self._dropped(tuple(inventory.topics)))
        none = "" if left else "a member that drops all its topics would have none left: the workload needs one more"
        return next(unknown, none)

    def inject(self, world: FaultContext, target: Target) -> Injection:
        """Make all targets subscribe to the remaining topics."""
        every = set(world.topics.values())
        dropped = [world.topics[topic] for topic in self._dropped(tuple(world.topics))]

        def subscribe(without: Collection[str]) -> None:
            for member in target.members:
                world.members[member].reconfigure(without=sorted(without))

        def alive() -> Target:
            return Target(members=tuple(m for m in target.members if world.members[m].pid is not None))

        subscribe(dropped)
        return CallbackInjection(
            proven=lambda: witness(
                lambda: members.subscribed(world, target, every - {*dropped}), PROOF_S, every_s=0.05
            ),
            undo=lambda: subscribe(()),
            healed=lambda: witness(lambda: members.subscribed(world, alive(), every), PROOF_S, every_s=0.05),
        )

    def _dropped(self, topics: tuple[str, ...]) -> tuple[str, ...]:
        return self.without or topics[-1:]
