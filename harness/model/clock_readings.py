"""Readings of the clocks of brokers on other machines."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

READ_EVERY_S = 0.5


class ClockReading(NamedTuple):
    """One answer that carried a broker's time: the broker read its clock between ``sent_ns`` and ``answered_ns``.

    Attributes:
        sent_ns, answered_ns: on our monotonic clock.
        wall_ms: the broker's wall clock, in whole milliseconds (rounded down).
    """

    sent_ns: int
    answered_ns: int
    wall_ms: int


@dataclass(frozen=True)
class ClockReadings:
    """All readings of a run.

    Attributes:
        brokers: the readings of each broker; none if its clock could not be read.
        leaders: which broker led the group's partition of ``__consumer_offsets``, by the leader's epoch, as far as it
            was seen.
        failure: the last reason for which a clock could not be read.
    """

    brokers: Mapping[int, Sequence[ClockReading]]
    leaders: Mapping[int, int]
    failure: str = ""

    def to_json(self) -> dict[str, Any]:
        """In the form of ``clock.json``."""
        return {"brokers": dict(self.brokers), "leaders": dict(self.leaders), "failure": self.failure}

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> ClockReadings:
        """The inverse of ``to_json``, for a whole ``clock.json``. Raises KeyError, TypeError or ValueError."""
        brokers = {int(b): tuple(ClockReading(*map(int, one)) for one in some) for b, some in value["brokers"].items()}
        leaders = {int(term): int(broker) for term, broker in value["leaders"].items()}
        return cls(brokers, leaders, str(value["failure"]))
