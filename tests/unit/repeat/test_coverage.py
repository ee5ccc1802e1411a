"""A swarm is steered to pairs of faults and states that no run has met, and its plan is a value as ever."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import stage
from hypothesis import given
from hypothesis import strategies as st
from stage import Shell

from fencepost.clusters import backends
from fencepost.clusters.attach import backend
from fencepost.clusters.local import ABILITIES
from fencepost.errors import PlanError, ScenarioError
from fencepost.evidence.sealing import parquet_events
from fencepost.faults import CutConnections, Kill, MoveCoordinator, Pause
from fencepost.history import EventKind
from fencepost.model import Validity, serialization
from fencepost.model.topic import Topic
from fencepost.repeat import coverage, replay
from fencepost.repeat.batch import RunOptions
from fencepost.runner.preflight import check_abilities
from fencepost.scenario.scenario import Group, Scenario
from fencepost.schedule.combinators import together
from fencepost.schedule.entries import at, when
from fencepost.schedule.fault_tolerance import conflicts, lost_guarantees
from fencepost.schedule.plan import Plan, Step, plan_from_json, plan_to_json
from fencepost.schedule.protocol_states import LASTING, Joining, revoking
from fencepost.schedule.swarm import STIRRED_BY, swarm
from fencepost.targets import member, one_member
from fencepost.workloads import PollLoop
from fencepost_member.recording.events import EventLog

STATES = tuple(serialization.name_of(state) for state in LASTING)
PARTS = (at(0, Pause()), at(0, Kill()), at(0, MoveCoordinator()), at(0, CutConnections()))
FAULTS = ("pause", "kill", "move_coordinator", "cut_connections")
EAGER = Scenario(
    name="swarm",
    topics=[Topic("orders", partitions=6)],
    group=Group(members=3, protocol="eager", config={"session.timeout.ms": 6000}),
    workload=PollLoop(),
    schedule=[swarm(20, *PARTS, until_s=110)],
    chaos_s=120,
)
CONSUMER = replace(EAGER, group=replace(EAGER.group, protocol="consumer"))


def towards(scenario: Scenario) -> Any:
    (entry,) = scenario.schedule
    return entry.towards  # type: ignore[union-attr]


def cells(steps: Any) -> list[coverage.Cell]:
    return [(type(s.fault).__name__, serialization.name_of(s.when)) for s in steps if s.when]


@given(
    seed=st.integers(0, 10**6),
    left=st.dictionaries(st.sampled_from(FAULTS), st.lists(st.sampled_from(STATES), unique=True)),
)
def test_a_steered_plan_is_made_of_the_scenario_and_the_seed_and_keeps_what_a_swarm_keeps(
    seed: int, left: dict[str, list[str]]
) -> None:
    asked = replace(EAGER, schedule=[replace(EAGER.schedule[0], towards=left)])
    plan = asked.plan(seed)
    stored = Scenario.from_json(json.loads(json.dumps(asked.to_json())))
    assert stored.plan(seed) == plan == plan_from_json(json.loads(json.dumps(plan_to_json(plan))))
    assert not lost_guarantees(plan.steps, asked.inventory())
    assert not any(conflicts(a, b, asked.inventory()) for a in plan.steps for b in plan.steps if a is not b)
    assert all(any(b <= s.at_s and s.end_s <= b + 30 for b in (0, 40, 80)) for s in plan.steps)
    aimed = Counter(cells(plan.steps))
    assert set(aimed) <= {(f.title().replace("_", ""), state) for f, states in left.items() for state in states}
    assert all(count == 1 for count in aimed.values())
    assert not any(s.required for s in plan.steps if s.when)


def test_a_good_part_of_the_steps_wait_and_with_nothing_to_steer_to_all_are_as_ever() -> None:
    steered = coverage.aim_at_uncovered(EAGER, (), ABILITIES)
    counts = [(len(cells(plan.steps)), len(plan.steps)) for plan in map(steered.plan, range(20))]
    assert 0.15 < sum(aimed for aimed, _ in counts) / sum(every for _, every in counts) < 0.6
    done = [(fault, state) for fault in FAULTS for state in STATES]
    assert towards(coverage.aim_at_uncovered(EAGER, done, ABILITIES)) == {}
    assert coverage.aim_at_uncovered(EAGER, done, ABILITIES).plan(7) == EAGER.plan(7)


def test_who_is_in_the_state_is_hit_and_the_wait_begins_as_what_stirs_it_up_fires() -> None:
    asked = replace(EAGER, schedule=[replace(EAGER.schedule[0], towards={"pause": STATES})])
    steps = [(s, plan.steps) for plan in map(asked.plan, range(20)) for s in plan.steps if s.when]
    hit = {(s.when.hits, s.hits, s.target is None) for s, _ in steps if s.when}
    assert hit == {
        ("members", "members", True),
        ("members", "brokers", False),
        ("brokers", "members", False),
        ("brokers", "brokers", True),
    }
    for step, others in steps:
        faults, whom = STIRRED_BY.get(serialization.name_of(step.when), ((), None))
        beside = [
            o for o in others if o.at_s == step.at_s and o is not step and serialization.name_of(o.fault) in faults
        ]
        assert bool(beside) == (whom is not None)
        assert all(o.hits == whom.hits for o in beside if o.when is None)


def test_only_pairs_are_left_that_a_group_and_a_back_end_can_meet_and_no_run_met() -> None:
    every = towards(coverage.aim_at_uncovered(EAGER, (), ABILITIES))
    assert every == dict.fromkeys(FAULTS, STATES)
    classic = ("joining", "syncing")
    assert towards(coverage.aim_at_uncovered(CONSUMER, (), ABILITIES))["kill"] == tuple(
        s for s in STATES if s not in classic
    )
    reported = ("assigning", "revoking", "commit_in_flight")  # by members; attached clusters show no logs
    as_guest = coverage.aim_at_uncovered(EAGER, (), backend.ABILITIES)
    assert towards(as_guest)["kill"] == reported
    plain = replace(as_guest, schedule=[replace(as_guest.schedule[0], parts=[at(0, Kill(), one_member())])])
    check_abilities(plain.plan(1), backend.ABILITIES, "attach")
    some = coverage.aim_at_uncovered(EAGER, {("kill", "joining"), *(("pause", state) for state in STATES)}, ABILITIES)
    assert towards(some) == {fault: STATES for fault in FAULTS if fault not in ("pause", "kill")} | {
        "kill": tuple(s for s in STATES if s != "joining")
    }


def test_parts_that_wait_for_a_state_anyway_are_not_steered_and_swarms_in_other_entries_are() -> None:
    waits = swarm(20, when(revoking(), Kill(), within_s=3), *PARTS[2:], until_s=30)
    nested = replace(EAGER, schedule=[together(0, waits)])
    (entry,) = coverage.aim_at_uncovered(nested, (), ABILITIES).schedule
    assert set(entry.parts[0].towards) == {"move_coordinator", "cut_connections"}  # type: ignore[union-attr]
    steps = [step for plan in map(nested.plan, range(5)) for step in plan.steps]
    assert {serialization.name_of(s.when) for s in steps if s.when} == {"revoking"}
    assert all(s.end_s <= 30 for s in steps)


def run_of(runs: Path, scenario: Scenario, met: list[tuple[str, str]]) -> Path:
    folder = stage.run_folder(runs, scenario, scenario.plan(1))
    log = EventLog(folder.history / "events" / "harness.jsonl", "harness")
    for step, (fault, state) in enumerate(met):
        states = {**dict.fromkeys(STATES, False), "syncing": None, state: True}
        log.note(EventKind.FAULT, detail={"step": step, "fault": fault, "target": "", "states": states})
    log.note(EventKind.FAULT, detail={"step": 9, "fault": "kill", "target": "", "states": None})  # of an older release
    rows = parquet_events.read_rows(folder.history / "events" / "harness.jsonl")[0]
    parquet_events.write(folder.path / replay.EVENTS, rows)
    return folder.path


def test_what_runs_of_this_protocol_met_is_read_and_damaged_ones_tell_nothing(tmp_path: Path) -> None:
    run_of(tmp_path, EAGER, [("kill", "joining"), ("pause", "revoking")])
    run_of(tmp_path, CONSUMER, [("kill", "assigning")])
    (run_of(tmp_path, EAGER, [("kill", "revoking")]) / "scenario.json").write_text("{}")
    (run_of(tmp_path, EAGER, [("kill", "revoking")]) / replay.EVENTS).write_text("no table")
    assert coverage.covered_cells(tmp_path, "eager") == {("kill", "joining"), ("pause", "revoking")}
    assert coverage.covered_cells(tmp_path, "consumer") == {("kill", "assigning")}
    assert coverage.covered_cells(tmp_path / "nowhere", "eager") == set()


def test_each_run_is_steered_by_what_those_before_it_met(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    cases = coverage.cases(EAGER, [1, 2], RunOptions(tmp_path, backends.local(), ""))
    first, plan = next(cases)
    assert plan == first.plan(1)
    run_of(tmp_path, EAGER, [("kill", state) for state in STATES])
    second, plan = next(cases)
    assert plan == second.plan(2)
    assert towards(first).keys() - towards(second).keys() == {"kill"}
    reported = capsys.readouterr().out.splitlines()
    assert reported[0].startswith("steers to 24 pairs of a fault and a protocol state that no run in ")
    assert f"  kill: {', '.join(STATES)}" in reported
    assert reported[5].startswith("steers to 18 pairs")


def test_the_command_steers_and_stores_to_what(shell: Shell, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    acted = stage.set_up(monkeypatch, Validity.VALID)
    (tmp_path / "swarm.json").write_text(json.dumps(EAGER.to_json()))
    code, out, _ = shell("run", "swarm.json", "--steer", "--seed", "3")
    assert code == 0
    assert "steers to 24 pairs" in out
    (scenario,), (plan,) = acted.scenarios, acted.plans
    assert towards(scenario) == dict.fromkeys(FAULTS, STATES)
    assert plan == scenario.plan(3)
    assert " when " in out


def test_without_a_swarm_there_is_nothing_to_steer(shell: Shell) -> None:
    code, _, err = shell("run", "demo", "--steer")
    assert code == 2
    assert "has no swarm to steer" in err


@pytest.mark.parametrize(
    ("left", "sentence"), [({"kil": ["joining"]}, "there is no fault 'kil'"), ({"kill": ["join"]}, "no state 'join'")]
)
def test_what_does_not_exist_is_refused(left: Any, sentence: str) -> None:
    with pytest.raises(ScenarioError, match=sentence):
        replace(EAGER.schedule[0], towards=left)


# --- what steps without a target of their own leave standing --------------------------------------------------------


def steps(*entries: Any) -> tuple[Step, ...]:
    return replace(EAGER, schedule=entries).plan(1).steps


@pytest.mark.parametrize(
    ("one", "other", "meets"),
    [
        (when(revoking(), Pause(), within_s=5), at(6, Kill(), one_member()), False),
        (when(revoking(), Pause(), within_s=5), at(6, Kill(), member(1)), True),
        (when(revoking(), Pause(), member(1), within_s=5), at(3, Kill(), one_member()), True),
        (when(Joining(), Kill(), within_s=5), when(Joining(), Pause(), within_s=5), True),
    ],
)
def test_what_waits_may_be_in_the_way_as_long_as_it_waits(one: Any, other: Any, meets: bool) -> None:
    first, second = steps(one, other)
    assert conflicts(first, second, EAGER.inventory()) is meets


def test_who_is_hit_in_a_state_is_down_like_any_other() -> None:
    kills = [when(Joining(), Kill(), within_s=5), at(3, Kill(), member(0)), at(3, Kill(), member(1))]
    plan = Plan.of(1, steps(*kills, when(revoking(), Pause(), within_s=5)))
    (loss,) = lost_guarantees(plan.steps, EAGER.inventory())
    assert "one member is left" in str(loss)
    with pytest.raises(PlanError, match="has no step"):
        replace(EAGER, schedule=[swarm(9, when(revoking(), Kill(), within_s=50), until_s=40)]).plan(1)
