"""The rows of the tables: one frozen type per table, times in nanoseconds of ``CLOCK_MONOTONIC``, 0 = never.

``tp`` is the number of a topic-partition, ``incarnation`` one life of a member (``member-2.1``). A time from a broker
has an uncertainty: the true time is in ``at_ns ± uncertainty_ns``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from fencepost.history.events import Interval as Interval
from fencepost.history.events import Life as Life
from fencepost.history.events import PerformedStep as PerformedStep
from fencepost.history.windows import FOREVER as FOREVER
from fencepost.history.windows import NS as NS
from fencepost.history.windows import Window as Window
from fencepost.model import TopicPartition


@dataclass(frozen=True)
class Partition:
    """One topic-partition; at the audit its log held offsets from ``log_start`` to before ``log_end`` (-1: unknown).

    ``gone``: it was deleted and recreated, so another partition has its name."""

    tp: int
    name: TopicPartition
    log_start: int = 0
    log_end: int = -1
    gone: bool = False


class Commit(NamedTuple):
    """One commit of one partition as the member saw it; ``offset`` is the next offset to read.

    ``asked``: for a commit of stored offsets, the stored offset when the program requested the commit (-1: unknown);
    None: the program named the offset. The client also commits offsets that are stored after the request, until it
    sends the commit.
    """

    tp: int
    offset: int
    incarnation: str
    member_id: str
    generation: int
    begin_ns: int
    end_ns: int
    outcome: str
    error: str = ""
    mode: str = ""
    asked: int | None = None

    @property
    def untimed(self) -> bool:
        """Whether its start is unknown: it is an automatic commit, or an asynchronous commit of stored offsets. For the
        latter, the client does not say which request of the program it answers."""
        return self.mode == "auto" or (self.mode == "async" and self.asked is not None)


class OffsetCommit(NamedTuple):
    """One record of ``__consumer_offsets``: the committed offset from here on; -1: the committed offset was deleted.

    ``answered_ns``: when a member had received "ok" for exactly this commit; 0: unknown. Only from then on every fetch
    certainly returns it, since an appended commit is invisible until it is replicated. ``transactional``: the commit
    belongs to a transaction, and came into force with the end of the transaction.
    """

    tp: int
    offset: int
    order: int
    at_ns: int
    uncertainty_ns: int = 0
    answered_ns: int = 0
    transactional: bool = False

    @property
    def written(self) -> Window:
        """The time in which it was written."""
        return Window.around(self.at_ns, self.uncertainty_ns)


class Expiry(NamedTuple):
    """The coordinator deleted a committed offset because its retention time was over.

    ``offset``: the committed offset until then; ``order``: the order of the record that deletes it.
    """

    offset: int
    order: int
    at_ns: int
    written: Window


class AssignmentChange(NamedTuple):
    """From this record on ``member_id`` owned the partition (empty: no member). Its ``incarnation`` may be unknown
    (empty)."""

    tp: int
    order: int
    at_ns: int
    uncertainty_ns: int
    member_id: str
    incarnation: str


class MemberRemoval(NamedTuple):
    """The coordinator's records show that a member id is no longer in the group (removed, replaced or left)."""

    member_id: str
    incarnation: str
    order: int
    at_ns: int
    uncertainty_ns: int


class LeaderChange(NamedTuple):
    """The leader of a partition changed; -1: the partition had no leader from then on."""

    at_ns: int
    uncertainty_ns: int
    tp: int
    leader: int


class CoordinatorChange(NamedTuple):
    """A broker became the group's coordinator, as the leader of the group's partition of the offsets topic.

    Attributes:
        leader: the broker; -1: there was no leader.
        until_ns: when the leader changed next; FOREVER: never.
        log_end, high_watermark: the state of the broker's log of that partition then, as reported; -1: unknown.
    """

    at_ns: int
    uncertainty_ns: int
    leader: int
    until_ns: int = FOREVER
    log_end: int = -1
    high_watermark: int = -1


class DoubleAssignment(NamedTuple):
    """After one record batch of the coordinator the partition belonged to more than one member id."""

    tp: int
    at_ns: int
    incarnations: tuple[str, ...]


class UnmatchedRevocation(NamedTuple):
    """A revoked or lost callback for a partition that the member did not own."""

    tp: int
    incarnation: str
    window: Window


class Rebalance(NamedTuple):
    """One completed rebalance: a generation (classic) or group epoch; ``restarted``: the group had been deleted or
    empty before."""

    term: int
    generation: int
    begin_ns: int
    end_ns: int
    members: tuple[str, ...] = ()
    reason: str = ""
    uncertainty_ns: int = 0
    restarted: bool = False


class DeclaredAction(NamedTuple):
    """A declared act, which excuses its consequences until ``end_ns``; ``tp`` -1: it concerns every partition.

    ``skipped``: the act recreated the partition, and positions in the former partition may have skipped so many of its
    records; -1: the act did not recreate the partition."""

    what: str
    tp: int
    begin_ns: int
    end_ns: int = FOREVER
    skipped: int = -1


@dataclass(frozen=True)
class Damage:
    """A part of the history that is missing or cannot be trusted; ``part`` is one of ``tables.PARTS``.

    ``place``: the damage concerns only these offsets of a partition; None: its extent is unknown.
    """

    part: str
    file: str
    what: str
    place: tuple[TopicPartition, range] | None = None

    def __str__(self) -> str:
        return f"{self.file}: {self.what}" if self.file else self.what
