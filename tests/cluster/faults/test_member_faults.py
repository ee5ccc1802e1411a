"""Faults of the member family on a real cluster under a real group: slow handlers, members that come, go and are
replaced. The effect measured, and what the witness says without it. ``test_faults`` has pause, kill and bounce.
"""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import psutil
import pytest

from cluster.plans import topic
from cluster.worlds import (
    LONG_S,
    MEMBER,
    ON_CLUSTER,
    Inject,
    Instead,
    World,
    deaf,
    heartbeats,
    node,
    nothing_to_see,
    requests_by,
)
from fencepost.clock import NS, eventually, now_ns
from fencepost.faults import Pause, ScaleIn, ScaleOut, Stall
from fencepost.interfaces import Target
from fencepost.model.settings import PROTOCOLS
from fencepost.scenario.scenario import Group, Scenario
from fencepost.schedule.combinators import rolling_deploy
from fencepost.schedule.entries import at
from fencepost.targets import coordinator, idle, members, one_member
from fencepost.workloads import PollLoop
from fencepost_member.recording.events import read

pytestmark = ON_CLUSTER

STALL_S = 2.0
TIMES = {"session.timeout.ms": 6000, "max.poll.interval.ms": 7000}


def test_a_stalled_member_handles_nothing_while_its_client_lives_on(world: World, inject: Inject) -> None:
    member = node(world, MEMBER)
    begun_ns = now_ns()
    injection = inject(Stall(), world, MEMBER)
    proven = injection.proven()
    assert proven.took_effect, proven.what
    assert "waits with offset" in proven.what
    assert psutil.Process(member.pid).status() != psutil.STATUS_STOPPED
    since_ns = time.time_ns()  # as the brokers' logs tell it
    eventually(lambda: time.time_ns() - since_ns > STALL_S * NS, LONG_S, "the stall to last")
    eventually(lambda: heartbeats(world, 1, since_ns) >= 3, LONG_S, "the client to send heartbeats meanwhile")
    assert {one["api"] for one in requests_by(world, 1) if one["start_ns"] > since_ns} == {"HEARTBEAT"}
    injection.undo()
    injection.undo()
    healed = injection.healed()
    assert healed.took_effect, healed.what
    assert STALL_S <= healed.data["member-1"]["stalled_s"] <= (now_ns() - begun_ns) / NS
    (stall,) = (e for e in member.reported("stall") if e["begin_ns"] > begun_ns)
    assert stall["partitions"][0][2] >= 0


def test_a_member_that_was_never_told_is_not_stalled(world: World, inject: Inject) -> None:
    with nothing_to_see():
        evidence = inject(Stall(), deaf(world), MEMBER).proven()
    assert not evidence.took_effect
    assert "does not wait" in evidence.what


def test_a_member_that_gets_no_records_is_not_stalled(world: World, inject: Inject) -> None:
    member = world.members[1]
    silent = replace(world, members=[world.members[0], Instead(member, reported=lambda kind: ())])
    with nothing_to_see():
        evidence = Stall().inject(silent, MEMBER).proven()
    assert not evidence.took_effect


def test_a_stopped_member_is_not_stalled_before_it_runs(world: World, inject: Inject) -> None:
    node(world, MEMBER).signal(signal.SIGSTOP)
    injection = inject(Stall(), world, MEMBER)
    with nothing_to_see():
        evidence = injection.proven()
    node(world, MEMBER).signal(signal.SIGCONT)
    assert not evidence.took_effect
    assert "is stopped" in evidence.what
    assert injection.proven().took_effect
    injection.undo()
    assert injection.healed().took_effect


def test_a_stall_that_goes_on_is_not_healed(world: World, inject: Inject) -> None:
    only_begins = deaf(world, lambda number: number if number == signal.SIGUSR1 else None)
    injection = inject(Stall(), only_begins, MEMBER)
    assert injection.proven().took_effect
    injection.undo()
    with nothing_to_see():
        evidence = injection.healed()
    node(world, MEMBER).signal(signal.SIGUSR2)
    assert not evidence.took_effect
    assert "still waits" in evidence.what
    assert injection.healed().took_effect


def test_a_member_that_dies_in_its_stall_is_healed(world: World, inject: Inject) -> None:
    injection = inject(Stall(), world, MEMBER)
    assert injection.proven().took_effect
    node(world, MEMBER).signal(signal.SIGKILL)
    node(world, MEMBER).wait_ended(LONG_S)
    injection.undo()
    assert injection.healed().took_effect
    node(world, MEMBER).start()
    assert not node(world, MEMBER).reported("stall")


def test_a_target_without_a_process_is_not_stalled(world: World) -> None:
    nobody = replace(world, members=[Instead(world.members[0], pid=None, signal=lambda number: None)])
    with nothing_to_see():
        evidence = Stall().inject(nobody, Target(members=(0,))).proven()
    assert not evidence.took_effect


IDLE = Target(members=(2, 3))


@pytest.fixture
def nobody_more(world: World) -> Iterator[None]:
    """Two members own everything, before and after."""
    yield
    for member in world.members[2:]:
        member.signal(signal.SIGKILL)
        if member.life:
            member.wait_ended(LONG_S)
    for member in world.members[:2]:
        member.start()
    eventually(lambda: owners(world) == {0, 1}, LONG_S, "the two members to own everything again")


