"""The rows that checkers look at: one frozen type per table, times in nanoseconds of ``CLOCK_MONOTONIC``, 0 = never.

``tp`` is the number of a topic-partition, ``incarnation`` one life of a member (``member-2.1``). A time that came from
a broker carries its uncertainty: the fact lies somewhere in ``at_ns ± uncertainty_ns``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from fencepost.history.events import Interval as Interval
from fencepost.history.events import Life as Life
from fencepost.history.events import Step as Step
from fencepost.history.windows import FOREVER as FOREVER
from fencepost.history.windows import NS as NS
from fencepost.history.windows import Window as Window
from fencepost.model import TopicPartition


@dataclass(frozen=True)
class Partition:
    """One topic-partition; at the audit its log held ``log_start`` to before ``log_end`` (-1: not known). ``gone``: it
    was deleted, and another one has its name."""

    tp: int
    name: TopicPartition
    log_start: int = 0
    log_end: int = -1
    gone: bool = False


class Commit(NamedTuple):
    """One commit of one partition as the member saw it; ``offset`` is the next offset to read.

    ``asked``: of a commit of what the client had stored, the offset that it had when the program asked for it, -1: none
    that is known; None: the program named the offset. What is stored until the client gets to it is committed, too.
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
        """Whether nobody knows when it was begun: the client made it by itself, or does not say which one of the
        program's it answers, of those of what it has stored that nobody waits for."""
        return self.mode == "auto" or (self.mode == "async" and self.asked is not None)


class OffsetCommit(NamedTuple):
    """One record of ``__consumer_offsets``: the committed offset from here on, -1 when it was deleted.

    ``answered_ns``: when a member had the answer "ok" to exactly this commit. Only from then on it is certain that
    whoever fetches the offset gets it (an appended commit is invisible until it is replicated); 0: never known.
    ``transactional``: a transaction made it, and it came into force with the end of that.
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
        """In which time it was written."""
        return Window.around(self.at_ns, self.uncertainty_ns)


class Expiry(NamedTuple):
    """The coordinator deleted a committed offset by itself, as nobody had needed it for longer than it is kept.

    ``offset``: which was committed until then; ``order``: of the record that deletes it.
    """

    offset: int
    order: int
    at_ns: int
    written: Window


class AssignmentChange(NamedTuple):
    """From this record on the partition was ``member_id``'s (empty: nobody's), the id of ``incarnation`` (or empty)."""

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
    """The leader of a partition changed; -1: it had none from then on."""

    at_ns: int
    uncertainty_ns: int
    tp: int
    leader: int


class CoordinatorChange(NamedTuple):
    """A broker became the group's coordinator, as the leader of its partition of the offsets topic, until another one
    did (FOREVER: none did); -1: there was none.

    Attributes:
        log_end, high_watermark: of its log of that partition then, as it tells; -1: not known.
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
    """A callback told a member to give up a partition that it did not have."""

    tp: int
    incarnation: str
    window: Window


class Rebalance(NamedTuple):
    """One completed rebalance: a generation (classic) or group epoch; ``restarted``: of a group deleted or empty
    before."""

    term: int
    generation: int
    begin_ns: int
    end_ns: int
    members: tuple[str, ...] = ()
    reason: str = ""
    uncertainty_ns: int = 0
    restarted: bool = False


class DeclaredAction(NamedTuple):
    """A declared act, which excuses what comes of it until ``end_ns``; ``tp`` -1 concerns every partition.
    ``skipped``: it made the partition for another one, whose positions may have led past so many records; else -1."""

    what: str
    tp: int
    begin_ns: int
    end_ns: int = FOREVER
    skipped: int = -1


@dataclass(frozen=True)
class Damage:
    """A part of the history that is missing or cannot be trusted; ``part`` is one of ``tables.PARTS``.

    ``place``: it hurts only what is told of these offsets of a partition; None: nobody knows what it hurts.
    """

    part: str
    file: str
    what: str
    place: tuple[TopicPartition, range] | None = None

    def __str__(self) -> str:
        return f"{self.file}: {self.what}" if self.file else self.what
