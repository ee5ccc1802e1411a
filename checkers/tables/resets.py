"""Where members begin that find no committed offset, as they tell of their consumers. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from fencepost.history import EventKind
from fencepost.history.events import Event
from fencepost.model.settings import RESET

AT_THE_END = ("latest", "largest", "end")
USUAL = "latest"  # of every client whose settings are told


def resets(events: Iterable[Event]) -> frozenset[str]:
    """The reset policies that members tell; none where nobody tells of one, as in a history that tells no settings.

    A consumer whose settings name no policy has the usual one, unless its settings are told in lines: nobody knows
    whether these are all.
    """
    started = (e["detail"] for e in events if e["kind"] == EventKind.STARTED and "member" in e["detail"])
    found = set[str]()
    for detail in started:
        config = detail.get("config") or {}
        usual = {} if detail.get("told_by") == "lines" or not config else {RESET: USUAL}
        found |= {str(value) for name, value in {**usual, **config}.items() if name == RESET}
    return frozenset(found)
