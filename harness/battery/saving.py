"""Writes a scenario as a TOML file, which ``fencepost run`` and the pytest plugin read."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import tomli_w

from fencepost.errors import ScenarioError
from fencepost.history.atomic import replacing
from fencepost.scenario.scenario import Scenario

SUFFIX = ".toml"


def check(path: Path) -> None:
    """Refuse a place for a scenario before any work is done for it.

    Raises:
        ScenarioError: it does not end with ``SUFFIX``, or its folder does not exist.
    """
    if path.suffix != SUFFIX:
        raise ScenarioError(f"found --save {path}; a scenario is saved as TOML: use a name that ends with {SUFFIX}")
    if not path.parent.is_dir():
        raise ScenarioError(f"found --save {path}, but there is no folder {path.parent}: make it, or name another one")


def save(scenario: Scenario, path: Path) -> None:
    """Write the scenario; options that are empty are left out. Raises OSError."""
    plain = _without_empty(scenario.to_json())
    with replacing(path) as draft:
        draft.write_text(tomli_w.dumps(plain), encoding="utf-8")


def _without_empty(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {name: kept for name, one in value.items() if not _empty(kept := _without_empty(one))}
    if isinstance(value, list | tuple):
        return [_without_empty(one) for one in value]
    return value


def _empty(value: Any) -> bool:
    return value is None or value is False or value in ("", [], {})
