"""Faults between members and brokers on a real cluster under a real group: the effect measured by somebody else than
the witness, and what the witness says without it.
"""

from __future__ import annotations

import socket
import time
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from cluster.worlds import (
    BROKER,
    LONG_S,
    MEMBER,
    MEMBERS_LINKS,
    ON_CLUSTER,
    OTHERS_LINKS,
    Inject,
    Instead,
    World,
    connections,
    heartbeats,
    nothing_to_see,
    pinged_s,
    requests_by,
    silent,
    steady,
    toxics_without_effect,
    with_links,
)
from fencepost.clock import eventually
from fencepost.errors import FaultError
from fencepost.evidence.brokers.kafka_protocol import answers_in, probe
from fencepost.faults import BlackHole, CutConnections, Hold, Kill, Latency, RateLimit, Refuse, Slice
from fencepost.interfaces import Fault, Target
from fencepost.witnesses import sockets

pytestmark = ON_CLUSTER


@pytest.mark.parametrize("direction", ["to", "from", "both"])
def test_a_black_hole_swallows_one_members_bytes_and_no_other_members(
    world: World, inject: Inject, direction: str
) -> None:
    eventually(lambda: steady(world, 0) and steady(world, 1), LONG_S, "both members to heartbeat in peace", every_s=0.1)
    since_ns = time.time_ns()  # a request may be carried out at once, and is the last one without its answer
    injection = inject(BlackHole(direction=direction), world, MEMBER)
    proven = injection.proven()
    assert proven.took_effect, proven.what
    if direction == "from":  # requests reach the broker only when it is the answers that vanish
        eventually(lambda: heartbeats(world, 1, since_ns), LONG_S, "a request of the cut member")
    else:
        assert silent(world, 1, beside=0)
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
    held = {(link["slot"], link["broker"]) for link in proven.data["streams"]["upstream"]}
    assert held == {(slot, 3) for slot in range(len(world.members))}  # of those, too, that may come
    assert injection.healed().took_effect


def test_a_black_hole_may_be_between_one_member_and_one_broker(world: World, inject: Inject) -> None:
    injection = inject(BlackHole(direction="to", brokers=(2,)), world, MEMBER)
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


def pieces(world: World, slot: int, broker: int) -> list[bytes]:
    """An answer as it comes through a link."""
    came: list[bytes] = []
    with socket.create_connection(world.cluster.links.endpoint(slot, broker), timeout=LONG_S) as link:
        link.sendall(probe())
        while answers_in(b"".join(came)) < 1:
            came.append(link.recv(1 << 16))
    return came


SLOW = {
    "latency": (Latency(delay_ms=300), 0.3),
    "latency both ways": (Latency(delay_ms=200, direction="both"), 0.4),
    "latency with jitter": (Latency(delay_ms=300, jitter_ms=100, direction="to"), 0.2),
    "rate limit": (RateLimit(kb_per_s=50, direction="to"), 0.5),
    "slice": (Slice(piece_bytes=100, pause_ms=2), 0.5),
}


@pytest.mark.parametrize(("fault", "least_s"), SLOW.values(), ids=SLOW)
def test_slow_links_take_their_time_and_others_do_not(
    world: World, inject: Inject, fault: Fault, least_s: float
) -> None:
    padding = 0 if isinstance(fault, Latency) else 25_000
    injection = inject(fault, world, MEMBER)
    proven = injection.proven()
    assert proven.took_effect, proven.what
    assert set(proven.data["through_s"]) == {f"slot 1 to broker {broker}" for broker in (1, 2, 3)}
    assert min(proven.data["through_s"].values()) >= 0.9 * proven.data["takes_s"]
    assert max(proven.data["past_s"].values()) <= 0.5 * proven.data["takes_s"]
    assert all(pinged_s(world, *link, padding) >= 0.98 * least_s for link in MEMBERS_LINKS)
    eventually(lambda: pinged_s(world, 0, 1, padding) < least_s / 2, LONG_S, "the other member's link to be quick")
    injection.undo()
    injection.undo()
    healed = injection.healed()
    assert healed.took_effect, healed.what
    assert max(healed.data["through_s"].values()) <= healed.data["takes_s"] / 2
    eventually(lambda: pinged_s(world, 1, 1, padding) < least_s / 2, LONG_S, "the member's link to be quick")


