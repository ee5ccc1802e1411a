"""Names that users may have written keep working, and a warning gives the new one. ``FORMER`` lists all of them."""

from __future__ import annotations

import importlib
import subprocess
import sys

import pytest

from fencepost.model.former_names import FORMER, variable
from fencepost.processes import concurrency

ALL = [(place, old, new) for place, names in FORMER.items() for old, new in names.items()]
PACKAGES = sorted(set(FORMER) - {"environment", "module"})


def found(place: str, name: str) -> object:
    """What a name means where it is written."""
    if place == "environment":
        return variable({name: "3"}, FORMER[place].get(name, name))
    if place == "module":
        if name in FORMER[place]:
            sys.modules.pop(name, None)  # it warns when it is imported
        return importlib.import_module(name).processed
    return getattr(importlib.import_module(place), name)


@pytest.mark.parametrize(("place", "old", "new"), ALL)
def test_a_former_name_means_the_same_and_names_the_new_one(place: str, old: str, new: str) -> None:
    present = found(place, new)  # which warns of nothing: here warnings are errors
    with pytest.warns(FutureWarning, match=f"{old}.* is now called {new}: use the new name"):
        former = found(place, old)
    assert former == present


def test_a_present_name_warns_of_nothing() -> None:
    assert variable({"FENCEPOST_MAX_RUNS": "3", "FENCEPOST_PLACES": "4"}, "FENCEPOST_MAX_RUNS") == "3"
    assert variable({}, "FENCEPOST_MAX_RUNS") is None


@pytest.mark.parametrize("package", PACKAGES)
def test_a_name_that_never_was_is_still_an_error(package: str) -> None:
    with pytest.raises(AttributeError, match="has no attribute 'Nothing'"):
        getattr(importlib.import_module(package), "Nothing")  # noqa: B009


def test_the_former_variable_still_says_how_many_runs_go_on_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(concurrency.MAX_RUNS, raising=False)
    monkeypatch.setenv("FENCEPOST_PLACES", "37")
    with pytest.warns(FutureWarning, match="FENCEPOST_MAX_RUNS"):
        assert concurrency.max_concurrent_runs() == 37


def test_a_user_sees_the_warning() -> None:
    done = subprocess.run(
        [sys.executable, "-c", "from fencepost import Members; print(Members(2).count)"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == "2\n"
    assert "Members (fencepost) is now called MemberSpec: use the new name" in done.stderr
