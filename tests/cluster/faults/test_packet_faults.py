"""Faults by the packet filter on a real cluster under a real group: the effect measured by somebody else than the
witness (TCP itself, and what brokers were asked), and what the witness says without it.
"""

from __future__ import annotations

import json
import math
import socket
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import replace
from threading import Barrier

import pytest

from cluster.killing import rules_of
from cluster.plans import topic
from cluster.worlds import (
    BROKER,
    LONG_S,
    MEMBER,
    MEMBERS_LINKS,
    OTHERS_LINKS,
    SILENT_S,
    Inject,
    World,
    connected,
    connections,
    healed,
    heartbeats,
    nothing_to_see,
    nowhere,
    pinged_s,
    requests_by,
    silent,
    steady,
    with_packets,
    with_rules,
)
from fencepost import Group, Scenario, at, past_session
from fencepost.clock import NS, eventually, now_ns
from fencepost.errors import ClusterError
from fencepost.evidence.brokers.kafka_protocol import probe
from fencepost.faults import BlackHole, DropPackets, LoseConnects, LosePackets
from fencepost.interfaces import Fault
from fencepost.interfaces.network import PacketLoss
from fencepost.network.packets import TRIAL, PacketFilter
from fencepost.plugin import Chaos
from fencepost.processes import reaper
from fencepost.processes.owner import ProcessOwner
from fencepost.targets import one_member
from fencepost.witnesses import raw_tcp_probe
from fencepost.witnesses.links import named
from fencepost.workloads import PollLoop

pytestmark = [pytest.mark.cluster, pytest.mark.usefixtures("packets_work")]
FAULTS = {
    "drop": DropPackets(),
    "drop to": DropPackets(direction="to"),
    "drop from": DropPackets(direction="from"),
    "lose": LosePackets(share=0.2),
    "lose connects": LoseConnects(),
}


def answered(link: socket.socket, within_s: float) -> bool:
    """Whether anything comes, for who just waits for it."""
    link.settimeout(within_s)
    try:
        return bool(link.recv(1 << 16))
    except TimeoutError:
        return False


@pytest.mark.parametrize("direction", ["to", "from", "both"])
def test_dropped_packets_arrive_when_it_heals_and_nobody_else_loses_any(
    world: World, inject: Inject, direction: str
) -> None:
    eventually(lambda: steady(world, 0) and steady(world, 1), LONG_S, "both members to heartbeat in peace", every_s=0.1)
    with ExitStack() as stack:
        mine = [stack.enter_context(connected(world, *link)) for link in MEMBERS_LINKS]
        injection = inject(DropPackets(direction=direction), world, MEMBER)
        proven = injection.proven()
        assert proven.took_effect, proven.what
        for link in mine:
            link.sendall(probe())
        assert not any(answered(link, SILENT_S) for link in mine)
        for where in MEMBERS_LINKS:
            with pytest.raises(TimeoutError):
                connected(world, *where)
        assert all(pinged_s(world, *link) < LONG_S for link in OTHERS_LINKS)
        assert silent(world, 1, beside=0) or direction == "from"
        healed(injection)
        assert all(answered(link, LONG_S) for link in mine)  # TCP sent again what was lost
    streams = {"to": {"upstream"}, "from": {"downstream"}}.get(direction, {"upstream", "downstream"})
    assert {(one["wire"], one["stream"]) for one in proven.data["links"]} == {
        (named(link), stream) for link in MEMBERS_LINKS for stream in streams
    }
    began_ns = time.time_ns()
    eventually(lambda: heartbeats(world, 1, began_ns), LONG_S, "the member to come back")


def test_answers_alone_are_dropped_and_requests_carried_out(world: World, inject: Inject) -> None:
    eventually(lambda: steady(world, 1), LONG_S, "the member to heartbeat in peace", every_s=0.1)
    since_ns = time.time_ns()
    injection = inject(DropPackets(direction="from"), world, MEMBER)
    assert injection.proven().took_effect
    eventually(
        lambda: any(one["start_ns"] > since_ns for one in requests_by(world, 1)), LONG_S, "a request of the cut member"
    )
    healed(injection)


def test_all_members_lose_the_packets_of_one_broker(world: World, inject: Inject) -> None:
    injection = inject(DropPackets(), world, BROKER)
    proven = injection.proven()
    assert proven.took_effect, proven.what
    for slot in (0, 1):
        with pytest.raises(TimeoutError):
            connected(world, slot, 3)
        assert pinged_s(world, slot, 1) < LONG_S
    healed(injection)


def test_who_is_connected_stays_so_and_who_connects_waits_in_vain(world: World, inject: Inject) -> None:
    eventually(lambda: steady(world, 1), LONG_S, "the member to heartbeat in peace", every_s=0.1)
    theirs = connections(world, 1)
    with connected(world, *MEMBERS_LINKS[0]) as mine:
        injection = inject(LoseConnects(), world, MEMBER)
        proven, since_ns = injection.proven(), time.time_ns()
        assert proven.took_effect, proven.what
        for where in MEMBERS_LINKS:
            with pytest.raises(TimeoutError):
                connected(world, *where)
        mine.sendall(probe())
        assert answered(mine, LONG_S)
    assert all(pinged_s(world, *link) < LONG_S for link in OTHERS_LINKS)
    eventually(lambda: heartbeats(world, 1, since_ns) > 3, LONG_S, "the member to go on")
    assert theirs <= connections(world, 1)
    healed(injection)
    assert all(pinged_s(world, *link) < LONG_S for link in MEMBERS_LINKS)


