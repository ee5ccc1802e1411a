"""The back-end ``attach``: an existing cluster, which a run does not start, stop or configure."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from fencepost.clock import eventually
from fencepost.clusters import environments
from fencepost.clusters.addresses import on_this_machine
from fencepost.clusters.admin import OFFSETS_TOPIC, ObserverAdmin
from fencepost.clusters.admin.cleaning import discover
from fencepost.clusters.attach import cleanup, proxies
from fencepost.clusters.attach.cleanup import CLEAN_S, CleanupTask
from fencepost.clusters.attach.evidence import ForeignEvidence
from fencepost.clusters.attach.proxies import TransparentProxies
from fencepost.clusters.cache import ProgressCallback, quiet
from fencepost.clusters.capabilities import needed
from fencepost.errors import ClusterError, FaultError, PlanError
from fencepost.interfaces import ClusterSpec
from fencepost.interfaces.network import Links, Packets
from fencepost.interfaces.process import Interpreter
from fencepost.model import group_partition
from fencepost.model.endpoint import Endpoint
from fencepost.processes.cleanup_process import CleanupProcess
from fencepost.processes.owner import ProcessOwner
from fencepost.scenario.scenario import Scenario
from fencepost.schedule.plan import Plan
from fencepost.witnesses import sockets

COORDINATOR_S = 30.0
# With the consumer protocol brokers decide these times, but the judge uses the scenario's; so they must be equal.
TIMES = {
    "group.consumer.session.timeout.ms": "session.timeout.ms",
    "group.consumer.heartbeat.interval.ms": "heartbeat.interval.ms",
}
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
        evidence: ForeignEvidence,
        interpreters: Sequence[Interpreter],
        progress: ProgressCallback,
        proxies: TransparentProxies | None = None,
    ) -> None:
        """``proxies``: between members and brokers; None if the plan needs none."""
        self._access, self._interpreters, self._proxies = access, interpreters, proxies
        self._endpoints, self._admin, self._evidence, self._progress = brokers, admin, evidence, progress
        self._brokers = {
            broker: ForeignBroker(f"broker-{broker}", (at.host, at.port)) for broker, at in brokers.items()
        }
        self.cleaner: CleanupProcess | None = None

    @property
    def brokers(self) -> Mapping[int, ForeignBroker]:
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
    def evidence(self) -> ForeignEvidence:
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
        self._admin.close()
        try:
            if self._proxies:
                self._proxies.stop()
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


class Asked(Protocol):
    """An existing cluster, and how a run may use it; ``attach.backend.Attachment`` satisfies it."""

    @property
    def address(self) -> Endpoint:
        """A broker's listener for clients."""

    @property
    def access(self) -> Mapping[str, str]:
        """Its settings of SASL and TLS."""

    @property
    def permitted(self) -> bool:
        """Whether its brokers may be on other machines (``--yes``)."""

    @property
    def prefix(self) -> str:
        """The prefix of all names of the run."""

    def refusal(self, why: str, scenario: Scenario, plan: Plan) -> str:
        """The sentence that refuses the run."""


def start(
    attachment: Asked, scenario: Scenario, plan: Plan, owner: ProcessOwner, progress: ProgressCallback = quiet
) -> AttachedCluster:
    """Find the brokers, ensure that everything the run creates will be removed, and return; nothing is created yet.

    Args:
        scenario, plan: the run that will be performed.

    Raises:
        PlanError: the brokers are not on this machine, and that was not permitted, or the plan has faults of links.
        ProvisionError: the members' environment is missing and could not be created.
        ClusterError: no broker answers, or the brokers decide the group's times differently from the scenario.
        WaitTimeout: the group gets no coordinator.
    """
    group = scenario.names(plan.seed, attachment.prefix).group
    interpreters = environments.interpreters(scenario.group.environments, progress)
    progress(f"attaching to the cluster of {attachment.address}")
    brokers = discover(attachment.address, attachment.access)
    far = [str(endpoint) for endpoint in brokers.values() if not on_this_machine(endpoint)]
    if far and not attachment.permitted:
        why = f"{attachment.address} is an address of this machine, but brokers behind it are {', '.join(far)}"
        raise PlanError(attachment.refusal(why, scenario, plan))
    if far and needed(plan, "links"):
        raise PlanError(
            f"faults between members and brokers work only where brokers are on this machine, but there are "
            f'{", ".join(far)}: remove these faults, or use faults that lose packets (network = "packets")'
        )
    admin, before = ObserverAdmin(brokers, attachment.access), None
    try:
        if scenario.group.protocol == "consumer":
            _agree(admin, next(iter(brokers)), scenario.cluster_spec())
        # In a cluster that never had a group, this request makes the brokers create __consumer_offsets.
        eventually(lambda: admin.coordinator(group) >= 0, COORDINATOR_S, "a coordinator for the run's group")
        replicas = admin.replicas(OFFSETS_TOPIC)
        partition = group_partition(group, len(replicas) or 1)
        evidence = ForeignEvidence(owner, admin, partition, "its brokers may have other clocks" if far else "")
        evidence.begin(progress)
        if needed(plan, "packets", "links"):
            progress("starting proxies between members and brokers")
            before = proxies.start(owner, brokers, scenario.cluster_spec().slots, progress)
        cluster = AttachedCluster(brokers, attachment.access, admin, evidence, interpreters, progress, before)
        kept = {partition: replicas[partition]} if replicas and needed(plan, "coordinator") else {}
        task = CleanupTask(brokers, attachment.access, attachment.prefix, kept)
        cluster.cleaner = CleanupProcess(cleanup.__name__, task.to_json())
    except BaseException:
        admin.close()
        if before:
            before.stop()
        raise
    return cluster


def _agree(admin: ObserverAdmin, broker: int, spec: ClusterSpec) -> None:
    """Raise a ClusterError if brokers decide the group's times differently from the scenario."""
    decided = admin.settings(broker, TIMES)
    for name, ours in TIMES.items():
        if decided.get(name) != str(spec.broker_config[name]):
            raise ClusterError(
                f"with the consumer protocol the brokers decide {ours}: theirs is {decided.get(name, 'unknown')}, "
                f"but the group's config has {spec.broker_config[name]}. Use their value there"
            )