@pytest.mark.parametrize("kb_per_s", [1, 20, 200])
def test_answers_come_as_slowly_as_is_said(world: World, inject: Inject, kb_per_s: int) -> None:
    injection = inject(RateLimit(kb_per_s=kb_per_s), world, Target(members=(0, 1)))
    proven = injection.proven()
    assert proven.took_effect, proven.what
    assert proven.data["bytes"] / (kb_per_s * 1000) >= proven.data["takes_s"]  # answers are as long as is thought
    assert len(proven.data["through_s"]) == 6
    injection.undo()
    healed = injection.healed()
    assert healed.took_effect, healed.what


def test_a_sliced_answer_comes_in_pieces(world: World, inject: Inject) -> None:
    inject(Slice(piece_bytes=20, pause_ms=5), world, MEMBER)
    assert len(pieces(world, 1, 2)) >= 10
    eventually(lambda: len(pieces(world, 0, 2)) == 1, LONG_S, "a whole answer for the other member")


def test_cut_connections_are_gone_and_the_member_makes_new_ones(world: World, inject: Inject) -> None:
    eventually(lambda: steady(world, 1), LONG_S, "the member to heartbeat in peace", every_s=0.1)
    mine, others = connections(world, 1), connections(world, 0)
    injection = inject(CutConnections(), world, MEMBER)
    proven = injection.proven()
    since_ns = time.time_ns()
    assert proven.took_effect, proven.what
    assert mine
    assert not mine & connections(world, 1)
    assert others <= connections(world, 0)
    assert sum(link["before"] for link in proven.data["connections"]) >= len(mine)
    eventually(lambda: heartbeats(world, 1, since_ns) > 1, LONG_S, "the member to go on")
    assert injection.healed().took_effect


def test_refused_connections_are_refused_until_it_heals(world: World, inject: Inject) -> None:
    eventually(lambda: steady(world, 1), LONG_S, "the member to heartbeat in peace", every_s=0.1)
    mine, since_ns = connections(world, 1), time.time_ns()
    injection = inject(Refuse(), world, MEMBER)
    proven = injection.proven()
    assert proven.took_effect, proven.what
    assert mine
    assert not connections(world, 1)
    for link in MEMBERS_LINKS:
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(world.cluster.links.endpoint(*link), timeout=LONG_S)
    assert pinged_s(world, *OTHERS_LINKS[0]) > 0
    eventually(lambda: heartbeats(world, 0, since_ns) > 1, LONG_S, "the other member to go on")
    injection.undo()
    injection.undo()
    healed = injection.healed()
    assert healed.took_effect, healed.what
    healed_ns = time.time_ns()
    eventually(lambda: heartbeats(world, 1, healed_ns) > 1, LONG_S, "the member to come back")


def test_what_a_zombie_sent_arrives_after_the_group_went_on_and_is_refused(world: World, inject: Inject) -> None:
    eventually(lambda: steady(world, 0) and steady(world, 1), LONG_S, "both members to be at peace", every_s=0.1)
    began_ns = time.time_ns()
    injection = inject(Hold(), world, MEMBER)
    proven = injection.proven()
    assert proven.took_effect, proven.what

    def joined() -> bool:
        return any(one["api"] == "JOIN_GROUP" and one["start_ns"] > began_ns for one in requests_by(world, 0))

    eventually(joined, LONG_S, "the other member to join the group again, without it", every_s=0.1)
    held_ns = time.time_ns()
    injection.undo()
    injection.undo()
    healed = injection.healed()
    assert healed.took_effect, healed.what
    assert healed.data["held_s"] > 5  # the session

    def refused() -> set[str]:
        late = [one for one in requests_by(world, 1) if one["start_ns"] > held_ns]
        return {one["api"] for one in late if one["error"] == "UNKNOWN_MEMBER_ID"}

    both = {"HEARTBEAT", "OFFSET_COMMIT"}
    eventually(
        lambda: refused() >= both, LONG_S, "what was held to be refused", every_s=0.1, state=lambda: f"{refused()}"
    )


