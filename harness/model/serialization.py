"""Frozen dataclasses to plain JSON values and back, strictly: an option that is unknown, missing or of another type is
an error that says what was expected; all wrong options are one error.

This does not use msgspec: every test module that names a scenario loads this module, and pytest must load the standard
library alone (``tests/test_layout.py``).

Plug-ins (faults, targets, workloads, promises) are stored as ``{"type": <name>, <option>: <value>, ...}`` and found by
that name: a new file needs no registration.
"""

from __future__ import annotations

import dataclasses
import functools
import importlib
import pkgutil
import reprlib
from collections.abc import Collection, Mapping
from types import NoneType, UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints

from fencepost.errors import Complaints, ScenarioError, refuse

# Family -> the place of its classes: a package with one module each, or one module for all.
FAMILIES = {
    "fault": "fencepost.faults",
    "target": "fencepost.schedule.selectors",
    "state": "fencepost.schedule.protocol_states",
    "schedule entry": "fencepost.schedule.serialization",
    "workload": "fencepost.workloads",
    "promise": "fencepost.checkers.promises",
}
WORDS = {int: "a whole number", float: "a number", str: "text", bool: "true or false", NoneType: "nothing"}
WORDS |= {tuple: "a list", Mapping: "a table"}
NUMBER_MAX = 2**53  # the limit of exact numbers in JSON; also excludes infinity and "not a number"


def snake(name: str) -> str:
    """``MoveCoordinator`` -> ``move_coordinator``."""
    return "".join(f"_{c.lower()}" if c.isupper() and i else c.lower() for i, c in enumerate(name))


def name_of(plug_in: Any) -> str:
    """Its name in scenarios, records and reports: ``move_coordinator``."""
    return snake(type(plug_in).__name__)


def registry(family: str) -> dict[str, type[Any]]:
    """All plug-ins of a family by name: classes that its package exports from modules of that name, or its module."""
    home = importlib.import_module(FAMILIES[family])
    found = {snake(name): getattr(home, name) for name in home.__all__}
    modules = {module.name for module in pkgutil.iter_modules(home.__path__)} if hasattr(home, "__path__") else found
    return {name: cls for name, cls in sorted(found.items()) if name in modules and isinstance(cls, type)}


def encode(value: Any) -> dict[str, Any]:
    """A plug-in as plain values."""
    fields = {f.name: _plain(getattr(value, f.name)) for f in dataclasses.fields(value)}
    return {"type": name_of(value), **fields}


def decode(family: str, data: Any) -> Any:
    """A plug-in from ``{"type": ..., options}``, or only its name.

    Raises:
        ScenarioError: no such plug-in or option, or a wrong value; lists the valid ones.
    """
    options = {"type": data} if isinstance(data, str) else check_type(data, Mapping[str, Any], f"a {family}")
    classes = registry(family)
    if not isinstance(options.get("type"), str):
        raise ScenarioError(f"a {family} needs its type; known are {', '.join(classes)}")
    name = options["type"].replace("-", "_")
    if name not in classes:
        raise ScenarioError(f"there is no {family} {name!r}; known are {', '.join(classes)}")
    return from_mapping(classes[name], {k: v for k, v in options.items() if k != "type"}, f"{family} {name}")


def from_mapping(cls: type[Any], options: Any, what: str) -> Any:
    """``cls(**options)``, refusing options that are unknown, missing or of another type.

    Raises:
        ScenarioError: names the wrong options, what they must be, and the valid ones.
    """
    return cls(**check_options(cls, options, what))


