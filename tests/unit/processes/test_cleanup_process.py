"""The process that cleans up elsewhere: whatever goes wrong there, somebody is told."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from fencepost.processes.cleanup_process import FAILED, CleanupProcess

MODULE = "some_cleanup"
# Does what the task says.
PERFORMING = """
import os, sys
from fencepost.processes.cleanup_process import serve

def perform(task, died):
    print("a library's warning", file=sys.stderr, flush=True)
    if task.strip() == "fail":
        raise KeyError("a\\nsurprise")
    if task.strip() == "end":
        os._exit(9)
    return [f"topic {task.strip()}, died: {died}"]

serve(perform)
"""
# A harness that is killed.
DYING = f"""
import os, sys
from fencepost.processes.cleanup_process import CleanupProcess
cleaner = CleanupProcess({MODULE!r}, sys.argv[1])
os._exit(0)
"""


@pytest.fixture(autouse=True)
def _performing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / f"{MODULE}.py").write_text(PERFORMING)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path), prepend=os.pathsep)


def test_the_harness_is_told_what_is_left(capfd: pytest.CaptureFixture[str]) -> None:
    cleaner = CleanupProcess(MODULE, "orders")
    assert cleaner.finish(30) == ["topic orders, died: False"]
    assert cleaner.finish(30) == []
    assert cleaner._process.returncode == 0
    assert capfd.readouterr().err == ""


def test_an_unexpected_error_is_told_and_shown(capfd: pytest.CaptureFixture[str]) -> None:
    cleaner = CleanupProcess(MODULE, "fail")
    (told,) = cleaner.finish(30)
    assert told == r"what was not removed before the clean-up failed (KeyError: 'a\nsurprise')"
    assert cleaner._process.returncode == FAILED
    assert "Traceback" in capfd.readouterr().err


def test_a_process_that_ends_without_a_word_is_told() -> None:
    (told,) = CleanupProcess(MODULE, "end").finish(30)
    assert told == "what the clean-up did not remove before it ended with exit code 9"


@pytest.mark.parametrize(
    ("task", "told"),
    [
        ("orders", "fencepost left behind: topic orders, died: True"),
        ("fail", "fencepost left behind: what was not removed before the clean-up failed (KeyError: "),
    ],
)
def test_what_a_dead_harness_cannot_tell_is_on_its_standard_error(task: str, told: str) -> None:
    died = subprocess.run([sys.executable, "-c", DYING, task], capture_output=True, text=True, timeout=60, check=True)
    assert told in died.stderr
    assert "a library's warning" not in died.stderr
