"""Loads scenarios: files of the user, and built-in scenarios."""

from __future__ import annotations

import difflib
import json
import runpy
import tomllib
from pathlib import Path

from fencepost.errors import ScenarioError
from fencepost.scenario.scenario import Scenario

READERS = {".toml": tomllib.loads, ".json": json.loads}
BUILT_IN = Path(__file__).parent / "builtin"


def load(source: str | Path) -> Scenario:
    """A scenario from a file or a built-in name. Files are ``.toml``, ``.json`` (also a run's ``scenario.json``), or
    ``.py``, which defines ``SCENARIO``.

    Raises:
        ScenarioError: the source is wrong; the message says why and lists what exists.
    """
    path = Path(source)
    if not path.suffix:
        name = str(source).replace("-", "_")
        path = BUILT_IN / f"{name}.toml"
        if not path.is_file():
            raise ScenarioError(f"there is no built-in scenario {str(source)!r}; {_nearest(name)}")
    if not path.is_file():
        raise ScenarioError(f"there is no file {path}")
    if path.suffix in READERS:
        try:
            data = READERS[path.suffix](path.read_text(encoding="utf-8"))
        except (OSError, ValueError, RecursionError) as error:
            raise ScenarioError(f"{path} cannot be read: {error}") from error
        return Scenario.from_json(data.get("scenario", data) if isinstance(data, dict) else data)
    if path.suffix != ".py":
        raise ScenarioError(f"{path}: a scenario is a .toml, .json or .py file, or the name of a built-in one")
    try:
        scenario = runpy.run_path(str(path)).get("SCENARIO")
    except Exception as error:  # the file may raise anything
        raise ScenarioError(f"{path} cannot be run: {type(error).__name__}: {error}") from error
    if not isinstance(scenario, Scenario):
        raise ScenarioError(f"{path} defines no SCENARIO = Scenario(...)")
    return scenario


def _nearest(name: str) -> str:
    """A hint with the scenarios that contain this name, or else look like it."""
    known = built_in()
    near = [one for one in known if name in one] or difflib.get_close_matches(name, known, n=5)
    return f"the nearest are {', '.join(near)}" if near else "fencepost list scenarios shows all of them"


def built_in() -> list[str]:
    """The names of the built-in scenarios."""
    return sorted(path.stem for path in BUILT_IN.glob("*.toml"))
