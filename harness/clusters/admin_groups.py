"""Groups as their coordinators know them, of the classic and of the consumer protocol."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kafka import errors as kafka_errors

from fencepost.clock import eventually
from fencepost.clusters import admin_requests as requests
from fencepost.clusters.admin_connections import WITHIN_S, Connections, passing, refuse
from fencepost.model import TopicPartition

NO_CLASSIC = (kafka_errors.GroupIdNotFoundError.errno,)  # what a coordinator calls a group of the consumer protocol
STRANGER = (kafka_errors.UnknownMemberIdError.errno,)


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


def has_member(brokers: Connections, group: str, member_id: str) -> bool:
    """Whether the coordinator has a member of this id in the group.

    It tells the members of a group of the classic protocol. For one of the consumer protocol it is asked on behalf of
    the member for no offsets, and refuses a stranger; of who is a member, that changes nothing.
    """
    asked = _told(brokers, group, lambda: requests.classic_group(group), lambda answer: answer.groups[0], "its members")
    if asked.groups[0].error_code not in NO_CLASSIC:
        refuse(asked.groups[0], f"asking for the members of {group}")
        return any(member.member_id == member_id for member in asked.groups[0].members)
    ask = lambda: requests.of_member(group, member_id)  # noqa: E731
    answer = _told(brokers, group, ask, lambda answer: answer.groups[0], f"whether {member_id} is in")
    return answer.groups[0].error_code not in (*STRANGER, *NO_CLASSIC)


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
        answer = brokers.ask_once(coordinator(brokers, group), request())
        return None if answer is None or passing(part(answer)) else answer

    return eventually(answered, WITHIN_S, f"the coordinator of {group} to answer: {what}")
