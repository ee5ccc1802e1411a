"""What is for another day is for the nightly run today, and each back-end has its tests on both days."""

from pathlib import Path

import pytest
import rotation
from rotation import TURNS

HERE = Path(__file__).parents[1]


def test_files_that_take_turns_are_there_and_each_back_end_has_some_on_both_days() -> None:
    there = {path.name for folder in ("cluster", "examples") for path in (HERE / folder).glob("test_*.py")}
    assert TURNS[0] | TURNS[1] <= there
    assert not TURNS[0] & TURNS[1]
    for backend in ("test_attach", "test_docker_"):
        assert all(any(name.startswith(backend) for name in turn) for turn in TURNS)


@pytest.mark.parametrize("day", [0, 1])
def test_only_files_of_this_day_and_those_of_each_day_are_performed(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, day: int
) -> None:
    monkeypatch.setattr(rotation, "DAY", day)
    monkeypatch.setattr(rotation, "TURNS", ({"test_even.py"}, {"test_odd.py"}))
    pytester.makeini("[pytest]\nmarkers = slow: belongs to the nightly run")
    pytester.makepyfile(**dict.fromkeys(("test_even", "test_odd", "test_always"), "def test_it(): pass"))
    run = pytester.inline_run("-m", "not slow", plugins=[rotation.Rotation()])
    performed = {report.nodeid.partition(".")[0] for report in run.getreports("pytest_runtest_logreport")}
    assert performed == {"test_always", ("test_even", "test_odd")[day]}
