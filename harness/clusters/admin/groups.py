"""Groups as their coordinators know them, of the classic and of the consumer protocol."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from kafka import errors as kafka_errors
from kafka.protocol.consumer.metadata import ConsumerProtocolAssignment, ConsumerProtocolSubscription

from fencepost.clusters.admin import requests
from fencepost.clusters.admin.connections import Connections, refuse
from fencepost.interfaces.described import Described, GroupMember
from fencepost.model import TopicPartition

UNKNOWN_GROUP = (kafka_errors.GroupIdNotFoundError.errno,)  # also of one of the other protocol
MEMBER_TYPES = {0: "classic", 1: "consumer"}


def coordinator(brokers: Connections, group: str) -> int:
    """The broker that FindCoordinator names for ``group``; -1 while there is none."""
    found = brokers.ask(lambda: requests.coordinator(group)).coordinators[0]
    return -1 if found.error_code else int(found.node_id)


def committed(brokers: Connections, group: str) -> dict[TopicPartition, int]:
    """The group's committed offsets (next offset to read)."""
    answer = _told(brokers, group, lambda: requests.offset_fetch(group), lambda answer: answer.groups[0], "its offsets")
    refuse(answer.groups[0], f"asking for the offsets of {group}")
    found = [(topic.name, partition) for topic in answer.groups[0].topics for partition in topic.partitions]
    offsets = {TopicPartition(name, p.partition_index): int(p.committed_offset) for name, p in found}
    return {tp: offset for tp, offset in offsets.items() if offset >= 0}


def describe(brokers: Connections, group: str) -> Described:
    """What the coordinator tells of a group. It knows one of the consumer protocol by another question."""
    for ask, read in ((requests.classic_group, _classic), (requests.consumer_group, _consumer)):
        answer = _told(brokers, group, partial(ask, group), lambda answer: answer.groups[0], "its members")
        if answer.groups[0].error_code not in UNKNOWN_GROUP:
            refuse(answer.groups[0], f"asking for the members of {group}")
            return read(answer.groups[0])
    return Described()


def _classic(told: Any) -> Described:
    """While the group rebalances, nothing is told of its members but who they are."""
    members = {
        m.member_id: GroupMember("classic", _subscribed(m.member_metadata), _assigned(m.member_assignment))
        for m in told.members
    }
    return Described("classic", told.protocol_data, members)


def _subscribed(metadata: bytes) -> frozenset[str] | None:
    return frozenset(ConsumerProtocolSubscription.decode(metadata).topics) if metadata else None


def _assigned(assignment: bytes) -> frozenset[TopicPartition]:
    told = ConsumerProtocolAssignment.decode(assignment).partitions() if assignment else ()
    return frozenset(TopicPartition(topic, partition) for topic, partition in told)


def _consumer(told: Any) -> Described:
    """Who takes part by the classic protocol is told apart."""
    members = {
        m.member_id: GroupMember(
            MEMBER_TYPES.get(m.member_type, ""),
            frozenset(m.subscribed_topic_names),
            frozenset(TopicPartition(t.topic_name, p) for t in m.assignment.topic_partitions for p in t.partitions),
        )
        for m in told.members
    }
    return Described("consumer", told.assignor_name, members)


def alter_offsets(brokers: Connections, group: str, offsets: Mapping[TopicPartition, int]) -> None:
    """Set committed offsets of a group that has no members; returns once that is in the coordinator's log.

    Raises:
        ClusterError: it refused, as when there are members.
    """
    what = f"altering the committed offsets of {group}"
    ask, first = partial(requests.offset_commit, group, offsets), lambda answer: answer.topics[0].partitions[0]
    for topic in _told(brokers, group, ask, first, what).topics:
        for result in topic.partitions:
            refuse(result, what)


def remove_member(brokers: Connections, group: str, member_id: str) -> str:
    """Have the coordinator remove a member from the group; the id that it says it removed, once that is in its log.

    Raises:
        ClusterError: it refused, as when there is no such member.
    """
    what = f"removing the member {member_id} from {group}"
    answer = _told(brokers, group, lambda: requests.removal(group, member_id), lambda answer: answer, what)
    for result in (answer, *answer.members):
        refuse(result, what)
    return str(answer.members[0].member_id)


def _told(brokers: Connections, group: str, request: Callable[[], Any], part: Callable[[Any], Any], what: str) -> Any:
    """The coordinator's answer to a request, once it is none that goes away by itself.

    Raises:
        WaitTimeout: no coordinator answered within 15 s.
    """

    def answered() -> Any | None:
        broker = coordinator(brokers, group)
        answer = brokers.ask_once(broker, request())
        return None if answer is None or brokers.puts_off(broker, part(answer)) else answer

    return brokers.wait(answered, f"the coordinator of {group} to answer: {what}")
