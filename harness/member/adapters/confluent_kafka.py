"""The adapter for confluent-kafka: a member with one consumer, or with two where revocations are to be delayed."""

from __future__ import annotations

from fencepost_member.adapters import ClientListener
from fencepost_member.adapters.confluent.consumer import ConfluentKafka, client_settings, consumer_of
from fencepost_member.adapters.confluent.delayed_revocation import DelayedRevocation
from fencepost_member.config import MemberConfig


def try_settings(config: MemberConfig) -> None:
    """See ``adapters``. Without an address the library connects to nothing."""
    consumer_of({k: v for k, v in client_settings(config).items() if k != "bootstrap.servers"}).close()


def connect(config: MemberConfig, listener: ClientListener) -> ConfluentKafka:
    """A consumer for ``config``. Raises ConfigError when librdkafka refuses the settings."""
    return (DelayedRevocation if config.loop.delay_revoke else ConfluentKafka)(config, listener)
