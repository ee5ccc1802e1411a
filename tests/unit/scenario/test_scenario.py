"""Scenarios are values: read strictly, stored whole, equal after a round trip."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from fencepost.checkers import Progress, Recovers
from fencepost.errors import PlanError, ScenarioError
from fencepost.faults import BlackHole, MoveCoordinator, Pause
from fencepost.model.topic import Topic
from fencepost.scenario import loader
from fencepost.scenario.scenario import Group, Scenario
from fencepost.schedule.entries import at, every, past_session
from fencepost.schedule.plan import plan_to_json
from fencepost.targets import member, one_member
from fencepost.workloads import PollLoop

SCENARIO = Scenario(
    name="a zombie and a hole",
    topics=[Topic("orders", partitions=6)],
    group=Group(members=2, protocol="consumer", config={"session.timeout.ms": 6000}),
    workload=PollLoop(rate_hz=500),
    about="what it shows",
    schedule=[
        at(5, MoveCoordinator()),
        at(6, BlackHole(direction="to"), member(1), heal_after=2, required=False),
        every(8, Pause(), one_member(), heal_after=past_session(1.5), expect="fenced", until_s=40),
    ],
)

TOML = """
name = "tiny"
topics = [{ name = "orders", partitions = 2 }]
[group]
members = 2
config = { "session.timeout.ms" = 6000 }
[workload]
type = "poll_loop"
[[schedule]]
at = 1
fault = "pause"
target = { type = "member", index = 1 }
heal_after = { past_session = 2 }
"""


def test_a_scenario_survives_the_way_through_json():
    stored = json.loads(json.dumps(SCENARIO.to_json()))
    again = Scenario.from_json(stored)
    assert again.to_json() == SCENARIO.to_json()
    assert (again.about, stored["about"]) == ("what it shows",) * 2
    assert again.plan(7) == SCENARIO.plan(7)
    assert json.loads(json.dumps(plan_to_json(again.plan(7))))["steps"][0]["fault"] == {"type": "move_coordinator"}


@pytest.mark.parametrize(
    ("option", "sentence"),
    [
        ({"evidence": "all"}, "found evidence 'all', use 'full' or leave it out"),
        ({"kafka": "3.8.0"}, "there is no Kafka '3.8.0' for a cluster; known are 4.3.1, 3.9.1"),
        ({"kafka": "3.9.1", "group": Group(protocol="consumer")}, "Kafka 3.9.1 has only a preview of the protocol"),
    ],
)
def test_a_setting_that_a_cluster_cannot_have_is_refused(option, sentence):
    with pytest.raises(ScenarioError, match=sentence):
        replace(SCENARIO, **option)


@pytest.mark.parametrize(
    ("version", "sentence"),
    [
        ("3.7", r"members need Python 3.8 or later, but the group's python is 3.7"),
        ("2.7.18", "members need Python 3.8 or later"),
        ("3", "must be a version like 3.9 or 3.9.18, as text, but found '3'"),
        ("python3.9", "must be a version like 3.9"),
    ],
)
def test_a_python_that_members_cannot_run_on_is_refused(version, sentence):
    with pytest.raises(ScenarioError, match=sentence):
        Group(python=version)


def test_members_run_on_our_own_python_unless_another_one_or_a_release_is_asked_for():
    assert not any(wanted.own for wanted in Group().environments)
    for asked in ({"python": "3.9"}, {"client": "confluent-kafka==2.3.0"}):
        environments = Group(members=2, spare=1, **asked).environments
        assert len(environments) == 3
        assert all(wanted.own for wanted in environments)


def test_a_toml_file_a_python_file_and_a_built_in_name_are_read(tmp_path):
    (tmp_path / "tiny.toml").write_text(TOML)
    tiny = loader.load(tmp_path / "tiny.toml")
    assert (tiny.group.members, tiny.plan(1).steps[0].heal_after_s) == (2, 12.0)
    (tmp_path / "mine.py").write_text("from fencepost.scenario.scenario import *\nSCENARIO = None\n")
    with pytest.raises(ScenarioError, match="defines no SCENARIO"):
        loader.load(tmp_path / "mine.py")
    assert "demo" in loader.built_in()
    assert loader.load("demo").name == "demo"


@pytest.mark.parametrize(
    ("before", "after", "sentence"),
    [
        ("name =", "nmae =", "has no option 'nmae'"),
        ("members = 2", "memebrs = 2", "no option 'memebrs'"),
        ('"poll_loop"', '"pole_loop"', "no workload 'pole_loop'; known are"),
        ('fault = "pause"', 'fault = "paws"', "no fault 'paws'; known are"),
        ('type = "member"', 'type = "membrane"', "no target 'membrane'; known are"),
        ("{ past_session = 2 }", "{ past_sessions = 2 }", "found heal_after .*; use seconds, "),
        ("at = 1", "", "needs the option 'at_s'"),
        ("at = 1", "at = 1\nthen = 2", "no option 'then'"),
        ("members = 2", "members = 0", "at least one member"),
        ("partitions = 2", "partitions = 2, replication_factor = 4", "has 4 replicas"),
        ('name = "tiny"', "name = ", "cannot be read"),
    ],
)
def test_what_is_wrong_with_a_file_is_said_in_a_sentence(tmp_path, before, after, sentence):
    assert before in TOML
    (tmp_path / "bad.toml").write_text(TOML.replace(before, after, 1))
    with pytest.raises(ScenarioError, match=sentence):
        loader.load(tmp_path / "bad.toml")


def test_a_missing_file_and_an_unknown_name_are_told_apart():
    with pytest.raises(ScenarioError, match=r"there is no file nowhere\.toml"):
        loader.load("nowhere.toml")
    with pytest.raises(ScenarioError, match="no built-in scenario 'nowhere'; fencepost list scenarios shows"):
        loader.load("nowhere")


def test_session_times_are_the_clients_and_the_brokers_and_with_the_consumer_protocol_no_programs():
    classic = Group(protocol="eager", config={"session.timeout.ms": 6000, "client.rack": "a"})
    assert classic.client_configs[0] == {"session.timeout.ms": 6000, "heartbeat.interval.ms": 1500, "client.rack": "a"}
    program = Group(command=["python"], protocol="consumer", config={"session.timeout.ms": 6000, "client.rack": "a"})
    assert program.client_configs[0] == {"client.rack": "a"}
    assert Group(command=["python"], protocol="eager", config={"session.timeout.ms": 6000}).client_configs[0] == {
        "session.timeout.ms": 6000
    }
    assert SCENARIO.cluster_spec().broker_config["group.consumer.session.timeout.ms"] == 6000


def test_an_expectation_that_the_session_time_out_rules_out_is_refused_before_anything_starts():
    slow = Scenario(
        name="slow",
        topics=[Topic("orders")],
        group=Group(),
        workload=PollLoop(),
        schedule=[at(1, Pause(), one_member(), heal_after=7, expect="fenced")],
    )
    with pytest.raises(PlanError, match=r"session\.timeout\.ms of 45 s"):
        slow.plan(1)


def test_the_load_goes_on_after_the_last_fault_for_as_long_as_promises_need():
    promises = [Progress(), Recovers(first_record_within_s=4, lag_normal_within_s=30)]
    scenario = Scenario(
        "x", [Topic("t")], Group(), PollLoop(), schedule=[at(1, Pause(), member(0), heal_after=2)], promises=promises
    )
    assert scenario.load_after_faults_s == 30
    assert replace(scenario, after_faults_s=31).load_after_faults_s == 31
    assert replace(scenario, promises=()).load_after_faults_s == 0
    assert replace(scenario, chaos_s=40).plan(1).steps
    with pytest.raises(
        PlanError, match=r"30 s of load after the last fault, which is over at .* chaos_s = 20: make chaos_s"
    ):
        replace(scenario, chaos_s=20).plan(1)
    with pytest.raises(PlanError, match=r"the scenario needs 18 s of load after the last fault"):
        replace(scenario, chaos_s=20, promises=(), after_faults_s=18).plan(1)
    with pytest.raises(ScenarioError, match="found after_faults_s=-1, use 0 or more"):
        replace(scenario, after_faults_s=-1)
    assert replace(scenario, chaos_s=20, promises=[Recovers(duplicates_per_disruption=9)]).plan(1).steps


def test_all_bounds_of_recovery_stand_in_one_promise():
    with pytest.raises(ScenarioError, match="found two promises Recovers: give all bounds to one"):
        Scenario(
            "x",
            [Topic("t")],
            Group(),
            PollLoop(),
            promises=[Recovers(first_record_within_s=4), Recovers(lag_normal_within_s=4)],
        )
