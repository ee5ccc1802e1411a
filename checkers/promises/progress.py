"""The promise of progress: once everything is healed, the group gets on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from fencepost.errors import ScenarioError


@dataclass(frozen=True)
class Progress:
    """After healing, no partition with waiting records stands still for longer than ``within_s`` seconds, none is left
    without an owner for as long, no member that has some neither polls nor works for as long, the group does not
    rebalance for as long, and it consumes everything before the drain ends. No member ends by itself."""

    within_s: float = 30.0
    kinds: ClassVar[Mapping[str, str]] = {
        "unconsumed": "liveness",
        "stuck-partition": "liveness",
        "stuck-member": "liveness",
        "orphaned-partition": "liveness",
        "never-stable": "liveness",
        "dead-member": "liveness",
    }

    def __post_init__(self) -> None:
        if isinstance(self.within_s, bool) or not isinstance(self.within_s, int | float) or not self.within_s > 0:
            raise ScenarioError(f"Progress within_s must be a number of seconds above 0, but {self.within_s!r} came")

    def severity(self, kind: str, cause: str, excuse: str) -> str:
        """See ``Promise``."""
        return "permitted" if excuse else "violation"
