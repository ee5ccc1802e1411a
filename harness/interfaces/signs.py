"""What tells of the states that a group is in: one look at its members and its coordinator; and what a state is."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import ClassVar, Protocol, runtime_checkable

from fencepost.interfaces import Target


@dataclass(frozen=True)
class MemberSigns:
    """What one member told. Times are monotonic nanoseconds; 0: never.

    Attributes:
        disturbed: a fault has it in its hands.
        open: kinds of events that have begun and not ended, and since when.
        ended: kinds of events that have ended, and when the last of them began.
        lost_ns: when it was last told that its partitions are lost.
        ids: its member ids so far.
        consumers: the incarnations that are in its process; none: this one.
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
class CoordinatorSigns:
    """What the brokers' logs tell of the group. Times are monotonic nanoseconds, to the millisecond; 0: not, or never.

    Attributes:
        broker: who last wrote of the group.
        joining_ns: since when the coordinator waits for members to join.
        syncing_ns: since when it waits for the leader's assignment.
        rebalanced_ns: when it last began a new generation or epoch.
        loading: brokers that load the group's partition of ``__consumer_offsets``, and since when.
        loaded: those that have done so, and since when they did the last time.
        removed: member ids that it put out of the group, and when.
    """

    broker: int = -1
    joining_ns: int = 0
    syncing_ns: int = 0
    rebalanced_ns: int = 0
    loading: Mapping[int, int] = field(default_factory=dict)
    loaded: Mapping[int, int] = field(default_factory=dict)
    removed: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class Signs:
    """The group at one moment. ``coordinator``: None where brokers show no logs; ``silent``: members tell nothing."""

    members: tuple[MemberSigns, ...]
    coordinator: CoordinatorSigns | None
    silent: bool = False


@dataclass(frozen=True)
class Occurrence:
    """A state that is so, or has come: since when, and who is in it (``incarnations``: the lives of its members).
    ``over``: it lasts no longer; it came and went between two looks."""

    since_ns: int
    target: Target
    incarnations: tuple[str, ...] = ()
    over: bool = False


@runtime_checkable
class State(Protocol):
    """A frozen dataclass. ``needs``: abilities of a back-end; ``hits``: whether members or brokers are in it."""

    needs: ClassVar[frozenset[str]]
    hits: ClassVar[str]

    def seen(self, signs: Signs, since_ns: int, among: Collection[int] = ()) -> Occurrence | None:
        """The state, if it is so now, or has come since ``since_ns``; the latest where there are several.

        Args:
            among: only of these members; empty: of all that no fault has in its hands.
        """
