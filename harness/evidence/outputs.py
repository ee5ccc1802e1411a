"""What a topic that members wrote holds in the end, as whoever reads it with ``read_committed`` sees it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import confluent_kafka as ck

from fencepost.errors import FencepostError
from fencepost.evidence import committed, effects
from fencepost.evidence.audit import ABORTED_WITHIN_S, READING, SILENCE_S
from fencepost.evidence.times import MS, Timeline
from fencepost.interfaces import Cluster, Writes
from fencepost.model import TopicPartition
from fencepost_member.events import EventLog
from fencepost_member.payload import HEADER, SOURCE, source_of, unpack


def tell(topic: str, cluster: Cluster, pairs: Sequence[Sequence[int]], workload: Writes, events: EventLog) -> None:
    """Tell every effect in the topic, or that it cannot be read: by its partitions, in each of them in its order.

    Args:
        pairs: clock pairs (monotonic_ns, wall_ns).
    """
    settings = {"isolation.level": "read_committed", "bootstrap.servers": cluster.bootstrap()}
    consumer = ck.Consumer({**READING, **cluster.access, **settings})
    timeline = Timeline.of(pairs)
    patience_s = max(SILENCE_S, workload.transaction_timeout_ms / 1000 + ABORTED_WITHIN_S)
    try:
        until = {TopicPartition(topic, partition): end for partition, end in cluster.admin.end_offsets(topic).items()}
        begins = {tp: 0 for tp, end in until.items() if end}
        found = sorted(committed.records(consumer, begins, until, patience_s), key=_place)
        effects.tell([_effect(message, timeline) for message in found], events, workload.holds)
    except (ck.KafkaException, FencepostError, ValueError) as error:
        effects.cannot_tell(events, f"the topic {topic} cannot be read: {error}")
    finally:
        consumer.close()


def _place(message: ck.Message) -> tuple[int, int]:
    return message.partition() or 0, message.offset() or 0


def _effect(message: ck.Message, timeline: Timeline) -> effects.Effect:
    headers: dict[str, Any] = dict(message.headers() or ())
    actor, topic, partition, offset = source_of(headers.get(SOURCE))
    at_ns = timeline.at_ns(message.timestamp()[1])
    key, _, _ = unpack(message.key(), headers.get(HEADER, message.value()))
    return effects.Effect(topic, partition, offset, actor, at_ns, at_ns + MS, key=key)
