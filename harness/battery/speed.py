"""The load of a battery: it follows from what one member of the program was measured to do. Pure."""

from __future__ import annotations

from dataclasses import dataclass

SHARE = 0.7  # of what the group can do
MOST_HZ = 1000.0  # so that a small machine can carry brokers, members and producers at once
LEAST_HZ = 5.0
CORES_OF_GROUP = 0.5  # the share of the machine that brokers and producers leave to the group


@dataclass(frozen=True)
class Speed:
    """What one member did in the calibration.

    Attributes:
        per_s: records that it processed in a second.
        busy: CPU seconds that it used in a second.
        offered_per_s: records that were written in a second: it may be able to do more.
    """

    per_s: float
    busy: float
    offered_per_s: float

    @property
    def limited(self) -> bool:
        """Whether it processed nearly all that there was, so that it may be faster."""
        return self.per_s > 0.9 * self.offered_per_s

    def of_group(self, members: int, cores: float) -> float:
        """WrittenRecords that a group of such members can process in a second on a machine with so many ``cores``."""
        at_once = cores * CORES_OF_GROUP / self.busy if self.busy > 0 else members
        return self.per_s * max(1.0, min(members, at_once))


@dataclass(frozen=True)
class BatteryLoad:
    """The records that are written per second, and where that rate comes from, as a sentence."""

    rate_hz: float
    why: str

    @classmethod
    def of(cls, speed: Speed, members: int, cores: float) -> BatteryLoad:
        """The load for a group of so many members, on a machine with so many cores."""
        able = speed.of_group(members, cores) or LEAST_HZ
        rate_hz = round(min(MOST_HZ, max(LEAST_HZ, SHARE * able)), 1)
        least = "at least " if speed.limited else ""
        measured = f"One member processed {least}{speed.per_s:,.0f} records a second with {speed.busy:.2f} CPU cores"
        share = f"{100 * rate_hz / able:.0f} % of what {members} members can do"
        if rate_hz == MOST_HZ:
            share = f"the most that is written, {share}"
        return cls(rate_hz, f"{measured}. The load is {rate_hz:,g} records a second, {share}.")
