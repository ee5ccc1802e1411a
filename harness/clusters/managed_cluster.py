"""A cluster of a run's own: one controller, the brokers and one Toxiproxy, on any host."""

from __future__ import annotations

import shutil
import signal
import tempfile
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from pathlib import Path
from typing import Protocol

from fencepost.clock import eventually
from fencepost.clusters.addresses import Addresses
from fencepost.clusters.admin import OFFSETS_TOPIC, ObserverAdmin
from fencepost.clusters.capabilities import Abilities, always
from fencepost.clusters.kafka import server_properties
from fencepost.clusters.kafka.jvm import JvmNode, KafkaJvm
from fencepost.clusters.kafka.node_files import NodeFiles
from fencepost.clusters.kafka.template import new_id
from fencepost.errors import ClusterError
from fencepost.interfaces import ClusterSpec
from fencepost.interfaces.network import Packets
from fencepost.interfaces.process import Interpreter, Process, Spawn
from fencepost.model.endpoint import Endpoint
from fencepost.network import proxies
from fencepost.network.proxies import Proxies
from fencepost.processes.owner import ProcessOwner, send, wait_ended

OWN: Abilities = always(  # on any host
    "signal",
    "broker-signal",
    "broker-log",
    "links",
    "admin",
    "deletion",
    "leaders",
    "partitions",
    "offsets",
    "coordinator",
    "migration",
    "replicas",
)
START_S = 60.0
END_S = 10.0


class ClusterHost(Protocol):
    """The host of a cluster's processes. They and the harness see the owner's directory under one path."""

    addresses: Addresses
    jvm: KafkaJvm
    toxiproxy: Path
    checkpoint: Path

    def interpreter(self, slot: int) -> Interpreter:
        """The interpreter of the member in a slot."""

    def spawn(self, name: str) -> Spawn:
        """The function that starts a node (``broker-1``), ``toxiproxy``, or a ``tool``, each at its address."""

    def packets(self) -> Packets:
        """The packet filter."""

    def sockets(self) -> str:
        """The output of ``ss -tinHO`` on the host of the proxies."""

    def close(self) -> None:
        """Free the addresses; all processes have ended. Tools may still be spawned."""


