"""How brokers keep what was written, as far as a judge has to know: which topics they compact, and when commits expire.

Compaction leaves the last record of each key, and may leave others. So a record that is missing is nobody's loss where
a later one of its key is known to have been there, whatever became of that since. Pure.
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
OF_A_RUN = re.compile("fencepost-[0-9a-f]{8}-")  # begins the names of topics on an attached cluster
OFFSETS_KEPT = 7 * 24 * 60  # minutes, Kafka's default
OFFSETS_KEPT_NS = OFFSETS_KEPT * MINUTE_NS


def same_key(key: int, writer: int) -> int:
    """What the records of one key have in common, whoever wrote them: a hash of the bytes of their key.

    Records of ours are recorded under the number that is their key, in decimal, all others under that hash.
    """
    return key_hash(b"%d" % key) if writer >= 0 else key


def compacted(
    reported: Mapping[str, Any], scenario: Mapping[str, Any], partitions: Iterable[Partition]
) -> dict[int, int]:
    """The partitions whose logs are compacted, and for how long their tombstones stay, in ns.

    Args:
        reported: ``settings.json``, what brokers told of themselves; of a run of before it is empty, and then what
            ``scenario.json`` asks for is taken for what was so.
    """
    brokers = _brokers(reported, scenario)
    # The cleaner of a cluster of ours runs where it is asked for, that of an attached one always does.
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
    """For how long the coordinator keeps the committed offsets of a group that has no members."""
    return _number(_brokers(reported, scenario).get(OFFSETS_RETENTION, OFFSETS_KEPT), OFFSETS_KEPT) * MINUTE_NS


def _brokers(reported: Mapping[str, Any], scenario: Mapping[str, Any]) -> Mapping[str, Any]:
    """The settings of the brokers."""
    found: Mapping[str, Any] = (
        reported["broker"] if reported else (scenario.get("cluster") or {}).get("broker_config") or {}
    )
    return found


def _number(value: Any, default: int) -> int:
    try:
        return int(value)
    except ValueError:
        return default
