"""The members that may receive aborted records: their consumers do not read with ``read_committed``. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from fencepost.history import EventKind
from fencepost.history.events import Event
from fencepost.model.isolation import UNCOMMITTED, reads

EXCUSES = {
    UNCOMMITTED: "its consumer reads uncommitted records",
    "": "it is unknown whether its consumer reads uncommitted records",
}


def uncommitted(events: Iterable[Event], asked: Mapping[str, Any]) -> dict[str, str]:
    """The excuse for received aborted records, by incarnation; none for a consumer that reads with ``read_committed``.

    ``asked``: the scenario. Its settings count for members that do not report the settings of their consumer.
    """
    config = (asked.get("group") or {}).get("config") or {}
    started = ((e["actor"], e["detail"]) for e in events if e["kind"] == EventKind.STARTED and "member" in e["detail"])
    levels = ((incarnation, reads(detail, config)) for incarnation, detail in started)
    return {incarnation: EXCUSES[level] for incarnation, level in levels if level in EXCUSES}
