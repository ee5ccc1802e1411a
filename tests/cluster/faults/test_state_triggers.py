"""Faults that wait for a protocol state meet it, or say that they came too late: the whole history tells afterwards."""

from __future__ import annotations

import json

import pyarrow.parquet as pq
import pytest

from fencepost import Group, Scenario, Topic, at, past_session, until, when
from fencepost.clusters.local import ABILITIES
from fencepost.faults import Bounce, CutConnections, Hold, Kill, MoveCoordinator, Pause, RemoveMember
from fencepost.model import Validity, serialization
from fencepost.repeat import coverage, replay
from fencepost.schedule.swarm import swarm
from fencepost.states import commit_in_flight, coordinator_loading, fenced, joining, rebalanced, revoking
from fencepost.targets import coordinator, member
from fencepost.workloads import PollLoop

pytestmark = [pytest.mark.cluster, pytest.mark.spark]

KINDS = {"revoking": "revoked", "commit_in_flight": "commit"}


def scenario(protocol, *schedule, kafka=""):
    return Scenario(
        name=f"states, {protocol}",
        topics=[Topic("orders", partitions=6)],
        group=Group(members=3, protocol=protocol, config={"session.timeout.ms": 6000}),
        workload=PollLoop(rate_hz=1000, commit_every_ms=50),
        schedule=schedule,
        chaos_s=120,
        kafka=kafka,
    )


def told(run, kind):
    """The details of the events of this kind, by step, with their times."""
    rows = pq.read_table(run.folder / "history" / "events.parquet").to_pylist()
    details = [{**json.loads(row["detail"]), **row} for row in rows if row["kind"] == kind]
    return {detail["step"]: detail for detail in details if "step" in detail}


def was_so(run, fault):
    """Whether the member whose callback or commit triggered a fault was still in it when the fault was there."""
    rows = pq.read_table(run.folder / "history" / "events.parquet").to_pylist()
    seen = fault["when"]
    [ended_ns] = {
        row["end_ns"]
        for row in rows
        if (row["kind"], row["begin_ns"]) == (KINDS[seen["state"]], seen["since_ns"])
        and row["actor"] in fault["members"]
    }
    return ended_ns == 0 or ended_ns >= fault["injected_ns"]


def joined(run):
    """When brokers answered a JoinGroup with a generation: then all had joined."""
    path = run.folder / "history" / "coordinator" / "requests.jsonl"
    requests = [json.loads(line) for line in path.read_text().splitlines()]
    return [r["end_ns"] for r in requests if r["api"] == "JOIN_GROUP" and not r["error"]]


@pytest.mark.parametrize("kafka", ["", "3.9.1"])
def test_faults_meet_the_states_of_a_classic_group(chaos, kafka):
    """A kill brings each state about, as it is proven at once: nobody looks for states while others are proven."""
    run = chaos.run(
        scenario(
            "eager",
            when(commit_in_flight(), Hold(), heal_after=1),
            at(3, Kill(), member(0), heal_after=past_session(1.5)),
            when(revoking(), Pause(), at_s=4, heal_after=1),
            at(16, Kill(), member(1), heal_after=past_session(1.5)),
            when(joining(), MoveCoordinator(), at_s=17),
            at(30, Kill(), coordinator(), heal_after=4),
            when(coordinator_loading(), CutConnections(), member(2), at_s=30),
            kafka=kafka,
        )
    )
    assert run.verdict.validity is Validity.VALID, run.verdict
    faults = told(run, "fault")
    assert set(faults) == set(range(7))
    triggered = {fault["when"]["state"]: fault for fault in faults.values() if "when" in fault}
    assert set(triggered) == {"commit_in_flight", "revoking", "joining", "coordinator_loading"}
    for state, fault in triggered.items():
        assert 0 <= fault["begin_ns"] - fault["when"]["since_ns"] < 5e9, fault
        assert fault["when"]["met"] <= fault["states"][state]
    for state in KINDS:
        assert was_so(run, triggered[state]) or not triggered[state]["when"]["met"], triggered[state]
    assert any(fault["when"]["met"] for fault in triggered.values()), triggered
    moved = triggered["joining"]
    early = [at_ns for at_ns in joined(run) if moved["when"]["since_ns"] + 2e6 < at_ns < moved["injected_ns"] - 2e6]
    assert not (moved["when"]["met"] and early)


