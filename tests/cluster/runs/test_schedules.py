"""Entries that are made of others are performed as they are meant: told by the history, who was there and when."""

from __future__ import annotations

import json
from collections import defaultdict
from itertools import pairwise
from typing import Any, NamedTuple

import pyarrow.parquet as pq
import pytest

from fencepost import Group, Scenario, Topic, flap, rolling_bounce, rolling_deploy
from fencepost.faults import Refuse
from fencepost.history import EventKind
from fencepost.plugin import Chaos
from fencepost.repeat.replay import EVENTS
from fencepost.targets import member
from fencepost.workloads import PollLoop

pytestmark = [pytest.mark.cluster, pytest.mark.spark]


class Life(NamedTuple):
    """One process of a member, and when it was first given partitions; 0: never."""

    member: int
    launched_ns: int
    ended_ns: int
    assigned_ns: int
    how: str


def lives(events: list[dict[str, Any]]) -> list[Life]:
    """Of members, in the order in which they began."""
    found: dict[str, dict[str, Any]] = defaultdict(dict)
    for event in events:
        if event["kind"] in (EventKind.LAUNCHED, EventKind.ENDED, EventKind.ASSIGNED):
            found[event["actor"]].setdefault(event["kind"], event)
    reported = [
        Life(
            json.loads(of[EventKind.LAUNCHED]["detail"])["member"],
            of[EventKind.LAUNCHED]["begin_ns"],
            of[EventKind.ENDED]["begin_ns"],
            of[EventKind.ASSIGNED]["end_ns"] if EventKind.ASSIGNED in of else 0,
            json.loads(of[EventKind.ENDED]["detail"])["how"],
        )
        for actor, of in found.items()
        if actor.startswith("member")
    ]
    return sorted(reported, key=lambda life: life.launched_ns)


def test_members_and_brokers_are_replaced_one_after_the_other_and_what_flaps_is_on_and_off(chaos: Chaos) -> None:
    scenario = Scenario(
        name="in turns",
        topics=[Topic("orders", partitions=6)],
        group=Group(members=2, spare=1, config={"session.timeout.ms": 6000, "heartbeat.interval.ms": 500}),
        workload=PollLoop(rate_hz=500),
        schedule=[
            rolling_deploy(1, down_s=1),
            rolling_deploy(7, start_first=True),
            flap(3, Refuse(), member(0), at_s=18, until_s=26, heal_after=1),
            rolling_bounce(30, down_s=1),
        ],
    )
    run = chaos.run(scenario)
    run.must_keep_its_promises()
    faults = run.verdict.faults
    reported = [(fault["fault"], fault["target"], fault["begun_s"], fault["healed_s"]) for fault in faults]
    found = lives(pq.read_table(run.folder / EVENTS).to_pylist())

    assert [life.member for life in found] == [0, 1, 0, 1, 2, 0]
    old, other, back, other_back, new, newer = found
    assert all(life.how == "closed" for life in (old, other, back, other_back))
    # Stop-first: who is replaced is gone before its successor begins, and the other one is there meanwhile.
    assert old.ended_ns < back.launched_ns < other.ended_ns < other_back.launched_ns
    # Start-first: who comes has its partitions before the old one goes, and takes the place that became free.
    assert other_back.launched_ns < new.launched_ns < new.assigned_ns < back.ended_ns
    assert back.ended_ns < newer.launched_ns < newer.assigned_ns < other_back.ended_ns

    on = [(begun_s, healed_s) for fault, _, begun_s, healed_s in reported if fault == "refuse"]
    assert {target for fault, target, *_ in reported if fault == "refuse"} == {"member-0"}
    assert len(on) == 3
    assert all(2 < later - sooner < 4 for (sooner, _), (later, _) in pairwise(on)), on
    down = [(target, begun_s, healed_s) for fault, target, begun_s, healed_s in reported if "broker" in target]
    assert [target for target, *_ in down] == ["broker-1", "broker-2", "broker-3"]
    assert all(healed_s < begun_s for (_, healed_s), (begun_s, _) in pairwise(on)), on
    assert all(healed_s < begun_s for (*_, healed_s), (_, begun_s, _) in pairwise(down)), down
