"""Which keys a member of confluent-kafka has parked: for good, or until what was parked was retried.

The latter is told in a *redirect topic* (pattern 4 of Confluent's "Error Handling Patterns for Apache Kafka
Applications"): an entry for each letter, under an id of its own, and a tombstone for that once it was retried. Whoever
takes a partition reads it up to its end, as what an earlier owner kept in mind is gone, and on while something waits.
"""

from __future__ import annotations

import os
import time
from typing import Any, Callable, Dict, List, Mapping, Sequence, Set, Tuple

import confluent_kafka as client

from fencepost_member.adapters import Headers, Tp
from fencepost_member.adapters.confluent_reading import CALL_S, READ_S, contents, partitions_of_topic
from fencepost_member.payload import LETTER, SOURCE, source, source_of


class Letters:
    """For good. Satisfies ``adapters.Holding``."""

    def __init__(self, topic: str, reading: Mapping[str, Any]) -> None:
        """``topic`` holds what was parked; ``reading``: settings of a client."""
        self._topic, self._reading = topic, reading
        self._keys: Dict[Tp, Set[bytes]] = {}

    def park(self, tp: Tp, offset: int, key: bytes) -> Headers:
        """See ``adapters.Holding``."""
        self._keys.setdefault(tp, set()).add(key)
        return None

    def holds(self, tp: Tp, key: bytes) -> bool:
        """See ``adapters.Holding``."""
        return key in self._keys.get(tp, ())

    def taking(self, partitions: Sequence[Tp]) -> None:
        """See ``adapters.Holding``."""
        found: Dict[Tp, Set[bytes]] = {tp: set() for tp in partitions}
        for key, headers in contents(self._topic, self._reading) if partitions else ():
            _, topic, partition, _ = source_of(headers.get(SOURCE))
            if key is not None and (topic, partition) in found:
                found[topic, partition].add(key)
        self._keys.update(found)

    def close(self) -> None:
        """See ``adapters.Holding``."""


class Redirects:
    """Until it was retried. Satisfies ``adapters.Holding``.

    Attributes:
        waiting: of each key the ids of its letters that were not retried.
        entries: of each of these ids whose it is.
    """

    def __init__(self, topic: str, reading: Mapping[str, Any], actor: str, write: Callable[..., None]) -> None:
        """``topic`` is the redirect topic, into which ``write`` writes; ``reading``: settings of a client."""
        self._topic, self._actor, self._write = topic, actor, write
        self._consumer: Any = client.Consumer(
            {"group.id": "%s-reader" % topic, "enable.auto.commit": False, **reading}  # nobody joins
        )
        self._next: Dict[int, int] = {}  # of each partition the first offset that is not read; empty: it is not read
        self.waiting: Dict[Tp, Dict[bytes, Set[bytes]]] = {}
        self.entries: Dict[bytes, Tuple[Tp, bytes]] = {}
        self._retried: Set[bytes] = set()  # ids; a tombstone may come before the entry

    def park(self, tp: Tp, offset: int, key: bytes) -> Headers:
        """See ``adapters.Holding``. The entry is there, as the letter is, before offsets are committed."""
        letter = os.urandom(8).hex().encode()
        self._write(topic=self._topic, key=letter, value=key, headers=[(SOURCE, source(self._actor, tp, offset))])
        self._waits(letter, tp, key)
        return [(LETTER, letter)]

    def holds(self, tp: Tp, key: bytes) -> bool:
        """See ``adapters.Holding``. What came meanwhile is read where it matters, while something waits."""
        waiting = self.waiting.get(tp, {})
        if key in waiting:
            self._read_on()
        return key in waiting

    def taking(self, partitions: Sequence[Tp]) -> None:
        """See ``adapters.Holding``."""
        if not partitions:
            return
        until_s = time.monotonic() + READ_S
        if not self._next:
            self._begin(client.OFFSET_BEGINNING, until_s)
        ends = {partition: self._end(partition, until_s) for partition in self._next}
        while unread := [partition for partition, end in ends.items() if self._next[partition] < end]:
            if time.monotonic() > until_s:
                raise TimeoutError("the end of %s %r was not seen within %d s" % (self._topic, unread, READ_S))
            self._take(self._consumer.poll(CALL_S))

    def was_retried(self, letter: bytes) -> None:
        """Nothing waits any more under this id."""
        if letter in self.entries:
            tp, key = self.entries.pop(letter)
            letters = self.waiting[tp][key]
            letters.discard(letter)
            if not letters:
                del self.waiting[tp][key]

    def close(self) -> None:
        """See ``adapters.Holding``."""
        self._consumer.close()

    def _begin(self, offset: int, until_s: float) -> None:
        self._next = dict.fromkeys(partitions_of_topic(self._consumer, self._topic, until_s), 0)
        self._consumer.assign([client.TopicPartition(self._topic, partition, offset) for partition in self._next])

    def _end(self, partition: int, until_s: float) -> int:
        while True:
            try:
                ends: Tuple[int, int] = self._consumer.get_watermark_offsets(
                    client.TopicPartition(self._topic, partition), CALL_S
                )
                return ends[1]
            except client.KafkaException as error:  # its leader may be gone, and another one comes
                if time.monotonic() > until_s:
                    raise TimeoutError("nobody told where %s ends: %s" % (self._topic, error)) from error

    def _read_on(self) -> None:
        if not self._next:
            self._begin(client.OFFSET_END, time.monotonic() + READ_S)
        while (message := self._consumer.poll(0)) is not None:
            self._take(message)

    def _take(self, message: Any) -> None:
        if message is None or message.error() is not None:  # of those the client tries again by itself
            return
        self._next[message.partition()] = message.offset() + 1
        letter, key = message.key(), message.value()
        if key is None:
            self._retried.add(letter)
            self.was_retried(letter)
        elif letter not in self._retried:
            headers: List[Tuple[str, bytes]] = message.headers() or []
            _, topic, partition, _ = source_of(dict(headers).get(SOURCE))
            self._waits(letter, (topic, partition), key)

    def _waits(self, letter: bytes, tp: Tp, key: bytes) -> None:
        self.entries[letter] = (tp, key)
        self.waiting.setdefault(tp, {}).setdefault(key, set()).add(letter)
