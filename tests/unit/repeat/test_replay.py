"""A run folder says how to perform it again: its plan, and what its steps really hit."""

from __future__ import annotations

import os
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import stage
from stage import Shell

from fencepost.errors import RunFolderError, ScenarioError
from fencepost.evidence.sealing import parquet_events
from fencepost.faults import BlackHole, MoveCoordinator, Pause, ScaleOut
from fencepost.history import EventKind
from fencepost.history.run_folder import RunFolder
from fencepost.interfaces import Target
from fencepost.model import Validity
from fencepost.model.topic import Topic
from fencepost.repeat import batch, replay
from fencepost.scenario.scenario import Group, Scenario
from fencepost.schedule.entries import at, every
from fencepost.schedule.plan import Plan
from fencepost.targets import all_members, brokers, coordinator, idle, member, members, one_member
from fencepost.workloads import PollLoop
from fencepost_member.recording.events import EventLog

V = Validity
SCENARIO = Scenario(
    name="orders",
    about="what it shows",
    topics=[Topic("orders", partitions=4)],
    group=Group(members=3),
    workload=PollLoop(),
    schedule=[
        at(0, MoveCoordinator()),
        at(1, Pause(), all_members()),
        at(2, BlackHole(), coordinator()),
        every(4, Pause(), one_member(), until_s=8, heal_after=2),
    ],
)
HIT = ["", Target(members=(0, 2)), Target(brokers=(3,)), Target(members=(10,))]  # by step; nothing for the last one


def run_of(tmp_path: Path, plan: Plan, hit: list[Any] = HIT) -> Path:
    folder = stage.run_folder(tmp_path, SCENARIO, plan)
    log = EventLog(folder.history / "events" / "harness.jsonl", "harness")
    for step, target in enumerate(hit):
        log.note(EventKind.FAULT, detail={"step": step, "fault": "any", "target": str(target)})
    log.note(EventKind.SKIPPED, detail={"step": len(hit), "fault": "any", "reason": "nothing matched"})
    rows = parquet_events.read_rows(folder.history / "events" / "harness.jsonl")[0]
    parquet_events.write(folder.path / replay.EVENTS, rows)
    return folder.path


@pytest.mark.parametrize("name", ["scenario.json", "plan.json", replay.EVENTS])
def test_what_is_no_file_is_named_and_not_waited_for(tmp_path: Path, name: str) -> None:
    run = run_of(tmp_path, SCENARIO.plan(5))
    outside = (run / name).replace(tmp_path / "outside")
    for stand_in in (os.mkfifo, lambda path: path.symlink_to(outside)):
        stand_in(run / name)
        with pytest.raises(RunFolderError, match=f"{re.escape(name)} .*(named pipe|out of the run folder)"):
            replay.pinned(replay.load(run)[1], run)
        (run / name).unlink()


def test_the_plan_that_was_made_is_read_and_not_drawn_anew(tmp_path: Path) -> None:
    drawn = SCENARIO.plan(5)
    plan = replace(drawn, steps=tuple(replace(step, pick=0.5) for step in drawn.steps))
    scenario, again = replay.load(run_of(tmp_path, plan))
    assert again == plan
    assert scenario.plan(5) == drawn


def test_targets_are_pinned_to_what_was_hit(tmp_path: Path) -> None:
    plan = SCENARIO.plan(5)
    pinned = replay.pinned(plan, run_of(tmp_path, plan))
    assert [step.target for step in pinned.steps] == [
        None,
        members((0, 2)),
        brokers((3,)),
        members((10,)),
        one_member(),
    ]
    assert replace(pinned, steps=()) == replace(plan, steps=())


def test_idle_members_are_chosen_anew_for_no_selector_names_them(tmp_path: Path) -> None:
    spare = replace(SCENARIO, group=replace(SCENARIO.group, spare=2), schedule=[at(1, ScaleOut(), idle(2))])
    plan = spare.plan(5)
    assert replay.pinned(plan, run_of(tmp_path, plan, [Target(members=(3, 4))])) == plan


