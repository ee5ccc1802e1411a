"""Removes everything that a run created in a foreign cluster, however the harness ended (see ``CleanupProcess``)."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from fencepost.clock import eventually
from fencepost.clusters.admin import OFFSETS_TOPIC, ObserverAdmin
from fencepost.clusters.admin.cleaning import Cleaning
from fencepost.clusters.attach.request_logs import LOGGER
from fencepost.clusters.docker import engine
from fencepost.errors import FencepostError
from fencepost.model import TopicPartition
from fencepost.model.endpoint import Endpoint
from fencepost.processes.cleanup_process import serve

CLEAN_S = 90.0  # twice the default session time-out
START_S = 60.0


@dataclass(frozen=True)
class CleanupTask:
    """The clean-up at the end.

    Attributes:
        brokers: host and port of each.
        access: settings of SASL and TLS.
        prefix: of the names that are removed.
        replicas: of partitions of the offsets topic, in the order that is restored.
        levels: of the request log of each broker.
        containers: of the brokers that faults may hit; if the harness died, they run again afterwards.
    """

    brokers: Mapping[int, Endpoint]
    access: Mapping[str, str]
    prefix: str
    replicas: Mapping[int, Sequence[int]]
    levels: Mapping[int, str] = field(default_factory=dict)
    containers: Mapping[int, str] = field(default_factory=dict)

    def to_json(self) -> str:
        """In the form that the process reads."""
        brokers = {broker: [endpoint.host, endpoint.port] for broker, endpoint in self.brokers.items()}
        return json.dumps({**vars(self), "brokers": brokers})

    @classmethod
    def from_json(cls, text: str) -> CleanupTask:
        """The inverse of ``to_json``."""
        task: dict[str, Any] = json.loads(text)
        brokers = {int(broker): Endpoint(*place) for broker, place in task["brokers"].items()}
        replicas = {int(partition): order for partition, order in task["replicas"].items()}
        levels = {int(broker): level for broker, level in task["levels"].items()}
        containers = {int(broker): container for broker, container in task["containers"].items()}
        return cls(brokers, task["access"], task["prefix"], replicas, levels, containers)

    def perform(self, within_s: float, died: bool = False) -> list[str]:
        """Do it; returns a sentence about each failure. ``died``: the harness did not undo its faults."""
        admin = ObserverAdmin(self.brokers, self.access)
        left = self._heal(admin) if died and self.containers else []
        for partition, order in self.replicas.items():
            try:
                now = admin.replicas(OFFSETS_TOPIC).get(partition, ())
                if sorted(now) == sorted(order) and list(now) != list(order):  # else it was reassigned by others
                    admin.elect_leader(TopicPartition(OFFSETS_TOPIC, partition), order)
            except FencepostError as error:
                left.append(f"the order {list(order)} of the replicas of {OFFSETS_TOPIC}-{partition} ({error})")
        for broker, level in self.levels.items():
            try:
                if admin.log_level(broker, LOGGER) != level:
                    admin.set_log_level(broker, LOGGER, level)
            except FencepostError as error:
                left.append(f"the level of {LOGGER} of broker {broker}, which was {level} ({error})")
        admin.close()
        cleaning = Cleaning(self.brokers, self.access, self.prefix)
        left += cleaning.remove_all(within_s)
        cleaning.close()
        return left

    def _heal(self, admin: ObserverAdmin) -> list[str]:
        """Let the brokers' containers run, and wait until they serve; returns a sentence about each failure."""
        left = []
        for broker, container in self.containers.items():
            try:
                with engine.client() as running:
                    engine.run_again(running, container)
                eventually(partial(admin.answers, broker), START_S, f"broker {broker} to answer", every_s=0.2)
            except FencepostError as error:
                left.append(f"the container of broker {broker} as it is now ({error})")
        return left


if __name__ == "__main__":
    serve(lambda line, died: CleanupTask.from_json(line).perform(CLEAN_S, died))
