"""The records of logs that consumers with ``read_committed`` see, and the end of these visible records.

After the last visible record, a log may have ends of transactions and aborted records. Lag counts only visible records,
because a member never commits past the last one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import confluent_kafka as ck

from fencepost.errors import ClusterError
from fencepost.evidence.audit import OPEN_S, READING, batches, ends
from fencepost.interfaces import Cluster
from fencepost.model import TopicPartition

FIRST = 500  # the search starts this many offsets before the end, and then goes back farther and farther
FARTHER = 8


def visible_ends(cluster: Cluster, until: Mapping[TopicPartition, int]) -> dict[TopicPartition, int]:
    """For each partition, the offset after its last visible record below ``until``; 0: there is none.

    Raises:
        ClusterError: a partition cannot be read.
        WaitTimeout: a transaction stays open, or the brokers stopped answering.
    """
    committed = {"isolation.level": "read_committed", "auto.offset.reset": "earliest"}
    consumer = ck.Consumer({**READING, **cluster.access, **committed, "bootstrap.servers": cluster.bootstrap()})
    found, back = dict.fromkeys(until, 0), FIRST
    try:
        while left := {tp: max(0, end - back) for tp, end in until.items() if not found[tp] and end > 0}:
            for message in records(consumer, left, until, OPEN_S):
                tp = TopicPartition(str(message.topic()), message.partition() or 0)
                found[tp] = max(found[tp], (message.offset() or 0) + 1)
            if not any(left.values()):
                break
            back *= FARTHER
    except ck.KafkaException as error:
        raise ClusterError(f"the ends of the logs cannot be read: {error}") from error
    finally:
        consumer.close()
    return found


def records(
    consumer: ck.Consumer,
    begins: Mapping[TopicPartition, int],
    until: Mapping[TopicPartition, int],
    patience_s: float,
) -> Iterator[ck.Message]:
    """The visible records from ``begins`` to below ``until``, of all partitions in any order.

    Args:
        consumer: a consumer with ``read_committed`` that reports the ends of partitions.
        patience_s: how long to wait without a record or an end: an open transaction hides later records.

    Raises:
        ClusterError: a partition cannot be read.
        WaitTimeout: the brokers stopped answering before the end.
    """
    unread = set(begins)
    consumer.assign([ck.TopicPartition(*tp, begin) for tp, begin in begins.items()])
    for messages in batches(consumer, unread, patience_s, " Is a transaction open there?"):
        for message in messages:
            tp = TopicPartition(str(message.topic()), message.partition() or 0)
            if message.error() is None:
                if (message.offset() or 0) < until[tp]:
                    yield message
            elif any(end >= until[tp] for end in ends([message], tp)):  # else a transaction is open there
                unread.discard(tp)
