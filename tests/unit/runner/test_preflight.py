"""One preflight says everything that is wrong with a plan, its group, the back-end and the machine at once."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import stage
from stage import Shell

from fencepost import plugin, runner, seeds
from fencepost.clusters import backends
from fencepost.clusters.attach.backend import Attachment
from fencepost.errors import Complaints, FencepostError, PlanError, ProvisionError, ScenarioError, refuse
from fencepost.faults import Kill, MoveCoordinator, Pause
from fencepost.model.topic import Topic
from fencepost.runner import preflight
from fencepost.scenario.scenario import Group, Scenario
from fencepost.schedule.entries import at
from fencepost.targets import brokers, member
from fencepost.workloads import OwnProgram, PollLoop

SCENARIO = Scenario("orders", [Topic("orders", partitions=1)], Group(), PollLoop())
WRONG = replace(
    SCENARIO,
    schedule=[
        at(1, Pause(), member(7), heal_after=1),
        at(2, Kill(), member(0), heal_after=-1),
        at(200, Pause(), brokers((1,)), heal_after=1),
    ],
    broker_config={"num.io.threads": 3},
)
IN_THE_PLAN = ("there is no member 7", "step 1 (Kill at 2 s) has a negative heal_after", "make chaos_s longer")


@pytest.fixture(autouse=True)
def _nobody_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(preflight, "try_settings", lambda *_: None)


def check(scenario: Scenario, runs: Path, backend: Any = None) -> FencepostError | None:
    try:
        preflight.check([(scenario, scenario.drawn(1))], backend or backends.local(), runs, lambda _: None)
    except FencepostError as error:
        return error
    return None


def test_what_can_be_performed_is_not_refused(tmp_path: Path) -> None:
    moved = replace(SCENARIO, schedule=[at(1, MoveCoordinator())])
    assert check(moved, tmp_path) is None


def test_everything_that_is_wrong_is_one_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(preflight.doctor, "MEMORY_BYTES", 10**18)
    refused = ScenarioError("the group's config does not go with confluent-kafka")
    monkeypatch.setattr(preflight, "try_settings", lambda *_: refuse([refused]))
    group = Group(command=["no-such-program"])
    wrong = replace(WRONG, group=group, workload=OwnProgram())
    error = check(wrong, tmp_path, Attachment.of("attach:kafka.example:9092"))
    assert isinstance(error, PlanError)
    expected = (
        *IN_THE_PLAN,
        "step 2 (Pause at 200 s) needs broker-signal, but the back-end 'attach:kafka.example:9092' offers only",
        "no such program was found",
        "remove broker_config",
        "needs --yes",
        "does not go with confluent-kafka",
        "GB available",
    )
    assert len(error.each) == len(expected)
    assert str(error).startswith(f"{len(expected)} things are wrong:\n- ")
    for sentence in expected:
        assert sum(sentence in str(one) for one in error.each) == 1, sentence


def test_what_the_machine_lacks_is_an_error_of_its_own_where_the_plan_is_right(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(preflight.doctor, "MEMORY_BYTES", 10**18)
    assert isinstance(check(SCENARIO, tmp_path), ProvisionError)


def test_what_no_cluster_of_our_own_can_be_is_refused_before_it_is_started(tmp_path: Path) -> None:
    error = check(replace(SCENARIO, brokers=10, broker_config={"listeners": "x"}), tmp_path)
    assert error is not None
    assert "found 10 brokers; use 1 to 9" in str(error)
    assert "the setting listeners belongs to the harness" in str(error)


def test_the_same_complaint_about_several_plans_is_made_once(tmp_path: Path) -> None:
    cases = [(WRONG, WRONG.drawn(seed)) for seed in (1, 2)]
    with pytest.raises(PlanError) as refused:
        preflight.check(cases, backends.local(), tmp_path, lambda _: None)
    assert len(refused.value.each) == len(IN_THE_PLAN)


def test_the_command_line_lists_all_of_it_before_spark_starts(
    shell: Shell, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    acted = stage.set_up(monkeypatch)
    file = tmp_path / "wrong.json"
    file.write_text(json.dumps(WRONG.to_json()), encoding="utf-8")
    run = stage.run_folder(tmp_path, WRONG, WRONG.drawn(1))
    run.write_verdict(stage.verdict(stage.Validity.INVALID))
    for command in (("run", file), ("replay", run.path), ("shrink", run.path)):
        code, _, err = shell(*command)
        assert code == 2, err
        assert all(sentence in err for sentence in IN_THE_PLAN)
    assert acted.sparks == []


def test_a_chaos_test_lists_all_of_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plugin, "_backend", lambda *_: backends.local())
    monkeypatch.setattr(seeds, "seed_of", lambda _: 1)
    config = SimpleNamespace(
        invocation_params=SimpleNamespace(dir=tmp_path), getoption=lambda _: "runs", option=SimpleNamespace()
    )
    chaos: Any = plugin.Chaos(SimpleNamespace(config=config), None)  # type: ignore[arg-type]
    with pytest.raises(PlanError) as refused:
        chaos.run(WRONG)
    assert all(sentence in str(refused.value) for sentence in IN_THE_PLAN)
    assert not (tmp_path / "runs").exists()
    assert runner.preflight is preflight


def test_a_scenario_lists_all_that_is_wrong_with_it() -> None:
    data = {
        "name": " ",
        "topics": [{"name": "a/b"}, {"name": "orders", "partitons": 3}],
        "group": {"protocol": "lazy", "spare": -1},
        "workload": "poll_loop_",
        "schedule": [{"at": 1, "fault": "no-such"}],
        "brokers": "three",
        "colour": "red",
    }
    with pytest.raises(ScenarioError) as refused:
        Scenario.from_json(data)
    for sentence in (
        "'a/b'",
        "'partitons'",
        "'lazy'",
        "-1 spare",
        "no workload",
        "no fault",
        "brokers must be",
        "colour",
    ):
        assert sum(sentence in str(one) for one in refused.value.each) == 1, (sentence, str(refused.value))


def test_errors_that_were_gathered_are_listed_once_and_one_alone_is_itself() -> None:
    first, second = PlanError("first"), ScenarioError("second")
    complaints = Complaints()
    for error in (first, second, ScenarioError("second")):
        with complaints.gather(ScenarioError):
            raise error
    with pytest.raises(PlanError, match="2 things are wrong:\n- first\n- second") as refused:
        complaints.refuse()
    assert [*map(str, refused.value.each)] == ["first", "second"]
    with pytest.raises(ScenarioError) as alone:
        refuse([second])
    assert alone.value is second
    refuse([])
