"""The promise of rebalances: how they assign partitions, which they leave unmoved, and how long they take."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from fencepost.errors import ScenarioError
from fencepost.model.findings import kinds_of, usual_severity


@dataclass(frozen=True)
class Rebalances:
    """After a rebalance, the assignment in the coordinator's log is as promised; and the rebalance is short.

    Not every assignor keeps it: ``range`` assigns each topic separately, so with many topics of few partitions the last
    members get nothing; and neither ``range`` nor ``roundrobin`` is sticky.

    Attributes:
        balanced: no member has two partitions more than another member.
        sticky: no more partitions are moved away from members that stay than an even share requires.
        pause_within_s: no partition is without an owner for longer, from the callback of one member to the callback of
            the next. Only the session time-out detects a dead or frozen member, so the bound must be longer than that
            time-out. 0: no bound.
        static: the group does not rebalance if a static member ends and returns before its session is over (KIP-345).
    """

    balanced: bool = True
    sticky: bool = False
    pause_within_s: float = 0
    static: bool = False
    kinds: ClassVar[Mapping[str, str]] = kinds_of("rebalances")

    def __post_init__(self) -> None:
        if self.pause_within_s < 0:
            raise ScenarioError(f"Rebalances pause_within_s must be 0 or more seconds, found {self.pause_within_s:g}")

    def severity(self, kind: str, cause: str, excuse: str) -> str:
        """See ``Promise``."""
        promised = {
            "unbalanced": self.balanced,
            "not-sticky": self.sticky,
            "long-pause": self.pause_within_s > 0,
            "rebalance-on-static-bounce": self.static,
        }
        return usual_severity(kind, excuse) if promised.get(kind, True) else "permitted"
