"""What failed is performed again and made smaller, by the commands that a report names, on real clusters."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from fencepost import Group, Scenario, Topic, at, past_session
from fencepost.faults import Bounce, CutConnections, Latency, Pause
from fencepost.repeat.replay import fired
from fencepost.targets import coordinator, member, owner_of
from fencepost.workloads import PollLoop

pytestmark = [pytest.mark.cluster, pytest.mark.spark]
GROUP = Group(members=3, config={"session.timeout.ms": 6000, "heartbeat.interval.ms": 500})
COMMAND_S = 900.0
VALID, INVALID = 0, 1


def command(folder: Path, *words: str | Path) -> tuple[int, str]:
    """A command as a user gives it: its exit code, and what it said."""
    argv = [sys.executable, "-m", "fencepost", *map(str, words), "--cluster", "local", "--runs", str(folder)]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=COMMAND_S, check=False)
    return done.returncode, done.stdout + done.stderr


def first(folder: Path, scenario: Scenario, *options: str) -> tuple[int, Path]:
    """The first run of a scenario, and its exit code."""
    asked = folder / "scenario.json"
    asked.write_text(json.dumps(scenario.to_json()))
    code, said = command(folder / "first", "run", asked, "--seed", "5", *options)
    runs = [*(folder / "first").iterdir()]
    assert len(runs) == 1, said
    return code, runs[0]


def plan_of(run: Path) -> list[dict[str, Any]]:
    steps: list[dict[str, Any]] = json.loads((run / "plan.json").read_text())["steps"]
    return steps


def test_an_exact_replay_hits_whom_the_first_run_hit(tmp_path: Path) -> None:
    places = [f"orders-{partition}" for partition in range(3)]
    scenario = Scenario(
        name="whoever it is",
        topics=[Topic("orders", partitions=6)],
        group=GROUP,
        workload=PollLoop(rate_hz=500),
        schedule=[
            *(at(1 + 2 * n, Pause(), owner_of(place), heal_after=0.5) for n, place in enumerate(places)),
            at(8, Pause(), coordinator(), heal_after=1),
        ],
        min_records=1000,
    )
    code, run = first(tmp_path, scenario, "--no-check")
    assert code == VALID
    hit = [step["target"] for step in fired(run)]
    assert len(hit) == 4
    code, said = command(tmp_path / "again", "replay", run, "--exact")
    assert code == VALID, said
    (again,) = (tmp_path / "again").iterdir()
    assert {step["target"]["type"] for step in plan_of(again)} == {"members", "brokers"}
    assert [step["target"] for step in fired(again)] == hit


@pytest.mark.timeout(1200)  # a dozen runs
def test_a_plan_is_shrunk_to_the_two_steps_that_break_the_promise(tmp_path: Path) -> None:
    scenario = Scenario(
        name="two of four",
        topics=[Topic("orders", partitions=6)],
        group=replace(GROUP, protocol="eager"),  # whatever it has is revoked in each rebalance
        workload=PollLoop(rate_hz=500, planted_bug="once-lost", planted_in=(1,)),
        schedule=[
            at(1, Latency(delay_ms=100), member(2), heal_after=1),
            at(3, Pause(), member(1), heal_after=past_session(1.5), expect="fenced"),
            at(15, CutConnections(), member(2)),
            at(17, Bounce(), member(0), heal_after=1),
        ],
        min_records=1000,
    )
    code, run = first(tmp_path, scenario)
    assert code == INVALID
    code, said = command(
        tmp_path / "smaller", "shrink", run, "--minutes", "8", "--failures", "1", "--of", "2", "--rate-runs", "0"
    )
    assert code == VALID, said
    (folder,) = (tmp_path / "smaller").iterdir()
    shrunk = json.loads((folder / "shrunk.json").read_text())
    assert shrunk["kind"] == "commit-regression"
    smallest = folder / shrunk["run"]
    assert [(step["fault"]["type"], step["target"]) for step in plan_of(smallest)] == [
        ("pause", {"type": "member", "index": 1}),
        ("bounce", {"type": "member", "index": 0}),
    ]
    assert json.loads((smallest / "verdict.json").read_text())["validity"] == "invalid"
    assert "without any step" in {tried["what"] for tried in shrunk["tries"] if not tried["fails"]}
