"""A producer process: ``python -m fencepost_member.producing.producer CONFIG.json``.

SIGTERM and SIGINT ask for a clean end.

It writes keyed records, each with its writer and sequence number, to partition ``key % partitions``, idempotently and
with acks=all. Values are generated, or the user's (see ``contents``). Every send is recorded
before the client gets it, and completed in place when the client reports its outcome: ok with the offset, fail when it
certainly did not happen, info when the outcome is unknown. A clean end waits for records in flight (``flush_s``); the
remaining ones are dropped and recorded by their errors.

See ``fencepost_member.process`` for the exit codes.
"""

from __future__ import annotations

import os
import random
import sys
import threading
import time
import typing
from collections import Counter
from functools import partial
from itertools import accumulate
from typing import Any, Callable, Container, Dict, Iterator, Mapping, Optional, Sequence, Tuple

import confluent_kafka as client

from fencepost_member import kafka_errors
from fencepost_member.adapters.confluent.errors import error_name
from fencepost_member.config import ConfigError, PartitionNumbers, ProducerConfig, read_producer
from fencepost_member.member_events import redacted
from fencepost_member.ownership import Tp
from fencepost_member.payload import HEADER, pack
from fencepost_member.process import GAVE_UP, open_history, run, stop_on_signals
from fencepost_member.producing.contents import Contents, contents_of
from fencepost_member.producing.producer_transactions import ProducerTransactions, settings
from fencepost_member.recording.events import EventLog
from fencepost_member.recording.recorder import ProducerLane

TICK_S = 0.01  # how often records become due
CATCH_UP_S = 0.5  # after a stall, records that were due longer ago are skipped
LOOK_S = 0.5  # how often the producer looks whether partitions were added,
LOOKING_S = 0.2  # and for how long it waits for the answer, in which it sends nothing
UNPACED = 500  # records sent between two polls for delivery reports, when there is no rate
PURGE_S = 2.0


