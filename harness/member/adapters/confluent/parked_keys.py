"""The keys that members of confluent-kafka have parked: permanently, or until their dead letters were retried.

The second kind uses a *redirect topic* (pattern 4 of Confluent's "Error Handling Patterns for Apache Kafka
Applications"). It has an entry for each dead letter, keyed by the letter's id, and a tombstone once the letter was
retried. A member that is assigned a partition reads the topic up to its end, because the memory of an earlier owner is
gone, and continues to read it while letters wait.
"""

from __future__ import annotations

import time
from typing import Any, Callable, Dict, Mapping, Sequence, Set, Tuple

import confluent_kafka as client

from fencepost_member.adapters import Tp
from fencepost_member.adapters.confluent.topic_reader import CALL_S, READ_S, contents, partitions_of_topic, reading
from fencepost_member.payload import SOURCE, letter_id, record_of, source_of


class Letters:
    """Keys that are parked permanently. Satisfies ``adapters.ParkedKeys``."""

    def __init__(self, topic: str, settings: Mapping[str, Any]) -> None:
        """``topic`` holds the dead letters; ``settings`` are the client's addresses, SASL and TLS."""
        self._topic, self._settings = topic, settings
        self._keys: Dict[Tp, Set[bytes]] = {}

    def add(self, tp: Tp, offset: int, key: bytes) -> None:
        """See ``adapters.ParkedKeys``."""
        self._keys.setdefault(tp, set()).add(key)

    def holds(self, tp: Tp, key: bytes) -> bool:
        """See ``adapters.ParkedKeys``."""
        return key in self._keys.get(tp, ())

    def assigning(self, partitions: Sequence[Tp]) -> None:
        """See ``adapters.ParkedKeys``."""
        found: Dict[Tp, Set[bytes]] = {tp: set() for tp in partitions}
        for key, headers in contents(self._topic, self._settings) if partitions else ():
            _, topic, partition, _ = source_of(headers.get(SOURCE))
            if key is not None and (topic, partition) in found:
                found[topic, partition].add(key)
        self._keys.update(found)

    def close(self) -> None:
        """See ``adapters.ParkedKeys``."""


class Redirects:
    """Keys that are parked until their letters were retried. Satisfies ``adapters.ParkedKeys``.

    Attributes:
        waiting: partition -> key -> ids of its letters that were not retried.
        entries: id of such a letter -> (partition, key).
    """

    def __init__(self, topic: str, settings: Mapping[str, Any], write: Callable[..., None]) -> None:
        """``topic`` is the redirect topic, into which ``write`` writes; ``settings`` as in ``Letters``."""
        self._topic, self._write = topic, write
        self._consumer: Any = client.Consumer({**reading(topic), **settings})
        self._next: Dict[int, int] = {}  # partition -> next offset to read; empty before the first read
        self._error = ""
        self.waiting: Dict[Tp, Dict[bytes, Set[bytes]]] = {}
        self.entries: Dict[bytes, Tuple[Tp, bytes]] = {}
        self._retried: Set[bytes] = set()  # a tombstone may arrive before its entry

    def add(self, tp: Tp, offset: int, key: bytes) -> None:
        """See ``adapters.ParkedKeys``. Entry and letter are in the log before offsets are committed."""
        letter = letter_id(*tp, offset)
        self._write(topic=self._topic, key=letter, value=key)
        self._waits(letter, key)

    def holds(self, tp: Tp, key: bytes) -> bool:
        """See ``adapters.ParkedKeys``. If letters of this key wait, it first reads the new entries of the topic."""
        waiting = self.waiting.get(tp, {})
        message = self._consumer.poll(0) if key in waiting else None
        while message is not None:
            self._receive(message)
            message = self._consumer.poll(0)
        return key in waiting

    def assigning(self, partitions: Sequence[Tp]) -> None:
        """See ``adapters.ParkedKeys``."""
        if not partitions:
            return
        until_s = time.monotonic() + READ_S
        if not self._next:
            self._next = dict.fromkeys(partitions_of_topic(self._consumer, self._topic, until_s), 0)
            begin = client.OFFSET_BEGINNING
            self._consumer.assign([client.TopicPartition(self._topic, partition, begin) for partition in self._next])
        ends = {partition: self._end(partition, until_s) for partition in self._next}
        while unread := [partition for partition, end in ends.items() if self._next[partition] < end]:
            if time.monotonic() > until_s:
                message = "the end of %s %r was not reached within %d s" % (self._topic, unread, READ_S)
                raise TimeoutError("%s; the client's last error: %s" % (message, self._error or "none"))
            message = self._consumer.poll(CALL_S)
            if message is not None and self._receive(message):
                until_s = time.monotonic() + READ_S

    def was_retried(self, letter: bytes) -> None:
        """The letter with this id was retried: it waits no more."""
        if letter in self.entries:
            tp, key = self.entries.pop(letter)
            letters = self.waiting[tp][key]
            letters.discard(letter)
            if not letters:
                del self.waiting[tp][key]

    def close(self) -> None:
        """See ``adapters.ParkedKeys``."""
        self._consumer.close()

    def _end(self, partition: int, until_s: float) -> int:
        where = client.TopicPartition(self._topic, partition)
        while True:
            try:
                ends: Tuple[int, int] = self._consumer.get_watermark_offsets(where, CALL_S)
                return ends[1]
            except client.KafkaException as error:  # the leader may be down until another one is elected
                if time.monotonic() > until_s:
                    raise TimeoutError(
                        "no broker returned the end offset of %s-%d: %s" % (self._topic, partition, error)
                    ) from error

    def _receive(self, message: Any) -> bool:
        """Apply a message of a poll; False: it is an error, after which the client tries again by itself."""
        error = message.error()
        if error is not None and error.code() != client.KafkaError._PARTITION_EOF:
            self._error = error.str()
            return False
        self._next[message.partition()] = message.offset() + (error is None)
        letter, key = (message.key(), message.value()) if error is None else (b"", b"")
        if key is None:
            self._retried.add(letter)
            self.was_retried(letter)
        elif letter:
            self._waits(letter, key)
        return True

    def _waits(self, letter: bytes, key: bytes) -> None:
        if letter not in self._retried:  # otherwise its record was processed already
            tp, _ = record_of(letter)
            self.entries[letter] = (tp, key)
            self.waiting.setdefault(tp, {}).setdefault(key, set()).add(letter)
