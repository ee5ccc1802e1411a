"""The back-end ``attach``: an existing cluster, which a run does not start, stop or configure."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace

from fencepost.clusters import environments
from fencepost.clusters.admin import OFFSETS_TOPIC, ObserverAdmin
from fencepost.clusters.attach import cleanup, proxies
from fencepost.clusters.attach.cleanup import CLEAN_S, CleanupTask
from fencepost.clusters.attach.clock_watch import ClockWatch
from fencepost.clusters.attach.containers import ContainerEvidence
from fencepost.clusters.attach.evidence import ForeignEvidence
from fencepost.clusters.attach.examination import Asked, examine
from fencepost.clusters.attach.proxies import TransparentProxies
from fencepost.clusters.cache import ProgressCallback, quiet
from fencepost.clusters.capabilities import needed
from fencepost.clusters.names import CLOCKS
from fencepost.errors import FaultError
from fencepost.interfaces.network import Links, Packets
from fencepost.interfaces.process import Interpreter, Node
from fencepost.model import group_partition
from fencepost.model.endpoint import Endpoint
from fencepost.processes.cleanup_process import CleanupProcess
from fencepost.processes.owner import ProcessOwner
from fencepost.scenario.scenario import Scenario
from fencepost.schedule.plan import Plan
from fencepost.witnesses import sockets

_LOG = logging.getLogger(__name__)


@dataclass(frozen=True)
class ForeignBroker:
    """A broker of the existing cluster. Satisfies ``Node``; plans whose faults need more are refused before."""

    name: str
    endpoint: tuple[str, int]
    pid: None = None

    def start(self) -> None:
        """Refused."""
        raise FaultError(f"{self.name} belongs to an attached cluster: it cannot be started from here")

    def signal(self, signal: int) -> None:
        """Refused."""
        raise FaultError(f"{self.name} belongs to an attached cluster: it cannot be signalled from here")

    def wait_ended(self, within_s: float) -> int:
        """Refused."""
        raise FaultError(f"{self.name} belongs to an attached cluster: its process is not visible from here")


class AttachedCluster:
    """A foreign cluster that a run uses. Satisfies ``Cluster``; created by ``start``."""

    def __init__(
        self,
        brokers: Mapping[int, Endpoint],
        access: Mapping[str, str],
        admin: ObserverAdmin,
        evidence: ForeignEvidence | ContainerEvidence,
        interpreters: Sequence[Interpreter],
        progress: ProgressCallback,
        closing: ExitStack,
        proxies: TransparentProxies | None = None,
        nodes: Mapping[int, Node] | None = None,
    ) -> None:
        """
        Args:
            closing: closes everything that the run uses here.
            proxies: between members and brokers; None if the plan needs none.
            nodes: brokers that faults may hit.
        """
        self._access, self._interpreters, self._proxies = access, interpreters, proxies
        self._endpoints, self._admin, self._evidence, self._progress = brokers, admin, evidence, progress
        self._closing = closing
        self._brokers: Mapping[int, Node] = nodes or {
            broker: ForeignBroker(f"broker-{broker}", (at.host, at.port)) for broker, at in brokers.items()
        }
        self.cleaner: CleanupProcess | None = None

    @property
    def brokers(self) -> Mapping[int, Node]:
        """Broker handles by broker id."""
        return self._brokers

    @property
    def links(self) -> Links:
        """The proxies."""
        return self._before_members().links

    def internal(self, node: int | None, broker: int) -> tuple[str, int]:
        """Not available; plans whose faults need it are refused before."""
        raise FaultError("brokers of an attached cluster cannot be cut off from each other")

    @property
    def packets(self) -> Packets:
        """The packet filter for the members' proxies."""
        return self._before_members().packets

    @property
    def admin(self) -> ObserverAdmin:
        """The administrator's view."""
        return self._admin

    @property
    def evidence(self) -> ForeignEvidence | ContainerEvidence:
        """The records of the brokers, as far as a client may read them."""
        return self._evidence

    @property
    def access(self) -> Mapping[str, str]:
        """The attachment's settings."""
        return self._access

    def interpreter(self, slot: int) -> Interpreter:
        """Members run on this machine."""
        found = self._interpreters[slot]
        return self._proxies.before(slot, found) if self._proxies else found

    def sockets(self) -> str:
        """The sockets of this machine, where the proxies are."""
        return sockets.shown()

    def bootstrap(self, slot: int | None = None) -> str:
        """``bootstrap.servers``, the same for all clients."""
        return ",".join(map(str, self._endpoints.values()))

    def stop(self) -> None:
        """Remove everything that the run created, and wait for it; logs what is left. May be called twice."""
        try:
            self._closing.close()
        finally:
            if self.cleaner is not None:
                cleaner, self.cleaner = self.cleaner, None
                self._progress("removing the run's topics and its group")
                for sentence in cleaner.finish(CLEAN_S + 30):
                    _LOG.warning("left in the cluster: %s", sentence)

    def _before_members(self) -> TransparentProxies:
        if self._proxies is None:
            raise FaultError("members of this attached cluster have no proxies, because its plan needs none")
        return self._proxies


