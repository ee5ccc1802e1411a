"""What faults are tried on: a real cluster and group, any part of which a test replaces, and what brokers saw of it."""

from __future__ import annotations

import signal
import socket
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from typing import Any

import psutil
import pytest
from fault_table import Cell

from fencepost.clock import NS, eventually, now_ns
from fencepost.evidence.brokers import request_log
from fencepost.evidence.brokers.clock_conversion import WallClockConverter
from fencepost.evidence.brokers.kafka_protocol import probe
from fencepost.faults import ResetOffsets
from fencepost.interfaces import Evidence, Fault, Gated, Injection, Target
from fencepost.interfaces.network import PacketLoss
from fencepost.interfaces.process import Node
from fencepost.model import MemberView, View
from fencepost.network.packets import TRIAL
from fencepost.witnesses import sockets

# What tests on a cluster are marked with.
ON_CLUSTER = [
    pytest.mark.cluster,
    # kafka-python leaves the sockets of refused connections to the garbage collector.
    pytest.mark.filterwarnings("ignore:.*unclosed <socket:pytest.PytestUnraisableExceptionWarning"),
]
SHORT_S = 0.8  # the bound of a witness that is known to see nothing
LONG_S = 60  # for what comes at once on a machine that has nothing else to do
SILENT_S = 0.5  # whoever gets no answer for so long would have had it long ago, as others do
BOUNDS = (
    "faults.add_partitions.PROOF_S",
    "faults.bounce.ASKED_S",
    "faults.duplicate_instance.PROOF_S",
    "faults.bounce.START_S",
    "faults.bounce.SYNC_S",
    "faults._bounced.PROOF_S",
    "faults.change_subscription.PROOF_S",
    "faults.delete_records.PROOF_S",
    "faults.kill.PROOF_S",
    "faults.move_coordinator.PROOF_S",
    "faults.move_leaders.PROOF_S",
    "faults.partition_brokers.APART_S",
    "faults.partition_brokers.SYNC_S",
    "faults.pause.PROOF_S",
    "faults.reassign_coordinator.PROOF_S",
    "faults.recreate_topic.PROOF_S",
    "faults.reset_offsets.PROOF_S",
    "faults.scale_in.ASKED_S",
    "faults.scale_out.START_S",
    "faults.stall.PROOF_S",
    "faults.stall.HEALED_S",
    "faults.hold.RELEASED_S",
    "witnesses.proxy_gate.PROOF_S",
    "witnesses.black_hole.PROOF_S",
    "witnesses.links.HEALED_S",
    "witnesses.packet_loss.PROOF_S",
    "witnesses.throughput.PROOF_S",
)
MEMBER, BROKER = Target(members=(1,)), Target(brokers=(3,))
MEMBERS_LINKS, OTHERS_LINKS = [(1, 1), (1, 2), (1, 3)], [(0, 1), (0, 2), (0, 3)]


@dataclass(frozen=True)
class World:
    """What faults may touch: the real thing, any part of which a test may replace."""

    cluster: Any
    members: Any
    group: str
    backend: str = "local"
    more: tuple[str, ...] = ()

    @property
    def topics(self) -> Mapping[str, str]:
        return {topic: topic for topic in (self.group, *self.more)}

    def view(self) -> View:
        for member in self.members:
            if member.life:
                member.life.live.refresh()
        members = tuple(
            MemberView(m.index, m.slot, m.actor, m.pid is not None, owned=m.owned, member_id=m.member_id)
            for m in self.members
        )
        return View(members, tuple(self.cluster.brokers), {}, self.cluster.admin.coordinator(self.group))

    def owning(self) -> bool:
        """Whether both members that are no spare ones own partitions."""
        return all(member.owned for member in self.view().members[:2])


