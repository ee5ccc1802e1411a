"""The configuration of a cluster's nodes: pure functions from a ``ClusterSpec`` to ``server.properties``.

Every broker listens on ``INTERNALb`` for each broker b, ``OBSERVER`` (administrators, producers, audit) and
``SLOT0 ... SLOTn-1``, and the controller on ``CONTROLLERb`` for each broker b, so that a port identifies both ends.
A slot's listener is advertised at that slot's own proxy, so a member learns no other way to a broker. The controller
is a separate process, so that a fault on a broker removes no voter.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from fencepost.errors import ScenarioError, refuse
from fencepost.interfaces import ClusterSpec
from fencepost.model.endpoint import Endpoint
from fencepost.model.settings import KAFKAS, of_kafka_3

CONTROLLER_ID = 100
MOST_BROKERS = 9
MOST_SLOTS = 200
# Settings that the harness decides; a scenario that sets them would separate the cluster from it.
OURS = frozenset(
    {
        "node.id",
        "process.roles",
        "controller.quorum.voters",
        "controller.listener.names",
        "log.dirs",
        "listeners",
        "advertised.listeners",
        "listener.security.protocol.map",
        "inter.broker.listener.name",
    }
)


@dataclass(frozen=True)
class Listener:
    """One listener of a broker: its name, its address, and the address that it advertises to clients."""

    name: str
    listens: Endpoint
    advertised: Endpoint

    def __str__(self) -> str:
        return f"{self.name}://{self.listens}"


def check(spec: ClusterSpec) -> None:
    """Refuse a spec that cannot be started.

    Raises:
        ScenarioError: too few or too many brokers or slots, a setting that belongs to the harness, or members whose
            client these brokers no longer understand; lists all of it.
    """
    refuse(map(ScenarioError, _wrong(spec)))


def _wrong(spec: ClusterSpec) -> Iterator[str]:
    if not 1 <= spec.brokers <= MOST_BROKERS:
        yield f"found {spec.brokers} brokers; use 1 to {MOST_BROKERS}"
    if not 0 <= spec.slots <= MOST_SLOTS:
        yield f"found {spec.slots} slots for members; use 0 to {MOST_SLOTS}"
    for name in sorted({*spec.broker_config, *spec.controller_config} & OURS):
        yield f"the setting {name} belongs to the harness: remove it"
    old = [one.client for one in spec.members if not one.client.kafka_4]
    if old and not of_kafka_3(spec.kafka):
        yield (
            f"{old[0]} cannot talk to Kafka 4, which no longer knows its requests (KIP-896): use a later "
            f"release, or an older Kafka with the scenario's option kafka ({', '.join(KAFKAS)})"
        )


def internal(broker: int) -> str:
    """The listener that all brokers have for connections from this one."""
    return f"INTERNAL{broker}"


def controller(broker: int) -> str:
    """The controller's listener for connections from this broker."""
    return f"CONTROLLER{broker}"


def broker_properties(
    spec: ClusterSpec, broker: int, listeners: tuple[Listener, ...], voter: Endpoint, data: str
) -> dict[str, Any]:
    """The settings of one broker; ``voter``: the controller's listener for it; ``data``: its log directory."""
    names = [listener.name for listener in listeners]
    threads = {f"listener.name.{name.lower()}.num.network.threads": 1 for name in names}
    own = {
        "node.id": broker,
        "process.roles": "broker",
        "controller.quorum.voters": f"{CONTROLLER_ID}@{voter}",
        "controller.listener.names": controller(broker),
        "log.dirs": data,
        "listeners": ",".join(map(str, listeners)),
        "advertised.listeners": ",".join(f"{listener.name}://{listener.advertised}" for listener in listeners),
        "listener.security.protocol.map": _plain((*names, controller(broker))),
        "inter.broker.listener.name": internal(broker),
    }
    return {**_common(spec), **threads, **_of_brokers(spec), **spec.broker_config, **own}


