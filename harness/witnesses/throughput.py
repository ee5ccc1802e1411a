"""Slow links: the harness's own load takes long through them, and not on the direct way to the same broker.

Only a lower bound of the time counts: the time of the last look at which the answer was incomplete. A busy machine may
look late, and then links seem slow; so at the same time the same load must be quick on the direct way.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from fencepost.evidence.brokers.kafka_protocol import probe, request_of_unknown_topics
from fencepost.interfaces import Evidence, FaultContext, Injection
from fencepost.witnesses.base import CallbackInjection, Observation, witness
from fencepost.witnesses.links import HEALED_S, Link, Toxics, judged, named
from fencepost.witnesses.probes import Probe

PROOF_S = 5.0  # in addition to the time that the load takes
SLOW, QUICK = 0.9, 0.5  # of the time that the load takes: at least, and at most
LOOK_S = 0.003
LOAD_S = 0.4  # the time that a load takes under a limit
KB_PER_S_MAX = 200.0  # up to this rate, even a busy machine is quick about a load of LOAD_S


@dataclass(frozen=True)
class ProbeLoad:
    """A request that is sent through a link, and how long it and its answer take there.

    Attributes:
        takes_s: the least time.
        padding: bytes that make the request longer than necessary.
        answer: bytes of the answer, at least; if above 0, the request is about as long.
    """

    takes_s: float
    padding: int = 0
    answer: int = 0

    @classmethod
    def of_rate(cls, kb_per_s: float, streams: Collection[str]) -> ProbeLoad:
        """A load that takes LOAD_S in each of these streams under a limit of ``kb_per_s``."""
        size = int(kb_per_s * 1000 * LOAD_S)
        return cls(LOAD_S, answer=size) if "downstream" in streams else cls(LOAD_S, padding=size)

    @property
    def request(self) -> bytes:
        """The bytes of the request."""
        return request_of_unknown_topics(self.answer) if self.answer else probe(self.padding)


def slowed(
    world: FaultContext,
    links: Sequence[Link],
    streams: Sequence[str],
    load: ProbeLoad,
    kind: str,
    attributes: Mapping[str, Any],
) -> Injection:
    """Put a toxic on each link in each stream that slows the load.

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
    return CallbackInjection(
        proven=lambda: _paced(world, links, load, PROOF_S + 2 * load.takes_s, slow=True),
        undo=toxics.remove,
        healed=lambda: _paced(world, links, load, HEALED_S + 2 * load.takes_s, slow=False),
    )


def _paced(world: FaultContext, links: Sequence[Link], load: ProbeLoad, within_s: float, slow: bool) -> Evidence:
    """Whether the load is slow on every link whose broker runs and quick past it (``slow``); or quick everywhere."""
    tries: dict[Link, _Try] = {}

    def look() -> Observation:
        up = judged(world, links)
        for link in up:
            if link not in tries or tries[link].over(slow):
                if link in tries:
                    tries[link].close()
                tries[link] = _Try(world, link, load)
        wrong = [f"{named(link)}: {tries[link].progress()}" for link in up if not tries[link].right(slow)]
        through = {named(link): round(tries[link].through_s(slow), 4) for link in up}
        past = {named(link): round(tries[link].past.took_s, 4) for link in up}
        size = max((tries[link].through.received for link in up), default=0) + load.padding
        times = f"{_span(through.values())} through {len(up)} links, {_span(past.values())} past them"
        data = {"bytes": size, "takes_s": load.takes_s, "through_s": through, "past_s": past}
        return Observation(
            "; ".join(wrong[:3]) or ("" if up else "no broker of these links runs"),
            f"{size} bytes took {times}",
            data,
        )

    try:
        return witness(look, within_s, every_s=LOOK_S)
    finally:
        for one in tries.values():
            one.close()


class _Try:
    """The load on its way through a link, and on the direct way to the broker."""

    def __init__(self, world: FaultContext, link: Link, load: ProbeLoad) -> None:
        self._load, ways = load, world.cluster.links
        self.past = Probe(ways.upstream(*link), load.request)
        self.through = Probe(ways.endpoint(*link), load.request)

    def through_s(self, slow: bool) -> float:
        """How long it took through the link, in seconds: at least (``slow``), or at most."""
        return self.through.silent_s if slow else self.through.took_s

    def right(self, slow: bool) -> bool:
        """Whether it took as long as it should, as far as a look now can decide."""
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

    def progress(self) -> str:
        """Where it is, in words."""
        return f"{_progress(self.through)} through it, {_progress(self.past)} past it"

    def close(self) -> None:
        """End its connections."""
        self.through.close()
        self.past.close()


def _progress(one: Probe) -> str:
    if one.broken:
        return one.broken
    return f"{one.took_s:.3f} s" if one.took_s else f"more than {one.silent_s:.3f} s"


def _span(times_s: Collection[float]) -> str:
    least, most = min(times_s, default=0), max(times_s, default=0)
    return f"{least:.3f} s" if least == most else f"{least:.3f} to {most:.3f} s"
