"""A black hole between members and brokers: what is sent vanishes in the proxy, and every connection stays up.

Two witnesses belong together. The kernel counts what goes into the proxy on one side and comes out on the other; and a
request of our own through each link makes sure that there is something to count, however idle the members are.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, ClassVar

from fencepost import codec
from fencepost.clock import NS, eventually, now_ns
from fencepost.errors import FaultError, FencepostError, ScenarioError, WaitTimeout
from fencepost.evidence import sockets
from fencepost.evidence.probes import Probe
from fencepost.evidence.processes import GONE, STOPPED, Life
from fencepost.evidence.sockets import Passed, Snapshot
from fencepost.evidence.wire import PROBE
from fencepost.evidence.witness import Sight, witness
from fencepost.interfaces import Evidence, Injection, Target, World
from fencepost.model import Inventory

PROOF_S = 4.0
HEALED_S = 5.0
ANSWERS_S = 1.0  # how long a hole in both directions waits for the answers that it will swallow
LEAK_S = 0.25  # a busy proxy may still let out what it held when it was cut; counting begins anew behind that
SETTLED_S = 0.15  # a proxy forwards within a millisecond or so; what has not come out by then is gone
RETRY_S = 0.5
# direction -> the streams that vanish, in the order in which they are cut.
STREAMS = {"to": ("upstream",), "from": ("downstream",), "both": ("downstream", "upstream")}
Link = tuple[int, int]  # slot, broker


@dataclass(frozen=True)
class BlackHole:
    """Swallows what members and brokers send each other.

    Attributes:
        direction: ``to`` the brokers (requests vanish), ``from`` the brokers (requests arrive and are carried out, the
            answers vanish), or ``both``.
        brokers: of a targeted member's links, only those to these brokers; empty: to all.
    """

    direction: str = "both"
    brokers: tuple[int, ...] = ()
    needs: ClassVar[frozenset[str]] = frozenset({"links"})
    hits: ClassVar[frozenset[str]] = frozenset({"members", "brokers"})
    heals: ClassVar[bool] = True

    def __post_init__(self) -> None:
        codec.settle(self)
        if self.direction not in STREAMS:
            raise ScenarioError(f"found direction {self.direction!r}, use one of {', '.join(STREAMS)}")

    def lacking(self, inventory: Inventory) -> str:
        """See ``Names``."""
        return next(filter(None, map(inventory.lacks_broker, self.brokers)), "")

    def inject(self, world: World, target: Target) -> Injection:
        """Cut the links of the targeted members, or of all members to the targeted brokers.

        Raises:
            FaultError: there is no such link, or the proxy refused.
        """
        members = target.members or range(len(world.members))
        brokers = target.brokers or self.brokers or tuple(world.cluster.brokers)
        if unknown := sorted(set(brokers) - set(world.cluster.brokers)):
            raise FaultError(f"there is no broker {unknown[0]}; there are {', '.join(map(str, world.cluster.brokers))}")
        links = [(world.slot_of(member), broker) for member in members for broker in brokers]
        hole = _Hole(world, links, STREAMS[self.direction])
        try:
            hole.cut()
        except BaseException:
            hole.undo()
            raise
        return hole


class _Hole:
    """The cut links, and what is watched to prove it."""

    def __init__(self, world: World, links: Sequence[Link], streams: Sequence[str]) -> None:
        self._world, self._all, self._streams = world, tuple(dict.fromkeys(links)), streams
        self._placed: list[tuple[Link, str]] = []
        self._before: dict[str, Snapshot] = {}  # stream -> counters when it was cut, or let out its last bytes
        self._since_ns: dict[str, int] = {}  # stream -> when that was
        self._probes: dict[str, list[Probe]] = {}
        self._leaks: dict[str, str] = {}  # stream -> what came out before counting began anew
        self._seen_ns = 0  # since when all bytes went in and none came out

    def cut(self) -> None:
        """Cut stream after stream. Before requests vanish, too, the answers to some are seen to vanish."""
        for stream in self._streams:
            for link in self._all:
                name = self._world.cluster.links.add_toxic(*link, "timeout", stream, {"timeout": 0})
                self._placed.append((link, name))
            self._count_anew(stream)
            if stream != self._streams[-1]:
                self._await_answers()

    def proven(self) -> Evidence:
        """Bytes went in on every link and none came out, nor does after a moment."""
        evidence = witness(self._look, PROOF_S, every_s=0.02)
        self._hang_up()
        return evidence

    def undo(self) -> None:
        """Take all toxics away, the last first; one that stays does not keep the others."""
        self._hang_up()
        failed: list[tuple[tuple[Link, str], FencepostError]] = []
        for link, name in reversed(self._placed):
            try:
                self._world.cluster.links.remove_toxic(*link, name)
            except FencepostError as error:
                failed.append(((link, name), error))
        self._placed = [placed for placed, _ in reversed(failed)]
        if failed:
            raise FaultError(f"{len(failed)} links could not be freed: {failed[0][1]}") from failed[0][1]

    def healed(self) -> Evidence:
        """A request of our own is answered on every link."""
        probes: dict[Link, Probe] = {}
        evidence = witness(lambda: self._look_healed(probes), HEALED_S, every_s=0.02)
        for probe in probes.values():
            probe.close()
        return evidence

    def _judged(self) -> list[Link]:
        """The links whose broker can answer: one that is dead or stopped proves nothing, in either direction."""
        brokers = self._world.cluster.brokers
        up = {b for b in {broker for _, broker in self._all} if Life.of(brokers[b]).state() not in (GONE, STOPPED)}
        return [link for link in self._all if link[1] in up]

    def _passed(self, stream: str, now: Snapshot) -> dict[Link, Passed]:
        links, before = self._world.cluster.links, self._before[stream]
        return {k: sockets.passed(before, now, links.endpoint(*k), links.upstream(*k)) for k in self._judged()}

    def _count_anew(self, stream: str) -> None:
        """From now on everything that goes in must vanish; probes of our own see to it that something does."""
        for probe in self._probes.get(stream, ()):
            probe.close()
        self._before[stream], self._since_ns[stream] = sockets.snapshot(), now_ns()
        self._probes[stream] = [Probe(self._world.cluster.links.endpoint(*link)) for link in self._judged()]

    def _leaked(self, stream: str, passed: Mapping[Link, Passed]) -> bool:
        """Whether bytes came out; then, after a moment, counting begins anew (a hole that is none leaks for ever)."""
        leaks = [_name(k) for k, p in passed.items() if (p.up_out if stream == "upstream" else p.down_out)]
        if leaks and now_ns() - self._since_ns[stream] > LEAK_S * NS:
            self._leaks[stream] = f"{stream} bytes came out at first: {leaks[0]}"
            self._count_anew(stream)
        return bool(leaks)

    def _await_answers(self) -> None:
        """Until a broker's answer vanished on every link; if it does not, the proof will miss it."""

        def vanished() -> bool:
            passed = self._passed("downstream", sockets.snapshot())
            return not self._leaked("downstream", passed) and all(p.down_in for p in passed.values())

        try:
            eventually(vanished, ANSWERS_S, "the brokers' answers to vanish", every_s=0.005)
        except WaitTimeout:
            return

    def _look(self) -> Sight:
        now = sockets.snapshot()
        passed = {stream: self._passed(stream, now) for stream in self._streams}
        data: dict[str, Any] = {
            "streams": {
                stream: [{"slot": slot, "broker": broker, **asdict(p)} for (slot, broker), p in per_link.items()]
                for stream, per_link in passed.items()
            },
            "not_judged": [list(link) for link in self._all if link not in self._judged()],
        }
        missing = [
            f"{_name(k)}: {why}" for s, links in passed.items() for k, p in links.items() if (why := _missing(s, p))
        ]
        probes = [probe for of_stream in self._probes.values() for probe in of_stream]
        answered = [f"{probe.endpoint[0]}:{probe.endpoint[1]} answered" for probe in probes if probe.answered()]
        for stream, per_link in passed.items():
            self._leaked(stream, per_link)
        if missing or answered or not any(passed.values()):
            self._seen_ns = 0
            reason = "; ".join((missing + answered)[:3] + list(self._leaks.values())) or "no broker of these links runs"
            return Sight(reason, data=data)
        self._seen_ns = self._seen_ns or now_ns()
        settling = now_ns() - self._seen_ns < SETTLED_S * NS
        return Sight("the bytes may still come out" if settling else "", _tell(passed), data)

    def _look_healed(self, probes: dict[Link, Probe]) -> Sight:
        judged = self._judged()
        for link in judged:
            probe = probes.get(link)
            if probe is None or (not probe.answered() and (probe.broken or probe.age_s > RETRY_S)):
                if probe is not None:
                    probe.close()
                probes[link] = Probe(self._world.cluster.links.endpoint(*link))
        silent = [f"{_name(link)} does not answer" for link in judged if not probes[link].answered()]
        data = {"answered": [list(link) for link in judged if probes[link].answered()]}
        missing = "; ".join(silent[:3]) or ("" if judged else "no broker of these links runs")
        return Sight(missing, f"a request through each of {len(judged)} links was answered", data)

    def _hang_up(self) -> None:
        for probe in (probe for of_stream in self._probes.values() for probe in of_stream):
            probe.close()
        self._probes = {}


def _missing(stream: str, passed: Passed) -> str:
    """What keeps one link from being a hole in one direction; empty: it is one."""
    if stream == "upstream":
        if passed.up_out:
            return f"{passed.up_out} bytes came out towards the broker"
        return "" if passed.up_in >= len(PROBE) else "no request went in"
    if passed.down_out:
        return f"{passed.down_out} bytes came out towards the member"
    return "" if passed.down_in else "no answer came from the broker"


def _tell(passed: dict[str, dict[Link, Passed]]) -> str:
    links = next(iter(passed.values()))
    up = sum(p.up_in for p in passed.get("upstream", {}).values())
    down = sum(p.down_in for p in passed.get("downstream", {}).values())
    parts = [f"{up} bytes went in towards the brokers and none came out"] if up else []
    parts += [f"{down} bytes came from the brokers and none reached the member"] if down else []
    return f"{len(links)} links: {'; '.join(parts)}"


def _name(link: Link) -> str:
    return f"slot {link[0]} to broker {link[1]}"
