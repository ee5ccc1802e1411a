"""Groups of the classic and the consumer protocol, as their coordinators describe them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from kafka import errors as kafka_errors
from kafka.protocol.consumer.metadata import ConsumerProtocolAssignment, ConsumerProtocolSubscription

from fencepost.clusters.admin import requests
from fencepost.clusters.admin.connections import Connections, refuse, unauthorized
from fencepost.interfaces.group_description import GroupDescription, GroupMember
from fencepost.model import TopicPartition

UNKNOWN_GROUP = (kafka_errors.GroupIdNotFoundError.errno,)  # also for a group of the other protocol
MEMBER_TYPES = {0: "classic", 1: "consumer"}


def coordinator(brokers: Connections, group: str) -> int:
    """The broker that FindCoordinator returns for ``group``; -1 while there is none.

    Raises:
        NotAuthorized: the right to ask is missing.
    """
    found = brokers.request(lambda: requests.coordinator(group)).coordinators[0]
    if unauthorized(found):
        refuse(found, f"finding the coordinator of {group}")
    return -1 if found.error_code else int(found.node_id)


def operations(brokers: Connections, group: str) -> set[int] | None:
    """The numbers of the operations that this user may perform on a group of this name, whether it exists or not; None:
    the coordinator does not report it.

    Raises:
        NotAuthorized: the right to ask is missing.
    """
    ask = partial(requests.group_rights, group)
    (found,) = _asked(brokers, group, ask, lambda answer: answer.groups[0], "this user's rights").groups
    refuse(found, f"asking for the rights to {group}")
    return found.authorized_operations  # type: ignore[no-any-return]


def committed(brokers: Connections, group: str) -> dict[TopicPartition, int]:
    """The group's committed offsets (next offset to read)."""
    answer = _asked(
        brokers, group, lambda: requests.offset_fetch(group), lambda answer: answer.groups[0], "its offsets"
    )
    refuse(answer.groups[0], f"asking for the offsets of {group}")
    found = [(topic.name, partition) for topic in answer.groups[0].topics for partition in topic.partitions]
    offsets = {TopicPartition(name, p.partition_index): int(p.committed_offset) for name, p in found}
    return {tp: offset for tp, offset in offsets.items() if offset >= 0}


def describe(brokers: Connections, group: str) -> GroupDescription:
    """The coordinator's description of a group; the consumer protocol has a separate request."""
    for ask, read in ((requests.classic_group, _classic), (requests.consumer_group, _consumer)):
        answer = _asked(brokers, group, partial(ask, group), lambda answer: answer.groups[0], "its members")
        if answer.groups[0].error_code not in UNKNOWN_GROUP:
            refuse(answer.groups[0], f"asking for the members of {group}")
            return read(answer.groups[0])
    return GroupDescription()


def _classic(group: Any) -> GroupDescription:
    """While the group rebalances, only the ids of its members are known."""
    members = {
        m.member_id: GroupMember("classic", _subscribed(m.member_metadata), _assigned(m.member_assignment))
        for m in group.members
    }
    return GroupDescription("classic", group.protocol_data, members)


def _subscribed(metadata: bytes) -> frozenset[str] | None:
    return frozenset(ConsumerProtocolSubscription.decode(metadata).topics) if metadata else None


def _assigned(assignment: bytes) -> frozenset[TopicPartition]:
    decoded = ConsumerProtocolAssignment.decode(assignment).partitions() if assignment else ()
    return frozenset(TopicPartition(topic, partition) for topic, partition in decoded)


def _consumer(group: Any) -> GroupDescription:
    """A group of the consumer protocol, whose members of the classic protocol are marked."""
    members = {
        m.member_id: GroupMember(
            MEMBER_TYPES.get(m.member_type, ""),
            frozenset(m.subscribed_topic_names),
            frozenset(TopicPartition(t.topic_name, p) for t in m.assignment.topic_partitions for p in t.partitions),
        )
        for m in group.members
    }
    return GroupDescription("consumer", group.assignor_name, members)


def alter_offsets(brokers: Connections, group: str, offsets: Mapping[TopicPartition, int]) -> None:
    """Set committed offsets of a group that has no members; returns once they are in the coordinator's log.

    Raises:
        ClusterError: it refused, as when there are members.
    """
    what = f"altering the committed offsets of {group}"
    ask, first = partial(requests.offset_commit, group, offsets), lambda answer: answer.topics[0].partitions[0]
    for topic in _asked(brokers, group, ask, first, what).topics:
        for result in topic.partitions:
            refuse(result, what)


def remove_member(brokers: Connections, group: str, member_id: str) -> str:
    """Make the coordinator remove a member; returns the id that it reports as removed, once that is in its log.

    Raises:
        ClusterError: it refused, as when there is no such member.
    """
    what = f"removing the member {member_id} from {group}"
    answer = _asked(brokers, group, lambda: requests.removal(group, member_id), lambda answer: answer, what)
    for result in (answer, *answer.members):
        refuse(result, what)
    return str(answer.members[0].member_id)


def _asked(brokers: Connections, group: str, request: Callable[[], Any], part: Callable[[Any], Any], what: str) -> Any:
    """The coordinator's answer to a request, once it is not a retriable error.

    Raises:
        WaitTimeout: no coordinator answered within 15 s.
    """

    def answered() -> Any | None:
        broker = coordinator(brokers, group)
        answer = brokers.request_once(broker, request())
        return None if answer is None or brokers.is_retriable(broker, part(answer)) else answer

    return brokers.wait(answered, f"the coordinator of {group} to answer: {what}")
