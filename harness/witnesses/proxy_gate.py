"""Links with a closed proxy: open connections are cut, and new ones are refused until it is opened again."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from fencepost.interfaces import Evidence, FaultContext
from fencepost.witnesses import sockets
from fencepost.witnesses.base import Observation, witness
from fencepost.witnesses.links import Link, judged, named, take_back
from fencepost.witnesses.probes import Probe
from fencepost.witnesses.sockets import Snapshot

PROOF_S = 4.0


class ProxyGate:
    """The proxies of some links, and the connections that they had when they were closed.

    These include a probe through each link: links without any would prove nothing.
    """

    def __init__(self, world: FaultContext, links: Sequence[Link]) -> None:
        """All of them are open."""
        self._world, self.links = world, tuple(links)
        self._closed: list[Link] = []
        self._before: Snapshot = {}
        self._ours: dict[Link, Probe] = {}

    def close(self) -> None:
        """Cut all connections and refuse new ones. Raises ClusterError: the proxy refused."""
        links = self._world.cluster.links
        self._ours = {link: Probe(links.endpoint(*link)) for link in judged(self._world, self.links)}
        self._before = sockets.snapshot(self._world.cluster)
        for link in self.links:
            self._closed.append(link)
            links.set_enabled(*link, False)

    def open(self) -> None:
        """Accept connections again; a failure of one does not stop the others, and may be tried again.

        Raises:
            FaultError: some stayed closed.
        """
        take_back(self._closed, lambda link: self._world.cluster.links.set_enabled(*link, True), "opened")

    def cut(self) -> Observation:
        """Whether all connections from before are gone, our own included."""
        now, links = sockets.snapshot(self._world.cluster), self._world.cluster.links
        missing = [f"{named(k)}: our own connection is up" for k, one in self._ours.items() if not one.ended()]
        there, left = {}, {}
        for link in self.links:
            ends = [e for e, then in self._before.items() if e[0] == links.endpoint(*link) and then.up]
            there[link] = len(ends)
            left[link] = sum(now[e].up and now[e].received >= self._before[e].received for e in ends if e in now)
        missing += [f"{named(link)}: {count} connections are up" for link, count in left.items() if count]
        if not self._ours:
            missing.append("no broker of these links runs")
        data = {"connections": [{"slot": s, "broker": b, "before": n} for (s, b), n in there.items()]}
        what = f"all {sum(there.values())} connections of {len(self.links)} links were cut"
        return Observation("; ".join(missing[:3]), what, data)

    def refusing(self) -> Observation:
        """Whether, in addition, new connections are refused on every link."""
        sight, let_in = self.cut(), []
        for link in self.links:
            probe = Probe(self._world.cluster.links.endpoint(*link))
            probe.close()
            let_in += [] if probe.refused else [f"{named(link)} accepts connections"]
        missing = "; ".join([*filter(None, [sight.missing]), *let_in[:3]])
        return Observation(missing, f"{sight.what}, and a new one through each is refused", sight.data)

    def proven(self, look: Callable[[], Observation]) -> Evidence:
        """Wait, bounded, for one of the two looks."""
        try:
            return witness(look, PROOF_S)
        finally:
            self.hang_up()

    def hang_up(self) -> None:
        """End our own connections that are still up."""
        for probe in self._ours.values():
            probe.close()
