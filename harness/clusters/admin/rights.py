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


def lacking(brokers: Mapping[int, Endpoint], access: Mapping[str, str], wanted: Collection[Right]) -> list[Right]:
    """Those of some rights that this user certainly lacks. Where brokers do not tell, nothing is lacking.

    Raises:
        WaitTimeout: no broker, or no coordinator of a group, answered within 15 s.
    """
    asked = Connections(brokers, access)
    try:
        return list(_lacking(asked, wanted))
    finally:
        asked.close()


# What a user may do to a resource, by (kind, name); a resource of which brokers do not tell that is missing.
_Allowed = Mapping[tuple[str, str], Collection[int]]


def _lacking(asked: Connections, wanted: Collection[Right]) -> Iterator[Right]:
    allowed = {**_of_cluster_and_topics(asked, wanted), **_of_groups(asked, wanted)}
    for right in wanted:
        told = allowed.get((right.resource, right.name))
        if right.resource == TRANSACTIONAL_ID:
            if unauthorized(asked.request(partial(requests.no_transaction, right.name))):
                yield right
        elif told is not None and OPERATIONS[right.operation] not in told and not _allowed_otherwise(asked, right):
            yield right


def _of_cluster_and_topics(asked: Connections, wanted: Collection[Right]) -> _Allowed:
    names = sorted({right.name for right in wanted if right.resource == TOPIC})
    answer = asked.request(lambda: requests.rights(names))
    found: dict[tuple[str, str], Collection[int]] = {}
    if answer.authorized_operations is not None:
        found[CLUSTER, ""] = answer.authorized_operations
    for topic in answer.topics:
        told = () if unauthorized(topic) else topic.authorized_operations
        # Brokers that describe a topic allow that. Where this is not among what they allow, they do not tell.
        if told is not None and (unauthorized(topic) or OPERATIONS["Describe"] in told):
            found[TOPIC, topic.name] = told
    return found


def _of_groups(asked: Connections, wanted: Collection[Right]) -> _Allowed:
    found: dict[tuple[str, str], Collection[int]] = {}
    for name in sorted({right.name for right in wanted if right.resource == GROUP}):
        try:
            told = groups.operations(asked, name)
        except NotAuthorized:
            told = set()
        if told is not None:
            found[GROUP, name] = told
    return found


def _allowed_otherwise(asked: Connections, right: Right) -> bool:
    """Whether a right that is not told is there all the same."""
    if (right.operation, right.resource) == ("Create", TOPIC):  # Create on the cluster is enough
        (result,) = asked.request(lambda: requests.creation([Topic(right.name, partitions=1)], tried=True)).topics
        return not unauthorized(result)
    if (right.operation, right.resource) == ("DescribeConfigs", CLUSTER):  # told only to who may describe the cluster
        answers = (asked.request_once(broker, requests.settings(broker, ())) for broker in asked.brokers)
        return any(not unauthorized(result) for answer in answers if answer for result in answer.results)
    return False