def check_options(cls: type[Any], options: Any, what: str, read: Collection[str] = ()) -> dict[str, Any]:
    """The options for ``cls``, with lists as tuples. Options named in ``read`` are neither checked nor required.

    Raises:
        ScenarioError: see ``from_mapping``.
    """
    options, complaints = check_type(options, Mapping[str, Any], what), Complaints()
    fields = {f.name: f for f in dataclasses.fields(cls)}
    for name in sorted(set(options) - set(fields)):
        complaints.found.append(ScenarioError(f"{what} has no option {name!r}; it has {', '.join(fields) or 'none'}"))
    for name, f in fields.items():
        needed = f.default is dataclasses.MISSING and f.default_factory is dataclasses.MISSING
        if needed and name not in options and name not in read:
            complaints.found.append(ScenarioError(f"{what} needs the option {name!r}"))
    types, fitting = _annotations(cls), {}  # type: ignore[arg-type]  # which is hashable
    for name in (name for name in options if name in fields and name not in read):
        with complaints.gather(ScenarioError):
            fitting[name] = check_type(options[name], types.get(name, Any), f"{what}: {name}")
    complaints.refuse()
    return fitting


def validate_fields(instance: Any) -> None:
    """Check every option of a frozen dataclass as ``from_mapping`` does; lists become tuples. For its
    ``__post_init__``.

    Raises:
        ScenarioError: names the wrong options and what they must be.
    """
    wrong: list[ScenarioError] = []
    for name, annotation in _annotations(instance.__class__).items():
        try:  # without ``Complaints``, for speed: each drawn step is checked
            value = check_type(getattr(instance, name), annotation, f"{type(instance).__name__}.{name}")
            object.__setattr__(instance, name, value)
        except ScenarioError as error:
            wrong.append(error)
    refuse(wrong)


def check_type(value: Any, annotation: Any, what: str) -> Any:
    """``value``, if it fits the annotation, with lists as tuples and everything inside checked.

    Raises:
        ScenarioError: says what was expected and what was found.
    """
    arms = get_args(annotation) if get_origin(annotation) in (Union, UnionType) else (annotation,)
    arm = next((arm for arm in arms if _suits(value, arm)), None)
    if arm is None:
        found = f"the class {value.__name__} itself" if isinstance(value, type) else reprlib.repr(value)
        raise ScenarioError(f"{what} must be {_any_of(arms)}, but found {found}")
    kind, inner = get_origin(arm), get_args(arm)
    if kind is tuple:
        return tuple(check_type(item, inner[0], f"{what}[{number}]") for number, item in enumerate(value))
    if kind is Mapping:
        return {
            check_type(k, inner[0], f"{what}: a name"): check_type(v, inner[1], f"{what}.{k}") for k, v in value.items()
        }
    if dataclasses.is_dataclass(value):
        validate_fields(value)
    return value


# Class of a value and type of an option -> whether it is an instance of it. Protocols are slow to check, and a swarm
# checks thousands of steps: drawing one takes a third less time.
_SATISFIED: dict[tuple[type, type], bool] = {}


def _suits(value: Any, annotation: Any) -> bool:
    kind = get_origin(annotation) or annotation
    if kind is Any or not isinstance(kind, type):  # an annotation that is more than a type is checked by the class
        return True
    if isinstance(value, bool | type):
        return isinstance(value, bool) and kind is bool
    if isinstance(value, int | float) and not abs(value) <= NUMBER_MAX:
        return False
    if kind is tuple or kind is float:
        return isinstance(value, list | tuple if kind is tuple else int | float)
    satisfied = _SATISFIED.get((type(value), kind))
    if satisfied is None:
        satisfied = _SATISFIED[type(value), kind] = isinstance(value, kind)
    return satisfied


def _any_of(arms: tuple[Any, ...]) -> str:
    kinds = [get_origin(arm) or arm for arm in arms]
    words = [WORDS.get(kind) or f"a value of the type {kind.__name__}" for kind in kinds]
    return " or ".join(filter(None, (", ".join(words[:-1]), words[-1])))


@functools.cache
def _annotations(cls: type[Any]) -> dict[str, Any]:
    """The type of each option; empty where an annotation cannot be resolved here."""
    try:
        hints = get_type_hints(cls)
    except NameError:
        return {}
    return {f.name: hints[f.name] for f in dataclasses.fields(cls)}


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(k): _plain(v) for k, v in value.items()}
    if isinstance(value, tuple | list | frozenset):
        return [_plain(v) for v in value]
    return value
