"""The promise of progress: once everything is healed, the group gets on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from fencepost.errors import ScenarioError
from fencepost.model.findings import kinds_of, usual_severity


@dataclass(frozen=True)
class Progress:
    """After healing, no partition with waiting records stands still for longer than ``within_s`` seconds, none is left
    without an owner for as long, no member that has some neither polls nor works for as long, the group does not
    rebalance for as long, and it consumes everything before the drain ends. No member ends by itself. While a fault
    hits others, a partition that it does not touch does not stand still for as long either (but in the eager protocol,
    where everything stops).

    Attributes:
        within_s: how long is too long.
        recovers_within_s: after each single fault too, every partition with waiting records is delivered again within
            so many seconds; None: nothing is promised of that.
    """

    within_s: float = 30.0
    recovers_within_s: float | None = None
    kinds: ClassVar[Mapping[str, str]] = kinds_of("progress")

    def __post_init__(self) -> None:
        for name, value in (("within_s", self.within_s), ("recovers_within_s", self.recovers_within_s)):
            number = isinstance(value, int | float) and not isinstance(value, bool) and value > 0
            if not number and (name, value) != ("recovers_within_s", None):
                raise ScenarioError(f"Progress {name} must be a number of seconds above 0, but {value!r} came")

    def severity(self, kind: str, cause: str, excuse: str) -> str:
        """See ``Promise``."""
        return usual_severity(kind, excuse)
