"""What is committed in logs, as whoever reads with ``read_committed`` sees it: the records, and where they end.

Behind the last one a log may hold ends of transactions, and records that were aborted. Lag is counted in visible
records: a member never commits past the last one of them.
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
    """All that is committed from some offsets to below others, of whichever partition.

    Args:
        consumer: one with ``read_committed`` that is told the ends of partitions.
        patience_s: without a record or an end: nobody sees what is behind an open transaction.

    Raises:
        ClusterError: a partition cannot be read.
        WaitTimeout: the brokers fell silent before the end.
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