def let_in(world: World, slot: int, broker: int, attempts: int) -> int:
    """How many of so many attempts to connect succeed before TCP asks again, after a second."""
    with ExitStack() as stack:
        begun_ns = now_ns()
        links = [stack.enter_context(socket.socket()) for _ in range(attempts)]
        for link in links:
            link.setblocking(False)
            link.connect_ex(world.cluster.links.endpoint(slot, broker))
        eventually(lambda: now_ns() - begun_ns > SILENT_S * NS, LONG_S, "all that get in at once")
        return sum(has_peer(link) for link in links)


def has_peer(link: socket.socket) -> bool:
    try:
        return bool(link.getpeername())
    except OSError:
        return False


@pytest.mark.parametrize("share", [0.2, 0.6])
def test_the_share_of_lost_packets_is_what_connecting_clients_see(world: World, inject: Inject, share: float) -> None:
    attempts = 150
    chance = 4 * math.sqrt(attempts * share * (1 - share))
    injection = inject(LosePackets(share=share, direction="to", brokers=(1,)), world, MEMBER)
    proven = injection.proven()
    assert proven.took_effect, proven.what
    assert abs(attempts - let_in(world, 1, 1, attempts) - share * attempts) <= chance
    assert let_in(world, 1, 2, attempts) == let_in(world, 0, 1, attempts) == attempts
    healed(injection)
    assert let_in(world, 1, 1, attempts) == attempts


@pytest.mark.parametrize("fault", FAULTS.values(), ids=FAULTS)
def test_what_is_proven_is_undone_twice_and_healed(world: World, inject: Inject, fault: Fault) -> None:
    injection = inject(fault, world, MEMBER)
    proven = injection.proven()
    assert proven.took_effect, proven.what
    assert all(one["counted"] >= one["lost"] > one["control_lost"] == 0 for one in proven.data["links"])
    healed(injection)
    assert not world.cluster.packets.lost()


# --- the effect taken away ---------------------------------------------------------------------------------------


def lost(world: World, slot: int, broker: int) -> PacketLoss:
    return PacketLoss(named((slot, broker)), world.cluster.links.endpoint(slot, broker), "upstream")


@pytest.mark.parametrize("fault", FAULTS.values(), ids=FAULTS)
def test_a_rule_that_meets_nothing_loses_nothing(world: World, inject: Inject, fault: Fault) -> None:
    injection = inject(fault, with_rules(world, nowhere), MEMBER)
    with nothing_to_see():
        evidence = injection.proven()
    assert not evidence.took_effect
    assert "slot 1 to broker 1, " in evidence.what
    assert "stream: 0 of " in evidence.what
    healed(injection)


OTHER_RULES = {
    "one link is missed": (
        DropPackets(),
        lambda loss: nowhere(loss) if loss.wire == named((1, 2)) else loss,
        "0 of 20",
    ),
    "the other direction": (DropPackets(direction="to"), lambda loss: replace(loss, stream="downstream"), "0 of 20"),
    "one direction of two": (DropPackets(), lambda loss: replace(loss, stream="upstream"), "downstream: 0 of 20"),
    "connects only": (DropPackets(), lambda loss: replace(loss, connects=True), "0 of 20"),
    "some only": (DropPackets(), lambda loss: replace(loss, share=0.5), "of 20"),
    "all": (LosePackets(share=0.5), lambda loss: replace(loss, share=1.0), "64 of 64"),
    "too many": (LosePackets(share=0.2), lambda loss: replace(loss, share=0.5), "of 256"),
    "too few": (LosePackets(share=0.5), lambda loss: replace(loss, share=0.1), "of 64"),
    "not connects only": (
        LoseConnects(),
        lambda loss: replace(loss, connects=False),
        "20 of 20 packets were lost that",
    ),
}


@pytest.mark.parametrize(("fault", "change", "reported"), OTHER_RULES.values(), ids=OTHER_RULES)
def test_another_rule_is_not_this_fault(
    world: World, inject: Inject, fault: Fault, change: Callable[[PacketLoss], PacketLoss], reported: str
) -> None:
    injection = inject(fault, with_rules(world, change), MEMBER)
    with nothing_to_see():
        evidence = injection.proven()
    assert not evidence.took_effect
    assert reported in evidence.what
    healed(injection)


def test_what_somebody_elses_rule_loses_is_not_proven(world: World, inject: Inject, other_owner: ProcessOwner) -> None:
    theirs = PacketFilter(other_owner)
    injection = inject(DropPackets(direction="to"), with_rules(world, nowhere), MEMBER)
    names = theirs.lose([lost(world, *link) for link in MEMBERS_LINKS])
    with nothing_to_see():
        evidence = injection.proven()
    theirs.restore(names)
    assert not evidence.took_effect
    assert "the rule counted only 0 of 20 lost packets" in evidence.what