class Instead:
    """``real``, but for the named attributes, which it must have: else a renamed one would take nothing away."""

    def __init__(self, real: Any, **attributes: Any) -> None:
        assert all(hasattr(real, name) for name in attributes), f"{real} has not all of {', '.join(attributes)}"
        self._real, self._attributes = real, attributes

    def __getattr__(self, name: str) -> Any:
        return self._attributes[name] if name in self._attributes else getattr(self._real, name)


Inject = Callable[[Fault, World, Target], Injection]


def bounded(patched: pytest.MonkeyPatch, within_s: float) -> None:
    """All witnesses look so long."""
    for bound in BOUNDS:
        patched.setattr(f"fencepost.{bound}", within_s)


@contextmanager
def nothing_to_see() -> Iterator[pytest.MonkeyPatch]:
    """Witnesses look only for a short time in here; what else is patched with it ends here, too."""
    with pytest.MonkeyPatch.context() as patched:
        bounded(patched, SHORT_S)
        yield patched


def comes_back_unchanged(inject: Inject, world: World, fault: Fault) -> Evidence:
    """What the witness says of a fault that bounces member 1 to other terms, when it comes back as it was."""
    honest = Instead(world.members[1], launch=lambda **changes: world.members[1].launch())
    injection = inject(fault, replace(world, members=[world.members[0], honest]), MEMBER)
    with nothing_to_see() as patched:
        patched.setattr("fencepost.faults._bounced.ASKED_S", LONG_S)
        return injection.proven()


def node(world: World, target: Target) -> Node:
    found: Node = world.members[target.members[0]] if target.members else world.cluster.brokers[target.brokers[0]]
    return found


def ends_and_begins_anew(inject: Inject, world: World, target: Target, fault: Fault, codes: set[int]) -> None:
    """A fault ends a life with one of these exit codes, and a new one begins when it is undone, once."""
    hit = node(world, target)
    before = hit.pid
    injection = inject(fault, world, target)
    proven = injection.proven()
    assert proven.took_effect, proven.what
    assert set(proven.data["exit_codes"].values()) <= codes
    assert not psutil.pid_exists(before or 0)
    injection.undo()
    after = hit.pid
    injection.undo()
    healed = injection.healed()
    assert healed.took_effect, healed.what
    assert hit.pid == after != before


def requests_by(world: World, slot: int) -> list[dict[str, Any]]:
    """The group's requests of a slot, in the order in which the brokers carried them out."""
    timeline, found = WallClockConverter(((0, 0),)), []
    for broker in world.cluster.brokers:
        for line in world.cluster.evidence.request_log(broker):
            with suppress(ValueError):  # the broker is writing it: whole the next time
                found.append(request_log.parse(line, timeline, world.group, {}))
    return sorted((one for one in found if one and one["slot"] == slot), key=lambda one: int(one["end_ns"]))


def heartbeats(world: World, slot: int, since_ns: int) -> int:
    return sum(one["start_ns"] > since_ns for one in requests_by(world, slot))


def silent(world: World, slot: int, beside: int) -> bool:
    """Whether nothing is heard of a slot while the heartbeats of another go on; a busy broker may first carry out what
    had arrived before.
    """
    for _ in range(2):
        since_ns = time.time_ns()
        eventually(lambda since_ns=since_ns: heartbeats(world, beside, since_ns) > 3, LONG_S, "another's heartbeats")  # type: ignore[misc]
    return heartbeats(world, slot, since_ns) == 0


def steady(world: World, slot: int) -> bool:
    """Nothing of the member is parked at a broker: behind a parked request later ones wait there to be read."""
    latest = requests_by(world, slot)[-5:]
    return all(one["api"] in ("HEARTBEAT", "OFFSET_COMMIT") and one["error"] is None for one in latest)


def connections(world: World, slot: int) -> set[tuple[Any, Any]]:
    """The connections of a slot that are up, by both their ends."""
    ends = {world.cluster.links.endpoint(slot, broker) for broker in world.cluster.brokers}
    return {pair for pair, counted in sockets.snapshot(world.cluster).items() if pair[0] in ends and counted.up}


