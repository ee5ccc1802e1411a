"""Collects what the brokers recorded of one group, part by part, and reports the parts that a cluster does not show."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TypeVar

from fencepost.errors import NotRead, NotShown
from fencepost.evidence.brokers import metadata_log, offsets_topic, request_log
from fencepost.evidence.brokers.broker_clocks import LeaderClocks
from fencepost.evidence.brokers.clock_conversion import WallClockConverter
from fencepost.interfaces import Cluster
from fencepost.model import group_partition

T = TypeVar("T")


def collect(
    cluster: Cluster,
    pairs: Sequence[Sequence[int]],
    clocks: LeaderClocks | None,
    group: str,
    topics: Mapping[str, object],
    into: Path,
) -> dict[str, dict[str, str]]:
    """Write ``metadata.jsonl``, ``offsets.jsonl`` and ``requests.jsonl``, as far as the cluster shows them.

    Args:
        pairs: clock pairs (monotonic_ns, wall_ns). clocks: those of the brokers; None: they have ours.
        topics: the topics of the workload.
        into: the ``history`` folder of the run.

    Returns:
        The missing parts of the history with their reasons: ``parts`` that the cluster does not show, and parts that
        could not be read, ``failed``. Empty if nothing is missing.

    Raises:
        FencepostError: a part that the cluster shows cannot be read.
    """
    missing: dict[str, dict[str, str]] = defaultdict(dict)

    def shown(part: str, gather: Callable[[], T]) -> T | None:
        try:
            return gather()
        except NotShown as error:
            missing["failed" if isinstance(error, NotRead) else "parts"][part] = str(error)
            return None

    names = shown(
        "metadata", lambda: metadata_log.collect(cluster.evidence, cluster.brokers, pairs, topics.keys(), into)
    )
    known = cluster.admin.names_by_id(topics.keys()) if names is None else names
    partition = group_partition(group, len(cluster.admin.leaders(offsets_topic.TOPIC)) or 1)
    timeline = clocks or WallClockConverter.of(pairs)
    shown("offsets", lambda: offsets_topic.collect(cluster.evidence, partition, timeline, group, into, known))
    shown("requests", lambda: request_log.collect(cluster.evidence, cluster.brokers, pairs, group, into, known))
    return {**missing}
