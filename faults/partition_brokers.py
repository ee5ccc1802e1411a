"""A partition between brokers: packets between some brokers and all others are dropped; members notice nothing.

Every broker has a separate listener for every other broker and one at the controller, so that a packet rule can name
both ends.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from typing import ClassVar

from fencepost.errors import FaultError
from fencepost.interfaces import Evidence, FaultContext, Injection, Target
from fencepost.interfaces.network import PacketLoss
from fencepost.model import Inventory, TopicPartition, serialization
from fencepost.witnesses.base import CallbackInjection, Observation, witness
from fencepost.witnesses.coordinator_location import kept
from fencepost.witnesses.packet_loss import LossRules
from fencepost.witnesses.processes import running
from fencepost.witnesses.topics import listed

APART_S = 15.0  # replica.lag.time.max.ms or broker.session.timeout.ms, 3 s each, plus the time to detect the cut
SYNC_S = 60.0  # TCP retries after about as long as the cut lasted; then brokers copy the records written meanwhile
STREAMS = ("upstream", "downstream")
InSync = Mapping[TopicPartition, Collection[int]]


@dataclass(frozen=True, kw_only=True)
class PartitionBrokers:
    """Cuts brokers off from all other brokers, in both directions. Members, producers and administrators still reach
    them.

    Witness: the kernel dropped the harness's own packets in each direction between them, and in-sync replicas are on
    one side only: of at least one partition or, if cut off from the controller, of all. Healed: they are in sync as
    before.

    Attributes:
        controller: whether they are cut off from the controller as well: it fences them, and other brokers become
            leaders. Without this, a broker that is cut off keeps leading without followers, and refuses ``acks=all``
            where ``min.insync.replicas`` requires a follower.
    """

    controller: bool = False
    needs: ClassVar[frozenset[str]] = frozenset({"broker-packets"})
    hits: ClassVar[frozenset[str]] = frozenset({"brokers"})
    heals: ClassVar[bool] = True
    seen: ClassVar[str] = (
        "followers fall out of sync after replica.lag.time.max.ms, and a leader without followers answers "
        "NOT_ENOUGH_REPLICAS; a broker that is also cut off from the controller is fenced after "
        "broker.session.timeout.ms, and keeps answering with stale metadata"
    )

    def __post_init__(self) -> None:
        serialization.validate_fields(self)

    @property
    def isolated_leaders(self) -> bool:
        """See ``fault_tolerance.PartitionsBrokers``."""
        return not self.controller

    def inventory_problem(self, inventory: Inventory) -> str:
        """See ``ChecksInventory``."""
        return "" if inventory.brokers > 1 else "a partition needs at least 2 brokers, and the cluster has one"

    def not_ready_reason(self, world: FaultContext, target: Target) -> str:
        """See ``Gated``. If no partition is in sync across both sides, the fault could not be proven."""
        spanning = _spanning(kept(world), target.brokers)
        return "" if spanning else f"nothing is in sync between {target} and another broker"

    def inject(self, world: FaultContext, target: Target) -> Injection:
        """Drop the packets.

        Raises:
            FaultError: no partition is in sync across both sides.
            ClusterError: the packet filter refused.
        """
        if why := self.not_ready_reason(world, target):
            raise FaultError(why)
        cut, before = target.brokers, _spanning(kept(world), target.brokers)
        rules = LossRules(world.cluster.packets, self._losses(world, cut))
        believe = world.cluster.admin.deprioritize(cut) if self.controller else lambda: None

        def undo() -> None:
            rules.undo()
            believe()

        return CallbackInjection(
            proven=lambda: _both(rules.proven(), lambda: witness(lambda: self._separated(world, cut, before), APART_S)),
            undo=undo,
            healed=lambda: _both(rules.healed(), lambda: witness(lambda: _in_sync(world, before), SYNC_S)),
        )

    def _losses(self, world: FaultContext, cut: Collection[int]) -> list[PacketLoss]:
        """Losses for both connections between each two brokers: each broker connects to the other."""
        others = [broker for broker in world.cluster.brokers if broker not in cut]
        ways = [way for one in cut for other in others for way in ((one, other), (other, one))]
        wires = {f"broker {one} to broker {other}": world.cluster.internal(other, one) for one, other in ways}
        if self.controller:
            wires |= {f"broker {one} to the controller": world.cluster.internal(None, one) for one in cut}
        return [PacketLoss(wire, endpoint, stream) for wire, endpoint in wires.items() for stream in STREAMS]

    def _separated(self, world: FaultContext, cut: Collection[int], before: InSync) -> Observation:
        """Whether in-sync replicas are on one side only, as leaders reported or the controller decided by fencing."""
        now = kept(world)
        still = _spanning({place: now.get(place, ()) for place in before}, cut)
        split = [place for place in before if place not in still]
        missing = f"{listed(list(still))} are in sync on both sides" if still and (self.controller or not split) else ""
        data = {"in_sync": {str(place): list(now.get(place, ())) for place in before}}
        return Observation(missing, f"in-sync replicas of {listed(split)} are on one side only", data)


def _spanning(in_sync: InSync, cut: Collection[int]) -> InSync:
    """The partitions with in-sync replicas on both sides of the cut."""
    return {place: replicas for place, replicas in in_sync.items() if 0 < len(set(replicas) & set(cut)) < len(replicas)}


def _in_sync(world: FaultContext, before: InSync) -> Observation:
    """Whether the replicas of ``before`` are in sync again, except on stopped brokers."""
    up, now = running(world.cluster.brokers), kept(world)
    behind = [place for place, replicas in before.items() if up & set(replicas) - set(now.get(place, ()))]
    return Observation(
        f"{listed(behind)} are not in sync as before" if behind else "", f"{listed([*before])} are in sync"
    )


def _both(first: Evidence, second: Callable[[], Evidence]) -> Evidence:
    """The first evidence; if it took effect, merged with the second, which then decides for the whole fault."""
    if not first.took_effect:
        return first
    then = second()
    what = f"{first.what}; {then.what}" if then.took_effect else then.what
    return replace(first, took_effect=then.took_effect, what=what, data={**first.data, **then.data})
