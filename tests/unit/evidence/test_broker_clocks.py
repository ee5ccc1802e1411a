"""Times of brokers elsewhere: the true time is always inside of what is told, and a clock that jumped tells nothing."""

from __future__ import annotations

import json
from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fencepost.errors import NotShown
from fencepost.evidence.brokers.broker_clocks import DRIFT, BrokerClock, LeaderClocks
from fencepost.evidence.brokers.clock_conversion import MS, Moment
from fencepost.model.clock_readings import ClockReading, ClockReadings

SECOND = 1_000_000_000
START_NS = 5_000 * SECOND
WALL_NS = 1_795_259_580 * SECOND


class Clock(NamedTuple):
    """A true clock: how far it is ahead at some moments, and evenly in between."""

    moments: Sequence[tuple[int, int]]

    def wall_ns(self, at_ns: int) -> int:
        for (a_ns, a), (b_ns, b) in pairwise(self.moments):
            if at_ns <= b_ns:
                return at_ns + a + (b - a) * (at_ns - a_ns) // (b_ns - a_ns)
        raise ValueError(at_ns)

    def read(self, sent_ns: int, there_ns: int, back_ns: int) -> ClockReading:
        """What a request tells whose way there and back takes this long."""
        read_ns = sent_ns + there_ns
        return ClockReading(sent_ns, read_ns + back_ns, self.wall_ns(read_ns) // MS)


@st.composite
def clocks(draw: st.DrawFn) -> Clock:
    """Any offset, and any drift that two clocks may have, which changes at any time; known for five minutes."""
    ahead_ns = WALL_NS - START_NS + draw(st.integers(-100 * SECOND, 100 * SECOND))
    changes = sorted({0, 300 * SECOND, *draw(st.lists(st.integers(1, 300 * SECOND - 1), max_size=5))})
    moments = [(START_NS, ahead_ns)]
    for begin_ns, end_ns in pairwise(changes):
        most_ns = max(0, (end_ns - begin_ns) // DRIFT - 1)
        ahead_ns += draw(st.integers(-most_ns, most_ns))
        moments.append((START_NS + end_ns, ahead_ns))
    return Clock(moments)


delays = st.one_of(st.integers(0, 5 * MS), st.integers(0, 2 * SECOND))
asked = st.lists(st.tuples(st.integers(0, 200 * SECOND), delays, delays), min_size=1, max_size=20)


@given(clocks(), asked, st.lists(st.integers(0, 300 * SECOND), min_size=1, max_size=10))
def test_the_true_time_is_inside_whatever_the_delays_of_both_ways(
    clock: Clock, requests: list[tuple[int, int, int]], written: list[int]
) -> None:
    found = BrokerClock.of(clock.read(START_NS + sent_ns, there, back) for sent_ns, there, back in requests)
    for at_ns in (START_NS + since_ns for since_ns in written):
        window = found.window(clock.wall_ns(at_ns) // MS)
        assert window.begin_ns <= at_ns <= window.end_ns
        ahead = found.ahead(at_ns)
        assert ahead.low_ns <= clock.wall_ns(at_ns) - at_ns <= ahead.high_ns


@given(clocks(), asked, st.integers(0, 300 * SECOND))
def test_no_reading_makes_times_less_certain(clock: Clock, requests: list[tuple[int, int, int]], since_ns: int) -> None:
    readings = [clock.read(START_NS + sent_ns, there, back) for sent_ns, there, back in requests]
    wall_ms = clock.wall_ns(START_NS + since_ns) // MS
    fewer, all_of_them = BrokerClock.of(readings[:1]).window(wall_ms), BrokerClock.of(readings).window(wall_ms)
    rounding_ns = 4 + len(readings)  # 1 ns from each reading to the next
    assert fewer.begin_ns <= all_of_them.begin_ns + rounding_ns
    assert all_of_them.end_ns <= fewer.end_ns + rounding_ns


@given(clocks(), asked, asked, st.integers(0, 100_000), st.sampled_from([-1, 1]))
def test_a_jump_that_is_longer_than_round_trips_is_always_noticed(
    clock: Clock, before: list[tuple[int, int, int]], after: list[tuple[int, int, int]], more_ms: int, way: int
) -> None:
    first = [clock.read(START_NS + sent_ns // 2, there, back) for sent_ns, there, back in before]
    later = [clock.read(START_NS + 100 * SECOND + sent_ns // 2, there, back) for sent_ns, there, back in after]
    closest = min(
        (a.answered_ns - a.sent_ns) + (b.answered_ns - b.sent_ns) + abs(b.sent_ns - a.sent_ns) * 3 // DRIFT
        for a in first
        for b in later
    )
    jump_ms = way * (closest // MS + 4 + more_ms)
    later = [one._replace(wall_ms=one.wall_ms + jump_ms) for one in later]
    with pytest.raises(NotShown, match="jumped during the run"):
        BrokerClock.of([*first, *later])


def steady(ahead_ns: int, there_ns: int, back_ns: int, count: int = 20) -> list[ClockReading]:
    """Readings of a clock without drift, two a second."""
    clock = Clock([(START_NS, ahead_ns), (START_NS + 300 * SECOND, ahead_ns)])
    return [clock.read(START_NS + n * SECOND // 2, there_ns, back_ns) for n in range(count)]


AHEAD_NS = WALL_NS - START_NS


def test_an_uncertainty_is_half_of_the_round_trip_and_a_millisecond_and_some_drift() -> None:
    clock = BrokerClock.of(steady(AHEAD_NS, 2 * MS, 2 * MS))
    assert 2 * MS <= clock.uncertainty_ns <= 2 * MS + MS + MS // 2


def test_the_middle_of_a_round_trip_alone_would_be_wrong() -> None:
    """What the bounds are for: all delay is on the way there, as NTP would not notice either."""
    clock = BrokerClock.of(steady(AHEAD_NS, 80 * MS, 0))
    at_ns = START_NS + 3 * SECOND
    window = clock.window((at_ns + AHEAD_NS) // MS)
    assert window.begin_ns <= at_ns <= window.end_ns
    assert abs((window.begin_ns + window.end_ns) // 2 - at_ns) > 30 * MS


def test_one_short_round_trip_bounds_the_times_around_it() -> None:
    slow, quick = steady(AHEAD_NS, 400 * MS, 100 * MS), steady(AHEAD_NS, MS // 2, MS // 2)
    slow[10] = quick[10]
    assert BrokerClock.of(slow).uncertainty_ns < 8 * MS
    assert BrokerClock.of(steady(AHEAD_NS, 400 * MS, 100 * MS)).uncertainty_ns > 240 * MS


def test_a_clock_that_drifts_faster_than_clocks_do_counts_as_one_that_jumped() -> None:
    readings = [one._replace(wall_ms=one.wall_ms + 5 * n) for n, one in enumerate(steady(AHEAD_NS, MS, MS))]
    with pytest.raises(NotShown, match=r"jumped during the run: its readings contradict each other by 0\.0\d\d s"):
        BrokerClock.of(readings)


def kept(readings: ClockReadings) -> LeaderClocks:
    """What is known of clocks once the readings were written into a file."""
    return LeaderClocks(ClockReadings.from_json(json.loads(json.dumps(readings.to_json()))))


def two(second: Sequence[ClockReading], why: str = "") -> LeaderClocks:
    """Broker 1 led in term 4, broker 2 in term 5; nobody saw who led in term 6."""
    return kept(ClockReadings({1: steady(AHEAD_NS, MS, MS), 2: second}, {4: 1, 5: 2}, {2: why}))


def test_a_record_is_dated_by_the_clock_of_the_broker_that_wrote_it() -> None:
    clocks = two(steady(AHEAD_NS + 37 * SECOND, MS, MS))
    at_ns = START_NS + 4 * SECOND
    by_first = clocks.moment((at_ns + AHEAD_NS) // MS, 4)
    by_second = clocks.moment((at_ns + AHEAD_NS + 37 * SECOND) // MS, 5)
    for moment in (by_first, by_second):
        assert abs(moment.at_ns - at_ns) <= moment.uncertainty_ns < 3 * MS
    assert clocks.moment(-1, 5) == Moment(0, 0), "no time"


def test_a_record_of_a_leader_that_nobody_saw_may_be_of_any_clock() -> None:
    clocks = two(steady(AHEAD_NS + 300 * MS, MS, MS))
    at_ns = START_NS + 4 * SECOND
    for ahead_ns in (AHEAD_NS, AHEAD_NS + 300 * MS):
        moment = clocks.moment((at_ns + ahead_ns) // MS, 6)
        assert abs(moment.at_ns - at_ns) <= moment.uncertainty_ns
        assert moment.uncertainty_ns > 150 * MS


def test_times_that_are_known_too_badly_are_not_shown() -> None:
    clocks, wall_ms = two(steady(AHEAD_NS + 37 * SECOND, 800 * MS, 400 * MS)), (START_NS + AHEAD_NS) // MS
    with pytest.raises(NotShown, match=r"times of broker 2 are known only within 0\.6 s"):
        clocks.moment(wall_ms, 5)
    with pytest.raises(
        NotShown, match=r"times of one of the brokers \(nobody saw which\) 1, 2 are known only within 1\d\.\d s"
    ):
        clocks.moment(wall_ms, 6)


def test_only_records_of_a_clock_that_failed_cannot_be_dated() -> None:
    jumped = steady(AHEAD_NS, MS, MS)
    jumped = jumped[:9] + [one._replace(wall_ms=one.wall_ms + 5000) for one in jumped[9:]]
    for clocks, why in (
        (two(jumped), r"the clock of broker 2 jumped during the run: .* by 4\.99\d s"),
        (two((), "it does not stamp records"), "the clock of broker 2 could not be read: it does not stamp records"),
    ):
        assert clocks.moment((START_NS + AHEAD_NS) // MS, 4).at_ns
        for term in (5, 6):
            with pytest.raises(NotShown, match=why):
                clocks.moment((START_NS + AHEAD_NS) // MS, term)


def test_each_broker_has_a_reason_of_its_own() -> None:
    some = {1: steady(AHEAD_NS, MS, MS), 2: (), 3: (), 4: ()}
    readings = ClockReadings(some, {}, {1: "it was late once", 2: "it was late", 3: "it does not stamp"}, "no topic")
    told = kept(readings).sentences((START_NS, START_NS + AHEAD_NS))
    assert told.pop(1).startswith("the clock of broker 1 is ")
    whys = {2: "it was late", 3: "it does not stamp", 4: "no topic"}
    assert told == {broker: f"the clock of broker {broker} could not be read: {why}" for broker, why in whys.items()}


def test_old_runs_have_one_reason_for_all() -> None:
    old = {"pairs": [[1, 2]], "brokers": {"1": []}, "leaders": {"4": 1}, "failure": "no topic"}
    told = LeaderClocks(ClockReadings.from_json(old)).sentences((START_NS, START_NS + AHEAD_NS))
    assert told == {1: "the clock of broker 1 could not be read: no topic"}


def test_what_is_known_of_each_clock_is_told() -> None:
    clocks = two(steady(AHEAD_NS - 37 * SECOND - SECOND // 5, 2 * MS, 2 * MS))
    told = clocks.sentences((START_NS, START_NS + AHEAD_NS))
    assert told[2] == "the clock of broker 2 is 37.200 s behind, known within 3.3 ms"
    assert told[1] == "the clock of broker 1 is 0.001 s ahead, known within 2.3 ms", "the middle of what is possible"