def start(
    attachment: Asked, scenario: Scenario, plan: Plan, owner: ProcessOwner, progress: ProgressCallback = quiet
) -> AttachedCluster:
    """Find the brokers, ensure that everything the run creates will be removed, and return; nothing is created yet.

    Args:
        scenario, plan: the run that will be performed.

    Raises:
        ProvisionError: the members' environment is missing and could not be created.
        PlanError, NotAuthorized, ClusterError, WaitTimeout: see ``examine``.
    """
    interpreters = environments.interpreters(scenario.group.environments, progress)
    _, brokers, other_clocks, ports, hidden = examine(attachment, scenario, plan, progress)
    with ExitStack() as stack:
        admin = ObserverAdmin(brokers, attachment.access)
        stack.callback(admin.close)
        group, replicas = scenario.names(plan.seed, attachment.prefix).group, admin.replicas(OFFSETS_TOPIC)
        partition = group_partition(group, len(replicas) or 1)
        watch = None
        if other_clocks:  # also where the log is hidden: outputs may be dated by these clocks, too
            writers = {broker: brokers[broker] for broker in replicas.get(partition, brokers) if broker in brokers}
            watch = ClockWatch(writers, attachment.access, f"{attachment.prefix}{CLOCKS}", partition)
            stack.callback(watch.close)
        foreign = ForeignEvidence(owner, admin, partition, hidden, watch)
        foreign.begin(progress)
        before = None
        if needed(plan, "packets", "links"):
            progress("starting proxies between members and brokers")
            before = proxies.start(owner, brokers, scenario.cluster_spec().slots, progress)
            stack.callback(before.stop)
        kept = {partition: replicas[partition]} if replicas and needed(plan, "coordinator") else {}
        task = CleanupTask(brokers, attachment.access, attachment.prefix, kept)
        containers, nodes, locks = None, None, []
        if ports and len(ports) == len(brokers):
            containers = ContainerEvidence(owner, admin, foreign, ports, group, scenario.group.silent)
            stack.callback(containers.close)
            task = replace(task, levels=containers.requests.levels())
            locks = [lock.fileno() for lock in containers.requests.locks]
        if containers and needed(plan, "broker-signal"):
            nodes = containers.nodes()
            task = replace(task, containers={broker: port.container for broker, port in ports.items()})
        evidence, ending = containers or foreign, stack.pop_all()
        cluster = AttachedCluster(
            brokers, attachment.access, admin, evidence, interpreters, progress, ending, before, nodes
        )
    try:
        cluster.cleaner = CleanupProcess(cleanup.__name__, task.to_json(), locks)
        if containers:
            containers.requests.begin(progress)
        if watch:
            watch.begin(progress)
    except BaseException:
        cluster.stop()
        raise
    return cluster
