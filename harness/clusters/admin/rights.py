"""Which rights a user has in a cluster, found out without creating anything."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from functools import partial

from fencepost.clusters.admin import groups, requests
from fencepost.clusters.admin.connections import Connections, unauthorized
from fencepost.errors import NotAuthorized
from fencepost.model.endpoint import Endpoint
from fencepost.model.topic import Topic

TOPIC, GROUP, TRANSACTIONAL_ID, CLUSTER = "topic", "group", "transactional-id", "cluster"
# The names of operations, and their numbers in the protocol.
OPERATIONS: Mapping[str, int] = {
    "Read": 3,
    "Write": 4,
    "Create": 5,
    "Delete": 6,
    "Alter": 7,
    "Describe": 8,
    "DescribeConfigs": 10,
}


@dataclass(frozen=True)
class Right:
    """The right to an operation.

    Attributes:
        operation: its name in Kafka's ACLs (``OPERATIONS``).
        resource: ``TOPIC``, ``GROUP``, ``TRANSACTIONAL_ID`` or ``CLUSTER``.
        name: of the resource, which need not exist; empty for the cluster.
    """

    operation: str
    resource: str
    name: str = ""


def missing(brokers: Mapping[int, Endpoint], access: Mapping[str, str], needed: Collection[Right]) -> list[Right]:
    """The needed rights that this user certainly does not have. Where brokers do not report rights, none is missing.

    Raises:
        WaitTimeout: no broker, or no coordinator of a group, answered within 15 s.
    """
    asked = Connections(brokers, access)
    try:
        return list(_missing(asked, needed))
    finally:
        asked.close()


# The operations that a user may perform on a resource, by (kind, name); without resources of which brokers do not
# report them.
_Allowed = Mapping[tuple[str, str], Collection[int]]


def _missing(asked: Connections, needed: Collection[Right]) -> Iterator[Right]:
    allowed = {**_of_cluster_and_topics(asked, needed), **_of_groups(asked, needed)}
    for right in needed:
        reported = allowed.get((right.resource, right.name))
        if right.resource == TRANSACTIONAL_ID:
            if unauthorized(asked.request(partial(requests.no_transaction, right.name))):
                yield right
        elif (
            reported is not None
            and OPERATIONS[right.operation] not in reported
            and not _allowed_otherwise(asked, right)
        ):
            yield right


def _of_cluster_and_topics(asked: Connections, needed: Collection[Right]) -> _Allowed:
    names = sorted({right.name for right in needed if right.resource == TOPIC})
    answer = asked.request(lambda: requests.rights(names))
    found: dict[tuple[str, str], Collection[int]] = {}
    if answer.authorized_operations is not None:
        found[CLUSTER, ""] = answer.authorized_operations
    for topic in answer.topics:
        reported = () if unauthorized(topic) else topic.authorized_operations
        # Brokers that describe a topic allow Describe. If it is not reported as allowed, nothing is reported.
        if reported is not None and (unauthorized(topic) or OPERATIONS["Describe"] in reported):
            found[TOPIC, topic.name] = reported
    return found


def _of_groups(asked: Connections, needed: Collection[Right]) -> _Allowed:
    found: dict[tuple[str, str], Collection[int]] = {}
    for name in sorted({right.name for right in needed if right.resource == GROUP}):
        try:
            reported = groups.operations(asked, name)
        except NotAuthorized:
            reported = set()
        if reported is not None:
            found[GROUP, name] = reported
    return found


def _allowed_otherwise(asked: Connections, right: Right) -> bool:
    """Whether the user has a right that was not reported."""
    if (right.operation, right.resource) == ("Create", TOPIC):  # Create on the cluster is enough
        (result,) = asked.request(lambda: requests.creation([Topic(right.name, partitions=1)], tried=True)).topics
        return not unauthorized(result)
    if (right.operation, right.resource) == ("DescribeConfigs", CLUSTER):  # reported only with Describe
        broker = asked.brokers[0]
        answer = asked.wait(lambda: asked.request_once(broker, requests.settings(broker, ())), "settings of a broker")
        return not any(map(unauthorized, answer.results))
    return False
