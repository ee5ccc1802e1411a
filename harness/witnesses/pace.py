"""Links that are slow on purpose: a load of our own takes its time through them, and not past them to the same broker.

How long it took at least is what counts: the time of the last look at which not all answers had come. A busy machine
may look late, and then links seem slow; so the same load has to be quick on the way past the proxy at the same time.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from fencepost.evidence.wire import ask_unknown, probe
from fencepost.interfaces import Evidence, Injection, World
from fencepost.witnesses.links import HEALED_S, Link, Toxics, judged, named
from fencepost.witnesses.probes import Probe
from fencepost.witnesses.witness import Injected, Sight, witness

PROOF_S = 5.0  # beyond the time that the load takes
SLOW, QUICK = 0.9, 0.5  # of the time that the load takes: at least, and at most
LOOK_S = 0.003
LOAD_S = 0.4  # what a limit is measured by takes so long
KB_PER_S_MAX = 200.0  # of that, a machine that has much else to do is still quick about a load of LOAD_S


@dataclass(frozen=True)
class Load:
    """A request that is sent through a link, and how long it and its answer take there.

    Attributes:
        takes_s: at least.
        padding: bytes that the request is longer than it needs to be.
        answer: bytes of the answer, at least; if any are asked for, the request is about as long.
    """

    takes_s: float
    padding: int = 0
    answer: int = 0

    @classmethod
    def of_rate(cls, kb_per_s: float, streams: Collection[str]) -> Load:
        """What takes LOAD_S in each of some streams, through which so much goes in a second."""
        size = int(kb_per_s * 1000 * LOAD_S)
        return cls(LOAD_S, answer=size) if "downstream" in streams else cls(LOAD_S, padding=size)

    @property
    def request(self) -> bytes:
        """What is sent."""
        return ask_unknown(self.answer) if self.answer else probe(self.padding)


def slowed(
    world: World, links: Sequence[Link], streams: Sequence[str], load: Load, kind: str, attributes: Mapping[str, Any]
) -> Injection:
    """Put a toxic on each link in each stream, under which the load takes its time.

    Raises:
        ClusterError: the proxy refused; nothing is left on the links.
    """
    toxics = Toxics(world)
    try:
        for stream in streams:
            toxics.put(links, kind, stream, attributes)
    except BaseException:
        toxics.remove()
        raise
    return Injected(
        proven=lambda: _paced(world, links, load, PROOF_S + 2 * load.takes_s, slow=True),
        undo=toxics.remove,
        healed=lambda: _paced(world, links, load, HEALED_S + 2 * load.takes_s, slow=False),
    )


def _paced(world: World, links: Sequence[Link], load: Load, within_s: float, slow: bool) -> Evidence:
    """Whether the load takes its time on every link whose broker runs, and is quick past it; or is quick everywhere."""
    tries: dict[Link, _Try] = {}

    def look() -> Sight:
        those = judged(world, links)
        for link in those:
            if link not in tries or tries[link].over(slow):
                if link in tries:
                    tries[link].close()
                tries[link] = _Try(world, link, load)
        wrong = [f"{named(link)}: {tries[link].told()}" for link in those if not tries[link].right(slow)]
        through = {named(link): round(tries[link].through_s(slow), 4) for link in those}
        past = {named(link): round(tries[link].past.took_s, 4) for link in those}
        size = max((tries[link].through.received for link in those), default=0) + load.padding
        times = f"{_span(through.values())} through {len(those)} links, {_span(past.values())} past them"
        data = {"bytes": size, "takes_s": load.takes_s, "through_s": through, "past_s": past}
        return Sight(
            "; ".join(wrong[:3]) or ("" if those else "no broker of these links runs"),
            f"{size} bytes took {times}",
            data,
        )

    try:
        return witness(look, within_s, every_s=LOOK_S)
    finally:
        for one in tries.values():
            one.close()


class _Try:
    """The load on its way through a link, and on the way past its proxy."""

    def __init__(self, world: World, link: Link, load: Load) -> None:
        self._load, ways = load, world.cluster.links
        self.past = Probe(ways.upstream(*link), load.request)
        self.through = Probe(ways.endpoint(*link), load.request)

    def through_s(self, slow: bool) -> float:
        """How long it took through the link: at least, or at most."""
        return self.through.silent_s if slow else self.through.took_s

    def right(self, slow: bool) -> bool:
        """Whether it took as long as it should, so far as a look now can tell."""
        if not (self.through.complete() & self.past.complete()) or self.past.took_s > QUICK * self._load.takes_s:
            return False
        takes_s = self.through_s(slow)
        return takes_s >= SLOW * self._load.takes_s if slow else takes_s <= QUICK * self._load.takes_s

    def over(self, slow: bool) -> bool:
        """Whether it will never be right."""
        both = (self.through, self.past)
        late = any(not one.complete() and one.age_s > self._load.takes_s + PROOF_S / 2 for one in both)
        done = all(one.complete() for one in both)
        return late or any(one.broken for one in both) or (done and not self.right(slow))

    def told(self) -> str:
        """Where it is, in words."""
        return f"{_told(self.through)} through it, {_told(self.past)} past it"

    def close(self) -> None:
        """End its connections."""
        self.through.close()
        self.past.close()


def _told(one: Probe) -> str:
    if one.broken:
        return one.broken
    return f"{one.took_s:.3f} s" if one.took_s else f"more than {one.silent_s:.3f} s"


def _span(times_s: Collection[float]) -> str:
    least, most = min(times_s, default=0), max(times_s, default=0)
    return f"{least:.3f} s" if least == most else f"{least:.3f} to {most:.3f} s"
