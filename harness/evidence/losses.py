"""Links that lose packets: of segments of our own the share that was asked for is lost, and nothing beside them.

Who lost them was the very rule: it has counted as many packets since. Members' packets meet it, too, and may be more.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict

from fencepost.evidence import segments
from fencepost.evidence.links import Link, answering, named
from fencepost.evidence.segments import Lost
from fencepost.evidence.witness import Injected, Sight, witness
from fencepost.interfaces import Evidence, Injection, World
from fencepost.network_interfaces import Loss

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
    packets = world.cluster.packets
    losses = [Loss(*link, stream, share, connects) for link in links for stream in streams]
    rules = dict(zip(packets.lose(losses), losses, strict=True))

    def healed() -> Evidence:
        gone = witness(lambda: _gone(rules, packets.lost()), PROOF_S)
        return answering(world, links) if gone.took_effect else gone

    return Injected(
        proven=lambda: witness(lambda: _losing(world, rules), PROOF_S, every_s=0.1),
        undo=lambda: packets.restore(rules),
        healed=healed,
    )


def enough(share: float) -> int:
    """So many segments that SIGMAS are at most half of what is rarer: of the lost ones, or of those that arrive."""
    rarer = min(share, 1 - share)
    return math.ceil((2 * SIGMAS) ** 2 * (1 - rarer) / rarer) if rarer else COUNT


def _losing(world: World, rules: Mapping[str, Loss]) -> Sight:
    packets, links = world.cluster.packets, world.cluster.links
    before = packets.lost()
    tried = {
        name: segments.lost(links.endpoint(loss.slot, loss.broker), loss.stream, enough(loss.share), loss.connects)
        for name, loss in rules.items()
    }
    after = packets.lost()
    counted = {name: after.get(name, 0) - before.get(name, 0) for name in rules}
    wrong = [
        f"{named((loss.slot, loss.broker))}, {loss.stream}: {why}"
        for name, loss in rules.items()
        if (why := _wrong(loss.share, tried[name], counted[name]))
    ]
    data = {"links": [{**asdict(rules[n]), **tried[n]._asdict(), "counted": counted[n]} for n in rules]}
    sent, lost = sum(one.sent for one in tried.values()), sum(one.lost for one in tried.values())
    what = f"{lost} of {sent} packets of our own were lost by {len(rules)} rules, and none of {sent} beside them"
    return Sight("; ".join(wrong[:3]), what, data)


def _wrong(share: float, tried: Lost, counted: int) -> str:
    """What keeps one rule from being proven; empty: it is."""
    chance = SIGMAS * math.sqrt(tried.sent * share * (1 - share))
    if abs(tried.lost - share * tried.sent) > chance:
        return f"{tried.lost} of {tried.sent} packets of our own were lost"
    if tried.beside:
        return f"{tried.beside} of {tried.sent} packets were lost that should not be"
    return f"the rule counted only {counted} of {tried.lost} lost packets" if counted < tried.lost else ""


def _gone(rules: Collection[str], there: Collection[str]) -> Sight:
    left = len(set(rules) & set(there))
    return Sight(f"{left} rules are still there" if left else "", "all rules are gone")