def controller_properties(spec: ClusterSpec, listeners: tuple[Listener, ...], data: str) -> dict[str, Any]:
    """The settings of the controller. It also gets the scenario's broker settings, as it decides some of them."""
    names = [listener.name for listener in listeners]
    own = {
        "node.id": CONTROLLER_ID,
        "process.roles": "controller",
        "controller.quorum.voters": f"{CONTROLLER_ID}@{listeners[0].listens}",
        "controller.listener.names": ",".join(names),
        "log.dirs": data,
        "listeners": ",".join(map(str, listeners)),
        "listener.security.protocol.map": _plain(names),
    }
    return {**_common(spec), **spec.broker_config, **spec.controller_config, **own}


def render(properties: Mapping[str, Any]) -> str:
    """The settings as the text of a properties file."""

    def text(value: Any) -> str:
        plain = str(value).lower() if isinstance(value, bool) else str(value)
        return plain.replace("\\", "\\\\").replace("\n", "\\n")

    return "".join(f"{name}={text(value)}\n" for name, value in properties.items())


def meta_properties(cluster_id: str, node: int, directory_id: str) -> str:
    """The text of ``meta.properties``, which marks a log directory as formatted for this node."""
    return f"version=1\ncluster.id={cluster_id}\nnode.id={node}\ndirectory.id={directory_id}\n"


def heap_of(broker_config: Mapping[str, Any]) -> str:
    """The heap that a node needs: the log cleaner alone needs 128 MB more."""
    return "384M" if str(broker_config.get("log.cleaner.enable", "")).lower() == "true" else "256M"


def _plain(names: Iterable[str]) -> str:
    return ",".join(f"{name}:PLAINTEXT" for name in names)


def _common(spec: ClusterSpec) -> dict[str, Any]:
    """Settings that must be in every file: the controller decides them, the brokers use them."""
    replicas = min(3, spec.brokers)
    return {
        # A dead broker is fenced after 3 s instead of 9: short faults must have consequences.
        "broker.session.timeout.ms": 3000,
        "broker.heartbeat.interval.ms": 500,
        # Otherwise the controller would move a moved leader back.
        "auto.leader.rebalance.enable": False,
        "default.replication.factor": replicas,
        "min.insync.replicas": min(2, replicas),
        "num.io.threads": 2,
        "background.threads": 2,
        # Off: nothing of __consumer_offsets is compacted away, and 128 MB of heap are saved.
        "log.cleaner.enable": False,
        "log.segment.bytes": 16 * 1024 * 1024,
    }


def _of_brokers(spec: ClusterSpec) -> dict[str, Any]:
    replicas = min(3, spec.brokers)
    return {
        "auto.create.topics.enable": False,
        "num.replica.fetchers": 1,
        # A follower that is cut off falls out of sync after 3 s instead of 30, as a dead one does.
        "replica.lag.time.max.ms": 3000,
        # Three partitions: every broker leads one of them, and a group's name determines its partition.
        "offsets.topic.num.partitions": 3,
        "offsets.topic.replication.factor": replicas,
        "transaction.state.log.num.partitions": 3,
        "transaction.state.log.replication.factor": replicas,
        "transaction.state.log.min.isr": min(2, replicas),
        "share.coordinator.state.topic.num.partitions": 3,
        "share.coordinator.state.topic.replication.factor": replicas,
        # Members join at once; a join storm sets 3000.
        "group.initial.rebalance.delay.ms": 0,
        # Allows short session time-outs; with the consumer protocol the broker's own time-outs apply.
        "group.min.session.timeout.ms": 1000,
        "group.consumer.min.session.timeout.ms": 1000,
        "group.consumer.session.timeout.ms": 6000,
        "group.consumer.min.heartbeat.interval.ms": 200,
        "group.consumer.heartbeat.interval.ms": 1000,
    }
