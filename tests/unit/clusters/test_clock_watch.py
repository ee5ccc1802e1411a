"""The clocks of brokers, as they are read during a run: what cannot be read has a reason, and is not left out."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest

from fencepost.clock import now_ns
from fencepost.clusters.admin import OFFSETS_TOPIC, Leadership
from fencepost.clusters.attach import clock_watch
from fencepost.clusters.attach.clock_watch import AT_ENDS, ClockWatch
from fencepost.clusters.cache import quiet
from fencepost.errors import ClusterError, NotShown
from fencepost.evidence.brokers.broker_clocks import LeaderClocks
from fencepost.evidence.brokers.clock_conversion import MS
from fencepost.model import TopicPartition
from fencepost.model.clock_readings import ClockReadings
from fencepost.model.endpoint import Endpoint

PARTITION = 3
AHEAD_MS = 1_795_259_580_000


class Brokers:
    """Brokers 1, 2 and 3, the replicas of the group's partition, whose clocks agree; satisfies what is asked here."""

    def __init__(self) -> None:
        self.led = Leadership(4, 1, (1, 2, 3))
        self.topics: dict[str, Mapping[int, list[int]]] = {}
        self.refused = ""
        self.stamp: Callable[[int], int | None] = lambda broker: AHEAD_MS + now_ns() // MS

    def create_topic_on(self, topic: str, replicas: Mapping[int, list[int]], config: Mapping[str, str]) -> None:
        if self.refused:
            raise ClusterError(self.refused)
        self.topics[topic] = replicas

    def append(self, broker: int, place: TopicPartition, value: bytes) -> int | None:
        assert self.topics[place.topic][place.partition] == [broker]
        return self.stamp(broker)

    def why_silent(self, broker: int) -> str:
        return "Connection refused"

    def leaderships(self, topic: str) -> dict[int, Leadership]:
        assert topic == OFFSETS_TOPIC
        return {PARTITION: self.led}

    def close(self) -> None: ...


@pytest.fixture
def brokers(monkeypatch: pytest.MonkeyPatch) -> Brokers:
    running = Brokers()
    monkeypatch.setattr(clock_watch, "ObserverAdmin", lambda *_: running)
    return running


def watched(meanwhile: Callable[[], Any] = lambda: None) -> ClockReadings:
    """What a watch finds, if this happens meanwhile."""
    watch = ClockWatch({n: Endpoint("10.1.2.3", 9090 + n) for n in (1, 2, 3)}, {}, "clocks", PARTITION)
    try:
        watch.begin(quiet)
        meanwhile()
        return watch.readings()
    finally:
        watch.close()


def test_each_clock_that_cannot_be_read_has_its_own_reason(brokers: Brokers) -> None:
    def stamp(broker: int) -> int | None:
        if broker == 3:
            raise ClusterError("writing was refused")
        return {1: -1, 2: None}[broker]

    brokers.stamp = stamp
    found = watched()
    assert found.failures == {
        1: "it does not stamp the records of clocks",
        2: "it did not answer in time: Connection refused",
        3: "writing was refused",
    }
    assert not any(found.brokers.values())
    assert found.failure == ""


def test_without_the_topic_there_is_one_reason_for_all(brokers: Brokers) -> None:
    brokers.refused = "creating it was refused"
    found = watched()
    assert (found.failures, found.failure) == ({}, "creating it was refused")
    assert [*LeaderClocks(found).sentences((0, 0)).values()] == [
        f"the clock of broker {n} could not be read: creating it was refused" for n in (1, 2, 3)
    ]


def test_of_a_leader_that_nobody_saw_the_clocks_of_all_replicas_are_considered(brokers: Brokers) -> None:
    def moved() -> None:
        brokers.led = Leadership(6, 2, (1, 2, 3))

    found = watched(moved)
    assert found.leaders == {4: 1, 6: 2}
    assert all(len(some) >= 2 * AT_ENDS for some in found.brokers.values())
    for term in (4, 5, 6):
        assert LeaderClocks(found).moment(AHEAD_MS + now_ns() // MS, term).at_ns


def test_a_broker_that_gets_a_replica_during_the_run_may_have_led_unseen(brokers: Brokers) -> None:
    """Its clock is not read, so what a leader that nobody saw wrote cannot be dated."""

    def reassigned() -> None:
        brokers.led = Leadership(6, 2, (2, 3, 7))

    clocks = LeaderClocks(watched(reassigned))
    for term in (4, 6):
        assert clocks.moment(AHEAD_MS + now_ns() // MS, term).at_ns
    why = f"the clock of broker 7 could not be read: it had no replica of {OFFSETS_TOPIC}-3 when the run began"
    with pytest.raises(NotShown, match=why):
        clocks.moment(AHEAD_MS + now_ns() // MS, 5)
