"""Whatever a reader is told of a hand-written history (sentences, witnesses, measures, names of fields) stays as it was
approved: see ``approved``."""

from __future__ import annotations

from pathlib import Path

import pytest

from history.approved import APPROVED, approved, told
from history.test_commit_kinds import STORIES
from history.test_kinds import Story


@pytest.mark.parametrize("story", STORIES, ids=lambda story: story.__name__)
def test_a_wrong_history_is_told_as_it_was_approved(tmp_path: Path, story: Story) -> None:
    assert told(tmp_path, story) == approved(story).read_text(encoding="utf-8")


def test_nothing_is_approved_that_nobody_tells() -> None:
    assert {*APPROVED.iterdir()} == {*map(approved, STORIES)}
