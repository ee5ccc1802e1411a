"""The final content of topics that members wrote, as consumers with ``read_committed`` see it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import confluent_kafka as ck

from fencepost.errors import FencepostError
from fencepost.evidence import committed_reader, effects
from fencepost.evidence.audit import ABORTED_WITHIN_S, READING, SILENCE_S
from fencepost.evidence.brokers.clock_conversion import MS, WallClockConverter
from fencepost.interfaces import Cluster, Workload, WritesOutput
from fencepost.model import TopicPartition
from fencepost.scenario.run_topics import RunTopics
from fencepost_member.payload import HEADER, SOURCE, letter_id, source_of, unpack
from fencepost_member.recording.events import EventLog


def collect(
    workload: Workload,
    topics: RunTopics,
    cluster: Cluster,
    pairs: Sequence[Sequence[int]],
    events: EventLog,
    other_clocks: bool = False,
) -> None:
    """Record every effect in the topics that members write, by partition and offset, or that they cannot be read.

    If producers write to the same topics (the workload has no topic ``into`` which members write), only records that
    name their source are effects.

    Args:
        pairs: clock pairs (monotonic_ns, wall_ns).
        other_clocks: whether brokers have other clocks: of records that they stamped, the effects are unknown.
    """
    if not isinstance(workload, WritesOutput):
        return
    settings = {"isolation.level": "read_committed", "auto.offset.reset": "earliest"}
    consumer = ck.Consumer({**READING, **cluster.access, **settings, "bootstrap.servers": cluster.bootstrap()})
    timeline = WallClockConverter.of(pairs)
    patience_s = max(SILENCE_S, workload.transaction_timeout_ms / 1000 + ABORTED_WITHIN_S)

    def read(names: Iterable[str]) -> Iterator[ck.Message]:
        ends = ((topic, cluster.admin.end_offsets(topic)) for topic in names)
        until = {TopicPartition(topic, partition): end for topic, found in ends for partition, end in found.items()}
        begins = {tp: 0 for tp, end in until.items() if end}
        return committed_reader.records(consumer, begins, until, patience_s)

    def written_ms(message: ck.Message) -> int:
        kind, wall_ms = message.timestamp()
        if other_clocks and kind == ck.TIMESTAMP_LOG_APPEND_TIME:
            raise ValueError("its records have the times of brokers with other clocks (LogAppendTime)")
        return wall_ms

    try:
        written = sorted(
            (message for message in read(topics.effect_topics) if workload.into or _named(message)), key=_place
        )
        entries = read([topics.retried]) if topics.retried else ()
        retried: dict[Any, int] = {}
        for entry in entries:
            if entry.value() is None:
                # The first retry of a dead letter counts.
                retried.setdefault(entry.key(), timeline.at_ns(written_ms(entry)))
        found = [
            _effect(message, timeline.at_ns(written_ms(message)), not workload.into, retried) for message in written
        ]
        effects.record(found, events, workload.holds)
    except (ck.KafkaException, FencepostError, ValueError) as error:
        effects.record_unknown(events, f"the topic {', '.join(topics.effect_topics)} cannot be read: {error}")
    finally:
        consumer.close()


def _named(message: ck.Message) -> bool:
    headers: dict[str, Any] = dict(message.headers() or ())
    return SOURCE in headers


def _place(message: ck.Message) -> tuple[str, int, int]:
    return message.topic() or "", message.partition() or 0, message.offset() or 0


def _effect(message: ck.Message, at_ns: int, again: bool, retried: Mapping[Any, int]) -> effects.RecordedEffect:
    headers: dict[str, Any] = dict(message.headers() or ())
    actor, topic, partition, offset = source_of(headers.get(SOURCE))
    key, _, _ = unpack(message.key(), headers.get(HEADER, message.value()))
    lies = _place(message)[2] if again else -1
    retried_ns = retried.get(letter_id(topic, partition, offset), 0)
    return effects.RecordedEffect(
        topic, partition, offset, actor, at_ns, at_ns + MS, key=key, again=lies, retried_ns=retried_ns
    )
