"""Readings of the clocks of brokers that may have another clock than this machine."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
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
        failures: the last reason for which the clock of a broker could not be read, by broker.
        failure: the reason for all other brokers: the topic could not be created. Old runs have one reason for all.
    """

    brokers: Mapping[int, Sequence[ClockReading]]
    leaders: Mapping[int, int]
    failures: Mapping[int, str] = field(default_factory=dict)
    failure: str = ""

    def to_json(self) -> dict[str, Any]:
        """In the form of ``clock.json``."""
        found = {"brokers": self.brokers, "leaders": self.leaders, "failures": self.failures}
        return {**{name: dict(part) for name, part in found.items()}, "failure": self.failure}

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> ClockReadings:
        """The inverse of ``to_json``, for a whole ``clock.json``. Raises KeyError, TypeError, ValueError or
        AttributeError."""
        brokers = {int(b): tuple(ClockReading(*map(int, one)) for one in some) for b, some in value["brokers"].items()}
        leaders = {int(term): int(broker) for term, broker in value["leaders"].items()}
        failures = {int(broker): str(why) for broker, why in value.get("failures", {}).items()}
        return cls(brokers, leaders, failures, str(value["failure"]))