def test_a_coordinator_moves_while_a_commit_is_in_flight_and_dies_while_the_next_one_loads(chaos):
    """A coordinator that stands still answers no commit, until another one has taken over."""
    run = chaos.run(
        scenario(
            "eager",
            at(0, Pause(), coordinator(), heal_after=2),
            when(commit_in_flight(), MoveCoordinator(), at_s=0.1),
            at(8, Kill(), coordinator(), heal_after=12),
            when(coordinator_loading(), Kill(), coordinator(), at_s=8, heal_after=4),
        )
    )
    assert run.verdict.validity is Validity.VALID, run.verdict
    faults = told(run, "fault")
    triggered = {fault["when"]["state"]: fault for fault in faults.values() if "when" in fault}
    assert set(triggered) == {"commit_in_flight", "coordinator_loading"}
    for state, fault in triggered.items():
        assert fault["when"]["met"] <= fault["states"][state]
    assert triggered["commit_in_flight"]["when"]["met"]
    [first, second] = (faults[step]["brokers"] for step in (2, 3))
    assert len({*first, *second}) == 2


@pytest.mark.parametrize(
    ("protocol", "kafka"),
    [
        ("consumer", ""),
        ("cooperative", ""),
        ("cooperative", "3.9.1"),
    ],
)
def test_a_fault_lasts_until_its_target_is_fenced_and_no_longer(chaos, protocol, kafka):
    run = chaos.run(
        scenario(
            protocol,
            at(1, Pause(), member(1), heal_after=until(fenced(), 60), expect="fenced"),
            at(20, Bounce(), member(2), heal_after=until(rebalanced(), past_session(5))),
            kafka=kafka,
        )
    )
    assert run.verdict.validity is Validity.VALID, run.verdict
    begun, ended = told(run, "fault"), told(run, "healed")
    paused_s = (ended[0]["begin_ns"] - begun[0]["end_ns"]) / 1e9
    assert 4 < paused_s < 30  # a session of 6 s, whose last heartbeat was up to a second before
    for step, state in ((0, "fenced"), (1, "rebalanced")):
        assert ended[step]["until"]["state"] == state
        assert begun[step]["begin_ns"] - 1e6 <= ended[step]["until"]["since_ns"] <= ended[step]["begin_ns"] + 1e6


def test_a_swarm_that_is_steered_meets_what_no_run_has_met(chaos):
    """Of the states only one that lasts is left, and some step waits for it beside one that brings it about."""
    parts = [at(0, fault) for fault in (RemoveMember(), CutConnections(), MoveCoordinator(), Pause())]
    asked = scenario("eager", swarm(20, *parts, until_s=28))
    every = asked.schedule[0].reachable_cells(asked.inventory(), ABILITIES)
    done = {(fault, state) for fault, states in every.items() for state in states if state != "joining"}
    steered = coverage.aim_at_uncovered(asked, done, ABILITIES)
    seed = next(number for number in range(1000) if len(aimed(steered.plan(number))) > 2)
    run = chaos.run(steered, seed=seed)
    assert run.verdict.validity is Validity.VALID, run.verdict
    again, plan = replay.load(run.folder)
    assert again.plan(seed) == plan == steered.plan(seed)
    met = {
        (fault["fault"], state) for fault in replay.fired(run.folder) for state, was in fault["states"].items() if was
    } & aimed(plan)
    assert met
    assert met <= coverage.covered_cells(run.folder.parent, "eager")
    left = coverage.aim_at_uncovered(asked, done | met, ABILITIES).schedule[0].towards
    assert not any(state in left.get(fault, ()) for fault, state in met)


def aimed(plan):
    """What its steps wait for, by their faults."""
    return {(serialization.name_of(step.fault), serialization.name_of(step.when)) for step in plan.steps if step.when}
