"""The back-ends: each is one value with its abilities, its permissions, and how it starts a cluster for a run."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from fencepost.clusters.attach import handed_in
from fencepost.clusters.attach.backend import Attachment
from fencepost.clusters.cache import ProgressCallback
from fencepost.clusters.capabilities import Abilities
from fencepost.clusters.names import ATTACH, DOCKER, LOCAL, NAMES
from fencepost.errors import ScenarioError
from fencepost.interfaces import Cluster, ClusterSpec
from fencepost.processes.owner import ProcessOwner
from fencepost.scenario.scenario import Scenario
from fencepost.schedule.plan import Plan

START = Callable[[ClusterSpec, ProcessOwner, ProgressCallback], Cluster]


class Backend(Protocol):
    """A source of clusters for runs; its text is its name on the command line."""

    @property
    def abilities(self) -> Abilities:
        """The abilities that it offers to faults."""

    @property
    def parts(self) -> Collection[str]:
        """Its needs on this machine, in addition to the needs of every run, by the names of ``doctor``."""

    @property
    def why(self) -> str:
        """Why ``auto`` selected it; empty: it was named."""

    @property
    def prefix(self) -> str:
        """Begins the names of all topics and groups of a run; empty where the cluster is the run's own."""

    def permit(self, scenario: Scenario, plan: Plan) -> None:
        """Raise a ScenarioError with all reasons why the run cannot be performed there: it was not permitted, it needs
        the cluster's owner, or such a cluster cannot be started."""

    def intent(self, scenario: Scenario, plan: Plan) -> list[str]:
        """The run's actions on a foreign cluster, a clause each."""

    def examine(self, scenario: Scenario, plan: Plan, progress: ProgressCallback) -> list[str]:
        """Check in the foreign cluster itself that the run can be performed there, without creating anything; returns
        what was found, a sentence each."""

    def for_another_run(self) -> Backend:
        """The same for another run, with new names."""

    def start(self, scenario: Scenario, plan: Plan, owner: ProcessOwner, progress: ProgressCallback) -> Cluster:
        """A running cluster, on which nothing was created yet."""


@dataclass(frozen=True)
class ManagedBackend:
    """A back-end that starts a new cluster for each run, with all rights over it. Satisfies ``Backend``.

    Attributes:
        check: raises a ScenarioError for a spec that cannot be started.
        provide: starts one; see ``local.start``.
    """

    name: str
    abilities: Abilities
    parts: Collection[str]
    check: Callable[[ClusterSpec], None]
    provide: START
    why: str = ""
    prefix: str = ""

    def __str__(self) -> str:
        return self.name

    def permit(self, scenario: Scenario, plan: Plan) -> None:
        """Refuse a cluster that cannot be started; everything else is permitted."""
        self.check(scenario.cluster_spec())

    def intent(self, scenario: Scenario, plan: Plan) -> list[str]:
        """Nothing foreign is touched."""
        return []

    def examine(self, scenario: Scenario, plan: Plan, progress: ProgressCallback) -> list[str]:
        """There is no cluster yet."""
        return []

    def for_another_run(self) -> ManagedBackend:
        """The same: every cluster is new, whatever its names."""
        return self

    def start(self, scenario: Scenario, plan: Plan, owner: ProcessOwner, progress: ProgressCallback) -> Cluster:
        """Start the cluster that the scenario describes."""
        return self.provide(scenario.cluster_spec(), owner, progress)


def local() -> ManagedBackend:
    """Clusters of processes of this machine."""
    from fencepost.clusters import local
    from fencepost.clusters.kafka import server_properties

    return ManagedBackend(LOCAL, local.ABILITIES, local.PARTS, server_properties.check, local.start)


def docker() -> ManagedBackend:
    """Clusters of containers on a Docker engine of this machine."""
    from fencepost.clusters.docker import host

    return ManagedBackend(DOCKER, host.ABILITIES, host.PARTS, host.check, host.start)


OWN = {LOCAL: local, DOCKER: docker}  # the fastest first


def named(name: str, config: Path | None = None, permitted: bool = False, folder: Path = Path()) -> Backend:
    """A back-end by its name; ``config`` and ``permitted`` are only for clusters that exist.

    Args:
        folder: whose list of clusters counts, if there is one there or above. For brokers in containers of this machine
            only its prefix counts.

    Raises:
        ScenarioError: there is none of this name; see ``Attachment.of``; or it does not accept these options.
        ClusterError, ProvisionError: see ``handed_in.attachment``.
    """
    if name.startswith(ATTACH):
        return Attachment.of(name, config, permitted).under_list_of(folder)
    if handed_in.scheme_of(name):
        return handed_in.attachment(name, config, permitted).under_list_of(folder)
    if config is not None or permitted:
        raise ScenarioError(f"--cluster-config and --yes are for a cluster that exists, not for {name}")
    if name not in OWN:
        raise ScenarioError(f"there is no back-end {name!r}; use {', '.join(NAMES)}")
    return OWN[name]()
