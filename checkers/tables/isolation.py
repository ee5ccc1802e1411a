"""Which members may be given what was aborted: those whose consumers do not ask for what is committed alone. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from fencepost.history import EventKind
from fencepost.history.events import Event
from fencepost.model.isolation import UNCOMMITTED, reads

EXCUSES = {
    UNCOMMITTED: "its consumer reads what is not committed",
    "": "nobody knows whether its consumer reads what is not committed",
}


def uncommitted(events: Iterable[Event], asked: Mapping[str, Any]) -> dict[str, str]:
    """By incarnation the excuse for who is given what was aborted; who reads what is committed alone has none.

    ``asked`` is the scenario, whose settings are those of members that do not tell what their consumer was made with.
    """
    config = (asked.get("group") or {}).get("config") or {}
    started = ((e["actor"], e["detail"]) for e in events if e["kind"] == EventKind.STARTED and "member" in e["detail"])
    levels = ((incarnation, reads(detail, config)) for incarnation, detail in started)
    return {incarnation: EXCUSES[level] for incarnation, level in levels if level in EXCUSES}