class ManagedCluster:
    """A running cluster. Satisfies ``Cluster``; created by ``start``."""

    def __init__(self, spec: ClusterSpec, owner: ProcessOwner, host: ClusterHost) -> None:
        self.home = Path(tempfile.mkdtemp(prefix="cluster-", dir=owner.directory))
        self.spec, self._host = spec, host
        self._addresses = addresses = host.addresses
        self._stopped = False
        self._proxy: Process | None = None
        ids = range(1, spec.brokers + 1)
        self.controller = self._node("controller")
        self._brokers = {broker: self._node(f"broker-{broker}") for broker in ids}
        pairs = [(slot, broker) for slot in range(spec.slots) for broker in ids]
        self._ends = {pair: (addresses.proxy(*pair), addresses.upstream(*pair)) for pair in pairs}
        self._links = Proxies(addresses.proxy_api, self._ends)
        self._admin = ObserverAdmin(self.observers)
        homes = {broker: node.home for broker, node in self._brokers.items()}
        self._evidence = NodeFiles(
            host.spawn("tool"), owner.directory, host.jvm, homes, self.controller.home, self._leader
        )

    @property
    def brokers(self) -> Mapping[int, JvmNode]:
        """Broker handles by broker id."""
        return self._brokers

    @property
    def links(self) -> Proxies:
        """The proxies."""
        return self._links

    @cached_property
    def packets(self) -> Packets:
        """The packet filter."""
        return self._host.packets()

    @property
    def admin(self) -> ObserverAdmin:
        """The administrator's view."""
        return self._admin

    @property
    def evidence(self) -> NodeFiles:
        """The records of the brokers; readable after ``stop``, until the owner is closed."""
        return self._evidence

    @property
    def observers(self) -> Mapping[int, Endpoint]:
        """The brokers' addresses for administrators."""
        return {broker: self._addresses.observer(broker) for broker in self._brokers}

    @property
    def processes(self) -> tuple[int, ...]:
        """Process ids of all running processes of the cluster: controller, brokers, Toxiproxy."""
        proxy = self._proxy.pid if self._proxy is not None and self._proxy.poll() is None else None
        pids = (self.controller.pid, *(node.pid for node in self._brokers.values()), proxy)
        return tuple(pid for pid in pids if pid is not None)

    @property
    def access(self) -> Mapping[str, str]:
        """Clients need no settings."""
        return {}

    def interpreter(self, slot: int) -> Interpreter:
        """The interpreter of the member in ``slot``."""
        return self._host.interpreter(slot)

    def bootstrap(self, slot: int | None = None) -> str:
        """``bootstrap.servers`` for the member in ``slot`` (its proxies), or without proxies for None."""
        if slot is None:
            return ",".join(map(str, self.observers.values()))
        return ",".join(str(self._ends[slot, broker][0]) for broker in self._brokers)

    def internal(self, node: int | None, broker: int) -> tuple[str, int]:
        """Where a broker (None: the controller) listens for only this broker."""
        endpoint = self._addresses.internal(node, broker)
        return endpoint.host, endpoint.port

    def sockets(self) -> str:
        """The output of ``ss -tinHO`` on the host of the proxies."""
        return self._host.sockets()

    def stop(self) -> None:
        """Kill everything that belongs to the cluster and free its addresses; its files stay. May be called twice."""
        if self._stopped:
            return
        self._stopped = True
        self._admin.close()
        living = [node for node in (self.controller, *self._brokers.values()) if node.pid is not None]
        for node in living:
            node.signal(signal.SIGKILL)
        if self._proxy is not None:
            send(self._proxy, signal.SIGKILL)
            wait_ended(self._proxy, END_S)
        for node in living:
            node.wait_ended(END_S)
        self._host.close()

    def start(self) -> None:
        """Start everything and return once it serves; nothing is left running when it does not.

        Raises:
            ClusterError, WaitTimeout: a process did not start or serve.
        """
        try:
            self._begin()
            self._await_serving()
        except BaseException:
            self.stop()
            raise

    def _begin(self) -> None:
        """Write every file and start every process; returns at once."""
        self._begin_proxy()
        cluster_id, place = new_id(), self._addresses
        listeners = place.controller_listeners(self.spec)
        properties = {
            server_properties.CONTROLLER_ID: server_properties.controller_properties(self.spec, listeners, "data")
        }
        for broker in self._brokers:
            listeners, voter = place.listeners(broker, self.spec), place.internal(None, broker)
            properties[broker] = server_properties.broker_properties(self.spec, broker, listeners, voter, "data")
        for number, node in {server_properties.CONTROLLER_ID: self.controller, **self._brokers}.items():
            data = node.home / "data"
            data.mkdir()
            settings = {**properties[number], "log.dirs": data}
            (node.home / "server.properties").write_text(server_properties.render(settings))
            (data / "meta.properties").write_text(server_properties.meta_properties(cluster_id, number, new_id()))
            shutil.copy(self._host.checkpoint, data / "bootstrap.checkpoint")
        with ThreadPoolExecutor() as several:  # to create a container takes time, in which nobody is busy
            list(several.map(JvmNode.begin, (self.controller, *self._brokers.values())))

    def _await_serving(self) -> None:
        self._links.await_serving()
        for node in (self.controller, *self._brokers.values()):
            node.await_serving(START_S, others=self._nobody_ended)
        # This request makes the brokers create __consumer_offsets, so that the first group joins at once.
        eventually(lambda: self._admin.coordinator("fencepost") >= 0, START_S, f"a coordinator in {OFFSETS_TOPIC}")

    def _node(self, name: str) -> JvmNode:
        home = self.home / name
        home.mkdir()
        heap = server_properties.heap_of(self.spec.broker_config)
        return JvmNode(name, home, self._host.jvm.node(home, heap=heap), self._host.spawn(name))

    def _begin_proxy(self) -> None:
        spawn, api = self._host.spawn("toxiproxy"), self._addresses.proxy_api
        self._proxy = proxies.begin(spawn, self._host.toxiproxy, self.home, api, self._ends)

    def _nobody_ended(self) -> None:
        for node in (self.controller, *self._brokers.values()):
            if node.pid is None:
                raise ClusterError(f"{node.name} ended before it served. The end of its log: {node.last_lines()}")

    def _leader(self, topic: str, partition: int) -> int:
        return -1 if self._stopped else self._admin.leaders(topic).get(partition, -1)
