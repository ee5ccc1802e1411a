"""The rows that checkers look at: one frozen type per table, times in nanoseconds of ``CLOCK_MONOTONIC``, 0 = never.

``tp`` is the number of a topic-partition, ``incarnation`` one life of a member (``member-2.1``). A time that came from
a broker carries its uncertainty: the fact lies somewhere in ``at_ns ± uncertainty_ns``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from fencepost.checkers.tables.windows import FOREVER as FOREVER
from fencepost.checkers.tables.windows import NS as NS
from fencepost.checkers.tables.windows import Window as Window
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


@dataclass(frozen=True)
class Life:
    """One incarnation. ``how`` it ended: closed or killed by the harness, crashed by itself; empty: it lives on.

    Attributes:
        last_sign_ns: its last own event. ended_ns: its process was reaped. paused: when it was proven to stand still.
        instance_id: its static id. fatal: the error for which its client gave up. signal: what ended it. Empty: none.
        unpolled: from one poll to the next where that took over 1 s, and from the last one to its end.
        subscribed: when it changed what it subscribes to.
        asked_ns: when the harness asked a black box to end.
        forked: whether its consumer was polled in a process that was forked from its own, where nothing can come.
    """

    incarnation: str
    member: int = -1
    slot: int = -1
    started_ns: int = 0
    ended_ns: int = 0
    how: str = ""
    last_sign_ns: int = 0
    paused: tuple[Window, ...] = ()
    instance_id: str = ""
    fatal: str = ""
    signal: str = ""
    unpolled: tuple[Window, ...] = ()
    subscribed: tuple[Window, ...] = ()
    asked_ns: int = 0
    forked: bool = False

    @property
    def alive(self) -> Window:
        """From its start to its end."""
        return Window(self.started_ns, self.ended_ns or FOREVER)


class Interval(NamedTuple):
    """One assignment interval, by the member's own callbacks. It certainly owned the partition from ``assigned_end_ns``
    to ``given_up_begin_ns`` and possibly from ``assigned_begin_ns`` to ``given_up_end_ns``.

    Attributes:
        number: counts the intervals of (incarnation, tp) from 0; rows name them.
        how: revoked, lost, closed, died, or reassigned (assigned again before it was given up); empty: nobody saw its
            end. Then ``given_up_begin_ns`` is the member's last sign and ``given_up_end_ns`` is 0.
    """

    tp: int
    incarnation: str
    number: int
    generation: int
    member_id: str
    assigned_begin_ns: int
    assigned_end_ns: int
    given_up_begin_ns: int = 0
    given_up_end_ns: int = 0
    how: str = ""

    @property
    def certain(self) -> Window:
        """When it certainly owned the partition; empty when its assigned callback never returned."""
        if not self.assigned_end_ns:
            return Window(0, 0)
        return Window(self.assigned_end_ns, self.given_up_begin_ns)

    @property
    def possible(self) -> Window:
        """When it may have owned the partition."""
        return Window(self.assigned_begin_ns, self.given_up_end_ns if self.how else FOREVER)

    def possible_at(self, at_ns: int) -> bool:
        """Whether it may have owned the partition at ``at_ns``."""
        return self.possible.begin_ns <= at_ns <= self.possible.end_ns


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


class Accepted(NamedTuple):
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


class Given(NamedTuple):
    """From this record on the partition was ``member_id``'s (empty: nobody's), the id of ``incarnation`` (or empty)."""

    tp: int
    order: int
    at_ns: int
    uncertainty_ns: int
    member_id: str
    incarnation: str


class Gone(NamedTuple):
    """The coordinator's records show that a member id is no longer in the group (removed, replaced or left)."""

    member_id: str
    incarnation: str
    order: int
    at_ns: int
    uncertainty_ns: int


class Led(NamedTuple):
    """The leader of a partition changed; -1: it had none from then on."""

    at_ns: int
    uncertainty_ns: int
    tp: int
    leader: int


class Seat(NamedTuple):
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


class Doubled(NamedTuple):
    """After one record batch of the coordinator the partition belonged to more than one member id."""

    tp: int
    at_ns: int
    incarnations: tuple[str, ...]


class Stray(NamedTuple):
    """A callback told a member to give up a partition that it did not have."""

    tp: int
    incarnation: str
    window: Window


class Round(NamedTuple):
    """One completed rebalance: a generation (classic) or group epoch; ``anew``: of a group deleted or empty before."""

    term: int
    generation: int
    begin_ns: int
    end_ns: int
    members: tuple[str, ...] = ()
    reason: str = ""
    uncertainty_ns: int = 0
    anew: bool = False


@dataclass(frozen=True)
class Step:
    """One fault step as it went. ``begun_ns``: the inject call; ``proven_ns``: the effect was certainly there;
    ``undone_ns``: the undo call; ``healed_ns``: the effect was certainly gone; ``impact``: see ``model.impact``."""

    step: int
    fault: str
    target: str = ""
    members: tuple[str, ...] = ()
    brokers: tuple[int, ...] = ()
    expect: str = ""
    required: bool = True
    heals: bool = False
    begun_ns: int = 0
    proven_ns: int = 0
    undone_ns: int = 0
    healed_ns: int = 0
    evidence: str = ""
    heal_evidence: str = ""
    skipped: str = ""
    impact: frozenset[str] = frozenset()

    @property
    def in_effect(self) -> Window:
        """From its begin to when it was certainly over; it must have begun."""
        over_ns = (self.healed_ns or FOREVER) if self.heals else max(self.begun_ns, self.proven_ns)
        return Window(self.begun_ns, over_ns)

    @property
    def name(self) -> str:
        """``step 3 (pause)``."""
        return f"step {self.step} ({self.fault})"


class Act(NamedTuple):
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
