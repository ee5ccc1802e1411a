"""Changes to a scenario by path, as in the command line's ``--set path=value``."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from fencepost.errors import ScenarioError
from fencepost.scenario.scenario import Scenario


def override(scenario: Scenario, settings: Iterable[str]) -> Scenario:
    """``scenario`` with every ``path=value`` of ``settings`` applied, in order.

    A path names a place in the scenario's JSON: ``group.members``, ``topics.0.partitions``,
    ``group.config.session.timeout.ms`` (the rest after ``config`` is one name). A value is JSON, or else a string. A
    number stays a string if it replaces a string (``group.python=3.10``).

    Raises:
        ScenarioError: there is no such place, or the value does not fit; the message lists what exists.
    """
    settings = list(settings)
    if not settings:
        return scenario
    data = scenario.to_json()
    if not scenario.promises:
        del data["promises"]  # the workload's own, which may change with it
    data = json.loads(json.dumps(data))
    for setting in settings:
        path, separator, value = setting.partition("=")
        if not separator or not path:
            raise ScenarioError(f"--set needs path=value, for example group.members=6, but found {setting!r}")
        _put(data, path, value, path)
    return Scenario.from_json(data)


def _put(place: Any, path: str, text: str, whole: str) -> None:
    name, _, rest = path.partition(".")
    if isinstance(place, list):
        if not name.isdecimal() or int(name) >= len(place):
            raise ScenarioError(
                f"--set {whole}: {name!r} is not an index; there are {len(place)} items, counted from 0"
            )
        key: Any = int(name)
    elif isinstance(place, dict):
        key = name
    else:
        raise ScenarioError(f"--set {whole}: there is nothing below {place!r}")
    if not rest:
        before = place[key] if isinstance(place, list) else place.get(key)
        place[key] = _value(text, isinstance(before, str))
    elif name.endswith("config"):
        inner = place.get(key)
        place[key] = {**(inner if isinstance(inner, dict) else {}), rest: _value(text)}
    elif isinstance(place, Mapping) and name not in place:
        raise ScenarioError(f"--set {whole}: there is no {name!r}; there are {', '.join(place)}")
    else:
        _put(place[key], rest, text, whole)


def _value(text: str, string: bool = False) -> Any:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return text
    return text if string and isinstance(value, int | float) and not isinstance(value, bool) else value
