"""The retry program of a run: it completes parked records after a delay, and records that in a topic.

It simulates a separate service that reads the retry topic (patterns 3 and 4 of Confluent's "Error Handling Patterns for
Apache Kafka Applications"). It is ours and connects without proxies, as producers do. The judge examines the members:
with pattern 3 whether all records that they could not process are in the retry topic, with pattern 4 also whether they
keep each key's order until the retry, whoever owns the partition. The audit reads what the program recorded.
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
from fencepost.interfaces.process import HasRetryService
from fencepost.model.run_names import RunNames
from fencepost_member.adapters.confluent.topic_reader import reading
from fencepost_member.payload import SOURCE, letter_id, source_of
from fencepost_member.recording.events import EventLog

POLL_S = 0.2
FLUSH_S = 10.0
END_S = 45.0  # it may query an administrator, which takes longer than the flush


@contextmanager
def of(workload: Workload, cluster: Cluster, names: RunNames, events: EventLog) -> Iterator[None]:
    """Run the retry program of a workload that has one, for the duration of the block. If it fails, the history records
    that retries are unknown.
    """
    if not isinstance(workload, HasRetryService) or not workload.retried:
        yield
        return
    letters, retried = names.in_cluster(workload.into), names.in_cluster(workload.retried)
    program = RetryService(cluster, letters, retried, workload.retried_after_ms / 1000)
    thread = threading.Thread(target=program.run, name="retries", daemon=True)
    thread.start()
    try:
        yield
    finally:
        program.stop.set()
        thread.join(END_S)
        if thread.is_alive() or program.failed:
            effects.record_unknown(events, f"the retry program failed: {program.failed or 'it does not end'}")


class RetryService:
    """The retry program.

    Attributes:
        stop: ends it.
        failed: why it failed; empty: it did not.
    """

    def __init__(self, cluster: Cluster, letters: str, retried: str, after_s: float) -> None:
        """``letters``: the topic of parked records, each retried ``after_s`` after it was written; ``retried``: the
        topic in which that is recorded."""
        self.stop, self.failed = threading.Event(), ""
        self._cluster, self._letters, self._retried, self._after_s = cluster, letters, retried, after_s

    def run(self) -> None:
        """Retry until stopped."""
        try:
            self._run({**self._cluster.access, "bootstrap.servers": self._cluster.bootstrap()})
        except Exception as error:  # reported by ``of``: otherwise retries would silently be unknown
            self.failed = self.failed or str(error) or type(error).__name__

    def _run(self, brokers: dict[str, Any]) -> None:
        # However long brokers are away, retries are recorded once they are back.
        producer = ck.Producer({**brokers, "enable.idempotence": True, "message.timeout.ms": 0})
        consumer = ck.Consumer({**brokers, **reading(self._letters)})
        try:
            partitions = self._cluster.admin.end_offsets(self._letters)
            consumer.assign([ck.TopicPartition(self._letters, p, ck.OFFSET_BEGINNING) for p in partitions])
            while not self.stop.is_set() and not self.failed:
                producer.poll(0)
                message = consumer.poll(POLL_S)
                if message is not None and self._processed(message):
                    self._record(producer, message)
            producer.flush(FLUSH_S)
        finally:
            consumer.close()

    def _processed(self, message: ck.Message) -> bool:
        """Wait until the record is due, by the wall clock, as record times are. False: stopped, or not a record.

        Raises:
            KafkaException: the right to read the topic is missing.
        """
        if (error := message.error()) is not None:
            if error.code() == ck.KafkaError.TOPIC_AUTHORIZATION_FAILED:
                raise ck.KafkaException(error)
            return False  # the client retries by itself
        return not self.stop.wait(max(0.0, message.timestamp()[1] / 1000 + self._after_s - time.time()))

    def _record(self, producer: ck.Producer, message: ck.Message) -> None:
        headers: dict[str, Any] = dict(message.headers() or ())
        _, topic, partition, offset = source_of(headers.get(SOURCE))
        while not self.stop.is_set():
            try:
                producer.produce(
                    self._retried, key=letter_id(topic, partition, offset), value=None, on_delivery=self._delivered
                )
                return
            except BufferError:
                producer.poll(POLL_S)

    def _delivered(self, error: ck.KafkaError | None, message: ck.Message) -> None:
        if error is not None:
            self.failed = f"a retry could not be recorded: {error.str()}"
