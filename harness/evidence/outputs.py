"""What a topic that members wrote holds in the end, as whoever reads it with ``read_committed`` sees it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import confluent_kafka as ck

from fencepost.errors import FencepostError
from fencepost.evidence import effects
from fencepost.evidence.audit import READING, SILENCE_S, batches, ends
from fencepost.evidence.times import MS, Timeline
from fencepost.interfaces import Cluster, Writes
from fencepost.model import TopicPartition
from fencepost_member.events import EventLog
from fencepost_member.payload import HEADER, SOURCE, source_of, unpack

ABORTED_WITHIN_S = 15.0  # brokers look every 10 s for transactions whose time is over


def tell(topic: str, cluster: Cluster, pairs: Sequence[Sequence[int]], workload: Writes, events: EventLog) -> None:
    """Tell every effect in the topic, or that it cannot be read: by its partitions, in each of them in its order.

    Args:
        pairs: clock pairs (monotonic_ns, wall_ns).
    """
    committed = {"isolation.level": "read_committed", "bootstrap.servers": cluster.bootstrap()}
    consumer = ck.Consumer({**READING, **cluster.access, **committed})
    timeline, open_s = Timeline.of(pairs), workload.transaction_timeout_ms / 1000
    try:
        found = sorted(_records(consumer, topic, cluster.admin.end_offsets(topic), open_s), key=_place)
        effects.tell([_effect(message, timeline) for message in found], events, workload.holds)
    except (ck.KafkaException, FencepostError, ValueError) as error:
        effects.cannot_tell(events, f"the topic {topic} cannot be read: {error}")
    finally:
        consumer.close()


def _records(consumer: ck.Consumer, topic: str, until: Mapping[int, int], open_s: float) -> Iterator[ck.Message]:
    """All that is committed below some offsets, of whichever partition.

    Args:
        open_s: how long a transaction may be open: nobody sees what is behind one.

    Raises:
        ClusterError: a partition cannot be read.
        WaitTimeout: the brokers fell silent before the end.
    """
    unread = {TopicPartition(topic, partition) for partition, end in until.items() if end}
    consumer.assign([ck.TopicPartition(*tp, 0) for tp in unread])
    patience_s = max(SILENCE_S, open_s + ABORTED_WITHIN_S)
    for messages in batches(consumer, unread, patience_s, " Is a transaction open there?"):
        for message in messages:
            tp = TopicPartition(topic, message.partition() or 0)
            if message.error() is None:
                yield message
            elif any(end >= until[tp.partition] for end in ends([message], tp)):  # else a transaction is open there
                unread.discard(tp)


def _place(message: ck.Message) -> tuple[int, int]:
    return message.partition() or 0, message.offset() or 0


def _effect(message: ck.Message, timeline: Timeline) -> effects.Effect:
    headers: dict[str, Any] = dict(message.headers() or ())
    actor, topic, partition, offset = source_of(headers.get(SOURCE))
    at_ns = timeline.at_ns(message.timestamp()[1])
    key, _, _ = unpack(message.key(), headers.get(HEADER, message.value()))
    return effects.Effect(topic, partition, offset, actor, at_ns, at_ns + MS, key=key)