@pytest.mark.parametrize(
    ("file", "text", "error", "sentence"),
    [
        ("scenario.json", None, RunFolderError, "scenario.json is missing"),
        ("plan.json", "{}", RunFolderError, "format version None"),
        ("plan.json", '{"format_version": 1, "seed": 1}', ScenarioError, "a plan needs its steps"),
        ("scenario.json", '{"format_version": 1}', ScenarioError, "a scenario must be a table, but found None"),
    ],
)
def test_what_is_missing_or_damaged_is_named(
    tmp_path: Path, file: str, text: str | None, error: type[Exception], sentence: str
) -> None:
    run = run_of(tmp_path, SCENARIO.plan(5))
    (run / file).unlink()
    if text is not None:
        (run / file).write_text(text)
    with pytest.raises(error, match=sentence):
        replay.load(run)


def test_a_plan_that_does_not_fit_its_scenario_is_refused(
    shell: Shell, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    acted, drawn = stage.set_up(monkeypatch), SCENARIO.plan(5)
    run = run_of(tmp_path, replace(drawn, steps=(*drawn.steps[:1], replace(drawn.steps[1], target=member(7)))))
    for command in ("replay", "shrink"):
        RunFolder.open(run).write_verdict(stage.verdict(V.INVALID))
        code, _, err = shell(command, run)
        assert code == 2
        assert "there is no member 7; there are 0 to 2" in err
    assert acted.sparks == []


def test_without_events_nothing_is_pinned(tmp_path: Path) -> None:
    run = run_of(tmp_path, SCENARIO.plan(5))
    (run / replay.EVENTS).write_bytes(b"no Parquet")
    with pytest.raises(RunFolderError, match=r"events.parquet does not record what each step hit"):
        replay.pinned(SCENARIO.plan(5), run)


def test_a_replay_performs_the_stored_plan_as_often_as_asked_and_tells_the_rate(
    shell: Shell, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    acted = stage.set_up(monkeypatch, V.VALID, V.INVALID, V.UNKNOWN)
    plan = SCENARIO.plan(5)
    code, out, _ = shell("replay", run_of(tmp_path, plan), "--repeat", 3)
    assert code == 1
    assert acted.plans == [plan] * 3
    assert acted.scenarios[0] == replace(SCENARIO, promises=SCENARIO.judged_by())
    assert "3 runs: 1 valid, 1 unknown, 1 invalid; promises were broken in 1 of 2 (50 %; with 95 % confidence" in out


def test_an_exact_replay_pins_what_was_hit(shell: Shell, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    acted = stage.set_up(monkeypatch, V.VALID)
    hit = [*HIT[:3], Target(members=(1,))]
    code, out, _ = shell("replay", run_of(tmp_path, SCENARIO.plan(5), hit), "--exact")
    assert code == 0
    assert acted.plans[0].steps[2].target == brokers((3,))
    assert "black_hole on brokers for 5 s" in out


@pytest.mark.parametrize(
    ("failed", "of", "reported"),
    [
        (0, 10, "0 of 10 (0 %; with 95 % confidence 0 to 28 %)"),
        (3, 10, "3 of 10 (30 %; with 95 % confidence 11 to 60 %)"),
        (1, 1, "1 of 1 (100 %; with 95 % confidence 21 to 100 %)"),
    ],
)
def test_a_rate_is_told_with_its_interval(failed: int, of: int, reported: str) -> None:
    """The values of Wilson's score interval are those of its published tables."""
    assert batch.rate(failed, of) == reported


def test_runs_that_tell_nothing_have_no_rate() -> None:
    assert batch.tally([V.UNKNOWN, V.UNKNOWN]) == "2 runs: 0 valid, 2 unknown, 0 invalid"
