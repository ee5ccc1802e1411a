"""Which settings were in force by which brokers delete what was written: by retention, compaction, or expiry.

Brokers themselves tell them, as a topic that names no setting has that of its cluster, and that of an attached cluster
is nobody's here to know.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from fencepost.interfaces.admin import LogAdmin
from fencepost.model.settings import CLEANED, CLEANUP, OFFSETS_RETENTION, TOMBSTONES

OF_TOPICS = (CLEANUP, TOMBSTONES)
OF_BROKERS = (CLEANED, OFFSETS_RETENTION)


def read(admin: LogAdmin, topics: Collection[str], broker: int) -> dict[str, Any]:
    """The content of ``settings.json``. What brokers may not tell us is left out. ``broker``: coordinates the group.

    Raises:
        FencepostError: no broker answered.
    """
    of_topics = {topic: admin.topic_settings(topic, OF_TOPICS) for topic in topics}
    return {"topics": of_topics, "broker": admin.settings(broker, OF_BROKERS)}
