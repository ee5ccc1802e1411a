"""Converts wall-clock times of brokers with clocks of their own to our clock, by readings of their clocks.

A broker reads its clock at some moment between a request and its answer. So at that moment its clock was ahead of ours
by an amount between two bounds, however unequal the delays of both directions were. As clocks drift slowly, a reading
bounds that amount at all other times, too, and the tightest bounds count: those of short round trips. Readings that
contradict each other show that a clock jumped; then no time of that broker is converted. Not noticed are a jump that is
shorter than a round trip and one millisecond, which errs by no more than that, and one that is taken back before the
next reading.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

from fencepost.errors import NotShown
from fencepost.evidence.brokers.clock_conversion import MS, Moment
from fencepost.history.windows import NS, Window
from fencepost.model.clock_readings import ClockReading, ClockReadings

# Two clocks drift apart by at most 1 ms in a second: NTP corrects each by at most half of that, quartz errs by less.
DRIFT = 1000
# A time that is known less well says too little: what it cannot prove would count as kept.
MOST_NS = NS // 2
_ROUNDS = 8  # each makes a solution 1000 times as exact


class _Bounds(NamedTuple):
    """At ``at_ns`` a broker's clock is ahead of ours by ``low_ns`` to ``high_ns``."""

    at_ns: int
    low_ns: int
    high_ns: int

    @classmethod
    def of(cls, reading: ClockReading) -> _Bounds:
        middle_ns = (reading.sent_ns + reading.answered_ns) // 2
        drift_ns = _drift_ns(reading.answered_ns - middle_ns)
        low_ns, high_ns = reading.wall_ms * MS - reading.answered_ns, (reading.wall_ms + 1) * MS - reading.sent_ns
        return cls(middle_ns, low_ns - drift_ns, high_ns + drift_ns)

    def moved(self, at_ns: int) -> _Bounds:
        """What these bounds say about another time."""
        drift_ns = _drift_ns(at_ns - self.at_ns)
        return _Bounds(at_ns, self.low_ns - drift_ns, self.high_ns + drift_ns)

    def tightened(self, other: _Bounds) -> _Bounds:
        """What both say about the time of the first."""
        there = other.moved(self.at_ns)
        return _Bounds(self.at_ns, max(self.low_ns, there.low_ns), min(self.high_ns, there.high_ns))


@dataclass(frozen=True)
class BrokerClock:
    """The wall clock of one broker during a run.

    Attributes:
        bounds: how far it is ahead at the time of each reading, in their order, as tight as all readings allow.
    """

    bounds: tuple[_Bounds, ...]

    @classmethod
    def of(cls, readings: Iterable[ClockReading]) -> BrokerClock:
        """The clock that some readings show.

        Raises:
            NotShown: there are no readings, or they contradict each other; the message continues "the clock of ...".
        """
        bounds = sorted(map(_Bounds.of, readings))
        if not bounds:
            raise NotShown("could not be read")
        bounds = list(_tightened(reversed(list(_tightened(bounds)))))[::-1]
        if (jump_ns := max(one.low_ns - one.high_ns for one in bounds)) > 0:
            raise NotShown(f"jumped during the run: its readings contradict each other by {jump_ns / NS:.3f} s")
        return cls(tuple(bounds))

    @property
    def uncertainty_ns(self) -> int:
        """The largest error of a converted time between the first and the last reading, in both directions."""
        moments = [one.at_ns for one in self.bounds]
        moments += [(a + b) // 2 for a, b in pairwise(moments)]
        return max(_half(one.high_ns - one.low_ns + MS) for one in map(self.ahead, moments))

    def ahead(self, at_ns: int) -> _Bounds:
        """The bounds at a time on our clock."""
        after = bisect_right(self.bounds, at_ns, key=lambda one: one.at_ns)
        near = self.bounds[max(after - 1, 0) : after + 1]
        return near[0].moved(at_ns).tightened(near[-1])

    def window(self, wall_ms: int) -> Window:
        """The times on our clock at which the broker's clock may have read ``wall_ms``."""
        begin_ns = end_ns = wall_ms * MS - self.bounds[0].high_ns
        for _ in range(_ROUNDS):
            begin_ns = wall_ms * MS - self.ahead(begin_ns).high_ns
            end_ns = (wall_ms + 1) * MS - self.ahead(end_ns).low_ns
        return Window(begin_ns - 1, end_ns + 1)


class LeaderClocks:
    """The clocks of all brokers that may have led the group's partition, whose records they date. Satisfies
    ``Timeline``."""

    def __init__(self, readings: ClockReadings) -> None:
        self._leaders, self._failures = readings.leaders, dict[int, str]()
        self._clocks: dict[int, BrokerClock] = {}
        for broker, some in readings.brokers.items():
            try:
                self._clocks[broker] = BrokerClock.of(some)
            except NotShown as why:
                reason = "" if some else readings.failures.get(broker, readings.failure)
                self._failures[broker] = f"the clock of broker {broker} {why}{f': {reason}' if reason else ''}"

    def moment(self, wall_ms: int, term: int) -> Moment:
        """When the leader with the epoch ``term`` wrote this wall time; any replica, if that leader was not seen.

        Raises:
            NotShown: the clock of such a broker jumped, could not be read, or is known too badly (``MOST_NS``).
        """
        if wall_ms <= 0:
            return Moment(0, 0)
        writers = [self._leaders[term]] if term in self._leaders else sorted({*self._clocks, *self._failures})
        windows = [self._clock(broker).window(wall_ms) for broker in writers]
        begin_ns, end_ns = min(one.begin_ns for one in windows), max(one.end_ns for one in windows)
        if (uncertainty_ns := _half(end_ns - begin_ns)) > MOST_NS:
            one_of = "one of the brokers (nobody saw which) " if writers[1:] else "broker "
            who = f"{one_of}{', '.join(map(str, writers))}"
            raise NotShown(f"times of {who} are known only within {uncertainty_ns / NS:.1f} s")
        return Moment((begin_ns + end_ns) // 2, uncertainty_ns)

    def sentences(self, pair: Sequence[int]) -> dict[int, str]:
        """What is known of each broker's clock, in a sentence; ``pair``: a clock pair (monotonic_ns, wall_ns)."""
        found = dict(self._failures)
        for broker, clock in self._clocks.items():
            last = clock.ahead(clock.bounds[-1].at_ns)
            ahead_ns = (last.low_ns + last.high_ns) // 2 - (pair[1] - pair[0])
            found[broker] = (
                f"the clock of broker {broker} is {abs(ahead_ns) / NS:.3f} s {'behind' if ahead_ns < 0 else 'ahead'}, "
                f"known within {clock.uncertainty_ns / MS:.1f} ms"
            )
        return dict(sorted(found.items()))

    def _clock(self, broker: int) -> BrokerClock:
        if broker not in self._clocks:
            raise NotShown(self._failures.get(broker, f"the clock of broker {broker} was not read"))
        return self._clocks[broker]


def _tightened(bounds: Iterable[_Bounds]) -> Iterator[_Bounds]:
    """Each of them with what the ones before it say."""
    before: _Bounds | None = None
    for one in bounds:
        before = one if before is None else one.tightened(before)
        yield before


def _drift_ns(span_ns: int) -> int:
    return abs(span_ns) // DRIFT + 1


def _half(length_ns: int) -> int:
    return -(-length_ns // 2)
