"""What brokers write of a group tells in which state its coordinator is."""

from __future__ import annotations

import calendar

import pytest

from fencepost.evidence.brokers.clock_conversion import MS, WallClockConverter
from fencepost.evidence.brokers.coordinator_log import CoordinatorLog

DAY_MS = calendar.timegm((2026, 11, 22, 0, 0, 0)) * 1000
GROUP = "[GroupCoordinator id=2 topic=__consumer_offsets partition=2]"
BROKER = "[GroupCoordinator id=2]"
MEMBER = "member-0.1-ea0f5ec7-9599-4c11-b002-cc793f1de19a"


def line(at_s, words, who=GROUP):
    """A line of Kafka 4.3.1, so many seconds after midnight."""
    whole, ms = divmod(round(at_s * 1000), 1000)
    return f"[2026-11-22 00:00:{whole:02},{ms:03}] INFO {who} {words} (org.apache.kafka.coordinator.group.X)"


def at_ns(at_s):
    """That moment on our clock, which began at midnight."""
    return round(at_s * 1000) * MS + MS // 2


PREPARING = (
    f"Preparing to rebalance group g.7 in state PreparingRebalance with old generation 3 (reason: removing {MEMBER})."
)
STABILIZED = "Stabilized group g.7 generation 4 with 3 members."
ASSIGNED = f"Assignment received from leader {MEMBER} for group g.7 for generation 4. The group has 3 members."
LOADING = "Scheduling loading of metadata from __consumer_offsets-2 with epoch 1"
LOADED = (
    "Finished loading of metadata from __consumer_offsets-2 with epoch 1 in 481ms where 0ms was spent in the scheduler."
)
UNLOADING = "Scheduling unloading of metadata for __consumer_offsets-2 with epoch OptionalInt[0]"


def in_words_of_kafka_3(lines):
    """The same facts as Kafka 3.9.1 tells them."""
    words = {
        f" {GROUP} ": " [GroupCoordinator 2]: ",
        f" {BROKER} Scheduling loading of metadata": " [GroupMetadataManager brokerId=2] Scheduling loading of offsets "
        "and group metadata",
        f" {BROKER} Scheduling unloading of metadata for": " [GroupMetadataManager brokerId=2] Scheduling unloading of "
        "offsets and group metadata from",
        f" {BROKER} Finished loading of metadata": " [GroupMetadataManager brokerId=2] Finished loading offsets and "
        "group metadata",
    }
    for old, new in words.items():
        lines = [line.replace(old, new) for line in lines]
    return lines


@pytest.fixture
def log():
    return CoordinatorLog("g.7", 2, lambda: WallClockConverter.of([(0, DAY_MS * MS)]))


def test_a_classic_group_joins_then_syncs_then_is_stable(log):
    log.feed(2, [line(1.5, PREPARING)])
    assert (log.signs.joining_ns, log.signs.syncing_ns, log.signs.broker) == (at_ns(1.5), 0, 2)
    log.feed(2, [line(1.6, PREPARING)])
    assert log.signs.joining_ns == at_ns(1.5)  # the same wait goes on
    log.feed(2, [line(2, STABILIZED)])
    assert (log.signs.joining_ns, log.signs.syncing_ns, log.signs.rebalanced_ns) == (0, at_ns(2), at_ns(2))
    log.feed(2, [line(3, ASSIGNED)])
    assert (log.signs.joining_ns, log.signs.syncing_ns, log.signs.rebalanced_ns) == (0, 0, at_ns(2))


def test_kafka_3_says_the_same_in_other_words(log):
    other = CoordinatorLog("g.7", 2, lambda: WallClockConverter.of([(0, DAY_MS * MS)]))
    moments = [line(1, PREPARING), line(2, STABILIZED), line(3, ASSIGNED), line(4, LOADING, BROKER)]
    moments += [line(5, LOADED, BROKER), line(6, PREPARING), line(7, LOADING, BROKER), line(8, UNLOADING, BROKER)]
    for moment, reported in zip(moments, in_words_of_kafka_3(moments), strict=True):
        assert reported != moment
        log.feed(2, [reported])
        other.feed(2, [moment])
        assert log.signs == other.signs


def test_nobody_is_waited_for_in_an_empty_group(log):
    log.feed(2, [line(1, PREPARING), line(2, "Group g.7 with generation 10 is now empty.")])
    assert log.signs.joining_ns == 0


def test_a_group_of_the_consumer_protocol_goes_on_to_a_new_epoch(log):
    log.feed(2, [line(4, "[GroupId g.7] Bumped group epoch to 3 with metadata hash -8770448273237114941.")])
    assert (log.signs.rebalanced_ns, log.signs.joining_ns) == (at_ns(4), 0)


@pytest.mark.parametrize(
    "words",
    [
        f"Member {MEMBER} in group g.7 has failed, removing it from the group.",
        f"[GroupId g.7] Member {MEMBER} fenced from the group because the member session expired.",
    ],
)
def test_who_was_put_out_of_the_group_is_known(log, words):
    log.feed(2, [line(5, words)])
    assert log.signs.removed == {MEMBER: at_ns(5)}


def test_a_broker_loads_until_it_has_loaded_or_gives_up(log):
    for end in (LOADED, UNLOADING, "Failed to load metadata from __consumer_offsets-2 with epoch 1 due to x."):
        log.feed(3, [line(1, LOADING, BROKER)])
        assert log.signs.loading == {3: at_ns(1)}
        log.feed(3, [line(2, end, BROKER)])
        assert log.signs.loading == {}
        assert log.signs.loaded == {3: at_ns(1)}
    log.feed(1, [line(3, UNLOADING, BROKER)])  # who has not loaded
    log.feed(3, [line(4, LOADING, BROKER), line(5, LOADED, BROKER)])
    assert (log.signs.loading, log.signs.loaded) == ({}, {3: at_ns(4)})


def test_what_one_coordinator_waited_for_is_over_when_another_broker_is_to_be_it(log):
    log.feed(2, [line(1, PREPARING)])
    log.feed(3, [line(2, LOADING, BROKER)])
    assert log.signs.joining_ns == 0
    log.feed(2, [line(3, PREPARING), line(4, UNLOADING, BROKER)])
    assert log.signs.joining_ns == 0
    log.feed(3, [line(5, PREPARING)])
    log.feed(2, [line(6, UNLOADING, BROKER)])  # which is late with it
    assert log.signs.joining_ns == at_ns(5)


@pytest.mark.parametrize(
    "other",
    [
        line(1, PREPARING.replace("g.7", "gx7")),
        line(1, PREPARING.replace("g.7", "g.77")),
        line(1, LOADING.replace("offsets-2 ", "offsets-21 "), BROKER),
        PREPARING,
        "",
        "[2026-11-22 00:00:01,000] INFO [GroupCoordinator id=2] Startup complete. (x)",
        "java.lang.IllegalStateException: x",
    ],
)
def test_what_speaks_of_others_is_passed_over(log, other):
    before = log.signs
    log.feed(2, [other])
    assert log.signs == before