def connected(world: World, slot: int, broker: int) -> socket.socket:
    """Like a client that connects to a broker. Raises TimeoutError when nobody answers in SILENT_S."""
    return socket.create_connection(world.cluster.links.endpoint(slot, broker), timeout=SILENT_S)


def pinged_s(world: World, slot: int, broker: int, padding: int = 0) -> float:
    """How long a round trip through a link takes, for who just waits for it."""
    with socket.create_connection(world.cluster.links.endpoint(slot, broker), timeout=LONG_S) as link:
        begun_ns = now_ns()
        link.sendall(probe(padding))
        assert link.recv(1)
        return (now_ns() - begun_ns) / NS


def deaf(world: World, heard: Callable[[int], int | None] = lambda number: None) -> World:
    """The same world, but signals become others on their way, or are lost."""

    def wrapped(real: Node) -> Instead:
        def send(number: int) -> None:
            if (other := heard(number)) is not None:
                real.signal(other)

        return Instead(real, signal=send)

    brokers = {b: wrapped(n) for b, n in world.cluster.brokers.items()}
    cluster = Instead(world.cluster, brokers=brokers)
    return replace(world, cluster=cluster, members=[wrapped(m) for m in world.members])


def with_links(world: World, **methods: Callable[..., Any]) -> World:
    return replace(world, cluster=Instead(world.cluster, links=Instead(world.cluster.links, **methods)))


def toxics_without_effect(world: World, streams: tuple[str, ...]) -> World:
    """On ``streams`` a toxic is put that lets everything through at once."""

    def add(slot: int, broker: int, kind: str, stream: str, attributes: Mapping[str, Any]) -> str:
        harmless = ("latency", stream, {"latency": 0})
        chosen = harmless if stream in streams else (kind, stream, attributes)
        return str(world.cluster.links.add_toxic(slot, broker, *chosen))

    return with_links(world, add_toxic=add)


AIMS = {"members": MEMBER, "brokers": BROKER, "idle members": Target(members=(2,))}


def shown(cell: Cell, world: World, inject: Inject) -> None:
    """What a cell of the table of faults promises; two members own partitions before and live afterwards."""
    if lacking := cell.missing_here():
        pytest.skip(lacking)
    fault, target = cell.made(), AIMS.get(cell.target, Target())
    alone = isinstance(fault, ResetOffsets)  # it waits until nobody is in the group

    def ready() -> bool:
        return (alone or world.owning()) and not (isinstance(fault, Gated) and fault.not_ready_reason(world, target))

    eventually(world.owning, LONG_S, "both members to own partitions")
    try:
        for member in world.members[:2] if alone else ():
            member.signal(signal.SIGKILL)
            member.wait_ended(LONG_S)
        eventually(ready, LONG_S, f"both members to own partitions, and what {cell.fault} waits for")
        injection = inject(fault, world, target)
        proven = injection.proven()
        assert proven.took_effect, proven.what
        injection.undo()
        healed = injection.healed()
        assert healed.took_effect, healed.what
    finally:
        for member in world.members[2:]:
            if member.pid is not None:
                member.signal(signal.SIGKILL)
                member.wait_ended(LONG_S)
        for member in world.members[:2]:
            member.start()


def with_packets(world: World, **methods: Callable[..., Any]) -> World:
    return replace(world, cluster=Instead(world.cluster, packets=Instead(world.cluster.packets, **methods)))


def with_rules(world: World, change: Callable[[PacketLoss], PacketLoss]) -> World:
    """Other rules are put than those that the fault wants."""
    return with_packets(world, lose=lambda losses: world.cluster.packets.lose([change(loss) for loss in losses]))


def nowhere(loss: PacketLoss) -> PacketLoss:
    """The same of an address that no cluster has."""
    return replace(loss, endpoint=(TRIAL[0], loss.endpoint[1]))


def healed(injection: Injection) -> None:
    injection.undo()
    injection.undo()
    evidence = injection.healed()
    assert evidence.took_effect, evidence.what