class Writer:
    """One producer; it sends until ``stop`` is set."""

    def __init__(self, config: ProducerConfig, lane: ProducerLane, events: EventLog, stop: threading.Event) -> None:
        """Connect the client. Raises ConfigError when it refuses its settings."""
        self._config, self._lane, self._events, self._stop = config, lane, events, stop
        self._settings: Dict[str, Any] = {
            "bootstrap.servers": config.bootstrap,
            "client.id": config.actor,
            "linger.ms": 25,  # larger batches: most of a run's CPU time is spent on the brokers' requests
            "topic.metadata.refresh.interval.ms": 5000,  # a topic that was recreated is found again by then
            **config.client_config,
            "enable.idempotence": True,
            "acks": "all",
            **settings(config),
        }
        try:
            self._producer = client.Producer({**self._settings, "error_cb": self._error})
        except (client.KafkaException, TypeError, ValueError) as error:
            raise ConfigError("confluent-kafka refuses the producer's settings: %s" % error) from error
        many = config.transaction_records
        self._transactions = ProducerTransactions(config, self._producer, lane, stop) if many else None
        self._contents: Optional[Contents] = contents_of(config.payload, config.keys) if config.payload else None
        self._partitions = {topic: len(partitions) for topic, partitions in config.topics.items()}
        self._tps, self._draws = PartitionNumbers(config.topics), random.Random("%d/%d" % (config.seed, config.writer))
        self._idle, self._began_s, self._looked_s = config.idle_partition_s > 0, time.monotonic(), 0.0
        self._draw = self._drawing()
        self._pack = partial(pack, config.writer, text=config.text)
        self._seq = 0
        self._counts: typing.Counter[str] = Counter()
        self._errors: typing.Counter[str] = Counter()
        self._fatal = ""

    def run(self) -> str:
        """Send until ``stop`` is set, then flush. Returns the name of a fatal client error; empty after a clean end."""
        version = "%s, librdkafka %s" % (client.__version__, client.libversion()[0])
        introduction = {"pid": os.getpid(), "writer": self._config.writer, "client": "confluent-kafka"}
        config = {"client_version": version, "config": redacted(self._settings), "rate_hz": self._config.rate_hz}
        self._events.note("started", detail={**introduction, **config})
        if self._transactions:
            self._fatal = self._transactions.start()
        if self._config.rate_hz > 0:
            self._paced(self._config.rate_hz)
        else:
            while self._going():
                self._look(time.monotonic())
                self._write(UNPACED)
                self._producer.poll(0)
        self._finish()
        if not self._fatal:
            detail = {"sent": self._seq, "outcomes": dict(self._counts), "errors": dict(self._errors)}
            self._events.note("closed", detail=detail)
        return self._fatal

    def _going(self) -> bool:
        return not self._stop.is_set() and not self._fatal

    def _paced(self, rate_hz: float) -> None:
        began_s, sent, every_s = time.monotonic(), 0, self._config.burst_every_s
        while self._going():
            now_s = time.monotonic()
            self._look(now_s)
            due = due_in(now_s - began_s, rate_hz, every_s) - sent
            if due > (CATCH_UP_S + every_s) * rate_hz + 1:
                began_s, sent, due = now_s, 0, 0
            self._write(due)
            sent += due
            tick_ends_s = now_s + TICK_S
            while now_s < tick_ends_s and self._going():
                self._producer.poll(tick_ends_s - now_s)
                now_s = time.monotonic()

    def _look(self, now_s: float) -> None:
        """Write to the idle partition once it is time, and to partitions that were added."""
        config, before = self._config, (self._idle, dict(self._partitions))
        self._idle = now_s - self._began_s < config.idle_partition_s
        if config.added_partitions and now_s - self._looked_s >= LOOK_S:
            for topic, count in before[1].items():
                try:
                    found = (
                        self._producer.list_topics(topic, LOOKING_S / len(self._partitions)).topics[topic].partitions
                    )
                except client.KafkaException:
                    continue  # no broker answers now; the next look will show it
                self._partitions[topic] = max(count, len(found))
            self._looked_s = time.monotonic()
        if (self._idle, self._partitions) != before:
            self._draw = self._drawing()

    def _drawing(self) -> Callable[[], Place]:
        keys = self._contents.keys if self._contents else self._config.keys
        at_first = {topic: len(partitions) for topic, partitions in self._config.topics.items()}
        idle = {(topic, count - 1) for topic, count in at_first.items() if count > 1} if self._idle else set()
        places = list(places_of(self._partitions, self._tps, keys, idle))
        return drawing(places, self._config.skew, self._draws)

    def _write(self, count: int) -> None:
        """Send ``count`` records, in transactions if the producer has them."""
        transactions = self._transactions
        while transactions and count > 0 and self._going():
            part, error = transactions.reserve(count)
            if error:
                self._fatal = self._fatal or error
                return
            self._send(part)
            count -= part
            if not transactions.room:
                self._end_transaction(transactions)
        if not transactions:
            self._send(count)

    def _end_transaction(self, transactions: ProducerTransactions) -> None:
        counts, error = transactions.end()
        self._counts.update(counts)
        if error and not self._stop.is_set():
            self._fatal = self._fatal or error

    def _send(self, count: int) -> None:
        sent, produce, draw = self._lane.sent, self._producer.produce, self._draw
        writer, size, contents = self._config.writer, self._config.value_bytes, self._contents
        packed = self._pack
        for seq in range(self._seq, self._seq + count):
            number, key, topic, partition, tp = draw()
            headers: Any = None
            if contents:
                key, value, more = contents(number, seq)
                headers = [*more, (HEADER, packed(seq, number))]
            else:
                value = packed(seq, number, size)
            index = sent(tp, number, writer, seq)
            self._seq = seq + 1
            while True:
                try:
                    produce(topic, value, key, partition, on_delivery=partial(self._completed, index), headers=headers)
                    if self._transactions:
                        self._transactions.sent(index)
                    break
                except BufferError:
                    if not self._going():
                        self._complete(index, "LOCAL_QUEUE_FULL")
                        return
                    self._producer.poll(TICK_S)
                except client.KafkaException as error:
                    self._complete(index, error_name(error.args[0]))
                    break

    def _completed(self, index: int, error: Optional[client.KafkaError], message: client.Message) -> None:
        offset = message.offset()
        if self._transactions:
            self._transactions.written(index, None if error else offset)
        elif error is None and offset is not None and offset >= 0:
            self._lane.acked(index, offset)
            self._counts["ok"] += 1
        else:  # failed, or acknowledged without an offset: a repeated attempt whose first answer was lost
            self._complete(index, error_name(error) or "DUPLICATE_SEQUENCE_NUMBER")

    def _complete(self, index: int, error: str) -> None:
        outcome = kafka_errors.outcome(error)
        (self._lane.failed if outcome == "fail" else self._lane.unknown)(index)
        self._counts[outcome] += 1
        self._errors[error] += 1
        if self._errors[error] == 1:  # only the first of each kind is an event; all are counted
            self._events.note("error", error=error, outcome=outcome, detail={"text": "a record failed", "fatal": False})

    def _finish(self) -> None:
        if self._transactions and not self._fatal:
            self._end_transaction(self._transactions)
        self._producer.flush(self._config.flush_s)
        if len(self._producer):
            self._producer.purge()
            self._producer.flush(PURGE_S)

    def _error(self, error: client.KafkaError) -> None:
        name = error_name(error)
        if error.fatal():
            self._fatal = self._fatal or name
        self._events.note("error", error=name, detail={"text": error.str(), "fatal": error.fatal()})


def due_in(seconds: float, rate_hz: float, burst_every_s: float) -> int:
    """The number of records due in the first ``seconds``; with bursts, those of a period are due at its end."""
    if burst_every_s:
        seconds -= seconds % burst_every_s
    return int(seconds * rate_hz)


Place = Tuple[int, Optional[bytes], str, int, int]


def places_of(partitions: Mapping[str, int], tps: Mapping[Tp, int], keys: int, idle: Container[Tp]) -> Iterator[Place]:
    """For every topic and key: key number, key, topic, partition, ``tp``.

    Args:
        partitions: topic -> how many partitions it has.
        tps: the numbers of partitions.
        keys: how many there are.
        idle: partitions that are left out.
    """
    for topic, count in sorted(partitions.items()):
        for key in range(keys):
            if (topic, key % count) not in idle:
                yield key, b"%d" % key, topic, key % count, tps[topic, key % count]


def drawing(places: Sequence[Place], skew: float, draws: random.Random) -> Callable[[], Place]:
    """A function that draws the key and the partition of the next record."""
    if not skew:
        return partial(draws.choice, places)
    weights = list(accumulate((place[0] + 1) ** -skew for place in places))
    return lambda: draws.choices(places, cum_weights=weights)[0]


def main(argv: Sequence[str]) -> int:
    """Run one producer until it ends; returns its exit code."""
    config = read_producer(argv[0])
    stop = stop_on_signals()
    events, recorder = open_history(config.run, config.actor)
    fatal = Writer(config, recorder.producer_lane(), events, stop).run()
    recorder.close()
    if fatal:
        print("the client reported a fatal error: %s" % fatal, file=sys.stderr)
    return GAVE_UP if fatal else 0


if __name__ == "__main__":
    sys.exit(run(main, "usage: python -m fencepost_member.producing.producer CONFIG.json"))
