"""Where what members can be given ends: behind it a log may hold ends of transactions, and records that were aborted.

Lag is counted in visible records: a member never commits past the last one of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import confluent_kafka as ck

from fencepost.errors import ClusterError
from fencepost.evidence.audit import OPEN_S, READING, batches, ends
from fencepost.interfaces import Cluster
from fencepost.model import TopicPartition

FIRST = 500  # so many offsets from the end it is looked for first, then farther and farther
FARTHER = 8


def visible_ends(cluster: Cluster, until: Mapping[TopicPartition, int]) -> dict[TopicPartition, int]:
    """Of each partition the offset after its last visible record below some offset; 0: there is none.

    Raises:
        ClusterError: a partition cannot be read.
        WaitTimeout: a transaction stays open, or the brokers fell silent.
    """
    committed = {"isolation.level": "read_committed", "auto.offset.reset": "earliest"}
    consumer = ck.Consumer({**READING, **cluster.access, **committed, "bootstrap.servers": cluster.bootstrap()})
    found, back = dict.fromkeys(until, 0), FIRST
    try:
        while left := {tp: max(0, end - back) for tp, end in until.items() if not found[tp] and end > 0}:
            for tp, after in _seen(consumer, left, until):
                found[tp] = max(found[tp], after)
            if not any(left.values()):
                break
            back *= FARTHER
    except ck.KafkaException as error:
        raise ClusterError(f"the ends of the logs cannot be read: {error}") from error
    finally:
        consumer.close()
    return found


def _seen(
    consumer: ck.Consumer, begins: Mapping[TopicPartition, int], until: Mapping[TopicPartition, int]
) -> Iterator[tuple[TopicPartition, int]]:
    """The offset after each visible record from where it begins."""
    unread = set(begins)
    consumer.assign([ck.TopicPartition(tp.topic, tp.partition, begin) for tp, begin in begins.items()])
    for messages in batches(consumer, unread, OPEN_S, " Is a transaction open there?"):
        for message in messages:
            tp = TopicPartition(str(message.topic()), message.partition() or 0)
            if message.error() is not None:
                if any(end >= until[tp] for end in ends([message], tp)):
                    unread.discard(tp)
            elif (message.offset() or 0) < until[tp]:
                yield tp, (message.offset() or 0) + 1
