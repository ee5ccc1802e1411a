"""The situations are schedules that can be performed, sized by the program's own session."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from fencepost.battery import saving, situations
from fencepost.battery.program import Program
from fencepost.battery.request import BatteryRequest
from fencepost.battery.situations import SITUATIONS, Situation
from fencepost.battery.speed import BatteryLoad
from fencepost.checkers import Progress
from fencepost.errors import ScenarioError
from fencepost.scenario import loader

REQUEST, LOAD = BatteryRequest(("python", "-m", "shop.consumer")), BatteryLoad(200.0, "")
SHORT, LONG = (
    Program("confluent-kafka", "2.16.1", "eager", ("orders",), settings={"session.timeout.ms": ms})
    for ms in (6000, 45_000)
)
QUICK = {"restart", "crash", "long-freeze", "scale", "coordinator", "all-down"}


@pytest.mark.parametrize("program", [SHORT, LONG], ids=["short session", "long session"])
@pytest.mark.parametrize("situation", SITUATIONS, ids=[one.name for one in SITUATIONS])
def test_each_can_be_performed(situation: Situation, program: Program) -> None:
    asked = situations.scenario(situation, REQUEST, program, LOAD)
    plan = asked.plan(seed=1)
    assert bool(plan.steps) == (situation.name not in ("steady", "burst"))
    assert asked.min_records / LOAD.rate_hz > max((step.end_s for step in plan.steps), default=0)
    assert bool(asked.workload.producer_config()["burst_every_s"]) == situation.bursts


def test_names_are_unique_and_the_short_battery_has_six() -> None:
    assert len({one.name for one in SITUATIONS}) == len(SITUATIONS)
    assert {one.name for one in situations.chosen(quick=True)} == QUICK


def test_some_are_chosen_in_the_order_of_the_battery() -> None:
    assert [one.name for one in situations.chosen(["crash", "steady"])] == ["steady", "crash"]
    with pytest.raises(ScenarioError, match="no situation 'flood'; there are steady, burst"):
        situations.chosen(["flood"])


@pytest.mark.parametrize("name", ["long-freeze", "cut-off"])
def test_a_member_is_away_for_longer_than_the_session_of_the_program(name: str) -> None:
    (situation,) = situations.chosen([name])
    for program in (SHORT, LONG):
        (step,) = situations.scenario(situation, REQUEST, program, LOAD).plan(1).steps
        assert step.heal_after_s == 1.5 * program.session_timeout_s
        assert step.expect == "fenced"


@pytest.mark.parametrize("client", ["confluent-kafka", "kafka-python", "aiokafka", "json-lines"])
def test_added_partitions_have_records_where_members_look_for_them_in_time(client: str) -> None:
    """The settings of a program that is not recorded from inside are its own."""
    program = replace(SHORT, client=client)
    for situation in SITUATIONS:
        asked = situations.scenario(situation, REQUEST, program, LOAD)
        written = situation.name == "partitions" and client != "json-lines"
        assert asked.workload.producer_config()["added_partitions"] == written
        assert (2000 in asked.group.config.values()) == written


def test_a_short_freeze_ends_before_the_session() -> None:
    (situation,) = situations.chosen(["short-freeze"])
    (step,) = situations.scenario(situation, REQUEST, LONG, LOAD).plan(1).steps
    assert step.heal_after_s == LONG.session_timeout_s / 2


def test_the_group_has_more_time_to_recover_than_a_session_lasts() -> None:
    for program in (SHORT, LONG):
        asked = situations.scenario(SITUATIONS[0], REQUEST, program, LOAD)
        (progress,) = (one for one in asked.promises if isinstance(one, Progress))
        assert progress.within_s > program.session_timeout_s
        assert asked.drain_s > program.session_timeout_s


def test_a_longer_session_makes_a_longer_battery() -> None:
    short, long = (situations.estimate_s(SITUATIONS, REQUEST, program) for program in (SHORT, LONG))
    assert long > short + 2 * 1.5 * (45 - 6)


def test_all_together_are_one_scenario_that_a_file_keeps(tmp_path: Path) -> None:
    asked = situations.together(SITUATIONS, REQUEST, SHORT, LOAD)
    every = [step for one in SITUATIONS for step in situations.scenario(one, REQUEST, SHORT, LOAD).plan(1).steps]
    assert len(asked.plan(1).steps) == len(every)
    saving.save(asked, tmp_path / "program.toml")
    assert loader.load(tmp_path / "program.toml") == asked


@pytest.mark.parametrize(
    ("path", "problem"), [("program.json", "ends with .toml"), ("nowhere/program.toml", "there is no folder")]
)
def test_a_bad_place_for_a_scenario_is_refused_at_once(path: str, problem: str, tmp_path: Path) -> None:
    with pytest.raises(ScenarioError, match=problem):
        saving.check(tmp_path / path)
