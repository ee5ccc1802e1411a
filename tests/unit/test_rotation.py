"""What is for another day is for the nightly run today, and each back-end has its tests every day."""

from pathlib import Path

import pytest
import rotation
from rotation import FOLDERS, TURNS

HERE = Path(__file__).parents[1]


def test_files_that_take_turns_are_there_and_each_back_end_has_some_every_day() -> None:
    there = {path.name for folder in FOLDERS for path in (HERE / folder).glob("test_*.py")}
    assert set().union(*TURNS) <= there
    assert sum(map(len, TURNS)) == len(set().union(*TURNS))
    for backend in ("test_attach", "test_docker_"):
        assert all(any(name.startswith(backend) for name in turn) for turn in TURNS)


@pytest.mark.parametrize("day", [0, 1])
def test_only_files_of_this_day_and_those_of_each_day_are_performed(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, day: int
) -> None:
    monkeypatch.setattr(rotation, "DAY", day)
    monkeypatch.setattr(rotation, "TURNS", ({"test_even.py"}, {"test_odd.py"}))
    pytester.makeini("[pytest]\nmarkers = slow: belongs to the nightly run")
    names = ("cluster/test_even", "cluster/test_odd", "cluster/test_always", "unit/test_even", "unit/test_odd")
    for name in names:
        pytester.path.joinpath(name).parent.mkdir(exist_ok=True)
        pytester.path.joinpath(f"{name}.py").write_text("def test_it(): pass")
    options = ("-m", "not slow", "--import-mode=importlib")
    run = pytester.inline_run(*options, plugins=[rotation.Rotation()])
    performed = {report.nodeid.partition(".")[0] for report in run.getreports("pytest_runtest_logreport")}
    assert performed == {*names} - {names[1 - day]}
