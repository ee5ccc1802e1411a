"""Partitions, offsets and who a member is, as confluent-kafka has them and as this project has them."""

from __future__ import annotations

import struct
from typing import Dict, Iterable, List, Mapping, Tuple

import confluent_kafka as client

from fencepost_member.adapters import Tp
from fencepost_member.adapters.confluent_errors import error_name

MAGIC = b"CGMDv2:"  # of serialised group metadata


def answered(partitions: Iterable[client.TopicPartition], whole: str = "") -> Tuple[Dict[Tp, int], Dict[Tp, str]]:
    """The answer to a commit as ``Listener.committed`` wants it; ``whole``: the error of all that have none."""
    done = [p for p in partitions if p.offset >= 0]
    offsets = {(p.topic, p.partition): p.offset for p in done}
    return offsets, {(p.topic, p.partition): error_name(p.error) or whole for p in done}


def identity_of(metadata: bytes) -> Tuple[str, int]:
    """Member id, and generation or member epoch, in librdkafka's serialised group metadata; unknown: empty, and -1."""
    if not metadata.startswith(MAGIC) or len(metadata) < len(MAGIC) + 4:
        return "", -1
    _, member_id, *_ = (*metadata[len(MAGIC) + 4 :].split(b"\0"), b"")  # after the name of the group
    return member_id.decode(errors="replace"), int(struct.unpack_from("=i", metadata, len(MAGIC))[0])


def tps_of(partitions: List[client.TopicPartition]) -> List[Tp]:
    """Partitions as this project has them."""
    return [(p.topic, p.partition) for p in partitions]


def partitions_of(offsets: Mapping[Tp, int], metadata: str = "") -> List[client.TopicPartition]:
    """Offsets as the library takes them."""
    remark = (metadata,) if metadata else ()  # releases before 2.0 take none
    return [client.TopicPartition(*tp, offset, *remark) for tp, offset in offsets.items()]
