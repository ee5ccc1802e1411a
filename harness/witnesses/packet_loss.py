"""Packet loss on wires: the requested share of the probe segments is lost, and no other segment.

The rule itself dropped them: it has counted at least as many packets. Members' packets meet it, too.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import asdict

from fencepost.interfaces import Evidence, FaultContext, Injection
from fencepost.interfaces.network import PacketLoss, Packets
from fencepost.witnesses import raw_tcp_probe
from fencepost.witnesses.base import CallbackInjection, Observation, witness
from fencepost.witnesses.links import Link, answering, named
from fencepost.witnesses.raw_tcp_probe import SegmentCounts

PROOF_S = 4.0
COUNT = 20  # segments that are sent when all should be lost
SIGMAS = 4.0  # how far chance may lead away from the requested share


def losing(
    world: FaultContext, links: Sequence[Link], streams: Collection[str], share: float = 1.0, connects: bool = False
) -> Injection:
    """Lose a share of the packets of each link in each stream, or (``connects``) of SYN packets only.

    Raises:
        ClusterError: the packet filter refused; no rule exists.
    """
    endpoint = world.cluster.links.endpoint
    losses = [PacketLoss(named(link), endpoint(*link), stream, share, connects) for link in links for stream in streams]
    rules = LossRules(world.cluster.packets, losses)

    def healed() -> Evidence:
        gone = rules.healed()
        return answering(world, links) if gone.took_effect else gone

    return CallbackInjection(proven=rules.proven, undo=rules.undo, healed=healed)


class LossRules:
    """Rules of the packet filter, one for each loss, in effect at once. Satisfies ``Injection``."""

    def __init__(self, packets: Packets, losses: Sequence[PacketLoss]) -> None:
        """Raises ClusterError: the packet filter refused; no rule exists."""
        self._packets = packets
        self._losses = dict(zip(packets.lose(losses), losses, strict=True))

    def proven(self) -> Evidence:
        """Wait, bounded, until exactly the expected probe packets are lost and the rules have counted them."""
        return witness(self._losing, PROOF_S, every_s=0.1)

    def undo(self) -> None:
        """Remove the rules. May be called twice."""
        self._packets.restore(self._losses)

    def healed(self) -> Evidence:
        """Wait, bounded, until they are gone."""
        return witness(self._gone, PROOF_S)

    def _losing(self) -> Observation:
        before = self._packets.lost()
        tried = {name: self._tried(loss) for name, loss in self._losses.items()}
        after = self._packets.lost()
        counted = {name: after.get(name, 0) - before.get(name, 0) for name in tried}
        wrong = [
            f"{loss.wire}, {loss.stream}: {why}"
            for name, loss in self._losses.items()
            if (why := _wrong(loss.share, tried[name], counted[name]))
        ]
        data = {"links": [{**asdict(self._losses[n]), **tried[n]._asdict(), "counted": counted[n]} for n in tried]}
        sent, lost = sum(one.sent for one in tried.values()), sum(one.lost for one in tried.values())
        what = f"{lost} of {sent} probe packets were lost by {len(tried)} rules, and none of {sent} others"
        return Observation("; ".join(wrong[:3]), what, data)

    def _tried(self, loss: PacketLoss) -> SegmentCounts:
        with self._packets.inside(loss.endpoint[0]):
            return raw_tcp_probe.lost(loss.endpoint, loss.stream, enough(loss.share), loss.connects)

    def _gone(self) -> Observation:
        left = len(set(self._losses) & set(self._packets.lost()))
        return Observation(f"{left} rules are still there" if left else "", "all rules are gone")


def enough(share: float) -> int:
    """Number of segments for which SIGMAS are at most half of the rarer outcome: lost segments, or arrived ones."""
    rarer = min(share, 1 - share)
    return math.ceil((2 * SIGMAS) ** 2 * (1 - rarer) / rarer) if rarer else COUNT


def _wrong(share: float, tried: SegmentCounts, counted: int) -> str:
    """Why one rule is not proven, as a clause; empty: it is."""
    chance = SIGMAS * math.sqrt(tried.sent * share * (1 - share))
    if abs(tried.lost - share * tried.sent) > chance:
        return f"{tried.lost} of {tried.sent} probe packets were lost"
    if tried.control_lost:
        return f"{tried.control_lost} of {tried.sent} packets were lost that should not be"
    return f"the rule counted only {counted} of {tried.lost} lost packets" if counted < tried.lost else ""
