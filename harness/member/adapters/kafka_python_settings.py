"""The settings and assignors of the installed release of kafka-python."""

from __future__ import annotations

from contextlib import suppress
from importlib import import_module
from typing import Any, Dict, Mapping

import kafka as client
from kafka.coordinator.assignors import range as by_range
from kafka.coordinator.assignors import roundrobin
from kafka.coordinator.assignors.sticky import sticky_assignor

from fencepost_member.adapters.settings import ISOLATION, arguments, connecting, refuse_unknown, settings_of
from fencepost_member.config import MemberConfig

NAME = "kafka-python"
TOKEN_PROVIDERS = ("kafka.net.sasl.oauth", "kafka.sasl.oauth", "kafka.oauth")  # since release 3, since 2.1, before
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


def client_arguments(settings: Mapping[str, Any]) -> Dict[str, Any]:
    """Settings by Kafka's names as keyword arguments of the client. Raises ConfigError, and OSError for TLS files."""
    return connecting(arguments(NAME, settings, ASSIGNORS), _token_provider())


def try_settings(config: MemberConfig) -> None:
    """See ``adapters``. The library connects in its constructor, so only the names of settings are checked."""
    refuse_unknown(NAME, client_arguments(known_settings(config)), KNOWN)


def _token_provider() -> Any:
    for module in TOKEN_PROVIDERS:
        with suppress(ImportError):
            return import_module(module).AbstractTokenProvider
    return None
