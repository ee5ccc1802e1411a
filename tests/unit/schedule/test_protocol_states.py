"""States are seen in what members and brokers tell, and by whom they can be hit."""

from __future__ import annotations

from dataclasses import replace

import pytest

from fencepost.errors import PlanError, ScenarioError
from fencepost.faults import BlackHole, Kill, MoveCoordinator, Pause
from fencepost.interfaces import Target
from fencepost.interfaces.group_snapshot import CoordinatorStatus, GroupSnapshot, MemberStatus, StateMatch
from fencepost.model import Inventory, serialization
from fencepost.model.settings import SESSION
from fencepost.runner.preflight import check_abilities
from fencepost.scenario.loader import load
from fencepost.scenario.scenario import Scenario
from fencepost.schedule.entries import as_schedule, at, past_session, until, when
from fencepost.schedule.plan import check_plan, plan_from_json, plan_to_json
from fencepost.schedule.planning import make_plan
from fencepost.schedule.protocol_states import (
    assigning,
    commit_in_flight,
    coordinator_loading,
    fenced,
    joining,
    lasting,
    met,
    rebalanced,
    revoking,
    syncing,
)
from fencepost.targets import brokers, member, one_member

TIMES = {SESSION: 6.0}

BUSY = MemberStatus(0, "member-0.1", True, open={"revoked": 5, "commit": 7})
FRESH = MemberStatus(1, "member-1.2", True, open={"assigned": 6, "commit": 9}, ids=frozenset({"id-1"}))
HELD = MemberStatus(2, "member-2.1", True, disturbed=True, open={"revoked": 8}, lost_ns=30)
DEAD = MemberStatus(3, "member-3.1", False, open={"assigned": 99, "revoked": 99, "commit": 99})
BROKERS = CoordinatorStatus(
    2, joining_ns=11, syncing_ns=12, rebalanced_ns=13, loading={1: 14, 3: 15}, removed={"id-1": 20}
)
SIGNS = GroupSnapshot((BUSY, FRESH, HELD, DEAD), BROKERS)
NOTHING = GroupSnapshot((MemberStatus(0, "member-0.1", True), MemberStatus(1, "", False)), CoordinatorStatus())
SILENT = GroupSnapshot(SIGNS.members, None)


@pytest.mark.parametrize(
    ("state", "occurrence"),
    [
        (revoking(), StateMatch(5, Target(members=(0,)), ("member-0.1",))),
        (assigning(), StateMatch(6, Target(members=(1,)), ("member-1.2",))),
        (commit_in_flight(), StateMatch(9, Target(members=(1,)), ("member-1.2",))),
        (joining(), StateMatch(11, Target(brokers=(2,)))),
        (syncing(), StateMatch(12, Target(brokers=(2,)))),
        (coordinator_loading(), StateMatch(15, Target(brokers=(3,)))),
        (rebalanced(), StateMatch(13, Target(brokers=(2,)))),
        (fenced(), StateMatch(20, Target(members=(1,)), ("member-1.2",))),
    ],
)
def test_a_state_is_seen_with_who_is_in_it(state, occurrence):
    assert state.seen(SIGNS, 1) == occurrence
    assert state.seen(NOTHING, 1) is None
    assert state.hits == ("members" if occurrence.target.members else "brokers")


def test_all_consumers_of_the_process_are_in_it():
    two = replace(BUSY, consumers=("member-0.1-2", "member-0b.1"))
    assert revoking().seen(GroupSnapshot((two,), None), 1) == StateMatch(5, Target(members=(0,)), two.consumers)


def test_those_in_a_faults_hands_are_seen_when_they_are_asked_for():
    assert revoking().seen(SIGNS, 1, among=[2]) == StateMatch(8, Target(members=(2,)), ("member-2.1",))
    assert fenced().seen(SIGNS, 30, among=[2]) == StateMatch(30, Target(members=(2,)), ("member-2.1",))
    assert revoking().seen(SIGNS, 1, among=[1]) is None


