"""Checks in a cluster of another owner, before a run creates anything there, whether the run can be performed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import closing, suppress
from typing import NamedTuple, Protocol

from fencepost.clock import eventually
from fencepost.clusters.addresses import on_this_machine
from fencepost.clusters.admin import ObserverAdmin
from fencepost.clusters.admin.cleaning import Discovered, discover
from fencepost.clusters.attach import rights
from fencepost.clusters.attach.allow_list import AllowList
from fencepost.clusters.attach.broker_processes import runs_here
from fencepost.clusters.cache import ProgressCallback, quiet
from fencepost.clusters.capabilities import needed
from fencepost.clusters.docker.published import PublishedPort
from fencepost.errors import ClusterError, NotAuthorized, PlanError
from fencepost.interfaces import HasImpact
from fencepost.model.endpoint import Endpoint
from fencepost.model.impact import Impact
from fencepost.scenario.scenario import Scenario
from fencepost.schedule.plan import Plan, Step
from fencepost_member.config import TRANSACTION

COORDINATOR_S = 30.0
TRANSACTIONS_TOPIC, TRANSACTION_REPLICAS = "__transaction_state", "transaction.state.log.replication.factor"
# With the consumer protocol brokers decide these times, but the judge uses the scenario's; so they must be equal.
TIMES = {
    "group.consumer.session.timeout.ms": "session.timeout.ms",
    "group.consumer.heartbeat.interval.ms": "heartbeat.interval.ms",
}
# Brokers accept sessions of the classic protocol between these.
SESSIONS = ("group.min.session.timeout.ms", "group.max.session.timeout.ms")


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
        """Whether its brokers may be on other machines."""

    @property
    def allowed(self) -> AllowList | None:
        """The team's list of clusters, if there is one and it counts."""

    @property
    def prefix(self) -> str:
        """The prefix of all names of the run."""

    @property
    def prefix_of_all(self) -> str:
        """The prefix of the names of all runs."""

    @property
    def published(self) -> Sequence[PublishedPort]:
        """The ports of its brokers' containers, if they are containers of this machine's engine."""

    def intent(self, scenario: Scenario, plan: Plan) -> list[str]:
        """What a run would do to it, one clause each."""

    def elsewhere(self) -> str:
        """Why its address may be that of another machine; empty: it is one of this machine, or that is permitted."""

    def refusal(self, why: str, would: Sequence[str]) -> str:
        """The sentence that lists what would be done, if it were permitted."""


class Examined(NamedTuple):
    """A cluster in which a run can be performed.

    Attributes:
        cluster_id: its id.
        brokers: their addresses.
        other_clocks: the brokers that may have another clock than this machine.
        ports: the port of each broker's container, as far as containers are known.
        hidden: why this user may not read the group's log; empty: it may.
    """

    cluster_id: str
    brokers: dict[int, Endpoint]
    other_clocks: list[int]
    ports: dict[int, PublishedPort]
    hidden: str


def examine(attachment: Asked, scenario: Scenario, plan: Plan, progress: ProgressCallback = quiet) -> Examined:
    """Check that a run can be performed in the cluster. This creates nothing.

    (Like every first request about a group, it makes the brokers of a new cluster create ``__consumer_offsets``.)

    Raises:
        PlanError: the team's list does not allow the cluster, its brokers are not on this machine and that was not
            permitted, or the plan has faults that cannot be performed on these brokers.
        NotAuthorized: lists the missing rights of this user.
        ClusterError: no broker answers, the brokers decide the group's times differently from the scenario, or they are
            too few for transactions.
        WaitTimeout: the group gets no coordinator.
    """
    progress(f"asking the cluster of {attachment.address}")
    cluster_id, brokers = reach(attachment, attachment.intent(scenario, plan))
    if (far := _far(brokers)) and needed(plan, "links"):
        raise PlanError(
            f"faults between members and brokers work only where brokers are on this machine, but there are "
            f'{", ".join(far)}: remove these faults, or use faults that lose packets (network = "packets")'
        )
    ports = _containers(brokers, attachment.published)
    _check_containers(brokers, ports, plan)
    with closing(ObserverAdmin(brokers, attachment.access)) as admin:
        group = scenario.names(plan.seed, attachment.prefix).group
        with suppress(NotAuthorized):
            eventually(lambda: admin.coordinator(group) >= 0, COORDINATOR_S, "a coordinator for the run's group")
        needs, of_all = rights.needs(scenario, plan, attachment.prefix), attachment.prefix_of_all
        hidden = rights.check(attachment.address, brokers, attachment.access, needs, of_all, progress)
        _agree(admin, next(iter(brokers)), scenario)
        if scenario.workload.member_config(0).get("commit") == TRANSACTION:
            _check_transactions(admin, brokers)
    other_clocks = [broker for broker, at in brokers.items() if broker not in ports and not _has_our_clock(at)]
    return Examined(cluster_id, brokers, other_clocks, ports, hidden)


