"""What correct groups are excused for is the client's doing: a defect that is mended is to excuse nobody any more."""

from __future__ import annotations

import logging
import signal
from contextlib import closing

import confluent_kafka as ck
import pytest

from cluster.worlds import LONG_S
from fencepost.clock import eventually
from fencepost.clusters.managed_cluster import ManagedCluster
from fencepost.scenario import scenario

pytestmark = pytest.mark.cluster
NAME = "asked-for-before"


class Lines(logging.Handler):
    """What the client logs; it does so in its polls."""

    def __init__(self) -> None:
        super().__init__()
        self.told: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.told.append(record.getMessage())

    def count(self, words: str) -> int:
        """The lines with these words."""
        return sum(words in line for line in self.told)


def test_an_answer_that_came_too_late_for_an_assignment_sends_the_next_one_back_to_its_start(
    cluster: ManagedCluster,
) -> None:
    """See ``defects.did_not_know_yet_where_it_begins``. Nobody asks for anything but the records after those it had."""
    cluster.admin.create_topics([scenario.Topic(NAME, partitions=1)])
    producer = ck.Producer({"bootstrap.servers": cluster.bootstrap()})
    for _ in range(5000):
        producer.produce(NAME, b"v")
    assert producer.flush(LONG_S) == 0
    leader, lines, logger = cluster.brokers[cluster.admin.leaders(NAME)[0]], Lines(), logging.Logger(NAME)
    logger.addHandler(lines)
    own = {"group.id": NAME, "enable.auto.commit": False, "debug": "topic"}
    start, place = ck.TopicPartition(NAME, 0, ck.OFFSET_BEGINNING), [ck.TopicPartition(NAME, 0)]
    given: list[int] = []

    def asked(times: int) -> bool:
        assert consumer.poll(0) is None
        return lines.count("querying for logical offset") == times

    def comes(more: int) -> bool:
        given.extend(message.offset() for message in consumer.consume(100, 0.1))
        return len(given) >= more

    with closing(ck.Consumer({"bootstrap.servers": cluster.bootstrap(0), **own}, logger=logger)) as consumer:
        consumer.get_watermark_offsets(place[0], LONG_S)  # it is connected to the leader then
        leader.signal(signal.SIGSTOP)
        for times in (1, 2):
            consumer.unassign()
            consumer.assign([start])
            eventually(lambda times=times: asked(times), LONG_S, "the client to ask where the partition begins")
        leader.signal(signal.SIGCONT)
        eventually(lambda: comes(1), LONG_S, "the first records")
        consumer.pause(place)
        consumer.resume(place)
        eventually(lambda: comes(2) and 0 in given[1:], LONG_S, "the first record once more")
    assert lines.count("outdated offset response") == 1
    assert lines.count("in state active") >= 1, "it asks once more although it has been told"
