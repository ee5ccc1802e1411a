"""Every fault on a real cluster under a real group: its effect measured, and what its witness says without the effect.

``Instead`` takes an effect away at the last moment: the fault does all it does, and nothing comes of it.
"""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from typing import Any

import psutil
import pytest

from fencepost import group as groups
from fencepost import scenario
from fencepost.clock import NS, eventually, now_ns
from fencepost.clusters.local import LocalCluster
from fencepost.errors import FaultError, ScenarioError
from fencepost.evidence import requests
from fencepost.evidence.times import Timeline
from fencepost.faults import BlackHole, Bounce, Kill, MoveCoordinator, Pause
from fencepost.interfaces import Fault, Injection, Node, Target
from fencepost.model import View
from fencepost.processes import Owner
from fencepost.workloads import PollLoop
from fencepost_member.events import EventLog

pytestmark = [
    pytest.mark.cluster,
    # kafka-python leaves the sockets of refused connections to the garbage collector.
    pytest.mark.filterwarnings("ignore:.*unclosed <socket:pytest.PytestUnraisableExceptionWarning"),
]

GROUP = "fault-shoppers"
TOPICS = {"fault-orders": {p: p for p in range(4)}}
SHORT_S = 0.8  # the bound of a witness that is known to see nothing
LONG_S = 60  # for what comes at once on a machine that has nothing else to do


@dataclass(frozen=True)
class World:
    """What faults may touch: the real thing, any part of which a test may replace."""

    cluster: Any
    members: Any

    def slot_of(self, member: int) -> int:
        return int(self.members[member].slot)

    def view(self) -> View:
        return View((), tuple(self.cluster.brokers), {}, -1, GROUP)


class Instead:
    """``real``, but for the named attributes."""

    def __init__(self, real: Any, **attributes: Any) -> None:
        self._real, self._attributes = real, attributes

    def __getattr__(self, name: str) -> Any:
        return self._attributes[name] if name in self._attributes else getattr(self._real, name)


