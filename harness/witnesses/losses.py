"""Wires that lose packets: of segments of our own the share that was asked for is lost, and nothing beside them.

Who lost them was the very rule: it has counted as many packets since. Members' packets meet it, too, and may be more.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import asdict

from fencepost.interfaces import Evidence, Injection, World
from fencepost.interfaces.network import Loss, Packets
from fencepost.witnesses import segments
from fencepost.witnesses.links import Link, answering, named
from fencepost.witnesses.segments import Lost
from fencepost.witnesses.witness import Injected, Sight, witness

PROOF_S = 4.0
COUNT = 20  # segments that are sent when all are to be lost
SIGMAS = 4.0  # so far chance may lead away from the share that was asked for


def losing(
    world: World, links: Sequence[Link], streams: Collection[str], share: float = 1.0, connects: bool = False
) -> Injection:
    """Lose a share of the packets of each link in each stream, or of those only that ask for a connection.

    Raises:
        ClusterError: the packet filter refused; no rule is there.
    """
    endpoint = world.cluster.links.endpoint
    losses = [Loss(named(link), endpoint(*link), stream, share, connects) for link in links for stream in streams]
    rules = Rules(world.cluster.packets, losses)

    def healed() -> Evidence:
        gone = rules.healed()
        return answering(world, links) if gone.took_effect else gone

    return Injected(proven=rules.proven, undo=rules.undo, healed=healed)


class Rules:
    """Rules of the packet filter, one for each loss, in effect from now on. Satisfies ``Injection``."""

    def __init__(self, packets: Packets, losses: Sequence[Loss]) -> None:
        """Raises ClusterError: the packet filter refused; no rule is there."""
        self._packets = packets
        self._losses = dict(zip(packets.lose(losses), losses, strict=True))

    def proven(self) -> Evidence:
        """Wait, bounded, until just the packets of our own are lost that should be, and the rules have counted them."""
        return witness(self._losing, PROOF_S, every_s=0.1)

    def undo(self) -> None:
        """Take them away. May be called twice."""
        self._packets.restore(self._losses)

    def healed(self) -> Evidence:
        """Wait, bounded, until they are gone."""
        return witness(self._gone, PROOF_S)

    def _losing(self) -> Sight:
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
        what = f"{lost} of {sent} packets of our own were lost by {len(tried)} rules, and none of {sent} beside them"
        return Sight("; ".join(wrong[:3]), what, data)

    def _tried(self, loss: Loss) -> Lost:
        with self._packets.inside(loss.endpoint[0]):
            return segments.lost(loss.endpoint, loss.stream, enough(loss.share), loss.connects)

    def _gone(self) -> Sight:
        left = len(set(self._losses) & set(self._packets.lost()))
        return Sight(f"{left} rules are still there" if left else "", "all rules are gone")


def enough(share: float) -> int:
    """So many segments that SIGMAS are at most half of what is rarer: of the lost ones, or of those that arrive."""
    rarer = min(share, 1 - share)
    return math.ceil((2 * SIGMAS) ** 2 * (1 - rarer) / rarer) if rarer else COUNT


def _wrong(share: float, tried: Lost, counted: int) -> str:
    """What keeps one rule from being proven; empty: it is."""
    chance = SIGMAS * math.sqrt(tried.sent * share * (1 - share))
    if abs(tried.lost - share * tried.sent) > chance:
        return f"{tried.lost} of {tried.sent} packets of our own were lost"
    if tried.beside:
        return f"{tried.beside} of {tried.sent} packets were lost that should not be"
    return f"the rule counted only {counted} of {tried.lost} lost packets" if counted < tried.lost else ""
