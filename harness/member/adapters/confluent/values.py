"""Partitions, offsets and member identities: from confluent-kafka's types to this project's, and back."""

from __future__ import annotations

import struct
from typing import Dict, Iterable, List, Mapping, Tuple

import confluent_kafka as client

from fencepost_member.adapters import Tp
from fencepost_member.adapters.confluent.errors import error_name

MAGIC = b"CGMDv2:"  # prefix of serialised group metadata


def answered(partitions: Iterable[client.TopicPartition], whole: str = "") -> Tuple[Dict[Tp, int], Dict[Tp, str]]:
    """The arguments of ``ClientListener.committed`` for the answer to a commit: offsets, and an error name for each.

    Args:
        whole: the error name for partitions that have none of their own.
    """
    done = [p for p in partitions if p.offset >= 0]
    offsets = {(p.topic, p.partition): p.offset for p in done}
    return offsets, {(p.topic, p.partition): error_name(p.error) or whole for p in done}


def identity_of(metadata: bytes) -> Tuple[str, int]:
    """Member id, and generation or member epoch, in librdkafka's serialised group metadata; unknown: empty, and -1."""
    if not metadata.startswith(MAGIC) or len(metadata) < len(MAGIC) + 4:
        return "", -1
    _, member_id, *_ = (*metadata[len(MAGIC) + 4 :].split(b"\0"), b"")  # the name of the group precedes it
    return member_id.decode(errors="replace"), int(struct.unpack_from("=i", metadata, len(MAGIC))[0])


def tps_of(partitions: List[client.TopicPartition]) -> List[Tp]:
    """Partitions as (topic, partition)."""
    return [(p.topic, p.partition) for p in partitions]


def partitions_of(offsets: Mapping[Tp, int], metadata: str = "") -> List[client.TopicPartition]:
    """Offsets in the library's form."""
    remark = (metadata,) if metadata else ()  # releases before 2.0 have no such argument
    return [client.TopicPartition(*tp, offset, *remark) for tp, offset in offsets.items()]
