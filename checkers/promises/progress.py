"""The promise of progress: after healing, the group consumes everything in time."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import ClassVar

from fencepost.errors import ScenarioError
from fencepost.model.findings import kinds_of, usual_severity
from fencepost.model.impact import ASKED_S


@dataclass(frozen=True)
class Progress:
    """After healing, none of these lasts longer than ``within_s`` seconds: a partition with waiting records stands
    still, a partition has no owner, a member that owns partitions neither polls nor processes, the group rebalances.

    The group consumes everything before the drain ends. No member ends without a fault that explains it, and each one
    that is asked to end (SIGTERM) does so within ``ends_within_s`` seconds, unless another fault delays it. During a
    fault, a partition that it does not touch does not stand still for longer either (except in the eager protocol,
    where everything stops).

    Attributes:
        within_s: the bound, in seconds.
        recovers_within_s: after each single fault, deliveries of every partition with waiting records resume within
            so many seconds; None: no bound.
        ends_within_s: the bound for the end of a member, in seconds, at most 15: faults wait no longer.
    """

    within_s: float = 30.0
    recovers_within_s: float | None = None
    ends_within_s: float = ASKED_S
    kinds: ClassVar[Mapping[str, str]] = kinds_of("progress")

    def __post_init__(self) -> None:
        bounds = {each.name: getattr(self, each.name) for each in fields(self)}
        for name, value in bounds.items():
            number = isinstance(value, int | float) and not isinstance(value, bool) and value > 0
            if not number and (name, value) != ("recovers_within_s", None):
                raise ScenarioError(f"Progress {name} must be a number of seconds above 0, found {value!r}")
        if self.ends_within_s > ASKED_S:
            raise ScenarioError(
                f"Progress ends_within_s is {self.ends_within_s:g}; faults wait {ASKED_S:g} s for a member that "
                "they asked to end, so it can be at most that"
            )

    def severity(self, kind: str, cause: str, excuse: str) -> str:
        """See ``Promise``."""
        if kind == "slow-recovery" and self.recovers_within_s is None:  # another promise has the bound
            return "permitted"
        return usual_severity(kind, excuse)