def owners(world: World) -> set[int]:
    """Who owns partitions, when each has one owner."""
    for member in world.members:
        member.reported("assigned")
    owned = [tp for member in world.members for tp in member.owned]
    return {m.index for m in world.members if m.owned} if len(owned) == len(set(owned)) == 4 else set()


@pytest.mark.usefixtures("nobody_more")
def test_members_that_join_at_once_get_partitions_and_those_that_leave_give_them_back(
    world: World, inject: Inject
) -> None:
    proven = inject(ScaleOut(joined_within_s=LONG_S), world, IDLE).proven()
    assert proven.took_effect, proven.what
    assert "member-2" in proven.what
    assert "member-3" in proven.what
    assert len(proven.data["assigned_s"]) == 2
    eventually(lambda: owners(world) == {0, 1, 2, 3}, LONG_S, "all four to own a partition")
    left = inject(ScaleIn(), world, IDLE)
    proven = left.proven()
    assert proven.took_effect, proven.what
    assert proven.data["exit_codes"] == {"member-2": 0, "member-3": 0}
    assert all(world.members[m].reported("closed") for m in IDLE.members)
    eventually(lambda: owners(world) == {0, 1}, LONG_S, "the first two to own everything again")
    left.undo()
    assert all(world.members[m].pid is None for m in IDLE.members)


@pytest.mark.usefixtures("nobody_more")
def test_who_joins_later_is_only_waited_for_when_asked(world: World, inject: Inject) -> None:
    mute = replace(world, members=[Instead(m, reported=but(m, "assigned")) for m in world.members])
    assert inject(ScaleOut(), mute, IDLE).proven().took_effect
    with nothing_to_see():
        evidence = ScaleOut(joined_within_s=1).inject(mute, IDLE).proven()
    assert not evidence.took_effect
    assert "member-2 is not assigned yet" in evidence.what


def but(member: Any, silent: str) -> Callable[[str], Any]:
    return lambda kind: () if kind == silent else member.reported(kind)


def test_a_member_that_was_not_started_is_no_scale_out(world: World, inject: Inject) -> None:
    lazy = replace(world, members=[Instead(m, launch=lambda: None) for m in world.members])
    with nothing_to_see():
        evidence = inject(ScaleOut(), lazy, IDLE).proven()
    assert not evidence.took_effect
    assert "member-2 has no process" in evidence.what
    assert "member-3 is not started yet" in evidence.what


@pytest.mark.usefixtures("nobody_more")
def test_a_member_that_was_not_asked_to_leave_is_no_scale_in_and_is_killed(world: World, inject: Inject) -> None:
    unasked = deaf(world, lambda number: None if number == signal.SIGTERM else number)
    with nothing_to_see():
        evidence = inject(ScaleIn(), unasked, MEMBER).proven()
    assert not evidence.took_effect
    assert "member-1" in evidence.what
    assert node(world, MEMBER).pid is None


@pytest.mark.usefixtures("nobody_more")
def test_a_member_that_was_killed_did_not_leave(world: World, inject: Inject) -> None:
    injection = inject(ScaleIn(), deaf(world, lambda number: signal.SIGKILL), MEMBER)
    eventually(lambda: node(world, MEMBER).pid is None, LONG_S, "the member to end")
    with nothing_to_see():
        evidence = injection.proven()
    assert not evidence.took_effect
    assert "ended with exit code -9" in evidence.what


@pytest.mark.spark
@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_nobody_is_accused_when_members_stall_come_go_and_are_replaced(chaos: Any, protocol: str) -> None:
    run = chaos.run(
        Scenario(
            name=f"members stall, come, go and are replaced, {protocol}",
            topics=[topic("orders", 6)],
            brokers=1,
            group=Group(members=3, spare=2, protocol=protocol, config=TIMES),
            workload=PollLoop(rate_hz=1000, batch=100),
            schedule=[
                at(1, Stall(), one_member(), heal_after=10, expect="fenced"),
                at(13, ScaleOut(), idle(2), expect="rebalanced"),
                at(17, ScaleIn(), members((3, 4)), expect="rebalanced"),
                rolling_deploy(25, start_first=True),
            ],
        )
    )
    run.must_keep_its_promises()
    verdict = run.verdict
    assert len(verdict.faults) == 9
    (stalled,) = verdict.faults[0]["members"]
    reported = read(run.folder / "history" / "events" / f"{stalled}.jsonl").events
    assert "LOCAL_MAX_POLL_EXCEEDED" in [e["error"] for e in reported if e["kind"] == "error"]
    (stall,) = {e["id"]: e for e in reported if e["kind"] == "stall"}.values()
    assert (stall["end_ns"] - stall["begin_ns"]) / NS >= 10


@pytest.mark.spark
def test_a_coordinator_goes_on_in_time_while_a_member_that_ends_waits_for_it(chaos: Any) -> None:
    """That a member ended is proven once it has committed, and for that the coordinator must go on."""
    run = chaos.run(
        Scenario(
            name="a member ends while the coordinator stands still",
            topics=[topic("orders", 6)],
            group=Group(members=3, protocol="eager", config=TIMES),
            workload=PollLoop(rate_hz=1000, batch=100),
            schedule=[at(1, Pause(), coordinator(), heal_after=4), at(2, ScaleIn(), one_member())],
        )
    )
    run.must_keep_its_promises()
    pause, ended = run.verdict.faults
    assert ended["took_effect"]
    assert 4 <= pause["healed_s"] - pause["proven_s"] < 8
