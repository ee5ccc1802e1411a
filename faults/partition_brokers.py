"""A partition between brokers: packets between some of them and all others are dropped, and members notice nothing.

Every broker has a listener of its own at every other one and at the controller, so that rules can name the two ends.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from typing import ClassVar

from fencepost.errors import FaultError
from fencepost.interfaces import Evidence, Injection, Target, World
from fencepost.interfaces.network import Loss
from fencepost.model import Inventory, TopicPartition, serialization
from fencepost.witnesses.losses import Rules
from fencepost.witnesses.processes import running
from fencepost.witnesses.seats import kept
from fencepost.witnesses.topics import listed
from fencepost.witnesses.witness import Injected, Sight, witness

APART_S = 15.0  # replica.lag.time.max.ms or broker.session.timeout.ms, each 3 s, and what looks for them
SYNC_S = 60.0  # TCP tries again after as long as it was cut off, and then they copy what was written meanwhile
STREAMS = ("upstream", "downstream")
InSync = Mapping[TopicPartition, Collection[int]]


@dataclass(frozen=True, kw_only=True)
class PartitionBrokers:
    """Cuts brokers off from all other brokers, in both directions. Members, producers and administrators reach them.

    Witness: the kernel dropped packets of our own on each way between them, and in-sync replicas are on one side
    only: of a partition at least, or, cut off from the controller, of all. Healed: they are in sync as before.

    Attributes:
        controller: whether they are cut off from the controller as well: it fences them, and others lead. Else who is
            cut off leads on without followers, and takes no ``acks=all`` where ``min.insync.replicas`` wants one.
    """

    controller: bool = False
    needs: ClassVar[frozenset[str]] = frozenset({"broker-packets"})
    hits: ClassVar[frozenset[str]] = frozenset({"brokers"})
    heals: ClassVar[bool] = True
    seen: ClassVar[str] = (
        "followers fall out of sync past replica.lag.time.max.ms, and a leader without followers answers "
        "NOT_ENOUGH_REPLICAS; cut off from the controller, too, a broker is fenced past broker.session.timeout.ms, and "
        "goes on to tell what was so before"
    )

    def __post_init__(self) -> None:
        serialization.settle(self)

    @property
    def strands(self) -> bool:
        """See ``survival.Parts``."""
        return not self.controller

    def lacking(self, inventory: Inventory) -> str:
        """See ``Names``."""
        return "" if inventory.brokers > 1 else "there is no other broker to be cut off from; a partition needs 2"

    def awaits(self, world: World, target: Target) -> str:
        """See ``Awaits``. What is on one side only already would prove nothing."""
        spanning = _spanning(kept(world), target.brokers)
        return "" if spanning else f"nothing is in sync between {target} and another broker"

    def inject(self, world: World, target: Target) -> Injection:
        """Drop the packets.

        Raises:
            FaultError: nothing is in sync across.
            ClusterError: the packet filter refused.
        """
        if why := self.awaits(world, target):
            raise FaultError(why)
        cut, before = target.brokers, _spanning(kept(world), target.brokers)
        rules = Rules(world.cluster.packets, self._losses(world, cut))
        believe = world.cluster.admin.doubt(cut) if self.controller else lambda: None

        def undo() -> None:
            rules.undo()
            believe()

        return Injected(
            proven=lambda: _both(rules.proven(), lambda: witness(lambda: self._apart(world, cut, before), APART_S)),
            undo=undo,
            healed=lambda: _both(rules.healed(), lambda: witness(lambda: _in_sync(world, before), SYNC_S)),
        )

    def _losses(self, world: World, cut: Collection[int]) -> list[Loss]:
        """Each broker connects to the others, so that there are two ways between two of them."""
        others = [broker for broker in world.cluster.brokers if broker not in cut]
        ways = [way for one in cut for other in others for way in ((one, other), (other, one))]
        wires = {f"broker {one} to broker {other}": world.cluster.internal(other, one) for one, other in ways}
        if self.controller:
            wires |= {f"broker {one} to the controller": world.cluster.internal(None, one) for one in cut}
        return [Loss(wire, endpoint, stream) for wire, endpoint in wires.items() for stream in STREAMS]

    def _apart(self, world: World, cut: Collection[int], before: InSync) -> Sight:
        """What the controller was told by leaders, or decided when it fenced a broker."""
        now = kept(world)
        still = _spanning({place: now.get(place, ()) for place in before}, cut)
        apart = [place for place in before if place not in still]
        missing = f"{listed(list(still))} are in sync on both sides" if still and (self.controller or not apart) else ""
        data = {"in_sync": {str(place): list(now.get(place, ())) for place in before}}
        return Sight(missing, f"in-sync replicas of {listed(apart)} are on one side only", data)


def _spanning(in_sync: InSync, cut: Collection[int]) -> InSync:
    """Those with in-sync replicas on both sides."""
    return {place: those for place, those in in_sync.items() if 0 < len(set(those) & set(cut)) < len(those)}


def _in_sync(world: World, before: InSync) -> Sight:
    """Whether all that was in sync is so again, as far as its brokers run."""
    up, now = running(world.cluster.brokers), kept(world)
    behind = [place for place, those in before.items() if up & set(those) - set(now.get(place, ()))]
    return Sight(f"{listed(behind)} are not in sync as before" if behind else "", f"{listed([*before])} are in sync")


def _both(first: Evidence, second: Callable[[], Evidence]) -> Evidence:
    """The first, and if that is there the second, too; it took effect when the first did."""
    if not first.took_effect:
        return first
    then = second()
    what = f"{first.what}; {then.what}" if then.took_effect else then.what
    return replace(first, took_effect=then.took_effect, what=what, data={**first.data, **then.data})
