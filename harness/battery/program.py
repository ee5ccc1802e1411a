"""A program under test, as far as it is known from starting it once. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from fencepost.model.settings import DEFAULT_MS, HEARTBEAT, POLL_INTERVAL, RESET, SESSION, ConfigValue

EARLIEST = ("earliest", "smallest", "beginning")
OF_CLIENTS = {"aiokafka": {SESSION: 10_000}}  # where a library's default differs from Kafka's
AUTO_COMMIT = "enable.auto.commit"
INSTANCE = "group.instance.id"
# How often a client looks for new partitions, by its library. The default of all is 5 minutes, longer than a situation.
METADATA_AGE = {
    "confluent-kafka": "topic.metadata.refresh.interval.ms",
    "kafka-python": "metadata.max.age.ms",
    "aiokafka": "metadata.max.age.ms",
}
LOOKS_EVERY_S = 2.0


@dataclass(frozen=True)
class Program:
    """What the consumers of a program are.

    Attributes:
        client, version: the library that it consumes with.
        protocol: the rebalance protocol that follows from its settings.
        topics: what it subscribes to, by its own names.
        group: its ``group.id``.
        settings: the client settings that it gives, by Kafka's names.
        session_s: a session time-out that replaces the program's own; None: its own.
    """

    client: str
    version: str
    protocol: str
    topics: tuple[str, ...]
    group: str = ""
    settings: Mapping[str, Any] = field(default_factory=dict)
    session_s: float | None = None

    @property
    def session_timeout_s(self) -> float:
        """The session time-out of its members, in seconds."""
        return self.session_s or self._ms(SESSION) / 1000

    @property
    def commits_automatically(self) -> bool:
        """Whether it leaves commits to its client, by its settings: the default of all libraries."""
        return str(self.settings.get(AUTO_COMMIT, True)).lower() != "false"

    @property
    def skips_what_is_there(self) -> bool:
        """Whether a new group of it begins at the ends of its partitions: the default of all libraries."""
        return str(self.settings.get(RESET, "latest")).lower() not in EARLIEST

    @property
    def static(self) -> bool:
        """Whether its members have instance ids."""
        return bool(self.settings.get(INSTANCE))

    @property
    def looks_for_partitions(self) -> dict[str, ConfigValue]:
        """The setting that makes its members look for new partitions often; empty if its client is not ours to set."""
        name = METADATA_AGE.get(self.client)
        return {name: round(LOOKS_EVERY_S * 1000)} if name else {}

    def config(self) -> dict[str, ConfigValue]:
        """The settings of the group under test. Time-outs are named, because schedules depend on them. A new group
        begins at the first record, so that its start cannot skip any."""
        session_ms = round(self.session_timeout_s * 1000)
        found: dict[str, ConfigValue] = {SESSION: session_ms}
        if self.session_s or HEARTBEAT in self.settings:
            found[HEARTBEAT] = min(self._ms(HEARTBEAT), session_ms // 4)
        if POLL_INTERVAL in self.settings or session_ms > self._ms(POLL_INTERVAL):
            found[POLL_INTERVAL] = max(self._ms(POLL_INTERVAL), session_ms)
        if self.skips_what_is_there:
            found[RESET] = "earliest"
        return found

    def _ms(self, name: str) -> int:
        default = OF_CLIENTS.get(self.client, {}).get(name, DEFAULT_MS[name])
        return int(self.settings.get(name, default) or default)