@pytest.mark.parametrize("direction", ["from", "both"])
def test_a_hold_gives_back_what_went_into_it(world: World, inject: Inject, direction: str) -> None:
    injection = inject(Hold(direction=direction), world, MEMBER)
    proven = injection.proven()
    assert proven.took_effect, proven.what
    injection.undo()
    healed = injection.healed()
    assert healed.took_effect, healed.what
    assert healed.data["requests"] == 3 * len(proven.data["streams"])


def test_a_hold_ends_at_once_although_a_client_whose_answers_it_held_has_gone(world: World, inject: Inject) -> None:
    """Toxiproxy waits 5 s for each piece of these when it is asked to take away what holds them."""
    link = (3, 1)  # of a slot in which nobody is: only this client's answers are held
    ends = (world.cluster.links.endpoint(*link), world.cluster.links.upstream(*link))
    before = sockets.snapshot(world.cluster)

    def came() -> int:
        return sockets.passed(before, sockets.snapshot(world.cluster), *ends).down_in

    injection = inject(Hold(direction="from", brokers=(1,)), world, Target(members=(3,)))
    assert injection.proven().took_effect
    with socket.create_connection(ends[0], timeout=LONG_S) as client:
        client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for _ in range(4):
            had = came()
            client.sendall(probe())
            eventually(lambda had=had: came() > had, LONG_S, "an answer to come into the proxy")
    began_s = time.monotonic()
    injection.undo()
    healed = injection.healed()
    assert healed.took_effect, healed.what
    assert not world.cluster.links.toxics(*link)
    assert time.monotonic() - began_s < 5


@pytest.mark.parametrize("peers", ["coordinator", "others"])
def test_a_member_is_cut_from_its_coordinator_only_or_from_all_others(world: World, inject: Inject, peers: str) -> None:
    eventually(lambda: steady(world, 1), LONG_S, "the member to heartbeat in peace", every_s=0.1)
    where = world.cluster.admin.coordinator(world.group)
    elsewhere = {broker for broker in world.cluster.brokers if broker != where}
    injection = inject(BlackHole(direction="to", peers=peers), world, MEMBER)
    proven = injection.proven()
    assert proven.took_effect, proven.what
    hit = {link["broker"] for link in proven.data["streams"]["upstream"]}
    assert hit == ({where} if peers == "coordinator" else elsewhere)
    cut_ns = time.time_ns()
    for broker in set(world.cluster.brokers) - hit:
        assert pinged_s(world, 1, broker) < LONG_S
    if peers == "coordinator":
        assert silent(world, 1, beside=0)
    else:
        eventually(lambda: heartbeats(world, 1, cut_ns) > 3, LONG_S, "its own ones")
    injection.undo()
    healed = injection.healed()
    assert healed.took_effect, healed.what


def test_without_a_coordinator_nobody_knows_the_peers(world: World) -> None:
    nobody = Instead(world.cluster, admin=Instead(world.cluster.admin, coordinator=lambda group: -1))
    with pytest.raises(FaultError, match="has no coordinator now, so its others cannot be found"):
        BlackHole(peers="others").inject(replace(world, cluster=nobody), MEMBER)


def test_what_cannot_be_hit_is_refused(world: World, inject: Inject) -> None:
    with pytest.raises(FaultError, match="there is no broker 9"):
        inject(BlackHole(brokers=(9,)), world, MEMBER)


# --- the effect taken away ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("fault", [fault for fault, _ in SLOW.values()], ids=SLOW)
def test_a_toxic_without_effect_slows_nothing(world: World, inject: Inject, fault: Fault) -> None:
    injection = inject(fault, toxics_without_effect(world, ("upstream", "downstream")), MEMBER)
    with nothing_to_see():
        evidence = injection.proven()
    assert not evidence.took_effect
    assert "through it" in evidence.what