def test_what_has_come_before_does_not_count():
    assert fenced().seen(SIGNS, 31, among=[2]) is None
    assert fenced().seen(SIGNS, 21) is None
    assert rebalanced().seen(SIGNS, 13)
    assert rebalanced().seen(SIGNS, 14) is None


def test_a_load_that_came_and_went_between_two_looks_is_not_missed_and_not_met():
    signs = GroupSnapshot((), CoordinatorStatus(loaded={1: 14, 3: 15}))
    seen = coordinator_loading().seen(signs, 12)
    assert seen == StateMatch(15, Target(brokers=(3,)), over=True)
    assert coordinator_loading().seen(signs, 16) is None
    assert lasting(signs)["coordinator_loading"] is False
    assert not met(coordinator_loading(), seen, signs)["met"]
    again = replace(signs, coordinator=replace(signs.coordinator, loading={2: 13}))
    assert coordinator_loading().seen(again, 12) == StateMatch(13, Target(brokers=(2,)))


def test_a_callback_that_came_and_went_between_two_looks_is_not_missed_and_not_met():
    quick = replace(BUSY, open={}, ended={"revoked": 5, "assigned": 4, "commit": 9})
    signs = GroupSnapshot(
        (quick, replace(HELD, open={}, ended={"revoked": 8}), replace(DEAD, ended={"revoked": 99})), None
    )
    seen = revoking().seen(signs, 5)
    assert seen == StateMatch(5, Target(members=(0,)), ("member-0.1",), over=True)
    assert revoking().seen(signs, 6) is None
    assert revoking().seen(signs, 5, among=[2]) == StateMatch(8, Target(members=(2,)), ("member-2.1",), over=True)
    assert assigning().seen(signs, 1)
    assert commit_in_flight().seen(signs, 1) is None, "another one will come"
    assert lasting(signs)["revoking"] is False
    assert not met(revoking(), seen, signs)["met"]
    later = replace(quick, open={"revoked": 3}, index=1)
    assert revoking().seen(GroupSnapshot((quick, later), None), 1) == StateMatch(
        3, Target(members=(1,)), ("member-0.1",)
    )


def test_without_logs_members_still_tell_of_themselves():
    assert [state().seen(SILENT, 1) for state in (joining, syncing, coordinator_loading, rebalanced)] == [None] * 4
    assert fenced().seen(SILENT, 1, among=[2])
    assert lasting(SILENT) == {
        "joining": None,
        "syncing": None,
        "assigning": True,
        "revoking": True,
        "commit_in_flight": True,
        "coordinator_loading": None,
    }
    assert set(lasting(None).values()) == {None}
    assert set(lasting(NOTHING).values()) == {False}


SCHEDULE = (
    when(joining(), MoveCoordinator(), at_s=2, within_s=5),
    when(revoking(), Pause(), heal_after=until(fenced(), past_session(2))),
    when(commit_in_flight(), BlackHole(direction="from"), one_member(), heal_after=until(rebalanced())),
    at(3, Kill(), member(1), heal_after=1),
)


def test_triggers_are_in_the_plan_and_come_back_from_it():
    plan = make_plan(SCHEDULE, 7, TIMES)
    those = [(s.at_s, s.when, s.within_s, s.heal_after_s, s.until, s.end_s) for s in plan.steps]
    assert those == [
        (0, revoking(), 20, 12, fenced(), 32),
        (0, commit_in_flight(), 20, 18, rebalanced(), 38),
        (2, joining(), 5, None, None, 7),
        (3, None, 0, 1, None, 4),
    ]
    assert plan_from_json(plan_to_json(plan)) == plan
    again = make_plan(as_schedule(plan), 7, TIMES)
    assert [(s.when, s.within_s, s.until, s.heal_after_s) for s in again.steps] == [
        (s.when, s.within_s, s.until, s.heal_after_s) for s in plan.steps
    ]


