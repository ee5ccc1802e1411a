"""Frozen dataclasses to plain JSON values and back, strictly: an unknown option is an error that says what exists.

Plug-ins (faults, workloads, promises, selectors) are stored as ``{"type": <file name>, <option>: <value>, ...}`` and
found by that name: a new file needs no entry anywhere.
"""

from __future__ import annotations

import dataclasses
import importlib
import pkgutil
from collections.abc import Mapping
from typing import Any

from fencepost.errors import ScenarioError

# Family -> package whose modules are the members of the family, one public class each.
FAMILIES = {"fault": "fencepost.faults", "workload": "fencepost.workloads", "promise": "fencepost.checkers.promises"}


def snake(name: str) -> str:
    """``MoveCoordinator`` -> ``move_coordinator``."""
    return "".join(f"_{c.lower()}" if c.isupper() and i else c.lower() for i, c in enumerate(name))


def camel(name: str) -> str:
    """``move_coordinator`` or ``move-coordinator`` -> ``MoveCoordinator``."""
    return "".join(part.capitalize() for part in name.replace("-", "_").split("_"))


def known(family: str) -> dict[str, type[Any]]:
    """All plug-ins of a family by name: classes that the family's package exports from a module of their name."""
    package = importlib.import_module(FAMILIES[family])
    modules = {module.name for module in pkgutil.iter_modules(package.__path__)}
    found = {snake(name): getattr(package, name) for name in package.__all__}
    return {name: cls for name, cls in sorted(found.items()) if name in modules and isinstance(cls, type)}


def encode(value: Any) -> dict[str, Any]:
    """A plug-in as plain values."""
    fields = {f.name: _plain(getattr(value, f.name)) for f in dataclasses.fields(value)}
    return {"type": snake(type(value).__name__), **fields}


def decode(family: str, data: str | Mapping[str, Any]) -> Any:
    """A plug-in from ``{"type": ..., options}``, or from its name alone.

    Raises:
        ScenarioError: no such plug-in or option; lists what exists.
    """
    options = {"type": data} if isinstance(data, str) else dict(data)
    name = str(options.pop("type", "")).replace("-", "_")
    classes = known(family)
    if name not in classes:
        raise ScenarioError(f"there is no {family} {name!r}; known are {', '.join(classes)}")
    return build(classes[name], options, f"{family} {name}")


def build(cls: type[Any], options: Mapping[str, Any], what: str) -> Any:
    """``cls(**options)``, refusing unknown and missing options by name.

    Raises:
        ScenarioError: says which option is wrong and which exist.
    """
    if not isinstance(options, Mapping):
        raise ScenarioError(f"{what} wants a table of options, but {options!r} came")
    fields = {f.name: f for f in dataclasses.fields(cls)}
    unknown = sorted(set(options) - set(fields))
    if unknown:
        raise ScenarioError(f"{what} has no option {unknown[0]!r}; it has {', '.join(fields) or 'none'}")
    missing = [
        name
        for name, f in fields.items()
        if name not in options and f.default is dataclasses.MISSING and f.default_factory is dataclasses.MISSING
    ]
    if missing:
        raise ScenarioError(f"{what} needs the option {missing[0]!r}")
    values = {name: tuple(v) if isinstance(v, list) else v for name, v in options.items()}
    try:
        return cls(**values)
    except (TypeError, ValueError) as error:
        raise ScenarioError(f"{what} cannot be made from {dict(options)!r}: {error}") from error


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(k): _plain(v) for k, v in value.items()}
    if isinstance(value, tuple | list | frozenset):
        return [_plain(v) for v in value]
    return value
