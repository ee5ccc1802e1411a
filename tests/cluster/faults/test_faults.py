"""Faults of processes and of coordinators on a real cluster under a real group: the effect measured, and what the
witness says without it. ``test_link_faults`` has those between members and brokers.
"""

from __future__ import annotations

import signal
from contextlib import nullcontext
from dataclasses import replace

import psutil
import pytest

from cluster.worlds import (
    BROKER,
    LONG_S,
    MEMBER,
    ON_CLUSTER,
    Inject,
    Instead,
    World,
    deaf,
    ends_and_begins_anew,
    node,
    nothing_to_see,
)
from fencepost.clock import eventually
from fencepost.errors import ClusterError
from fencepost.faults import Bounce, Kill, MoveCoordinator, Pause
from fencepost.interfaces import Fault, Target
from fencepost.model import TopicPartition
from fencepost.witnesses.processes import ProcessIdentity

pytestmark = ON_CLUSTER

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
    ends_and_begins_anew(inject, world, target, fault, codes)


def test_a_broker_is_healed_of_its_bounce_once_it_is_in_sync(world: World, inject: Inject) -> None:
    offsets = "__consumer_offsets"
    injection = inject(Bounce(in_sync=True), world, BROKER)
    assert injection.proven().took_effect
    gone = lambda: any(3 not in isr for isr in world.cluster.admin.in_sync_replicas(offsets).values())  # noqa: E731
    eventually(gone, LONG_S, "the others to be in sync without it")
    injection.undo()
    healed = injection.healed()
    assert healed.took_effect, healed.what
    assert all(3 in isr for isr in world.cluster.admin.in_sync_replicas(offsets).values())


def test_a_moved_coordinator_is_led_and_found_elsewhere(world: World, inject: Inject) -> None:
    before = world.cluster.admin.coordinator(world.group)
    proven = inject(MoveCoordinator(), world, Target()).proven()
    assert proven.took_effect, proven.what
    assert proven.data["from_broker"] == before
    assert proven.data["to_broker"] == world.cluster.admin.coordinator(world.group) != before
    assert proven.data["seconds"] > 0


def test_moves_visit_every_replica(world: World, inject: Inject) -> None:
    seen = []
    for _ in range(3):
        proven = inject(MoveCoordinator(), world, Target()).proven()
        assert proven.took_effect, proven.what
        seen.append(proven.data["to_broker"])
    assert sorted(seen) == [1, 2, 3]


# --- the effect taken away ---------------------------------------------------------------------------------------


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


def test_of_pauses_that_overlap_the_last_one_to_end_continues_the_process(world: World, inject: Inject) -> None:
    long, short = (inject(Pause(), world, MEMBER) for _ in range(2))
    assert long.proven().took_effect
    assert short.proven().took_effect
    for _ in range(2):  # undone twice is undone
        short.undo()
        assert "is still held by another pause" in short.healed().what
        assert ProcessIdentity.of(node(world, MEMBER)).state() == "stopped"
    long.undo()
    assert "runs again" in long.healed().what


def test_a_member_without_a_process_cannot_be_hit(world: World, inject: Inject) -> None:
    nobody = replace(world, members=[Instead(world.members[0], pid=None, signal=lambda number: None)])
    for fault in (Pause(), Kill(), Bounce()):
        with nothing_to_see():
            evidence = fault.inject(nobody, Target(members=(0,))).proven()
        assert not evidence.took_effect
        assert "member-0" in evidence.what


def test_a_broker_that_is_never_in_sync_again_is_not_healed(world: World, inject: Inject) -> None:
    admin = Instead(world.cluster.admin, in_sync_replicas=lambda topic: {})
    injection = inject(Bounce(in_sync=True), replace(world, cluster=Instead(world.cluster, admin=admin)), BROKER)
    assert injection.proven().took_effect
    injection.undo()
    with nothing_to_see():
        evidence = injection.healed()
    assert not evidence.took_effect
    assert "not in sync: " in evidence.what


def test_an_election_that_was_not_made_is_no_move(world: World, inject: Inject) -> None:
    admin = Instead(world.cluster.admin, move_leader=lambda tp, to_broker: None)
    stays = inject(MoveCoordinator(), replace(world, cluster=Instead(world.cluster, admin=admin)), Target())
    with nothing_to_see():
        evidence = stays.proven()
    assert not evidence.took_effect
    assert "not broker" in evidence.what


@pytest.mark.parametrize("refusals", [1, 1000])
def test_a_coordinator_that_is_refused_is_asked_for_again(world: World, inject: Inject, refusals: int) -> None:
    """As where the next broker stood still until it was no longer in sync."""
    asked = []

    def refused(tp: TopicPartition, to_broker: int) -> None:
        asked.append(to_broker)
        if len(asked) <= refusals:
            raise ClusterError("the preferred leader is not available")
        world.cluster.admin.move_leader(tp, to_broker)

    admin = Instead(world.cluster.admin, move_leader=refused)
    moves = inject(MoveCoordinator(), replace(world, cluster=Instead(world.cluster, admin=admin)), Target())
    with nothing_to_see() if refusals > 1 else nullcontext():
        evidence = moves.proven()
    assert evidence.took_effect == (refusals == 1), evidence.what
    assert ("is not available" in evidence.what) == (refusals > 1)
    assert set(asked) == {evidence.data["to_broker"]}
    assert len(asked) == 2 or refusals > 1


def test_a_leader_that_moved_without_the_coordinator_is_no_move(world: World, inject: Inject) -> None:
    before = world.cluster.admin.coordinator(world.group)
    admin = Instead(world.cluster.admin, coordinator=lambda group: before)
    half = inject(MoveCoordinator(), replace(world, cluster=Instead(world.cluster, admin=admin)), Target())
    leads = lambda: world.cluster.admin.coordinator(world.group) not in (-1, before)  # noqa: E731
    eventually(leads, LONG_S, "the leader to move")
    with nothing_to_see():
        evidence = half.proven()
    assert not evidence.took_effect
    assert evidence.data["leader"] != before
