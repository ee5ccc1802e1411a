"""The promise of rebalances: what they deal out, and what they leave where it is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from fencepost.errors import ScenarioError
from fencepost.model.findings import kinds_of, usual_severity


@dataclass(frozen=True)
class Rebalances:
    """Once a rebalance is over, partitions lie as they should, by the coordinator's log; and it is over soon.

    Not every assignor keeps it: ``range`` deals each topic by itself, so of many narrow topics the last members get
    nothing, and neither it nor ``roundrobin`` is sticky.

    Attributes:
        balanced: no member has two partitions more than another one.
        sticky: of members that stay, no more partitions are taken than an even share asks for.
        pause_within_s: no partition is without an owner for longer, from one member's callback to another one's. Who
            dies or stands still is found out by its session time-out alone, so it is longer than that. 0: no bound.
        static: there is no rebalance because a static member goes and is back before its session is over (KIP-345).
    """

    balanced: bool = True
    sticky: bool = False
    pause_within_s: float = 0
    static: bool = False
    kinds: ClassVar[Mapping[str, str]] = kinds_of("rebalances")

    def __post_init__(self) -> None:
        if self.pause_within_s < 0:
            raise ScenarioError(f"Rebalances pause_within_s is {self.pause_within_s:g}, it cannot be negative")

    def severity(self, kind: str, cause: str, excuse: str) -> str:
        """See ``Promise``."""
        promised = {
            "unbalanced": self.balanced,
            "not-sticky": self.sticky,
            "long-pause": self.pause_within_s > 0,
            "rebalance-on-static-bounce": self.static,
        }
        return usual_severity(kind, excuse) if promised.get(kind, True) else "permitted"
