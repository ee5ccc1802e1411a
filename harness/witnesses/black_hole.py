"""Links on which bytes go in and none come out, for a while or for ever, and the proof of it.

Two witnesses work together. The kernel counts what goes into the proxy on one side and out on the other; and our own
request through each link ensures that there is something to count, however idle the members are.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any, ClassVar

from fencepost.clock import NS, eventually, now_ns
from fencepost.errors import WaitTimeout
from fencepost.evidence.brokers.kafka_protocol import probe
from fencepost.interfaces import Evidence, FaultContext
from fencepost.witnesses import sockets
from fencepost.witnesses.base import Observation, witness
from fencepost.witnesses.links import Link, Toxics, answering, judged, named
from fencepost.witnesses.probes import Probe
from fencepost.witnesses.sockets import BytesPassed, Snapshot

PROOF_S = 4.0
ANSWERS_S = 1.0  # how long a hole in both directions waits for the responses that it will discard
LEAK_S = 0.25  # a busy proxy may still forward what it held when it was cut; after that, counting restarts
SETTLED_S = 0.15  # a proxy forwards within about a millisecond; bytes that are not out by then are gone


class BlackHoleLinks:
    """The cut links, and the counters that prove the cut. Satisfies ``Injection``.

    Attributes:
        keeps: our own requests stay in flight after the proof, to see what happens to them.
        toxics: the toxics that cut the links.
    """

    keeps: ClassVar[bool] = False

    def __init__(self, world: FaultContext, links: Sequence[Link], streams: Sequence[str]) -> None:
        """Nothing is cut yet."""
        self._world, self._all, self._streams = world, tuple(links), streams
        self.toxics = Toxics(world)
        self._before: dict[str, Snapshot] = {}  # stream -> counters when it was cut, or forwarded its last bytes
        self._since_ns: dict[str, int] = {}  # stream -> when that was
        self._probes: dict[str, list[Probe]] = {}
        self._leaks: dict[str, str] = {}  # stream -> what was forwarded before counting restarted
        self._seen_ns = 0  # since when all bytes went in and none came out

    @property
    def probes(self) -> list[Probe]:
        """Our own requests in flight."""
        return [one for of_stream in self._probes.values() for one in of_stream]

    def cut(self, kind: str, attributes: Mapping[str, Any]) -> None:
        """Cut the streams in turn by a toxic. Responses are cut first, and some are seen to vanish before requests are.

        Raises:
            ClusterError: the proxy refused; nothing is left on the links.
        """
        try:
            for stream in self._streams:
                self.toxics.put(self._all, kind, stream, attributes)
                self._count_anew(stream)
                if stream != self._streams[-1]:
                    self._await_answers()
        except BaseException:
            self.hang_up()
            self.toxics.remove()
            raise

    def proven(self) -> Evidence:
        """Bytes went in on every link and none came out, also after a moment."""
        evidence = witness(self._look, PROOF_S, every_s=0.02)
        if not (self.keeps and evidence.took_effect):
            self.hang_up()
        return evidence

    def undo(self) -> None:
        """Remove all toxics."""
        self.hang_up()
        self.toxics.remove()

    def healed(self) -> Evidence:
        """A probe's request is answered on every link."""
        self.hang_up()
        return answering(self._world, self._all)

    def hang_up(self) -> None:
        """End our own connections."""
        for one in self.probes:
            one.close()
        self._probes = {}

    def _passed(self, stream: str, now: Snapshot) -> dict[Link, BytesPassed]:
        links, before = self._world.cluster.links, self._before[stream]
        up = judged(self._world, self._all)
        return {k: sockets.passed(before, now, links.endpoint(*k), links.upstream(*k)) for k in up}

    def _count_anew(self, stream: str) -> None:
        """Restart counting: from now on all bytes that go in must vanish. New probes send some."""
        for old in self._probes.get(stream, ()):
            old.close()
        self._before[stream], self._since_ns[stream] = sockets.snapshot(self._world.cluster), now_ns()
        endpoints = [self._world.cluster.links.endpoint(*link) for link in judged(self._world, self._all)]
        self._probes[stream] = [Probe(endpoint) for endpoint in endpoints]

    def _leaked(self, stream: str, passed: Mapping[Link, BytesPassed]) -> bool:
        """Whether bytes came out; after a moment counting then restarts (a link that is not cut leaks for ever)."""
        leaks = [named(k) for k, p in passed.items() if (p.up_out if stream == "upstream" else p.down_out)]
        if leaks and now_ns() - self._since_ns[stream] > LEAK_S * NS:
            self._leaks[stream] = f"{stream} bytes came out at first: {leaks[0]}"
            self._count_anew(stream)
        return bool(leaks)

    def _await_answers(self) -> None:
        """Wait until a broker's response vanished on every link; if none does, the proof will miss it."""

        def vanished() -> bool:
            passed = self._passed("downstream", sockets.snapshot(self._world.cluster))
            return not self._leaked("downstream", passed) and all(p.down_in for p in passed.values())

        try:
            eventually(vanished, ANSWERS_S, "the brokers' answers to vanish", every_s=0.005)
        except WaitTimeout:
            return

    def _look(self) -> Observation:
        now = sockets.snapshot(self._world.cluster)
        passed = {stream: self._passed(stream, now) for stream in self._streams}
        up = judged(self._world, self._all)
        data: dict[str, Any] = {
            "streams": {
                stream: [{"slot": slot, "broker": broker, **asdict(p)} for (slot, broker), p in per_link.items()]
                for stream, per_link in passed.items()
            },
            "not_judged": [list(link) for link in self._all if link not in up],
        }
        missing = [
            f"{named(k)}: {why}" for s, links in passed.items() for k, p in links.items() if (why := _missing(s, p))
        ]
        answered = [f"{one} answered" for one in self.probes if one.answered()]
        for stream, per_link in passed.items():
            self._leaked(stream, per_link)
        if missing or answered or not any(passed.values()):
            self._seen_ns = 0
            reason = "; ".join((missing + answered)[:3] + list(self._leaks.values())) or "no broker of these links runs"
            return Observation(reason, data=data)
        self._seen_ns = self._seen_ns or now_ns()
        settling = now_ns() - self._seen_ns < SETTLED_S * NS
        return Observation("the bytes may still come out" if settling else "", _summary(passed), data)


def _missing(stream: str, passed: BytesPassed) -> str:
    """Why one link is not a hole in one direction, as a clause; empty: it is one."""
    if stream == "upstream":
        if passed.up_out:
            return f"{passed.up_out} bytes came out towards the broker"
        return "" if passed.up_in >= len(probe()) else "no request went in"
    if passed.down_out:
        return f"{passed.down_out} bytes came out towards the member"
    return "" if passed.down_in else "no answer came from the broker"


def _summary(passed: dict[str, dict[Link, BytesPassed]]) -> str:
    links = next(iter(passed.values()))
    up = sum(p.up_in for p in passed.get("upstream", {}).values())
    down = sum(p.down_in for p in passed.get("downstream", {}).values())
    parts = [f"{up} bytes went in towards the brokers and none came out"] if up else []
    parts += [f"{down} bytes came from the brokers and none reached the member"] if down else []
    return f"{len(links)} links: {'; '.join(parts)}"
