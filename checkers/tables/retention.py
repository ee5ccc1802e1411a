"""The brokers' settings for keeping data: which partitions they compact, and when committed offsets expire. Pure.

Compaction keeps the last record of each key, and may keep others. So a missing record is not lost if a later record of
its key is known to have been in the log, even if the later record is missing now.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from fencepost.checkers.tables.rows import Partition
from fencepost.model.settings import CLEANED, DAY_MS, OFFSETS_RETENTION, TOMBSTONES
from fencepost.scenario.compaction import policies
from fencepost_member.payload import key_hash

MS = 1_000_000
MINUTE_NS = 60_000 * MS
NO_KEY = key_hash(None)
OF_A_RUN = re.compile("fencepost-[0-9a-f]{8}-")  # prefix of the names of topics on an attached cluster
OFFSETS_KEPT = 7 * 24 * 60  # minutes, Kafka's default
OFFSETS_KEPT_NS = OFFSETS_KEPT * MINUTE_NS


def same_key(key: int, writer: int) -> int:
    """The hash of the bytes of a record's key, which is the same for every writer.

    Records of Fencepost's producers (``writer`` >= 0) have a decimal number as their key, and ``key`` is that number.
    For all other records, ``key`` is the hash already.
    """
    return key_hash(b"%d" % key) if writer >= 0 else key


def compacted(
    reported: Mapping[str, Any], scenario: Mapping[str, Any], partitions: Iterable[Partition]
) -> dict[int, int]:
    """The partitions whose logs are compacted -> how long their tombstones stay, in ns.

    Args:
        reported: ``settings.json``, the settings that the brokers reported. Older runs have no such file: then it is
            empty, and the settings in ``scenario.json`` count instead.
    """
    brokers = _brokers(reported, scenario)
    # Without a reported setting: a cluster that Fencepost starts runs the log cleaner only if the scenario enables it;
    # an attached cluster always runs it.
    if str(brokers.get(CLEANED, bool(reported) or not scenario.get("cluster"))).lower() != "true":
        return {}
    topics = (scenario.get("scenario") or {}).get("topics") or ()
    asked = {topic.get("name"): topic.get("config") or {} for topic in topics}
    found = {}
    for partition in partitions:
        name = partition.name.topic
        topic = reported.get("topics", {}).get(name) or asked.get(OF_A_RUN.sub("", name, count=1), {})
        if "compact" in policies(topic, brokers) and not partition.gone:
            stay_ms = topic.get(TOMBSTONES, brokers.get(f"log.cleaner.{TOMBSTONES}", DAY_MS))
            found[partition.tp] = _number(stay_ms, DAY_MS) * MS
    return found


def offsets_kept_ns(reported: Mapping[str, Any], scenario: Mapping[str, Any]) -> int:
    """How long the coordinator keeps the committed offsets of a group that has no members, in ns."""
    return _number(_brokers(reported, scenario).get(OFFSETS_RETENTION, OFFSETS_KEPT), OFFSETS_KEPT) * MINUTE_NS


def _brokers(reported: Mapping[str, Any], scenario: Mapping[str, Any]) -> Mapping[str, Any]:
    """The settings of the brokers: the reported ones, else the scenario's."""
    found: Mapping[str, Any] = (
        reported["broker"] if reported else (scenario.get("cluster") or {}).get("broker_config") or {}
    )
    return found


def _number(value: Any, default: int) -> int:
    try:
        return int(value)
    except ValueError:
        return default
