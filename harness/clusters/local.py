"""The back-end ``local``: one controller and the brokers as JVMs of this machine, one Toxiproxy before them."""

from __future__ import annotations

import shutil
import signal
import tempfile
from collections.abc import Mapping
from pathlib import Path

import psutil

from fencepost.clock import eventually
from fencepost.clusters import nodes, provision, toxiproxy
from fencepost.clusters.addresses import Addresses, reserve
from fencepost.clusters.admin import OFFSETS_TOPIC, ObserverAdmin
from fencepost.clusters.cache import Progress, quiet
from fencepost.clusters.files import LocalEvidence
from fencepost.clusters.jvm import Jvm, JvmNode
from fencepost.clusters.template import Template, new_id, template
from fencepost.errors import ClusterError
from fencepost.interfaces import ClusterSpec
from fencepost.network.proxies import Proxies, write_config
from fencepost.processes import Owner, send, wait_ended

ABILITIES = frozenset({"signal", "links", "admin"})
START_S = 60.0
END_S = 10.0


class LocalCluster:
    """A running local cluster. Satisfies ``Cluster``; made by ``start``."""

    def __init__(self, spec: ClusterSpec, owner: Owner, addresses: Addresses, jvm: Jvm) -> None:
        self.home = Path(tempfile.mkdtemp(prefix="cluster-", dir=owner.directory))
        self.spec = spec
        self._owner = owner
        self._addresses = addresses
        self._stopped = False
        self._proxy: psutil.Popen | None = None
        ids = range(1, spec.brokers + 1)
        heap = nodes.heap_of(spec.broker_config)
        self.controller = self._node("controller", jvm, heap)
        self._brokers = {broker: self._node(f"broker-{broker}", jvm, heap) for broker in ids}
        pairs = [(slot, broker) for slot in range(spec.slots) for broker in ids]
        self._ends = {pair: (addresses.proxy(*pair), addresses.upstream(*pair)) for pair in pairs}
        self._links = Proxies(addresses.proxy_api, self._ends)
        self._admin = ObserverAdmin({broker: addresses.observer(broker) for broker in ids})
        homes = {broker: node.home for broker, node in self._brokers.items()}
        self._evidence = LocalEvidence(owner, jvm, homes, self.controller.home, self._leader)

    @property
    def brokers(self) -> Mapping[int, JvmNode]:
        """Broker handles by broker id."""
        return self._brokers

    @property
    def links(self) -> Proxies:
        """The proxies."""
        return self._links

    @property
    def admin(self) -> ObserverAdmin:
        """The administrator's view."""
        return self._admin

    @property
    def evidence(self) -> LocalEvidence:
        """What the brokers recorded; readable after ``stop``, until the owner is closed."""
        return self._evidence

    @property
    def processes(self) -> tuple[int, ...]:
        """Process ids of all that lives of the cluster: controller, brokers, Toxiproxy."""
        proxy = self._proxy.pid if self._proxy is not None and self._proxy.poll() is None else None
        pids = (self.controller.pid, *(node.pid for node in self._brokers.values()), proxy)
        return tuple(pid for pid in pids if pid is not None)

    def bootstrap(self, slot: int | None = None) -> str:
        """``bootstrap.servers`` for the member in ``slot`` (its proxies), or past the proxies for None."""
        if slot is None:
            return ",".join(str(self._addresses.observer(broker)) for broker in self._brokers)
        return ",".join(str(self._ends[slot, broker][0]) for broker in self._brokers)

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
        self._addresses.close()

    def begin(self, made: Template, proxy: Path) -> None:
        """Write every file and start every process; returns at once."""
        self._begin_proxy(proxy)
        cluster_id, place = new_id(), self._addresses
        properties = {nodes.CONTROLLER_ID: nodes.controller_properties(self.spec, place.controller, "data")}
        for broker in self._brokers:
            listeners = place.listeners(broker, self.spec.slots)
            properties[broker] = nodes.broker_properties(self.spec, broker, listeners, place.controller, "data")
        for number, node in {nodes.CONTROLLER_ID: self.controller, **self._brokers}.items():
            data = node.home / "data"
            data.mkdir()
            settings = {**properties[number], "log.dirs": data}
            (node.home / "server.properties").write_text(nodes.render(settings))
            (data / "meta.properties").write_text(nodes.meta_properties(cluster_id, number, new_id()))
            shutil.copy(made.checkpoint, data)
            node.begin()

    def await_serving(self) -> None:
        """Wait until brokers and proxies serve and groups have a coordinator.

        Raises:
            ClusterError: a process ended instead; the message shows the end of its log.
            WaitTimeout: something does not serve in time.
        """
        self._links.await_serving()
        for node in (self.controller, *self._brokers.values()):
            node.await_serving(START_S, others=self._nobody_ended)
        # Asking for a coordinator makes the brokers create __consumer_offsets, so that the first group joins at once.
        eventually(lambda: self._admin.coordinator("fencepost") >= 0, START_S, f"a coordinator in {OFFSETS_TOPIC}")

    def _node(self, name: str, jvm: Jvm, heap: str) -> JvmNode:
        home = self.home / name
        home.mkdir()
        return JvmNode(name, home, jvm.node(home, heap=heap), self._owner, (self._addresses.lock,))

    def _begin_proxy(self, proxy: Path) -> None:
        config, api = self.home / "proxies.json", self._addresses.proxy_api
        write_config(config, self._ends)
        argv = [str(proxy), "-config", str(config), "-host", api.host, "-port", str(api.port), "-proxy-metrics"]
        log = self.home / "toxiproxy.log"
        self._proxy = self._owner.spawn(argv, log=log, keep_open=(self._addresses.lock,))

    def _nobody_ended(self) -> None:
        for node in (self.controller, *self._brokers.values()):
            if node.pid is None:
                raise ClusterError(f"{node.name} ended before it served. The end of its log: {node.last_lines()}")

    def _leader(self, topic: str, partition: int) -> int:
        return -1 if self._stopped else self._admin.leaders(topic).get(partition, -1)


def start(spec: ClusterSpec, owner: Owner, progress: Progress = quiet) -> LocalCluster:
    """Start a cluster and return once it serves; what is missing on this machine is fetched first.

    Raises:
        ScenarioError: the spec cannot be started.
        ProvisionError: Java, Kafka or Toxiproxy is missing and could not be fetched.
        ClusterError, WaitTimeout: a process did not start or serve; nothing is left running.
    """
    nodes.check(spec)
    java, jars, proxy = provision.java(), provision.kafka(progress), toxiproxy.server(progress)
    made = template(owner, java, jars, progress)
    addresses = reserve(spec)
    cluster = LocalCluster(spec, owner, addresses, Jvm(java.path, tuple(jars), made.archive))
    try:
        progress(f"starting {spec.brokers} brokers on 127.77.{addresses.number}.x")
        cluster.begin(made, proxy)
        cluster.await_serving()
    except BaseException:
        cluster.stop()
        raise
    return cluster