def test_a_rule_that_stays_is_not_healed(world: World, inject: Inject) -> None:
    injection = inject(LoseConnects(), with_packets(world, restore=lambda names: None), MEMBER)
    assert injection.proven().took_effect
    injection.undo()
    with nothing_to_see():
        evidence = injection.healed()
    world.cluster.packets.restore(world.cluster.packets.lost())
    assert not evidence.took_effect
    assert "3 rules are still there" in evidence.what


def test_links_that_do_not_answer_without_rules_are_not_healed(
    world: World, inject: Inject, other_owner: ProcessOwner
) -> None:
    injection = inject(DropPackets(), world, MEMBER)
    assert injection.proven().took_effect
    theirs = PacketFilter(other_owner)
    theirs.lose([lost(world, 1, 2)])
    injection.undo()
    with nothing_to_see():
        evidence = injection.healed()
    theirs.restore(theirs.lost())
    assert not evidence.took_effect
    assert "slot 1 to broker 2 does not answer" in evidence.what


# --- the packet filter itself ------------------------------------------------------------------------------------


@pytest.fixture
def other_owner() -> Iterator[ProcessOwner]:
    with ProcessOwner.open() as owner:
        yield owner


def test_rules_are_put_and_taken_away_all_at_once_or_none(other_owner: ProcessOwner) -> None:
    rules, loss = PacketFilter(other_owner), PacketLoss("a trial", TRIAL, "upstream")
    assert rules.lost() == {}
    rules.restore(["loss-1"])
    first = rules.lose([loss, replace(loss, stream="downstream", share=0.25)])
    second = rules.lose([replace(loss, connects=True)])
    assert rules.lost() == dict.fromkeys((*first, *second), 0)
    with pytest.raises(ClusterError, match=r"iptables refused \(.*bad value"):
        rules.lose([loss, replace(loss, share=-1)])
    rules.restore([*first, "loss-0"])
    assert rules.lost() == dict.fromkeys(second, 0)
    rules.restore(first)
    rules.restore(second)
    assert rules.lost() == {}


def test_two_filters_of_one_owner_lose_no_packet_twice_and_have_their_own_rules(other_owner: ProcessOwner) -> None:
    loss = PacketLoss("a trial", TRIAL, "upstream", connects=True)
    first, second = PacketFilter(other_owner), PacketFilter(other_owner)
    [whole] = first.lose([loss])
    [other] = second.lose([replace(loss, endpoint=(TRIAL[0], TRIAL[1] + 1))])
    chain = reaper.chain_of(other_owner.token)
    assert [rule for rule in rules_of(other_owner.token) if rule.endswith(f"-j {chain}")] == [
        f"-A OUTPUT -p tcp -j {chain}"
    ]
    assert raw_tcp_probe.lost(TRIAL, "upstream", 25, connects=True).lost == 25
    assert (dict(first.lost()), dict(second.lost())) == ({whole: 25}, {other: 0})
    first.restore([whole, other])
    assert (dict(first.lost()), dict(second.lost())) == ({}, {other: 0})
    share = 0.2
    second.lose([replace(loss, share=share)])
    sent = 2_000  # of which twice would lose 36 %
    lost = raw_tcp_probe.lost(TRIAL, "upstream", sent, connects=True).lost / sent
    assert abs(lost - share) < 6 * math.sqrt(share * (1 - share) / sent), lost
    other_owner.close()
    assert rules_of(other_owner.token) == []


def test_who_sends_at_the_same_time_counts_its_own_packets_only() -> None:
    together = Barrier(4)

    def tried(_: int) -> raw_tcp_probe.SegmentCounts:
        together.wait(LONG_S)
        return raw_tcp_probe.lost(TRIAL, "upstream", 25)  # all of them fit into what the kernel keeps for each

    def all_arrive() -> bool:
        counted = list(threads.map(tried, range(4)))
        assert min(min(one) for one in counted) == 0, "more arrived than were sent"
        return counted == [(25, 0, 0)] * 4

    with ThreadPoolExecutor(4) as threads:
        eventually(all_arrive, LONG_S, "every packet of four that send at once")  # a busy kernel drops some


@pytest.mark.spark
@pytest.mark.parametrize("network", ["packets", "best"])
def test_a_black_hole_is_made_of_packets_where_the_scenario_wants_it(chaos: Chaos, network: str) -> None:
    asked = Scenario(
        name=f"by {network}",
        topics=[topic("orders", 4)],
        brokers=1,
        group=Group(members=2, config={"session.timeout.ms": 6000}),
        workload=PollLoop(rate_hz=500),
        schedule=[at(1, BlackHole(), one_member(), heal_after=past_session(1.2), expect="fenced")],
        network=network,
    )
    run = chaos.run(asked)
    run.must_keep_its_promises()
    reported = json.loads((run.folder / "scenario.json").read_text())["network"]
    assert (reported["wanted"], reported["used"]) == (network, "packets")
    [step] = json.loads((run.folder / "plan.json").read_text())["steps"]
    assert step["fault"]["type"] == "drop_packets"
