"""A topic of a scenario."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from fencepost.errors import ScenarioError
from fencepost.model import serialization, settings
from fencepost.model.settings import ConfigValue

REPLICAS = 3


@dataclass(frozen=True)
class Topic:
    """One topic of the workload.

    Attributes:
        replication_factor: a cluster of another owner with fewer brokers than ``REPLICAS`` gets that many by default.
        config: Kafka's topic settings.
    """

    name: str
    partitions: int = 12
    replication_factor: int = REPLICAS
    config: Mapping[str, ConfigValue] = field(default_factory=dict)

    def __post_init__(self) -> None:
        serialization.validate_fields(self)
        settings.check_topic(self.name)
        if self.partitions < 1 or self.replication_factor < 1:
            raise ScenarioError(f"topic {self.name!r} needs at least one partition and one replica")
