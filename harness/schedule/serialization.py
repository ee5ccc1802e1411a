"""The lines of a schedule as plain values, and back, for ``scenario.json`` and TOML scenarios.

A step has a ``fault``; a combined entry, a swarm and a quiet span have a ``type``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fencepost.errors import ScenarioError
from fencepost.model import serialization
from fencepost.schedule.combinators import Mix, RollingBounce, RollingDeploy, Sequence, Together
from fencepost.schedule.entries import WITHIN_S, PastSession, ScheduledFault, Until
from fencepost.schedule.planning import Entry, Quiet
from fencepost.schedule.swarm import Swarm

__all__ = ["Mix", "Quiet", "RollingBounce", "RollingDeploy", "Sequence", "Swarm", "Together"]  # by type

NESTED_MAX = 10  # parts of parts of parts


def entry_to_json(entry: Entry | Quiet) -> dict[str, Any]:
    """An entry as plain values."""
    if not isinstance(entry, ScheduledFault):
        data = serialization.encode(entry)
        return {**data, "parts": [entry_to_json(part) for part in entry.parts]} if "parts" in data else data  # type: ignore[union-attr]
    data = {k: v for k, v in vars(entry).items() if v is not None}
    data["fault"] = serialization.encode(entry.fault)
    if entry.target is not None:
        data["target"] = serialization.encode(entry.target)
    if entry.when is not None:
        data["when"] = serialization.encode(entry.when)
    if entry.heal_after is not None:
        data["heal_after"] = _time_to_json(entry.heal_after)
    return data


def _time_to_json(time: float | PastSession | Until) -> Any:
    if isinstance(time, Until):
        return {"until": serialization.encode(time.state), "at_most": _time_to_json(time.at_most)}
    return {"past_session": time.factor} if isinstance(time, PastSession) else time


def entry_from_json(data: Any, nested: int = 0) -> Any:
    """``at_s`` (or ``at``), or ``every_s`` (or ``every``) with ``until_s``; fault and target by name or as tables.

    A part may omit its time: it begins at its turn.

    Raises:
        ScenarioError: an option is unknown, missing or wrong; lists the valid ones.
    """
    parts = dict(serialization.check_type(data, Mapping[str, Any], "a step of the schedule"))
    if nested > NESTED_MAX:
        raise ScenarioError(f"entries of the schedule are nested more than {NESTED_MAX} deep")
    for short, name in (("at", "at_s"), ("every", "every_s")):
        if short in parts and name in parts:
            raise ScenarioError(f"a step of the schedule has both {short} and {name}, which mean the same: keep {name}")
        if short in parts:
            parts[name] = parts.pop(short)
    if "every_s" in parts:
        parts.setdefault("at_s", parts["every_s"])
    if "type" in parts:
        if "parts" in parts:
            several = serialization.check_type(parts["parts"], tuple[Any, ...], f"{parts['type']}: parts")
            parts["parts"] = [entry_from_json(part, nested + 1) for part in several]
        return serialization.decode("schedule entry", parts)
    return _step_from_json(parts if not nested else {"at_s": 0, **parts})


def _step_from_json(parts: dict[str, Any]) -> ScheduledFault:
    if "fault" not in parts:
        types = ", ".join(serialization.registry("schedule entry"))
        raise ScenarioError(f"a step of the schedule needs a fault, or a type ({types}): {parts!r}")
    parts["fault"] = serialization.decode("fault", parts["fault"])
    if "target" in parts:
        parts["target"] = serialization.decode("target", parts["target"])
    if "when" in parts:
        parts = {"at_s": 0, "within_s": WITHIN_S, **parts, "when": serialization.decode("state", parts["when"])}
    if "heal_after" in parts:
        parts["heal_after"] = _time_from_json(parts["heal_after"])
    step: ScheduledFault = serialization.from_mapping(ScheduledFault, parts, "a step of the schedule")
    return step


def _time_from_json(data: Any) -> Any:
    if isinstance(data, int | float):
        return data
    parts = dict(data) if isinstance(data, Mapping) else {}
    if set(parts) == {"past_session"}:
        return serialization.from_mapping(PastSession, {"factor": parts["past_session"]}, "past_session")
    if "until" in parts:
        options = {"state": serialization.decode("state", parts.pop("until")), **parts}
        if "at_most" in options:
            options["at_most"] = _time_from_json(options["at_most"])
        return serialization.from_mapping(Until, options, "until")
    raise ScenarioError(f'found heal_after {data!r}; use seconds, {{ past_session = 1.5 }} or {{ until = "fenced" }}')