@pytest.fixture(scope="module")
def living_group(
    session_cluster: LocalCluster, session_owner: Owner, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[groups.Group]:
    """Two members and a producer."""
    session_cluster.admin.create_topics([scenario.Topic("fault-orders", partitions=4)])
    history = tmp_path_factory.mktemp("history")
    home = groups.Home(
        session_owner, EventLog(history / "events" / "harness.jsonl", "harness"), history, history / "logs"
    )
    config = {"session.timeout.ms": 6000, "heartbeat.interval.ms": 200}
    spec = scenario.Group(members=2, config=config)
    group = groups.make(home, session_cluster, spec, PollLoop(rate_hz=200), name=GROUP, topics=TOPICS, seed=1)
    try:
        group.start()

        def consuming() -> bool:
            group.refresh()
            return all(member.owned for member in group.members)

        eventually(consuming, LONG_S, "both members to own partitions")
        yield group
    finally:
        group.kill()


@pytest.fixture
def world(cluster: LocalCluster, living_group: groups.Group) -> World:
    return World(cluster, living_group.members)


Inject = Callable[[Fault, World, Target], Injection]


@pytest.fixture
def inject() -> Iterator[Inject]:
    """Injects a fault and undoes it after the test, however that ends."""
    with ExitStack() as undone:

        def injected(fault: Fault, world: World, target: Target) -> Injection:
            injection = fault.inject(world, target)
            undone.callback(injection.undo)
            return injection

        yield injected


@contextmanager
def nothing_to_see() -> Iterator[None]:
    """Witnesses look only for a short time in here."""
    modules = (("PROOF_S", "black_hole kill move_coordinator pause"), ("HEALED_S", "black_hole"), ("STOP_S", "bounce"))
    with pytest.MonkeyPatch.context() as patched:
        for bound, names in modules:
            for name in names.split():
                patched.setattr(f"fencepost.faults.{name}.{bound}", SHORT_S)
        yield


@pytest.fixture(autouse=True)
def patient_witnesses(monkeypatch: pytest.MonkeyPatch) -> None:
    """What there is to see may come late on a busy machine."""
    for name in ("black_hole.PROOF_S", "black_hole.HEALED_S", "bounce.STOP_S", "bounce.START_S", "kill.PROOF_S"):
        monkeypatch.setattr(f"fencepost.faults.{name}", LONG_S)
    for name in ("move_coordinator.PROOF_S", "pause.PROOF_S"):
        monkeypatch.setattr(f"fencepost.faults.{name}", LONG_S)


def node(world: World, target: Target) -> Node:
    found: Node = world.members[target.members[0]] if target.members else world.cluster.brokers[target.brokers[0]]
    return found


MEMBER, BROKER = Target(members=(1,)), Target(brokers=(3,))
BOTH_KINDS = pytest.mark.parametrize("target", [MEMBER, BROKER], ids=["member", "broker"])


@BOTH_KINDS
def test_a_paused_process_is_stopped_and_runs_on_in_the_same_life(world: World, inject: Inject, target: Target) -> None:
    pid = node(world, target).pid
    injection = inject(Pause(), world, target)
    proven = injection.proven()
    assert proven.took_effect, proven.what
    assert psutil.Process(pid).status() == psutil.STATUS_STOPPED
    assert f"pid {pid}" in proven.what
    injection.undo()
    injection.undo()
    healed = injection.healed()
    assert healed.took_effect, healed.what
    assert node(world, target).pid == pid
    assert psutil.Process(pid).status() != psutil.STATUS_STOPPED


@pytest.mark.parametrize(("fault", "codes"), [(Kill(), {-9}), (Bounce(), {0, 143})], ids=["kill", "bounce"])
@BOTH_KINDS
def test_a_killed_or_bounced_process_ends_its_way_and_begins_a_new_life(
    world: World, inject: Inject, target: Target, fault: Fault, codes: set[int]
) -> None:
    before = node(world, target).pid
    injection = inject(fault, world, target)
    proven = injection.proven()
    assert proven.took_effect, proven.what
    assert set(proven.data["exit_codes"].values()) <= codes
    assert not psutil.pid_exists(before or 0)
    injection.undo()
    after = node(world, target).pid
    injection.undo()
    healed = injection.healed()
    assert healed.took_effect, healed.what
    assert node(world, target).pid == after != before


def test_a_moved_coordinator_is_led_and_found_elsewhere(world: World, inject: Inject) -> None:
    before = world.cluster.admin.coordinator(GROUP)
    proven = inject(MoveCoordinator(), world, Target()).proven()
    assert proven.took_effect, proven.what
    assert proven.data["from_broker"] == before
    assert proven.data["to_broker"] == world.cluster.admin.coordinator(GROUP) != before
    assert proven.data["seconds"] > 0


def test_moves_visit_every_replica(world: World, inject: Inject) -> None:
    seen = []
    for _ in range(3):
        proven = inject(MoveCoordinator(), world, Target()).proven()
        assert proven.took_effect, proven.what
        seen.append(proven.data["to_broker"])
    assert sorted(seen) == [1, 2, 3]


def requests_by(world: World, slot: int) -> list[dict[str, Any]]:
    """The group's requests of a slot, in the order in which the brokers carried them out."""
    timeline = Timeline(((0, 0),))
    logged = (line for b in world.cluster.brokers for line in world.cluster.evidence.request_log(b))
    found = (requests.parse(line, timeline, GROUP, {}) for line in logged)
    return sorted((one for one in found if one and one["slot"] == slot), key=lambda one: int(one["end_ns"]))


def steady(world: World, slot: int) -> bool:
    """Nothing of the member is parked at a broker: behind a parked request later ones wait there to be read."""
    latest = requests_by(world, slot)[-5:]
    return all(one["api"] in ("HEARTBEAT", "OFFSET_COMMIT") and one["error"] is None for one in latest)


@pytest.mark.parametrize("direction", ["to", "from", "both"])
def test_a_black_hole_swallows_one_members_bytes_and_no_other_members(
    world: World, inject: Inject, direction: str
) -> None:
    eventually(lambda: steady(world, 0) and steady(world, 1), LONG_S, "both members to heartbeat in peace", every_s=0.1)
    since_ns = time.time_ns()  # a request may be carried out at once, and is the last one without its answer
    injection = inject(BlackHole(direction), world, MEMBER)

    def carried_out(slot: int) -> int:
        return sum(one["start_ns"] > since_ns for one in requests_by(world, slot))

    proven = injection.proven()
    assert proven.took_effect, proven.what
    if direction == "from":  # requests reach the broker only when it is the answers that vanish
        eventually(lambda: carried_out(slot=1), LONG_S, "a request of the cut member")
    else:
        begun, since_ns = now_ns(), time.time_ns()  # a broker may be late with what it was sent before
        eventually(lambda: carried_out(slot=0) > 3, LONG_S, "the other member's heartbeats")
        eventually(lambda: now_ns() - begun > 0.7 * NS, LONG_S, "heartbeats of the cut member, if there are any")
        assert carried_out(slot=1) == 0
    injection.undo()
    injection.undo()
    healed = injection.healed()
    assert healed.took_effect, healed.what
    assert set(proven.data["streams"]) == {"to": {"upstream"}, "from": {"downstream"}}.get(
        direction, {"upstream", "downstream"}
    )
    links = [(link["slot"], link["broker"]) for stream in proven.data["streams"].values() for link in stream]
    assert set(links) == {(1, 1), (1, 2), (1, 3)}


def test_a_black_hole_around_a_broker_holds_for_every_member(world: World, inject: Inject) -> None:
    injection = inject(BlackHole(), world, BROKER)
    proven = injection.proven()
    injection.undo()
    assert proven.took_effect, proven.what
    assert {(link["slot"], link["broker"]) for link in proven.data["streams"]["upstream"]} == {(0, 3), (1, 3)}
    assert injection.healed().took_effect


def test_a_black_hole_may_be_between_one_member_and_one_broker(world: World, inject: Inject) -> None:
    injection = inject(BlackHole("to", brokers=(2,)), world, MEMBER)
    proven = injection.proven()
    injection.undo()
    assert proven.took_effect, proven.what
    assert [(link["slot"], link["broker"]) for link in proven.data["streams"]["upstream"]] == [(1, 2)]


def test_links_to_a_dead_broker_prove_nothing_and_are_told(world: World, inject: Inject) -> None:
    kill = inject(Kill(), world, BROKER)
    assert kill.proven().took_effect
    hole = inject(BlackHole(), world, MEMBER)
    proven = hole.proven()
    alone = inject(BlackHole(), world, BROKER)
    assert proven.took_effect, proven.what
    assert proven.data["not_judged"] == [[1, 3]]
    with nothing_to_see():
        nothing = alone.proven()
    assert not nothing.took_effect
    assert "no broker of these links runs" in nothing.what
    for injection in (alone, hole, kill):
        injection.undo()
    assert hole.healed().took_effect
    assert kill.healed().took_effect


def test_what_a_fault_cannot_hit_is_refused(world: World, inject: Inject) -> None:
    with pytest.raises(ScenarioError, match="found direction 'up', use one of to, from, both"):
        BlackHole("up")
    with pytest.raises(FaultError, match="there is no broker 9"):
        inject(BlackHole(brokers=(9,)), world, MEMBER)


# --- the effect taken away ---------------------------------------------------------------------------------------


def deaf(world: World, heard: Callable[[int], int | None] = lambda number: None) -> World:
    """The same world, but signals become others on their way, or are lost."""

    def wrapped(real: Node) -> Instead:
        def send(number: int) -> None:
            if (other := heard(number)) is not None:
                real.signal(other)

        return Instead(real, signal=send)

    brokers = {b: wrapped(n) for b, n in world.cluster.brokers.items()}
    return World(Instead(world.cluster, brokers=brokers), [wrapped(m) for m in world.members])


def with_links(world: World, **methods: Callable[..., Any]) -> World:
    return replace(world, cluster=Instead(world.cluster, links=Instead(world.cluster.links, **methods)))


@pytest.mark.parametrize("fault", [Pause(), Kill(), Bounce()], ids=["pause", "kill", "bounce"])
@BOTH_KINDS
def test_a_signal_that_was_not_sent_is_no_fault(world: World, inject: Inject, target: Target, fault: Fault) -> None:
    with nothing_to_see():
        evidence = fault.inject(deaf(world), target).proven()
    assert not evidence.took_effect
    assert node(world, target).name in evidence.what
    assert psutil.pid_exists(node(world, target).pid or 0)


@pytest.mark.parametrize(
    ("fault", "heard"), [(Kill(), signal.SIGTERM), (Bounce(), signal.SIGKILL)], ids=["kill", "bounce"]
)
def test_an_end_of_another_kind_is_not_the_fault(world: World, inject: Inject, fault: Fault, heard: int) -> None:
    injection = inject(fault, deaf(world, lambda number: heard), MEMBER)
    eventually(lambda: node(world, MEMBER).pid is None, LONG_S, "the member to end")
    with nothing_to_see():
        evidence = injection.proven()
    injection.undo()
    assert not evidence.took_effect
    assert "ended with exit code" in evidence.what
    assert injection.healed().took_effect


def test_a_process_that_stays_stopped_is_not_healed(world: World, inject: Inject) -> None:
    injection = inject(Pause(), deaf(world, lambda number: number if number == signal.SIGSTOP else None), MEMBER)
    assert injection.proven().took_effect
    injection.undo()
    with nothing_to_see():
        evidence = injection.healed()
    node(world, MEMBER).signal(signal.SIGCONT)
    assert not evidence.took_effect
    assert "is stopped" in evidence.what


def test_a_member_without_a_process_cannot_be_hit(world: World, inject: Inject) -> None:
    nobody = World(world.cluster, [Instead(world.members[0], pid=None, signal=lambda number: None)])
    for fault in (Pause(), Kill(), Bounce()):
        with nothing_to_see():
            evidence = fault.inject(nobody, Target(members=(0,))).proven()
        assert not evidence.took_effect
        assert "member-0" in evidence.what


def test_an_election_that_was_not_made_is_no_move(world: World, inject: Inject) -> None:
    admin = Instead(world.cluster.admin, move_leader=lambda tp, to_broker: None)
    stays = inject(MoveCoordinator(), replace(world, cluster=Instead(world.cluster, admin=admin)), Target())
    with nothing_to_see():
        evidence = stays.proven()
    assert not evidence.took_effect
    assert "not broker" in evidence.what


def test_a_leader_that_moved_without_the_coordinator_is_no_move(world: World, inject: Inject) -> None:
    before = world.cluster.admin.coordinator(GROUP)
    admin = Instead(world.cluster.admin, coordinator=lambda group: before)
    half = inject(MoveCoordinator(), replace(world, cluster=Instead(world.cluster, admin=admin)), Target())
    leads = lambda: world.cluster.admin.coordinator(GROUP) not in (-1, before)  # noqa: E731
    eventually(leads, LONG_S, "the leader to move")
    with nothing_to_see():
        evidence = half.proven()
    assert not evidence.took_effect
    assert evidence.data["leader"] != before


def toxics_without_effect(world: World, streams: tuple[str, ...]) -> World:
    """On ``streams`` a toxic is put that lets everything through at once."""

    def add(slot: int, broker: int, kind: str, stream: str, attributes: Mapping[str, Any]) -> str:
        harmless = ("latency", stream, {"latency": 0})
        chosen = harmless if stream in streams else (kind, stream, attributes)
        return str(world.cluster.links.add_toxic(slot, broker, *chosen))

    return with_links(world, add_toxic=add)


@pytest.mark.parametrize(
    ("direction", "without"),
    [
        ("to", ("upstream",)),
        ("from", ("downstream",)),
        ("both", ("upstream", "downstream")),
        ("both", ("upstream",)),
        ("both", ("downstream",)),
    ],
)
def test_a_toxic_without_effect_is_no_black_hole(
    world: World, inject: Inject, direction: str, without: tuple[str, ...]
) -> None:
    injection = inject(BlackHole(direction), toxics_without_effect(world, without), MEMBER)
    with nothing_to_see():
        evidence = injection.proven()
    injection.undo()
    assert not evidence.took_effect
    assert "came out" in evidence.what or "answered" in evidence.what
    assert injection.healed().took_effect


@pytest.mark.parametrize("direction", ["to", "from"])
def test_a_hole_the_other_way_is_not_this_hole(world: World, inject: Inject, direction: str) -> None:
    other = {"upstream": "downstream", "downstream": "upstream"}

    def add(slot: int, broker: int, kind: str, stream: str, attributes: Mapping[str, Any]) -> str:
        return str(world.cluster.links.add_toxic(slot, broker, kind, other[stream], attributes))

    injection = inject(BlackHole(direction), with_links(world, add_toxic=add), MEMBER)
    with nothing_to_see():
        evidence = injection.proven()
    injection.undo()
    assert not evidence.took_effect


def test_one_link_that_was_missed_is_no_black_hole(world: World, inject: Inject) -> None:
    real = world.cluster.links

    def add(slot: int, broker: int, kind: str, stream: str, attributes: Mapping[str, Any]) -> str:
        return "nowhere" if broker == 2 else str(real.add_toxic(slot, broker, kind, stream, attributes))

    injection = inject(BlackHole("to"), with_links(world, add_toxic=add), MEMBER)
    with nothing_to_see():
        evidence = injection.proven()
    injection.undo()
    assert not evidence.took_effect
    assert "slot 1 to broker 2" in evidence.what


def test_a_hole_that_was_not_closed_is_not_healed(world: World, inject: Inject) -> None:
    placed: list[tuple[int, int, str]] = []
    stuck = with_links(world, remove_toxic=lambda *link: placed.append(link))
    injection = inject(BlackHole(), stuck, MEMBER)
    assert injection.proven().took_effect
    injection.undo()
    with nothing_to_see():
        evidence = injection.healed()
    for link in placed:
        world.cluster.links.remove_toxic(*link)
    assert not evidence.took_effect
    assert "does not answer" in evidence.what


def test_a_link_that_cannot_be_freed_does_not_keep_the_others(world: World, inject: Inject) -> None:
    real = world.cluster.links
    broken = {2}

    def remove(slot: int, broker: int, name: str) -> None:
        if broker in broken:
            raise FaultError("the proxy hangs")
        real.remove_toxic(slot, broker, name)

    injection = inject(BlackHole("to"), with_links(world, remove_toxic=remove), MEMBER)
    with pytest.raises(FaultError, match="1 links could not be freed: the proxy hangs"):
        injection.undo()
    assert [bool(real.toxics(1, broker)) for broker in (1, 2, 3)] == [False, True, False]
    broken.clear()
    injection.undo()
    assert injection.healed().took_effect
