"""A group as its coordinator describes it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from fencepost.model import TopicPartition


@dataclass(frozen=True)
class GroupMember:
    """A member as its coordinator describes it.

    Attributes:
        protocol: ``classic`` or ``consumer``.
        topics: its subscription; None: not reported now (a classic group that rebalances).
        owned: the partitions that the coordinator assigned to it; empty while they are not reported.
    """

    protocol: str
    topics: frozenset[str] | None = None
    owned: frozenset[TopicPartition] = frozenset()


@dataclass(frozen=True)
class GroupDescription:
    """A group as its coordinator describes it.

    Attributes:
        protocol: ``classic`` or ``consumer``; empty: there is no such group.
        assignor: the one that its members agreed on, or that the brokers use; empty: none now.
        members: by member id.
    """

    protocol: str = ""
    assignor: str = ""
    members: Mapping[str, GroupMember] = field(default_factory=dict)
