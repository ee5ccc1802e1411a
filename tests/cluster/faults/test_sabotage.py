"""A fault whose effect was taken away is never believed: the run is unknown and names every step."""

from __future__ import annotations

import pytest

from cluster.worlds import SHORT_S, bounded
from fencepost.clusters.admin import ObserverAdmin
from fencepost.faults import BlackHole, Bounce, Kill, MoveCoordinator, Pause
from fencepost.group.running_group import MemberHandle
from fencepost.model import Validity
from fencepost.model.topic import Topic
from fencepost.network.proxies import Proxies
from fencepost.scenario.scenario import Group, Scenario
from fencepost.schedule.entries import at
from fencepost.targets import member
from fencepost.workloads import PollLoop

pytestmark = [pytest.mark.cluster, pytest.mark.spark]

SCENARIO = Scenario(
    name="toothless",
    topics=[Topic("orders", partitions=4)],
    group=Group(members=2, config={"session.timeout.ms": 6000}),
    workload=PollLoop(rate_hz=1000),
    schedule=[
        at(0, MoveCoordinator()),
        at(0, BlackHole(), member(0), heal_after=0),
        at(0, Pause(), member(0), heal_after=0),
        at(0, Kill(), member(0), heal_after=0),
        at(0, Bounce(), member(0), heal_after=0),
    ],
    min_records=1,
)


@pytest.fixture
def toothless(monkeypatch):
    """Signals are not sent, the election is not made, and the proxies' rule matches no connection."""
    bounded(monkeypatch, SHORT_S)
    monkeypatch.setattr(MemberHandle, "signal", lambda self, signal: None)
    monkeypatch.setattr(ObserverAdmin, "move_leader", lambda self, tp, to_broker: None)
    call = Proxies._call

    def matching_nothing(self, method, path, *, json=None, **options):
        harmless = {**json, "toxicity": 0.0} if json and "toxicity" in json else json
        return call(self, method, path, json=harmless, **options)

    monkeypatch.setattr(Proxies, "_call", matching_nothing)


@pytest.mark.core
def test_a_run_whose_faults_had_no_effect_is_unknown_and_says_which(chaos, toothless):
    verdict = chaos.run(SCENARIO).verdict
    assert verdict.validity is Validity.UNKNOWN
    assert [(fault["step"], fault["took_effect"]) for fault in verdict.faults] == [(n, False) for n in range(5)]
    faults = next(check for check in verdict.checks if check.check == "faults")
    assert faults.validity is Validity.UNKNOWN
    assert all(fault["evidence"] for fault in verdict.faults)
