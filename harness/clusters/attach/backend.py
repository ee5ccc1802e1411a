"""An existing cluster, as named on the command line, and what a run would do to it."""

from __future__ import annotations

import re
import secrets
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import ClassVar

from fencepost.clusters.addresses import on_this_machine
from fencepost.clusters.attach.access import read_access
from fencepost.clusters.attach.allow_list import AllowList
from fencepost.clusters.cache import ProgressCallback
from fencepost.clusters.capabilities import Abilities, always, needed
from fencepost.clusters.docker.published import PublishedPort
from fencepost.clusters.names import ATTACH, CLOCKS, PREFIX
from fencepost.errors import PlanError, ScenarioError, refuse
from fencepost.interfaces import Cluster
from fencepost.model.clock_readings import READ_EVERY_S
from fencepost.model.endpoint import Endpoint
from fencepost.model.topic import REPLICAS, Topic
from fencepost.network import redirects
from fencepost.processes.owner import ProcessOwner
from fencepost.scenario.scenario import Scenario
from fencepost.schedule.plan import Plan

ABILITIES: Abilities = {
    **always("command", "signal", "admin", "deletion", "leaders", "partitions", "offsets", "coordinator"),
    "packets": redirects.missing_reason,
    "links": redirects.missing_reason,
}
IN_CONTAINERS = always("broker-signal", "broker-log")
_ADDRESS = re.compile(rf"{ATTACH}(?P<host>\[[0-9a-fA-F:.]+\]|[^\s:,/@]+):(?P<port>\d{{1,5}})")


def _own_prefix(of_all: str = PREFIX) -> str:
    return f"{of_all}{secrets.token_hex(4)}-"


