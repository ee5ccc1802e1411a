"""The effective settings by which brokers delete records and commits: retention, compaction, expiry.

They are read from the brokers, because a topic without a setting has the cluster's default, which is unknown for an
attached cluster.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from fencepost.interfaces.admin import LogAdmin
from fencepost.model.settings import CLEANED, CLEANUP, OFFSETS_RETENTION, TOMBSTONES

OF_TOPICS = (CLEANUP, TOMBSTONES)
OF_BROKERS = (CLEANED, OFFSETS_RETENTION)


def read(admin: LogAdmin, topics: Collection[str], broker: int) -> dict[str, Any]:
    """The content of ``settings.json``. Settings that we may not read are left out. ``broker``: the coordinator's id.

    Raises:
        FencepostError: no broker answered.
    """
    of_topics = {topic: admin.topic_settings(topic, OF_TOPICS) for topic in topics}
    return {"topics": of_topics, "broker": admin.settings(broker, OF_BROKERS)}
