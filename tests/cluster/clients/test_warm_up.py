"""A group that cannot even form is no failure of the harness: the run is judged, and says what it waited for."""

from __future__ import annotations

from dataclasses import replace

import pytest

from fencepost import runner
from fencepost.group.running_group import MemberHandle
from fencepost.model import Validity
from fencepost.model.topic import Topic
from fencepost.runner import preflight
from fencepost.scenario.scenario import Group, Scenario
from fencepost.workloads import PollLoop

pytestmark = [pytest.mark.cluster, pytest.mark.spark]

SCENARIO = Scenario(
    name="cannot form",
    topics=[Topic("orders", partitions=4)],
    group=Group(members=2, config={"session.timeout.ms": 6000}),
    workload=PollLoop(rate_hz=200),
)


def history_of(chaos, scenario):
    run = chaos.run(scenario)
    assert run.verdict.validity is Validity.UNKNOWN
    assert (run.folder / "report.html").exists()
    return next(check.reason for check in run.verdict.checks if check.check == "history")


def test_a_group_whose_members_the_brokers_refuse_is_unknown_and_the_verdict_says_why(chaos, monkeypatch):
    monkeypatch.setattr(runner, "WARM_UP_S", 8.0)
    reason = history_of(chaos, replace(SCENARIO, broker_config={"group.max.session.timeout.ms": 5000}))
    assert "ended in phase warm-up" in reason
    assert "waited 8 s for the group to be stable and to consume" in reason
    assert "owns nothing, and its client reported INVALID_SESSION_TIMEOUT" in reason
    assert "Look at the members' logs" in reason


def test_a_member_that_does_not_start_is_unknown_with_its_last_words(chaos, monkeypatch):
    # As where nobody can ask its client before, which would refuse it.
    monkeypatch.setattr(preflight, "try_settings", lambda *_: None)
    group = replace(SCENARIO.group, config={**SCENARIO.group.config, "fetch.min.bytes": "many"})
    reason = history_of(chaos, replace(SCENARIO, group=group))
    assert "member-0.1 ended with exit code 2 at its start" in reason
    assert "fetch.min.bytes" in reason


def test_a_member_that_ends_while_the_group_forms_ends_the_waiting(chaos, monkeypatch):
    wait_started = MemberHandle.wait_started

    def and_die(member):
        wait_started(member)
        member.signal(11)

    monkeypatch.setattr(MemberHandle, "wait_started", and_die)
    reason = history_of(chaos, SCENARIO)
    assert "member-0.1 ended with exit code -11: its log ends with" in reason