TOML = """
name = "sharp"
[[topics]]
name = "orders"
[group]
protocol = "eager"
[[schedule]]
when = "joining"
at = 2
within_s = 5
fault = "move_coordinator"
[[schedule]]
when = "revoking"
fault = "pause"
heal_after = { until = "fenced", at_most = { past_session = 2 } }
[[schedule]]
when = { type = "commit-in-flight" }
fault = { type = "black_hole", direction = "from" }
target = "one_member"
heal_after = { until = { type = "rebalanced" } }
[[schedule]]
at = 3
fault = "kill"
target = { type = "member", index = 1 }
heal_after = 1
"""


def test_they_can_be_written_in_toml_and_stored(tmp_path):
    (tmp_path / "sharp.toml").write_text(TOML)
    scenario = load(str(tmp_path / "sharp.toml"))
    assert scenario.schedule == SCHEDULE
    assert Scenario.from_json(scenario.to_json()).schedule == SCHEDULE


@pytest.mark.parametrize(
    ("data", "reported"),
    [
        ({"when": "sleeping"}, "there is no state 'sleeping'; known are assigning, commit_in_flight"),
        ({"at": 1, "heal_after": {"until": "never"}}, "there is no state 'never'"),
        ({"at": 1, "heal_after": {"until": "fenced", "within": 3}}, "until has no option 'within'"),
        ({"at": 1, "heal_after": {"after": 3}}, "found heal_after .*; use seconds, "),
        ({"at": 1, "heal_after": {"until": "fenced", "at_most": "soon"}}, "found heal_after .*; use seconds, "),
    ],
)
def test_what_is_misspelt_is_refused(data, reported):
    step = {"fault": "pause", "target": "one_member", **data}
    with pytest.raises(ScenarioError, match=reported):
        Scenario.from_json({"name": "x", "topics": [{"name": "t"}], "group": {}, "schedule": [step]})


@pytest.mark.parametrize(
    ("entry", "reported"),
    [
        (when(joining(), BlackHole(brokers=(1,)), heal_after=1), "without a target Joining.. is a state of brokers"),
        (when(revoking(), Kill(), brokers((1,)), within_s=0, heal_after=1), "add within_s, more than 0 seconds"),
        (when(revoking(), MoveCoordinator(), heal_after=until(fenced())), "has nothing to heal"),
    ],
)
def test_a_step_that_makes_no_sense_is_refused(entry, reported):
    with pytest.raises(PlanError, match=reported):
        check_plan(make_plan([entry], 1, TIMES), Inventory(3, 3, {}), TIMES, chaos_s=100)


def test_nobody_waits_for_others_to_join_in_the_consumer_protocol():
    plan = make_plan([when(joining(), MoveCoordinator())], 1, TIMES)
    check_plan(plan, Inventory(3, 3, {}, protocol="eager"), TIMES, chaos_s=100)
    with pytest.raises(
        PlanError, match=r"joining.. is a state of the classic protocols, but the group's is 'consumer'"
    ):
        check_plan(plan, Inventory(3, 3, {}, protocol="consumer"), TIMES, chaos_s=100)


def test_states_of_the_coordinator_need_the_logs_of_brokers():
    abilities = {"signal": str, "admin": str}
    check_abilities(make_plan([when(revoking(), Pause(), heal_after=1)], 1, TIMES), abilities, "attach")
    for entry in (when(joining(), MoveCoordinator()), at(1, Pause(), member(0), heal_after=until(fenced()))):
        with pytest.raises(PlanError, match="needs broker-log"):
            check_abilities(make_plan([entry], 1, TIMES), abilities, "attach")


def test_a_broker_in_a_state_can_be_hit_with_a_signal_only_where_brokers_can():
    plan = make_plan([when(joining(), Pause(), heal_after=1)], 1, TIMES)
    with pytest.raises(PlanError, match="needs broker-signal"):
        check_abilities(plan, {"signal": str, "broker-log": str}, "x")


def test_every_state_has_a_name():
    assert set(serialization.registry("state")) >= {"fenced", "joining", "commit_in_flight", "coordinator_loading"}
