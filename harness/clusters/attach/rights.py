"""The rights that a run needs in a cluster of others, and the message if some are missing.

Kafka's documentation, "Authorization and ACLs", has the right that each request needs.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from functools import partial

from fencepost.clusters.admin import OFFSETS_TOPIC, rights
from fencepost.clusters.admin.rights import CLUSTER, GROUP, TOPIC, TRANSACTIONAL_ID, Right
from fencepost.clusters.attach.access import mechanism_of
from fencepost.clusters.cache import ProgressCallback
from fencepost.clusters.capabilities import needed
from fencepost.errors import NotAuthorized
from fencepost.model.endpoint import Endpoint
from fencepost.scenario.scenario import Scenario
from fencepost.schedule.plan import Plan
from fencepost_member.config import TRANSACTION

OF_TOPICS = ("Create", "Read", "Write", "Delete")  # Describe comes with Read
OF_GROUP = ("Read", "Delete")
CONFIGS = "DescribeConfigs"
# Where a right serves evidence alone, what is lost without it: by the name of the resource, else by its kind.
WITHOUT = {
    OFFSETS_TOPIC: "the group's log in __consumer_offsets is not read, so kinds that need it are not judged",
    TOPIC: "the settings of topics are not read, so the scenario's settings count, else Kafka's defaults",
    CLUSTER: "the settings of brokers are not read, so Kafka's defaults count",
}


def needs(scenario: Scenario, plan: Plan, run_prefix: str) -> tuple[list[Right], list[Right]]:
    """The rights without which a run cannot be performed, and the rights that only evidence needs."""
    names = scenario.names(plan.seed, run_prefix)
    topics = [names.in_cluster(topic.name) for topic in (*scenario.topics, *scenario.outputs())]
    settings = [*(Right(CONFIGS, TOPIC, topic) for topic in topics), Right(CONFIGS, CLUSTER)]
    musts = [Right(operation, TOPIC, topic) for topic in topics for operation in OF_TOPICS]
    musts += [Right(operation, GROUP, names.group) for operation in OF_GROUP]
    if scenario.workload.member_config(0).get("commit") == TRANSACTION:
        musts.append(Right("Write", TRANSACTIONAL_ID, names.group))
    if needed(plan, "partitions"):
        musts += [Right("Alter", TOPIC, topic) for topic in topics]
    if needed(plan, "deletion"):  # a topic is recreated with its settings
        musts += settings[:-1]
    if needed(plan, "coordinator", "leaders"):
        musts.append(Right("Alter", CLUSTER))
    if needed(plan, "coordinator"):
        musts.append(Right("Describe", TOPIC, OFFSETS_TOPIC))
    if scenario.group.protocol == "consumer":  # brokers decide its times, which are compared
        musts.append(settings[-1])
    return musts, [right for right in (Right("Read", TOPIC, OFFSETS_TOPIC), *settings) if right not in musts]


def check(
    address: Endpoint,
    brokers: Mapping[int, Endpoint],
    access: Mapping[str, str],
    of_run: tuple[Collection[Right], Collection[Right]],
    prefix_of_all: str,
    progress: ProgressCallback,
) -> str:
    """Refuse a run whose user has not all rights; report the evidence that it may not read.

    Args:
        of_run: see ``needs``.
        prefix_of_all: begins the names of all runs; rights are granted to it.

    Returns:
        Why the group's log cannot be read; empty: it can.

    Raises:
        NotAuthorized: lists all missing rights, as commands for the cluster's owner.
        WaitTimeout: no broker answered within 15 s.
    """
    musts, evidence = of_run
    found = rights.missing(brokers, access, [*musts, *evidence])
    commands = partial(_commands, address, access, prefix_of_all)
    missing = commands([right for right in found if right in musts])
    helpful = commands([right for right in found if right not in musts])
    if missing:
        more = ["Without these, less is judged:", *helpful.values()] if helpful else []
        raise NotAuthorized(
            "\n".join(
                [
                    f"this user has not all rights that the run needs in the cluster of {address}. Its "
                    "owner can grant them; nothing was created:",
                    *missing.values(),
                    *more,
                ]
            )
        )
    without = {
        name: f"{WITHOUT.get(name, WITHOUT[kind])}. The cluster's owner can grant the right to read them: {command}"
        for (kind, name), command in helpful.items()
    }
    for sentence in without.values():
        progress(sentence)
    return without.get(OFFSETS_TOPIC, "")


def _commands(
    address: Endpoint, access: Mapping[str, str], prefix_of_all: str, missing: Collection[Right]
) -> dict[tuple[str, str], str]:
    """The commands that grant some rights to this and all later runs, by kind and name of the resource."""
    found: dict[tuple[str, str], list[str]] = {}
    for right in missing:
        name = prefix_of_all if right.name.startswith(prefix_of_all) else right.name
        operations = found.setdefault((right.resource, name), [])
        if right.operation not in operations:
            operations.append(right.operation)
    return {
        (kind, name): " ".join(
            [
                f"kafka-acls --bootstrap-server {address} --add --allow-principal '{_principal(access)}'",
                *(f"--operation {operation}" for operation in operations),
                f"--{kind} {name}".strip(),
                *(["--resource-pattern-type prefixed"] if name == prefix_of_all else []),
            ]
        )
        for (kind, name), operations in found.items()
    }


def _principal(access: Mapping[str, str]) -> str:
    """This user as brokers name it, as far as that is known here."""
    protocol = access.get("security.protocol", "").upper()
    if protocol == "SSL":
        return "User:<subject of the certificate>"
    if not protocol.startswith("SASL_"):
        return "User:ANONYMOUS"
    if mechanism_of(access) == "OAUTHBEARER":
        return "User:<subject of the tokens>"
    return f"User:{access['sasl.username']}"
