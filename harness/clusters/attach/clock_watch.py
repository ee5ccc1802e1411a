"""Reads the clocks of brokers that may have another clock than this machine, during a run.

No request asks a broker for its time. But a broker stamps the records of a topic with ``LogAppendTime`` by its own
clock and returns the stamp, so a reading is one small record. Every broker leads one partition of such a topic.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping

from fencepost.clock import now_ns
from fencepost.clusters.admin import OFFSETS_TOPIC, ObserverAdmin
from fencepost.clusters.cache import ProgressCallback
from fencepost.errors import FencepostError
from fencepost.model import TopicPartition
from fencepost.model.clock_readings import READ_EVERY_S, ClockReading, ClockReadings
from fencepost.model.endpoint import Endpoint

AT_ENDS = 5  # readings in a row at the beginning and at the end
END_S = 30.0  # longer than any request of it takes
# The last two, because the brokers' defaults may differ: a compacted topic needs keys.
CONFIG = {"message.timestamp.type": "LogAppendTime", "cleanup.policy": "delete", "min.insync.replicas": "1"}
VALUE = b"fencepost"


class ClockWatch(threading.Thread):
    """Reads the clock of each broker every ``READ_EVERY_S``; one that it cannot read has no readings, and a reason.

    So has a broker that gets a replica of the group's partition later: it may have led while nobody saw who did.
    """

    def __init__(self, brokers: Mapping[int, Endpoint], access: Mapping[str, str], topic: str, partition: int) -> None:
        """
        Args:
            brokers: those whose clocks it reads.
            topic: the name of the topic that it will create; others remove it.
            partition: the partition of ``__consumer_offsets`` whose leaders are noted.
        """
        super().__init__(name="clocks of brokers", daemon=True)
        self._admin = ObserverAdmin(brokers, access)  # its own: answers to others would be in the way
        self._places = {broker: TopicPartition(topic, n) for n, broker in enumerate(sorted(brokers))}
        self._topic, self._partition = topic, partition
        self._readings: dict[int, list[ClockReading]] = {broker: [] for broker in self._places}
        self._leaders: dict[int, int] = {}
        self._failures: dict[int, str] = {}
        self._failure, self._over = "", threading.Event()

    def begin(self, progress: ProgressCallback) -> None:
        """Create the topic, read each clock a few times, and go on in the background. Never raises for a failure."""
        progress("reading the clocks of the brokers")
        try:
            replicas = {place.partition: [broker] for broker, place in self._places.items()}
            self._admin.create_topic_on(self._topic, replicas, CONFIG)
        except FencepostError as error:
            self._failure = str(error)
            progress(f"the clocks of the brokers cannot be read: {error}")
            return
        self._look(AT_ENDS)
        self.start()

    def readings(self) -> ClockReadings:
        """All readings. The first call reads each clock again, a few times, and ends the watch."""
        if self.is_alive() and not self._over.is_set():
            self._end()
            self._look(AT_ENDS)
        return ClockReadings(self._readings, self._leaders, self._failures, self._failure)

    def close(self) -> None:
        """End the watch. May be called twice."""
        self._end()
        self._admin.close()

    def run(self) -> None:
        """Read until the end."""
        while not self._over.wait(READ_EVERY_S):
            self._look()

    def _end(self) -> None:
        self._over.set()
        if self.is_alive():
            self.join(END_S)

    def _look(self, times: int = 1) -> None:
        for broker in [*self._places] * times:
            try:
                self._read(broker)
            except FencepostError as error:
                self._failures[broker] = str(error)
        try:
            led = self._admin.leaderships(OFFSETS_TOPIC).get(self._partition)
        except FencepostError:
            return  # of a leader that nobody saw, the clocks of all replicas are considered
        if led is None:
            return
        self._leaders[led.term] = led.leader
        for broker in led.replicas:
            if broker not in self._places:
                self._readings[broker] = []
                self._failures[broker] = (
                    f"it had no replica of {OFFSETS_TOPIC}-{self._partition} when the run began, or did not run then"
                )

    def _read(self, broker: int) -> None:
        sent_ns = now_ns()
        wall_ms = self._admin.append(broker, self._places[broker], VALUE)
        if wall_ms is None:
            self._failures[broker] = f"it did not answer in time: {self._admin.why_silent(broker)}"
        elif wall_ms < 0:
            self._failures[broker] = f"it does not stamp the records of {self._topic}"
        else:
            self._readings[broker].append(ClockReading(sent_ns, now_ns(), wall_ms))
