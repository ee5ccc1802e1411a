"""The links that network faults disturb: which they are, their toxics, and whether requests get through."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, TypeVar

from fencepost.errors import FaultError, FencepostError, ScenarioError
from fencepost.interfaces import Evidence, FaultContext, Target
from fencepost.model import Inventory, serialization
from fencepost.witnesses.base import Observation, witness
from fencepost.witnesses.probes import Probe
from fencepost.witnesses.processes import running

T = TypeVar("T")
Link = tuple[int, int]  # slot, broker
PEERS = ("", "coordinator", "others")
STREAMS = {"to": ("upstream",), "from": ("downstream",), "both": ("downstream", "upstream")}
HEALED_S = 5.0
RETRY_S = 0.5


@dataclass(frozen=True, kw_only=True)
class OnLinks:
    """Shared by all faults between members and brokers.

    Attributes:
        brokers: of a targeted member's links, only links to these brokers; empty: to all.
        peers: of a targeted member's links, only links to the group's ``coordinator`` at the time of injection (the
            member keeps reading, and is evicted), or only links to all ``others`` (it stays in the group and reads
            only what the coordinator leads); empty: to all.
    """

    brokers: tuple[int, ...] = ()
    peers: str = ""
    needs: ClassVar[frozenset[str]] = frozenset({"links"})
    heals: ClassVar[bool] = True

    @property
    def hits(self) -> frozenset[str]:
        """Members, whose links may be chosen by their other end; or brokers, with all links to them."""
        return frozenset({"members"} if self.brokers or self.peers else {"members", "brokers"})

    def __post_init__(self) -> None:
        serialization.validate_fields(self)
        if self.peers not in PEERS:
            raise ScenarioError(f"found peers {self.peers!r}; use one of {', '.join(filter(None, PEERS))}")
        if self.peers and self.brokers:
            raise ScenarioError(f"found brokers={self.brokers} and peers={self.peers!r}; use one of them")

    def inventory_problem(self, inventory: Inventory) -> str:
        """See ``ChecksInventory``."""
        return next(filter(None, map(inventory.lacks_broker, self.brokers)), "")

    def links(self, world: FaultContext, target: Target) -> tuple[Link, ...]:
        """The links of the targeted members, or of all members to the targeted brokers.

        Raises:
            FaultError: there is no such broker, or no coordinator.
        """
        members = target.members or range(len(world.members))
        ends = target.brokers or self.brokers or self._peers(world)
        if unknown := sorted(set(ends) - set(world.cluster.brokers)):
            there = ", ".join(map(str, world.cluster.brokers))
            raise FaultError(f"there is no broker {unknown[0]}; there are {there}")
        return tuple(dict.fromkeys((world.members[member].slot, broker) for member in members for broker in ends))

    def _peers(self, world: FaultContext) -> tuple[int, ...]:
        everybody = tuple(world.cluster.brokers)
        if not self.peers:
            return everybody
        coordinator = world.cluster.admin.coordinator(world.group)
        if coordinator not in everybody:
            raise FaultError(f"the group {world.group} has no coordinator now, so its {self.peers} cannot be found")
        return tuple(b for b in everybody if (b == coordinator) == (self.peers == "coordinator"))


@dataclass(frozen=True, kw_only=True)
class OnStreams(OnLinks):
    """Shared by faults that act in one direction or both.

    Attributes:
        direction: ``to`` the brokers, ``from`` the brokers, or ``both``.
    """

    direction: str = "both"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.direction not in STREAMS:
            raise ScenarioError(f"found direction {self.direction!r}; use one of {', '.join(STREAMS)}")

    @property
    def streams(self) -> tuple[str, ...]:
        """Toxiproxy's words for the direction, in the order in which they are disturbed."""
        return STREAMS[self.direction]


def judged(world: FaultContext, links: Collection[Link]) -> list[Link]:
    """The links whose broker can answer: one that is dead or stopped proves nothing, in either direction."""
    up = running({broker: world.cluster.brokers[broker] for _, broker in links})
    return [link for link in links if link[1] in up]


def named(link: Link) -> str:
    """A link in words."""
    return f"slot {link[0]} to broker {link[1]}"


class Toxics:
    """The toxics that one fault has put on links."""

    def __init__(self, world: FaultContext) -> None:
        self._links = world.cluster.links
        self._placed: list[tuple[Link, str]] = []

    def put(self, links: Collection[Link], kind: str, stream: str, attributes: Mapping[str, Any]) -> None:
        """Put a toxic on each link. Raises ClusterError: the proxy refused; some toxics may exist."""
        for link in links:
            self._placed.append((link, self._links.add_toxic(*link, kind, stream, attributes)))

    def change(self, attributes: Mapping[str, Any]) -> None:
        """Change the attributes of all of them; a failure of one does not stop the others.

        Raises:
            FaultError: some could not be changed.
        """
        placed = [*self._placed]  # they stay, and are removed later
        take_back(placed, lambda one: self._links.change_toxic(*one[0], one[1], attributes), "changed")

    def remove(self) -> None:
        """Remove all of them, the last first; a failure of one does not stop the others, and may be tried again.

        Raises:
            FaultError: some could not be removed.
        """
        take_back(self._placed, lambda placed: self._links.remove_toxic(*placed[0], placed[1]), "freed")


def take_back(done: list[T], take: Callable[[T], None], what: str) -> None:
    """Undo what was done to links, the last first, and remove it from ``done``; what cannot be undone stays there.

    Raises:
        FaultError: some links could not be ``what`` says ("changed", "freed"); all others were.
    """
    failed: list[tuple[T, FencepostError]] = []
    for one in reversed(done):
        try:
            take(one)
        except FencepostError as error:
            failed.append((one, error))
    done[:] = [one for one, _ in reversed(failed)]
    if failed:
        raise FaultError(f"{len(failed)} links could not be {what}: {failed[0][1]}") from failed[0][1]


def answering(world: FaultContext, links: Collection[Link]) -> Evidence:
    """Wait, bounded, until a probe's request is answered on every link whose broker runs."""
    probes: dict[Link, Probe] = {}
    try:
        return witness(lambda: _answered(world, links, probes), HEALED_S, every_s=0.02)
    finally:
        for probe in probes.values():
            probe.close()


def _answered(world: FaultContext, links: Collection[Link], probes: dict[Link, Probe]) -> Observation:
    up = judged(world, links)
    for link in up:
        probe = probes.get(link)
        if probe is None or (not probe.answered() and (probe.broken or probe.age_s > RETRY_S)):
            if probe is not None:
                probe.close()
            probes[link] = Probe(world.cluster.links.endpoint(*link))
    silent = [f"{named(link)} does not answer" for link in up if not probes[link].answered()]
    data = {"answered": [list(link) for link in up if probes[link].answered()]}
    missing = "; ".join(silent[:3]) or ("" if up else "no broker of these links runs")
    return Observation(missing, f"a request through each of {len(up)} links was answered", data)
