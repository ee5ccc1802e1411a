"""No verdict changes: every run and every hand-written history that is kept is judged as it was when it was kept."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from history.test_kinds import Story

from corpus import frozen
from fencepost.scenario.loader import BUILT_IN

STORIES = json.loads(frozen.STORIES_FROZEN.read_text())


@pytest.mark.parametrize("archive", sorted(frozen.RUNS.glob("*.tar.xz")), ids=lambda path: path.name)
def test_a_run_is_judged_as_ever(tmp_path: Path, archive: Path) -> None:
    was = json.loads(Path(str(archive).replace(".tar.xz", ".json")).read_text())
    assert frozen.verdict(frozen.unpacked(archive, tmp_path)) == frozen.today(was)


@pytest.mark.parametrize("story", frozen.STORIES, ids=lambda story: story.__name__)
def test_a_hand_written_history_is_judged_as_ever(tmp_path: Path, story: Story) -> None:
    verdicts = {name: frozen.verdict_of(*way, tmp_path / name) for name, way in frozen.ways(story).items()}
    assert verdicts == {name: frozen.today(STORIES[f"{story.__name__}/{name}"]) for name in verdicts}


def test_a_run_of_each_built_in_scenario_is_kept() -> None:
    kept = {path.name.removesuffix(".tar.xz") for path in frozen.RUNS.glob("*.tar.xz")}
    assert kept == {path.stem for path in BUILT_IN.glob("*.toml")}


def test_every_hand_written_history_is_kept() -> None:
    assert {f"{story.__name__}/{name}" for story in frozen.STORIES for name in frozen.ways(story)} == {*STORIES}
