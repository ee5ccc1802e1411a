"""A snapshot of a group's members and coordinator, from which protocol states are read; and what a state is."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import ClassVar, Protocol, runtime_checkable

from fencepost.interfaces import Target


@dataclass(frozen=True)
class MemberStatus:
    """The status of one member, by its own events. Times are monotonic nanoseconds; 0: never.

    Attributes:
        disturbed: a fault acts on it.
        open: kinds of events that have begun and not ended, with the time of their beginning.
        ended: kinds of events that have ended, with the time when the last of them began.
        lost_ns: when it last received its partitions as lost.
        ids: its member ids so far.
        consumers: the incarnations in its process; none: this one.
    """

    index: int
    incarnation: str
    alive: bool
    disturbed: bool = False
    open: Mapping[str, int] = field(default_factory=dict)
    lost_ns: int = 0
    ids: frozenset[str] = frozenset()
    consumers: tuple[str, ...] = ()
    ended: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class CoordinatorStatus:
    """The group's status in the brokers' logs. Times are monotonic nanoseconds, to the millisecond; 0: not, or never.

    Attributes:
        broker: the last broker that logged something about the group.
        joining_ns: since when the coordinator waits for members to join.
        syncing_ns: since when it waits for the leader's assignment.
        rebalanced_ns: when it last began a new generation or epoch.
        loading: brokers that load the group's partition of ``__consumer_offsets``, and since when.
        loaded: brokers that have loaded it, and when they last began to.
        removed: member ids that it removed from the group, and when.
    """

    broker: int = -1
    joining_ns: int = 0
    syncing_ns: int = 0
    rebalanced_ns: int = 0
    loading: Mapping[int, int] = field(default_factory=dict)
    loaded: Mapping[int, int] = field(default_factory=dict)
    removed: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class GroupSnapshot:
    """The group at one moment. ``coordinator``: None where logs are hidden; ``silent``: members report nothing."""

    members: tuple[MemberStatus, ...]
    coordinator: CoordinatorStatus | None
    silent: bool = False


@dataclass(frozen=True)
class StateMatch:
    """A state that holds or was reached: since when, and its members or brokers (``incarnations``: of its members).
    ``over``: it no longer holds; it began and ended between two looks."""

    since_ns: int
    target: Target
    incarnations: tuple[str, ...] = ()
    over: bool = False


@runtime_checkable
class ProtocolState(Protocol):
    """A frozen dataclass. ``needs``: abilities of a back-end; ``hits``: whether members or brokers are in the state."""

    needs: ClassVar[frozenset[str]]
    hits: ClassVar[str]

    def seen(self, signs: GroupSnapshot, since_ns: int, among: Collection[int] = ()) -> StateMatch | None:
        """The state, if it holds now or was reached since ``since_ns``; the latest where there are several.

        Args:
            among: only of these members; empty: of all that no fault acts on.
        """
