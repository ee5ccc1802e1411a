"""The retry program of a run: it is done with what members park some time later, and tells them.

It stands for a service of its own that reads the retry topic (patterns 3 and 4 of Confluent's "Error Handling Patterns
for Apache Kafka Applications"). It is ours and goes past the proxies, as producers do. What is judged is what members
do: with pattern 3 whether all that they could not process is in the retry topic, with pattern 4 besides whether they
keep each key's order until it was retried, whoever has the partition. The audit reads what the program tells.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import confluent_kafka as ck

from fencepost.evidence import effects
from fencepost.interfaces import Cluster, Workload
from fencepost.interfaces.process import Retried
from fencepost.model.run_names import RunNames
from fencepost_member.adapters.confluent_reading import reading
from fencepost_member.events import EventLog
from fencepost_member.payload import SOURCE, letter_id, source_of

POLL_S = 0.2
FLUSH_S = 10.0
END_S = 45.0  # it may ask an administrator, for longer than it flushes


@contextmanager
def of(workload: Workload, cluster: Cluster, names: RunNames, events: EventLog) -> Iterator[None]:
    """If what a workload's members park is retried: that is done, meanwhile. Where it cannot be, nobody knows what was
    retried, and the history says so.
    """
    if not isinstance(workload, Retried) or not workload.retried:
        yield
        return
    letters, retried = names.in_cluster(workload.into), names.in_cluster(workload.retried)
    program = Program(cluster, letters, retried, workload.retried_after_ms / 1000)
    thread = threading.Thread(target=program.run, name="retries", daemon=True)
    thread.start()
    try:
        yield
    finally:
        program.stop.set()
        thread.join(END_S)
        if thread.is_alive() or program.failed:
            effects.cannot_tell(events, f"the retry program failed: {program.failed or 'it does not end'}")


class Program:
    """The retry program.

    Attributes:
        stop: ends it.
        failed: why it ended otherwise; empty: it did not.
    """

    def __init__(self, cluster: Cluster, letters: str, retried: str, after_s: float) -> None:
        """``letters`` holds what is to be retried, ``after_s`` after it was written; it is told in ``retried``."""
        self.stop, self.failed = threading.Event(), ""
        self._cluster, self._letters, self._retried, self._after_s = cluster, letters, retried, after_s

    def run(self) -> None:
        """Retry, until told to stop."""
        try:
            self._run({**self._cluster.access, "bootstrap.servers": self._cluster.bootstrap()})
        except Exception as error:  # it is told: nobody would know what was retried
            self.failed = self.failed or str(error) or type(error).__name__

    def _run(self, brokers: dict[str, Any]) -> None:
        # However long brokers are away, what was retried is told when they are back.
        producer = ck.Producer({**brokers, "enable.idempotence": True, "message.timeout.ms": 0})
        consumer = ck.Consumer({**brokers, **reading(self._letters)})
        try:
            partitions = self._cluster.admin.end_offsets(self._letters)
            consumer.assign([ck.TopicPartition(self._letters, p, ck.OFFSET_BEGINNING) for p in partitions])
            while not self.stop.is_set() and not self.failed:
                producer.poll(0)
                message = consumer.poll(POLL_S)
                if message is not None and self._processed(message):
                    self._tell(producer, message)
            producer.flush(FLUSH_S)
        finally:
            consumer.close()

    def _processed(self, message: ck.Message) -> bool:
        """It takes its time, by the wall clock, as times of records are. False: it was told to stop, or is no record.

        Raises:
            KafkaException: nobody may read the topic.
        """
        if (error := message.error()) is not None:
            if error.code() == ck.KafkaError.TOPIC_AUTHORIZATION_FAILED:
                raise ck.KafkaException(error)
            return False  # the client tries again by itself
        return not self.stop.wait(max(0.0, message.timestamp()[1] / 1000 + self._after_s - time.time()))

    def _tell(self, producer: ck.Producer, message: ck.Message) -> None:
        headers: dict[str, Any] = dict(message.headers() or ())
        _, topic, partition, offset = source_of(headers.get(SOURCE))
        while not self.stop.is_set():
            try:
                producer.produce(
                    self._retried, key=letter_id(topic, partition, offset), value=None, on_delivery=self._told
                )
                return
            except BufferError:
                producer.poll(POLL_S)

    def _told(self, error: ck.KafkaError | None, message: ck.Message) -> None:
        if error is not None:
            self.failed = f"it could not tell that something was retried: {error.str()}"