def reach(attachment: Asked, would: Sequence[str]) -> Discovered:
    """Find the cluster, if it may be used. ``would``: what would be done there, one clause each.

    Raises:
        PlanError: the team's list does not allow it, or it is not on this machine and that was not permitted.
        ClusterError: no broker answers.
    """
    if why := attachment.elsewhere():
        raise PlanError(attachment.refusal(why, would))
    found = discover(attachment.address, attachment.access)
    in_containers = len(_containers(found.brokers, attachment.published)) == len(found.brokers)
    if attachment.allowed and not in_containers and (why := attachment.allowed.refusal(found.cluster_id)):
        raise PlanError(f"{attachment.address} may not be used: {why}")
    if (far := _far(found.brokers)) and not attachment.permitted:
        why = f"{attachment.address} is an address of this machine, but brokers behind it are {', '.join(far)}"
        raise PlanError(attachment.refusal(why, would))
    for broker, at in found.brokers.items():  # an address that is advertised may lead to another cluster from here
        if (there := discover(at, attachment.access).cluster_id) != found.cluster_id:
            raise PlanError(
                f"the cluster at {attachment.address} has the id {found.cluster_id}, but {at}, which it advertises as "
                f"broker {broker}, leads to the cluster {there} from here: give an address whose brokers can be reached"
            )
    return found


def _far(brokers: Mapping[int, Endpoint]) -> list[str]:
    """The addresses of brokers that are not on this machine."""
    return [str(endpoint) for endpoint in brokers.values() if not on_this_machine(endpoint)]


def _has_our_clock(broker: Endpoint) -> bool:
    """Whether a broker certainly has this machine's clock; an address of this machine may be a forwarded port."""
    return on_this_machine(broker) and runs_here(broker)


def _check_transactions(admin: ObserverAdmin, brokers: Mapping[int, Endpoint]) -> None:
    """Raise a ClusterError if the brokers cannot create the topic of transactions: one broker with Kafka's defaults."""
    replicas = int(admin.settings(next(iter(brokers)), [TRANSACTION_REPLICAS]).get(TRANSACTION_REPLICAS, 0))
    if replicas > len(brokers) and not admin.replicas(TRANSACTIONS_TOPIC):
        raise ClusterError(
            f"members commit in transactions, so the brokers need {TRANSACTIONS_TOPIC} with {replicas} replicas, "
            f"but the cluster has {len(brokers)} of them: set {TRANSACTION_REPLICAS}={len(brokers)} and "
            "transaction.state.log.min.isr=1 on the brokers, or use a workload without transactions"
        )


def _containers(brokers: Mapping[int, Endpoint], published: Sequence[PublishedPort]) -> dict[int, PublishedPort]:
    """The port of each broker's container; without brokers of which no container is known."""
    found: dict[int, PublishedPort] = {}
    for broker, at in brokers.items():
        here = [port for port in published if port.leads_to(at)] if on_this_machine(at) else []
        if len(here) == 1:
            found[broker] = here[0]
    shared = len({port.container for port in found.values()}) < len(found)
    return {} if shared else found


def _check_containers(brokers: Mapping[int, Endpoint], ports: Mapping[int, PublishedPort], plan: Plan) -> None:
    """Raise a PlanError if the plan disturbs brokers, and these cannot be disturbed or would not come back."""
    disturbs = needed(plan, "broker-signal")
    if disturbs and (missing := [f"broker {number} at {at}" for number, at in brokers.items() if number not in ports]):
        raise PlanError(
            f"the schedule disturbs brokers, but the containers of {', '.join(missing)} were not handed in: use "
            "compose:FILE with all brokers, or remove these faults"
        )
    ends = any(map(_ends_brokers, plan.steps))
    if ends and (changing := sorted({port.name for port in ports.values() if not port.lasting})):
        raise PlanError(
            f"the schedule ends brokers, but {', '.join(changing)} would have another port after a start, or would be "
            "removed: publish a fixed port and leave out --rm, or only pause brokers"
        )


def _ends_brokers(step: Step) -> bool:
    return step.hits == "brokers" and isinstance(step.fault, HasImpact) and Impact.ENDS in step.fault.impact


def _agree(admin: ObserverAdmin, broker: int, scenario: Scenario) -> None:
    """Raise a ClusterError if brokers do not accept the group's times, or decide them differently from the scenario."""
    spec = scenario.cluster_spec()
    if scenario.group.protocol != "consumer":
        session, allowed = scenario.group.session_timeout_ms, admin.settings(broker, SESSIONS)
        least, most = (int(allowed.get(name, session)) for name in SESSIONS)  # without the right to read them: unknown
        if not least <= session <= most:
            raise ClusterError(
                f"session.timeout.ms of the group is {session}, but the brokers accept {least} to {most} ms "
                f"({', '.join(SESSIONS)}): use a value between them"
            )
        return
    decided = admin.settings(broker, TIMES)
    for name, ours in TIMES.items():
        if decided.get(name) != str(spec.broker_config[name]):
            raise ClusterError(
                f"with the consumer protocol the brokers decide {ours}: theirs is {decided.get(name, 'unknown')}, "
                f"but the group's config has {spec.broker_config[name]}. Use their value there"
            )