@dataclass(frozen=True)
class Attachment:
    """A foreign cluster, and how a run may use it. Satisfies ``Backend``.

    Attributes:
        address: a broker's listener for clients.
        access: its settings of SASL and TLS (``ACCESS``); never shown, never written into a run folder.
        permitted: whether its brokers may be on other machines: ``--yes`` was given, or there is a list.
        name: its name on the command line, if that is not the address.
        prefix: begins the names of all topics and groups of one run, and of nothing else; another run needs
            ``for_another_run``.
        published: the ports of the brokers' containers, if they were handed in as containers of this machine's engine.
        allowed: the team's list of clusters, if there is one and it counts for this cluster.
    """

    address: Endpoint
    access: Mapping[str, str] = field(default_factory=dict, repr=False)
    permitted: bool = False
    name: str = ""
    prefix: str = field(default_factory=_own_prefix)
    published: Sequence[PublishedPort] = ()
    allowed: AllowList | None = None
    parts: ClassVar[Collection[str]] = ()
    why: ClassVar[str] = ""

    @property
    def abilities(self) -> Abilities:
        """See ``Backend``. The engine lets containers be paused and killed, and shows their output."""
        return {**ABILITIES, **(IN_CONTAINERS if self.published else {})}

    @classmethod
    def of(cls, cluster: str, config: Path | None = None, permitted: bool = False) -> Attachment:
        """The attachment for ``attach:HOST:PORT`` and a properties file.

        Raises:
            ScenarioError: the address is invalid, the file cannot be read, or has a setting that is not in ``ACCESS``.
        """
        found = _ADDRESS.fullmatch(cluster)
        if found is None or not 0 < int(found["port"]) < 65536:
            raise ScenarioError(f"{cluster!r} does not name a cluster: use attach:HOST:PORT, with one broker's address")
        return cls(Endpoint(found["host"], int(found["port"])), read_access(config), permitted)

    def under_list_of(self, folder: Path) -> Attachment:
        """The same under the team's list of clusters that counts in a folder, if there is one.

        Raises:
            ScenarioError: see ``AllowList.find``.
        """
        allowed = AllowList.find(folder)
        return self if allowed is None else replace(self, permitted=True, allowed=allowed).for_another_run()

    def __str__(self) -> str:
        return self.name or f"{ATTACH}{self.address}"

    def for_another_run(self) -> Attachment:
        """The same for another run, with new names."""
        return replace(self, prefix=_own_prefix(self.prefix_of_all))

    @property
    def prefix_of_all(self) -> str:
        """Begins the names of all runs of this team."""
        return self.allowed.prefix if self.allowed else PREFIX

    def start(self, scenario: Scenario, plan: Plan, owner: ProcessOwner, progress: ProgressCallback) -> Cluster:
        """See ``attach.start``."""
        from fencepost.clusters.attach import cluster

        return cluster.start(self, scenario, plan, owner, progress)

    def examine(self, scenario: Scenario, plan: Plan, progress: ProgressCallback) -> list[str]:
        """See ``Backend``, and for errors ``examination.examine``."""
        from fencepost.clusters.attach.examination import examine

        found = examine(self, scenario, plan, progress)
        listed = self.allowed.clusters.get(found.cluster_id) if self.allowed else ""  # containers need not be listed
        about = f" ({listed})" if listed else ""
        brokers = ", ".join(f"{broker} at {at}" for broker, at in found.brokers.items())
        return [
            f"the cluster has the id {found.cluster_id}{about}, and the brokers {brokers}",
            "this user has all rights that the run needs",
        ]

    def intent(self, scenario: Scenario, plan: Plan) -> list[str]:
        """The run's actions on the cluster, one clause each."""
        names, load = scenario.names(plan.seed, self.prefix), scenario.workload.producer_config()
        topics = ", ".join(
            f"{names.in_cluster(t.name)} ({t.partitions} partitions, {_replicas(t)})"
            for t in (*scenario.topics, *scenario.outputs())
        )
        rate = load.get("rate_hz") or 0
        lines = [
            f"create the topics {topics}",
            f"write to them {f'{rate:g} records a second' if rate else 'as fast as possible'}",
            f"consume them as the group {names.group} with {scenario.group.size} members",
        ]
        if needed(plan, "coordinator"):
            lines.append(
                "move the leader of this group's partition of __consumer_offsets, and with it the coordinator of all "
                "groups in that partition, to another replica, and restore the order of its replicas at the end"
            )
        lines.append(
            "unless all brokers are containers that were handed in, or processes of this machine that this user can "
            f"see, write records of a few bytes to a topic {self.prefix}{CLOCKS}, {1 / READ_EVERY_S:g} a second at "
            "each broker that may coordinate the group, to read the brokers' clocks"
        )
        if self.published:
            lines.append("log the brokers' requests (kafka.request.logger), and put the level back at the end")
        if needed(plan, "broker-signal"):
            lines.append("pause, kill and start the brokers that the schedule names")
        return [
            *lines,
            "read this group's partition of __consumer_offsets",
            "remove topics and group",
        ]

    def permit(self, scenario: Scenario, plan: Plan) -> None:
        """Refuse a run that was not permitted, or that needs the cluster's owner.

        Raises:
            PlanError: lists what to remove from the scenario, what would be done, and how to permit it.
        """
        refuse(map(PlanError, self._not_allowed(scenario, plan)))

    def _not_allowed(self, scenario: Scenario, plan: Plan) -> Iterator[str]:
        if scenario.broker_config:
            names = ", ".join(sorted(scenario.broker_config))
            yield f"a run cannot configure the brokers of {self}: remove broker_config ({names})"
        if scenario.kafka:
            yield f"{self} has a fixed version: remove kafka ({scenario.kafka})"
        on_links = needed(plan, "packets", "links")
        if on_links and "SSL" in self.access.get("security.protocol", "").upper():
            yield f"{self} needs TLS, but links can be checked only without it: remove the faults that disturb links"
        if self.published and needed(plan, "broker-signal") and not scenario.may_disrupt_brokers:
            yield (
                f"the schedule disturbs brokers of {self}, and they belong to others: set may_disrupt_brokers = true "
                "in the scenario, or remove these faults"
            )
        if why := self.elsewhere():
            yield self.refusal(why, self.intent(scenario, plan))

    def elsewhere(self) -> str:
        """Why the address may be that of another machine; empty: it is one of this machine, or that is permitted."""
        here = self.permitted or on_this_machine(self.address)
        return "" if here else f"{self.address.host} is not known to be an address of this machine"

    def refusal(self, why: str, would: Sequence[str]) -> str:
        """The sentence that lists what would be done, if it were permitted."""
        return f"{why}, so {self} needs --yes (in pytest --chaos-yes). This would {'; '.join(would)}"


def _replicas(topic: Topic) -> str:
    """The number of replicas of a topic, in words: the default depends on the number of brokers."""
    up_to = "up to " if topic.replication_factor == REPLICAS else ""
    return f"{up_to}{topic.replication_factor} replicas"