def test_links_that_stay_slow_are_not_healed(world: World, inject: Inject) -> None:
    stuck = with_links(world, remove_toxic=lambda *link: None)
    injection = inject(Latency(delay_ms=100), stuck, MEMBER)
    assert injection.proven().took_effect
    injection.undo()
    with nothing_to_see():
        evidence = injection.healed()
    assert not evidence.took_effect
    assert "slot 1 to broker 1: " in evidence.what


@pytest.mark.parametrize("fault", [CutConnections(), Refuse()], ids=["cut", "refuse"])
def test_a_proxy_that_stays_open_cuts_nothing(world: World, inject: Inject, fault: Fault) -> None:
    injection = inject(fault, with_links(world, set_enabled=lambda slot, broker, enabled: None), MEMBER)
    with nothing_to_see():
        evidence = injection.proven()
    assert not evidence.took_effect
    assert "slot 1 to broker 1: our own connection is up" in evidence.what


def test_connections_that_are_let_in_again_are_not_refused(world: World, inject: Inject) -> None:
    injection = inject(Refuse(), world, MEMBER)
    world.cluster.links.set_enabled(1, 2, True)
    with nothing_to_see():
        evidence = injection.proven()
    assert not evidence.took_effect
    assert "slot 1 to broker 2 accepts connections" in evidence.what


def test_a_proxy_that_stays_closed_is_not_healed_and_does_not_keep_the_others(world: World, inject: Inject) -> None:
    broken = {2}

    def enable(slot: int, broker: int, enabled: bool) -> None:
        if enabled and broker in broken:
            raise FaultError("the proxy hangs")
        world.cluster.links.set_enabled(slot, broker, enabled)

    injection = inject(Refuse(), with_links(world, set_enabled=enable), MEMBER)
    with pytest.raises(FaultError, match="1 links could not be opened: the proxy hangs"):
        injection.undo()
    with nothing_to_see():
        evidence = injection.healed()
    assert not evidence.took_effect
    assert evidence.data["answered"] == [[1, 1], [1, 3]]
    broken.clear()
    injection.undo()
    assert injection.healed().took_effect


@pytest.mark.parametrize("direction", ["to", "both"])
def test_a_hold_that_is_none_and_one_that_stays(world: World, inject: Inject, direction: str) -> None:
    nothing = inject(Hold(direction=direction), toxics_without_effect(world, ("upstream", "downstream")), MEMBER)
    with nothing_to_see():
        evidence = nothing.proven()
    assert not evidence.took_effect
    nothing.undo()
    stuck = inject(Hold(direction=direction), with_links(world, change_toxic=lambda *link: None), MEMBER)
    assert stuck.proven().took_effect
    stuck.undo()
    with nothing_to_see():
        evidence = stuck.healed()
    assert not evidence.took_effect
    assert "are not answered yet" in evidence.what


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
    injection = inject(BlackHole(direction=direction), toxics_without_effect(world, without), MEMBER)
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

    injection = inject(BlackHole(direction=direction), with_links(world, add_toxic=add), MEMBER)
    with nothing_to_see():
        evidence = injection.proven()
    injection.undo()
    assert not evidence.took_effect


def test_one_link_that_was_missed_is_no_black_hole(world: World, inject: Inject) -> None:
    real = world.cluster.links

    def add(slot: int, broker: int, kind: str, stream: str, attributes: Mapping[str, Any]) -> str:
        return "nowhere" if broker == 2 else str(real.add_toxic(slot, broker, kind, stream, attributes))

    injection = inject(BlackHole(direction="to"), with_links(world, add_toxic=add), MEMBER)
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

    injection = inject(BlackHole(direction="to"), with_links(world, remove_toxic=remove), MEMBER)
    with pytest.raises(FaultError, match="1 links could not be freed: the proxy hangs"):
        injection.undo()
    assert [bool(real.toxics(1, broker)) for broker in (1, 2, 3)] == [False, True, False]
    broken.clear()
    injection.undo()
    assert injection.healed().took_effect
