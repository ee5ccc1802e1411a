"""What a fault does to the members that it hits, as its class declares it and each of its events records it.

The judge and the report go by this alone: they know no fault by its name.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Any

from fencepost.model import serialization


class Impact(StrEnum):
    """One thing that a fault does to members."""

    FREEZES = (
        "freezes"  # nothing of the process runs, from the proof to the undo: it cannot know what happens meanwhile
    )
    ENDS = "ends"  # the process ends: that it ends again, or is refused when it is back, is not its own doing
    DELAYS = "delays"  # it may not finish what it has in hand: how long that took says nothing of its handler
    DUPLICATES = "duplicates"  # another process has its ``group.instance.id``: the brokers must refuse one of both


def recorded(detail: Mapping[str, Any]) -> frozenset[str]:
    """The impact of the fault that an event is about.

    Events of former versions have none. Their faults came with Fencepost, so the class of that name says it.
    """
    if "impact" not in detail:
        return frozenset(getattr(serialization.known("fault").get(str(detail.get("fault"))), "impact", ()))
    told = detail["impact"]
    return frozenset(map(str, told)) if isinstance(told, list) else frozenset()
