"""The reset policies that members report: where they begin without a committed offset. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from fencepost.history import EventKind
from fencepost.history.events import Event
from fencepost.model.settings import RESET

AT_THE_END = ("latest", "largest", "end")
USUAL = "latest"  # the default of every client that reports its settings


def resets(events: Iterable[Event]) -> frozenset[str]:
    """The reset policies in the settings that members report; empty if no member reports its settings.

    A consumer whose settings name no policy has the default, unless it reports its settings as JSON lines: then the
    reported settings may be incomplete.
    """
    started = (e["detail"] for e in events if e["kind"] == EventKind.STARTED and "member" in e["detail"])
    found = set[str]()
    for detail in started:
        config = detail.get("config") or {}
        usual = {} if detail.get("told_by") == "lines" or not config else {RESET: USUAL}
        found |= {str(value) for name, value in {**usual, **config}.items() if name == RESET}
    return frozenset(found)
