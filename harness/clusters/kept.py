"""A cluster of our own that several runs use one after the other: none of them waits for brokers to start.

Each run has names of its own in it, begins with a cluster that is as it was started, and leaves nothing behind.
"""

from __future__ import annotations

import secrets
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace

from fencepost.clock import eventually
from fencepost.clusters.admin import OFFSETS_TOPIC
from fencepost.clusters.admin.cleaning import Cleaning
from fencepost.clusters.backends import ManagedBackend
from fencepost.clusters.cache import ProgressCallback
from fencepost.clusters.managed_cluster import ManagedCluster
from fencepost.errors import ClusterError, ScenarioError
from fencepost.interfaces import Cluster, ClusterSpec
from fencepost.processes.owner import ProcessOwner
from fencepost.scenario.scenario import Scenario
from fencepost.schedule.plan import Plan

RESTORED_S = 60.0
REMOVED_S = 30.0


class LentCluster(ManagedCluster):
    """A running cluster during one run: to stop it is to restore it."""

    def __init__(self, kept: ManagedCluster, prefix: str) -> None:
        vars(self).update(vars(kept))
        self._evidence = kept.evidence.from_now_on()  # each run has only its own lines of the brokers' logs
        self._prefix, self._returned = prefix, False

    def stop(self) -> None:
        """Undo what a run may have left: toxics, brokers that are stopped or ended, its topics and groups.

        Raises:
            ClusterError, WaitTimeout: the cluster is not as it was.
        """
        if self._returned:
            return
        self._returned = True
        restore(self)
        cleaning = Cleaning(self.observers, self.access, self._prefix)
        try:
            if left := cleaning.remove_all(REMOVED_S):
                raise ClusterError(f"a run left in the cluster what could not be removed: {', '.join(left)}")
        finally:
            cleaning.close()


@dataclass(frozen=True, kw_only=True)
class KeptBackend(ManagedBackend):
    """Lends one running cluster to runs, one after the other; everything else is as in the back-end that started it."""

    cluster: ManagedCluster

    def permit(self, scenario: Scenario, plan: Plan) -> None:
        """Refuse a scenario that needs a cluster of another kind. Raises ScenarioError."""
        asked, had = scenario.cluster_spec(), self.cluster.spec
        if replace(asked, slots=had.slots, members=had.members) != had or asked.slots > had.slots:
            raise ScenarioError(f"the scenario {scenario.name!r} needs another cluster than the one that is kept")

    def for_another_run(self) -> KeptBackend:
        """The same with new names."""
        return replace(self, prefix=f"run-{secrets.token_hex(3)}-")

    def start(self, scenario: Scenario, plan: Plan, owner: ProcessOwner, progress: ProgressCallback) -> Cluster:
        """The running cluster."""
        return LentCluster(self.cluster, self.prefix)


@contextmanager
def kept(own: ManagedBackend, spec: ClusterSpec, progress: ProgressCallback) -> Iterator[KeptBackend]:
    """Start a cluster and keep it until the block ends. Raises: see ``ManagedBackend``."""
    with ProcessOwner.open() as owner:
        cluster = own.provide(spec, owner, progress)
        assert isinstance(cluster, ManagedCluster)
        try:
            yield KeptBackend(**vars(own), cluster=cluster).for_another_run()
        finally:
            cluster.stop()


def restore(cluster: ManagedCluster) -> None:
    """Remove all toxics, and let all brokers run with all their replicas in sync.

    Raises:
        ClusterError, WaitTimeout: that was not possible.
    """
    cluster.links.reset()
    for broker in cluster.brokers.values():
        broker.signal(signal.SIGCONT)
        broker.start()
    everybody = set(cluster.brokers)

    def in_sync() -> bool:
        return all(set(isr) == everybody for isr in cluster.admin.in_sync_replicas(OFFSETS_TOPIC).values())

    eventually(in_sync, RESTORED_S, f"all replicas of {OFFSETS_TOPIC} to be in sync again", forgive=(ClusterError,))
