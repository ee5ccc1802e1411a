"""A fault's impact on the members that it hits: the fault's class declares it, and each of its events records it.

The judge and the report use only this; they match no fault by its name.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Any

from fencepost.model import serialization

ASKED_S = 15.0  # faults wait so long for a process that they asked to end; a member finishes its record and leaves


class Impact(StrEnum):
    """One impact on a member."""

    FREEZES = "freezes"  # the process does not run from the proof to the undo, so it cannot notice anything meanwhile
    ENDS = "ends"  # it ends, at once or later: the member is not to blame if it ends again or is refused at its restart
    ASKS = "asks"  # it asks the process to end (SIGTERM), and puts nothing out of its reach
    DELAYS = "delays"  # records in flight may be late: their durations say nothing about the member's handler
    DUPLICATES = "duplicates"  # another process uses its ``group.instance.id``: the brokers must refuse one of the two


def recorded(detail: Mapping[str, Any]) -> frozenset[str]:
    """The impact of the fault that an event is about, from the ``detail`` of the event.

    Events of former versions do not record it. Their faults are built in, so the class of that name declares it.
    """
    if "impact" not in detail:
        return frozenset(getattr(serialization.registry("fault").get(str(detail.get("fault"))), "impact", ()))
    impact = detail["impact"]
    return frozenset(map(str, impact)) if isinstance(impact, list) else frozenset()
