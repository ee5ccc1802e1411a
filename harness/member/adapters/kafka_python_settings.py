"""The settings and assignors of the installed release of kafka-python."""

from __future__ import annotations

from contextlib import suppress
from typing import Any, Dict

import kafka as client
from kafka.coordinator.assignors import range as by_range
from kafka.coordinator.assignors import roundrobin
from kafka.coordinator.assignors.sticky import sticky_assignor

from fencepost_member.adapters.settings import ISOLATION, arguments, refuse_unknown, settings_of
from fencepost_member.config import MemberConfig

KNOWN = client.KafkaConsumer.DEFAULT_CONFIG
ASSIGNORS = {
    "range": by_range.RangePartitionAssignor,
    "roundrobin": roundrobin.RoundRobinPartitionAssignor,
    "sticky": sticky_assignor.StickyPartitionAssignor,
}
with suppress(ImportError):  # since release 3
    from kafka.coordinator.assignors.cooperative_sticky import CooperativeStickyAssignor

    ASSIGNORS["cooperative-sticky"] = CooperativeStickyAssignor


def known_settings(config: MemberConfig) -> Dict[str, Any]:
    """``settings_of`` a member, without our default ``isolation.level`` if this release has no such setting.

    Raises ConfigError.
    """
    settings = settings_of(config)
    if "isolation_level" not in KNOWN and ISOLATION not in config.client_config:
        del settings[ISOLATION]  # an old release, which always reads uncommitted
    return settings


def try_settings(config: MemberConfig) -> None:
    """See ``adapters``. The library connects in its constructor, so only the names of settings are checked."""
    refuse_unknown(config.client, arguments(config.client, known_settings(config), ASSIGNORS), KNOWN)
