"""The promise of recovery: how soon after each fault the group serves again, and how much it does twice."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import ClassVar

from fencepost.errors import ScenarioError
from fencepost.model.findings import kinds_of, usual_severity

NO_BASELINE = "nothing shows how long its records wait as a rule"  # excuse of records that may always wait so long
OPTIONS = {
    "slow-recovery": "first_record_within_s",
    "slow-catch-up": "lag_normal_within_s",
    "too-many-duplicates": "duplicates_per_disruption",
}


@dataclass(frozen=True)
class Recovers:
    """After each fault every partition is soon served again and has soon caught up, and few records are done twice.

    Times count from when a fault is over: from the proof that it is healed or, if it does not heal, that it took
    effect. They are judged if no other fault is in effect then, and if the next fault leaves so much time; the load
    goes on for so long after the last one. At least one of the bounds must be set.

    Attributes:
        first_record_within_s: in each partition with waiting records, one is delivered within so many seconds.
        lag_normal_within_s: after so many seconds, while the load goes on, no record has been waiting for longer than
            is normal in its partition. Normal are up to 1.2 times the longest wait that ended before the first fault,
            and always 1 s.
        duplicates_per_disruption: at most so many records, of all partitions together, are processed again between
            the beginning of a fault and that of the next one.
    """

    first_record_within_s: float | None = None
    lag_normal_within_s: float | None = None
    duplicates_per_disruption: int | None = None
    kinds: ClassVar[Mapping[str, str]] = kinds_of("recovers")

    def __post_init__(self) -> None:
        bounds = {each.name: getattr(self, each.name) for each in fields(self)}
        if all(value is None for value in bounds.values()):
            raise ScenarioError(f"Recovers needs at least one of {', '.join(bounds)}")
        for name, value in bounds.items():
            number = isinstance(value, int | float) and not isinstance(value, bool)
            if name.endswith("_s") and value is not None and not (number and 0 < value < math.inf):
                raise ScenarioError(f"Recovers {name} must be a number of seconds above 0, found {value!r}")
        most = self.duplicates_per_disruption
        if most is not None and (not isinstance(most, int) or isinstance(most, bool) or most < 0):
            raise ScenarioError(
                f"Recovers duplicates_per_disruption must be a whole number of 0 or more, found {most!r}"
            )

    @property
    def after_faults_s(self) -> float:
        """For how many seconds the load has to go on after the last fault."""
        return max(self.first_record_within_s or 0.0, self.lag_normal_within_s or 0.0)

    def severity(self, kind: str, cause: str, excuse: str) -> str:
        """See ``Promise``."""
        if getattr(self, OPTIONS[kind]) is None:
            return "permitted"
        return usual_severity(kind, "" if excuse == NO_BASELINE else excuse)
