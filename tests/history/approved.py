"""What a reader is told of every hand-written wrong history, as it was approved: ``approved/<story>.json``.

After a change of words or shapes on purpose: ``PYTHONPATH=tests .venv/bin/python -m history.approved``, and read the
difference before it is committed.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator
from pathlib import Path

from fencepost.checkers import oracle
from fencepost.checkers.judge import judge
from history.builder import HistoryBuilder
from history.test_commit_kinds import STORIES
from history.test_kinds import Story

APPROVED = Path(__file__).with_name("approved")
PROMISES = [{"type": name} for name in ("delivery", "order", "ownership", "progress", "commits")]


def told(folder: Path, story: Story) -> str:
    """The verdict, without the checks that found nothing."""
    history = HistoryBuilder(folder, 2, promises=PROMISES)
    story(history, True)
    verdict = judge(history.seal(), oracle.detect).to_json()
    verdict["checks"] = [check for check in verdict["checks"] if check["findings"]]
    return json.dumps(verdict, indent=1, ensure_ascii=False) + "\n"


def approved(story: Story) -> Path:
    """Its file."""
    return APPROVED / f"{story.__name__}.json"


def all_told() -> Iterator[tuple[Path, str]]:
    """Of every story the file, and what is to be in it."""
    for story in STORIES:
        with tempfile.TemporaryDirectory() as folder:
            yield approved(story), told(Path(folder), story)


if __name__ == "__main__":
    APPROVED.mkdir(exist_ok=True)
    texts = dict(all_told())
    for file in {*APPROVED.iterdir()} - {*texts}:
        file.unlink()
    for file, text in texts.items():
        file.write_text(text, encoding="utf-8")
