"""Indices of the small tables, each built once, on first use. Pure."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from fencepost.checkers.tables.base import BaseTables
from fencepost.checkers.tables.committed import Committed
from fencepost.checkers.tables.effects import Effect, by_key, by_tp, offsets_of
from fencepost.checkers.tables.interval_index import IntervalIndex
from fencepost.checkers.tables.paused import PausedInterval
from fencepost.checkers.tables.processing_rules import Inferred
from fencepost.checkers.tables.requests import Heartbeat, Request, writers
from fencepost.checkers.tables.rows import (
    FOREVER,
    AssignmentChange,
    Commit,
    DeclaredAction,
    Interval,
    Life,
    MemberRemoval,
    OffsetCommit,
    Rebalance,
    Window,
)
from fencepost.checkers.tables.seeks import Seek
from fencepost.model import TopicPartition


@dataclass(frozen=True)
class Indexes(BaseTables):
    """The small tables of one run with their indices."""

    @cached_property
    def tp_of(self) -> Mapping[TopicPartition, int]:
        """The numbers of partitions by their names."""
        return {partition.name: tp for tp, partition in self.partitions.items()}

    @cached_property
    def interval(self) -> Mapping[tuple[str, int, int], Interval]:
        """Assignment intervals by (incarnation, tp, number)."""
        return {(i.incarnation, i.tp, i.number): i for i in self.intervals}

    @cached_property
    def intervals_of(self) -> IntervalIndex[tuple[str, int], Interval]:
        """Assignment intervals by (incarnation, tp), in the order of time; in force while the ownership is possible."""
        return IntervalIndex(self.intervals, lambda i: (i.incarnation, i.tp), lambda i: i.possible)

    @cached_property
    def intervals_by_begin(self) -> Mapping[tuple[str, int], Sequence[Interval]]:
        """Assignment intervals by (incarnation, tp), in the order of the starts of their assigned callbacks."""
        return {key: sorted(rows, key=_assigned_begin_ns) for key, rows in self.intervals_of.items()}

    def last_assigned(self, incarnation: str, tp: int, until_ns: int) -> Interval | None:
        """The last interval of an incarnation and partition whose assigned callback had begun by ``until_ns``."""
        rows = self.intervals_by_begin.get((incarnation, tp), ())
        place = bisect_right(rows, until_ns, key=_assigned_begin_ns)
        return rows[place - 1] if place else None

    @cached_property
    def intervals_by_tp(self) -> IntervalIndex[int, Interval]:
        """Assignment intervals by partition; in force while the ownership is possible."""
        return IntervalIndex(self.intervals, lambda i: i.tp, lambda i: i.possible)

    @cached_property
    def certain_by_tp(self) -> IntervalIndex[int, Interval]:
        """The intervals with a certain ownership, by partition; in force while the ownership is certain."""
        return IntervalIndex(
            (i for i in self.intervals if i.certain.length_ns > 0), lambda i: i.tp, lambda i: i.certain
        )

    @cached_property
    def intervals_by_incarnation(self) -> IntervalIndex[str, Interval]:
        """All intervals by incarnation, in the order of (tp, time); in force while the ownership is possible."""
        return IntervalIndex(self.intervals, lambda i: i.incarnation, lambda i: i.possible)

    @cached_property
    def commits_of(self) -> IntervalIndex[tuple[str, int], Commit]:
        """The commits that members report, by (incarnation, tp), in the order of their starts."""
        rows = sorted(self.commits, key=lambda c: c.begin_ns)
        return IntervalIndex(rows, lambda c: (c.incarnation, c.tp), lambda c: Window(c.begin_ns, c.begin_ns))

    @cached_property
    def commits_by_tp(self) -> IntervalIndex[int, Commit]:
        """The commits that members report, by partition, in the order of the table."""
        return IntervalIndex(self.commits, lambda c: c.tp, lambda c: Window(c.begin_ns, c.begin_ns))

    @cached_property
    def highest_tried(self) -> Mapping[int, int]:
        """The greatest offset that any member tried to commit, with any outcome, by partition."""
        return {tp: max(c.offset for c in rows) for tp, rows in self.commits_by_tp.items()}

    @cached_property
    def accepted_of(self) -> IntervalIndex[int, OffsetCommit]:
        """Accepted commits by partition, in the order of the coordinator's log; in force when possibly written."""
        return IntervalIndex(self.accepted, lambda a: a.tp, lambda a: a.written)

    @cached_property
    def given_of(self) -> IntervalIndex[int, AssignmentChange]:
        """The coordinator's changes of owners by partition, in the order of its log; in force when possibly written."""
        return IntervalIndex(self.given, lambda g: g.tp, _written)

    @cached_property
    def gone_of(self) -> IntervalIndex[str, MemberRemoval]:
        """The removals from the group by member id, in the order of the log; in force when possibly written."""
        return IntervalIndex(self.gone, lambda g: g.member_id, _written)

    @cached_property
    def gone_by_incarnation(self) -> IntervalIndex[str, MemberRemoval]:
        """The removals from the group by incarnation (empty: unknown)."""
        return IntervalIndex(self.gone, lambda g: g.incarnation, _written)

    @cached_property
    def seeks_of(self) -> IntervalIndex[tuple[str, int], Seek]:
        """When programs moved their positions, by (incarnation, tp)."""
        return IntervalIndex(self.seeks, lambda s: (s.incarnation, s.tp), lambda s: Window(s.begin_ns, s.begin_ns))

    @cached_property
    def paused_of(self) -> IntervalIndex[tuple[str, int], PausedInterval]:
        """When programs had paused partitions, by (incarnation, tp)."""
        return IntervalIndex(self.paused, lambda p: (p.incarnation, p.tp), lambda p: p.window)

    @cached_property
    def returns_of(self) -> IntervalIndex[tuple[str, int], Seek]:
        """When programs moved their positions back because their transactions were aborted, by (incarnation, tp)."""
        aborted = (seek for seek in self.seeks if seek.aborted)
        return IntervalIndex(aborted, lambda s: (s.incarnation, s.tp), lambda s: Window(s.begin_ns, s.begin_ns))

    @cached_property
    def moves_of(self) -> IntervalIndex[tuple[str, int], Seek]:
        """When programs moved their positions for another reason, by (incarnation, tp)."""
        moves = (seek for seek in self.seeks if not seek.aborted)
        return IntervalIndex(moves, lambda s: (s.incarnation, s.tp), lambda s: Window(s.begin_ns, s.begin_ns))

    @cached_property
    def moves_by_tp(self) -> IntervalIndex[int, Seek]:
        """The moves of ``moves_of`` by partition."""
        moves = (seek for seek in self.seeks if not seek.aborted)
        return IntervalIndex(moves, lambda s: s.tp, lambda s: Window(s.begin_ns, s.begin_ns))

    @cached_property
    def rounds_of(self) -> IntervalIndex[str, tuple[str, Rebalance]]:
        """The rebalances by incarnation, in the order of the coordinator's log; a window ends with the *generation*."""
        joined = ((incarnation, one) for one in self.rounds for incarnation in one.members)
        return IntervalIndex(joined, lambda row: row[0], lambda row: Window(0, row[1].generation))

    @cached_property
    def begins(self) -> Sequence[tuple[int, int]]:
        """(begin_ns, uncertainty_ns) of each rebalance, ascending. If no rebalance is recorded: of each assignment."""
        rounds = [(r.begin_ns, r.uncertainty_ns) for r in self.rounds]
        return sorted(rounds or ((i.assigned_begin_ns, 0) for i in self.intervals))

    @cached_property
    def rounds_by_generation(self) -> IntervalIndex[None, tuple[int, Rebalance]]:
        """The rebalances by generation, each with its index in ``rounds``."""
        return IntervalIndex(
            enumerate(self.rounds), _single_key, lambda row: Window(row[1].generation, row[1].generation)
        )

    @cached_property
    def rounds_by_begin(self) -> IntervalIndex[None, tuple[int, Rebalance]]:
        """The rebalances, each with its index; a window is from the start of a rebalance (ns) to its *generation*."""
        return IntervalIndex(
            enumerate(self.rounds), _single_key, lambda row: Window(row[1].begin_ns, row[1].generation)
        )

    @cached_property
    def regrouped(self) -> IntervalIndex[None, Window]:
        """When the members of the group, their subscriptions, or the existing partitions may have changed."""
        lives = self.lives.values()
        created: dict[int, Window] = {}
        for at_ns, blur_ns, tp, _ in self.leaders:
            created.setdefault(tp, Window.around(at_ns, blur_ns))
        started = (Window(life.started_ns, life.started_ns) for life in lives)
        ended = (Window(life.last_sign_ns, life.ended_ns) for life in lives if life.ended_ns)
        subscribed = (window for life in lives for window in life.subscribed)
        renewed = (Window(act.begin_ns, act.end_ns) for act in self.acts if act.skipped >= 0)
        changes = [*map(_written, self.gone), *started, *ended, *subscribed, *created.values(), *renewed]
        return IntervalIndex(changes, _single_key, lambda window: window)

    @cached_property
    def alive(self) -> IntervalIndex[None, Life]:
        """When incarnations lived."""
        return IntervalIndex(self.lives.values(), _single_key, lambda life: life.alive)

    @cached_property
    def stalled(self) -> IntervalIndex[None, Window]:
        """When the host stood still."""
        return IntervalIndex(self.stalls, _single_key, lambda stall: stall)

    @cached_property
    def heartbeats_of(self) -> IntervalIndex[str, Heartbeat]:
        """The accepted heartbeats by incarnation, in the order in which brokers received them."""
        return IntervalIndex((h for h in self.heartbeats if h.accepted), lambda h: h.incarnation, lambda h: h.served)

    @cached_property
    def heard_of(self) -> IntervalIndex[str, Heartbeat]:
        """All heartbeats by incarnation, also heartbeats that the coordinator answered with a request to rejoin."""
        return IntervalIndex(self.heartbeats, lambda h: h.incarnation, lambda h: h.served)

    @cached_property
    def writer_of(self) -> Mapping[int, str]:
        """The incarnation that wrote each accepted commit, by its order in the log, if the writer is certain."""
        return writers(self.accepted, self.asked_commits)

    @cached_property
    def asked_by_tp(self) -> IntervalIndex[int, Request]:
        """The requests to commit by partition, in the order in which brokers received them."""
        return IntervalIndex(self.asked_commits, lambda r: r.tp, lambda r: r.received)

    @cached_property
    def committed(self) -> Mapping[int, Committed]:
        """The committed offsets by partition."""
        return {tp: Committed(rows) for tp, rows in self.accepted_of.items()}

    @cached_property
    def fetched_of(self) -> IntervalIndex[tuple[str, int], Request]:
        """Answered fetches of offsets by (incarnation, tp), in the order of time; in force while they were served."""
        return IntervalIndex(self.fetched, lambda f: (f.incarnation, f.tp), lambda f: f.served)

    @cached_property
    def fetched_by_tp(self) -> IntervalIndex[int, Request]:
        """Answered fetches of offsets by partition, in the order of time; in force while they were served."""
        return IntervalIndex(self.fetched, lambda f: f.tp, lambda f: f.served)

    @cached_property
    def affected(self) -> Mapping[int, frozenset[int]]:
        """The offsets of the records that have an effect, by partition."""
        return offsets_of(self.effects)

    @cached_property
    def inferred_of(self) -> Mapping[tuple[str, int], list[Inferred]]:
        """The inferences of the rules of processing, by (incarnation, tp)."""
        found: dict[tuple[str, int], list[Inferred]] = {}
        for one in self.inferred:
            found.setdefault((one.incarnation, one.tp), []).append(one)
        return found

    @cached_property
    def buried(self) -> Mapping[int, frozenset[int]]:
        """The offsets of the records that have a dead letter, by partition."""
        return offsets_of(self.dead_letters)

    @cached_property
    def copies_of(self) -> Mapping[int, list[Effect]]:
        """The copies of re-queued records by partition, in the order of the table."""
        return by_tp(self.copies)

    @cached_property
    def requeued(self) -> Mapping[int, frozenset[int]]:
        """The offsets of the records that have a copy, by partition."""
        return offsets_of(self.copies)

    @cached_property
    def letters_of(self) -> Mapping[int, list[Effect]]:
        """The dead letters and copies of records with a key, by partition, in the order of time."""
        return by_key((*self.dead_letters, *self.copies))

    @cached_property
    def of_static_id(self) -> Mapping[str, list[Life]]:
        """The lives of each static id, in the order of their starts."""
        found: dict[str, list[Life]] = {}
        for life in sorted(self.lives.values(), key=lambda life: life.started_ns):
            if life.instance_id:
                found.setdefault(life.instance_id, []).append(life)
        return found

    @cached_property
    def first_of(self) -> Mapping[str, str]:
        """The first life of each static id, by each incarnation of that id."""
        return {life.incarnation: lives[0].incarnation for lives in self.of_static_id.values() for life in lives}

    @cached_property
    def acts_of(self) -> Mapping[int, list[DeclaredAction]]:
        """The declared acts by partition, in the order of the table; -1: acts on all partitions."""
        found: dict[int, list[DeclaredAction]] = {}
        for act in self.acts:
            found.setdefault(act.tp, []).append(act)
        return found

    @cached_property
    def without_leader(self) -> IntervalIndex[int, tuple[int, Window]]:
        """The times without a leader by partition: from each change to no leader until the next change."""
        found, since = [], dict[int, int]()
        for at_ns, blur_ns, tp, leader in self.leaders:
            if tp in since:
                found.append((tp, Window(since.pop(tp), at_ns + blur_ns)))
            if leader < 0:
                since[tp] = at_ns - blur_ns
        found += [(tp, Window(begin_ns, FOREVER)) for tp, begin_ns in since.items()]
        return IntervalIndex(found, lambda gap: gap[0], lambda gap: gap[1])


def _single_key(_: object) -> None:
    """The only key of an index that needs no keys."""


def _assigned_begin_ns(interval: Interval) -> int:
    return interval.assigned_begin_ns


def _written(record: AssignmentChange | MemberRemoval) -> Window:
    """When a record of the coordinator was written."""
    return Window.around(record.at_ns, record.uncertainty_ns)
