"""The small tables of one run, and the questions that rules ask of them, each answered in logarithmic time. Pure.

What was in force when is asked of ``Spans``.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise, zip_longest

from fencepost.checkers.tables.answers import Stale, by_asker, stale
from fencepost.checkers.tables.indexes import Indexes
from fencepost.checkers.tables.requests import Request
from fencepost.checkers.tables.rows import (
    FOREVER,
    AssignmentChange,
    Commit,
    DeclaredAction,
    Expiry,
    Interval,
    MemberRemoval,
    OffsetCommit,
    Rebalance,
    Window,
)
from fencepost.checkers.tables.seeks import Seek
from fencepost.checkers.tables.stable_periods import StablePeriod, stable_periods


@dataclass(frozen=True)
class Tables(Indexes):
    """The small tables of one run: ``BaseTables`` names them, ``Indexes`` looks them up."""

    def rounds_from(self, first: int, last: int, until_ns: int) -> list[Rebalance]:
        """The rounds from generation ``first`` up to ``last``, and later ones if they began by ``until_ns``."""
        upto = self.rounds_by_generation.meeting(None, Window(first, last))
        beyond = self.rounds_by_begin.meeting(None, Window(max(first, last + 1), until_ns))
        return [one for _, one in sorted([*upto, *beyond], key=lambda row: row[0])]

    def host_stalled(self, window: Window) -> bool:
        """Whether the host stood still at some moment of a window."""
        return any(True for _ in self.stalled.meeting(None, window))

    def writer(self, commit: OffsetCommit) -> str:
        """The incarnation that wrote an accepted commit; empty when that is not certain."""
        return self.writer_of.get(commit.order, "")

    def commits_in(self, interval: Interval) -> list[Commit]:
        """The commits of an interval's partition that its incarnation began while it may have owned it, by begin."""
        return [*self.commits_of.meeting((interval.incarnation, interval.tp), interval.possible)]

    def sent_ns(self, commit: Commit) -> int:
        """The latest moment at which the client may have decided what a commit is of.

        It is when the program asked for it. Where the client took what was stored since, it is when the coordinator had
        written that, or when the answer was told.
        """
        if commit.asked is None or commit.offset <= commit.asked:
            return commit.begin_ns
        asking = Window(commit.begin_ns, commit.end_ns or FOREVER)
        written = self.accepted_of.meeting(commit.tp, asking)
        last_ns = max((a.written.end_ns for a in written if a.offset == commit.offset), default=FOREVER)
        return min(asking.end_ns, last_ns)

    @cached_property
    def stale(self) -> Mapping[Request, Stale]:
        """The answers of coordinators that were older than they may be."""
        return stale(self)

    @cached_property
    def stale_of(self) -> Mapping[tuple[str, int], list[Stale]]:
        """The same by who asked, and partition, in the order of time."""
        return by_asker(self.stale)

    def moves_in(self, incarnation: str, tp: int, interval: Interval | None, until_ns: int = FOREVER) -> list[Seek]:
        """The moves of a program's position in an interval (None: in all of its life) up to a moment, by begin."""
        since = Window(interval.assigned_begin_ns if interval else 0, FOREVER)
        return [move for move in self.moves_of.meeting((incarnation, tp), since) if move.begin_ns <= until_ns]

    def by_seek(self, went: bool, excuse: str) -> tuple[str, str]:
        """Cause and excuse of what has one by something else, or comes of it that a program ``went`` elsewhere."""
        return ("seek", self.sought) if went and not excuse else ("", excuse)

    def left_behind(self, former: Interval) -> list[Seek]:
        """The moves of a program's position in an interval that is over: who owns the partition next begins there."""
        return self.moves_in(former.incarnation, former.tp, former, former.given_up_end_ns or FOREVER)

    def passing(self, tp: int) -> Iterator[tuple[Seek, Interval]]:
        """The moves of programs' positions that may have gone past records, each with the interval that it was in."""
        for seek in self.moves_by_tp.get(tp, ()):
            if interval := self.last_assigned(seek.incarnation, tp, seek.begin_ns):
                yield seek, interval

    def moves_over(self, tp: int, offset: int, window: Window) -> int:
        """How often programs moved their positions to a record or below it in a time: each time it may come again."""
        return sum(seek.offset <= offset for seek in self.moves_by_tp.meeting(tp, window))

    def log_start(self, tp: int) -> int:
        """Where the log of a partition began at the audit: what was below is deleted, and that is no loss."""
        return self.partitions[tp].log_start if tp in self.partitions else 0

    def log_end(self, tp: int) -> int:
        """Where it ended then; -1 when that is not known."""
        return self.partitions[tp].log_end if tp in self.partitions else -1

    def tombstone_gone(self, tp: int, by_ns: int) -> bool:
        """Whether a tombstone that was written by ``by_ns`` may be gone from a compacted log when the audit ended."""
        audited_ns = self.phases.get("audit", Window(0, 0)).end_ns
        return tp in self.compacted and by_ns + self.compacted[tp] < audited_ns

    def final_committed(self, tp: int) -> int:
        """The group's last committed offset of a partition; -1 when there is none."""
        rows = self.accepted_of.get(tp)
        return rows[-1].offset if rows else -1

    def committed_between(self, tp: int, from_ns: int, to_ns: int) -> tuple[int, ...]:
        """Every committed offset that somebody may have fetched between two moments; -1 stands for none.

        That is: the last one that was certainly in force at ``from_ns`` (a member had its "ok") and all that were
        appended, or may have been, after it and before ``to_ns``. Moments in the wrong order, which only a history that
        was tampered with has, are taken in the right one.
        """
        return self.committed[tp].between(from_ns, to_ns) if tp in self.committed else (-1,)

    @cached_property
    def expiries(self) -> Mapping[int, list[Expiry]]:
        """By partition when its committed offset expired; of few runs there is any.

        Kafka deletes the offset of a partition that no member of the group may need (classic: while the group is empty)
        when it was committed longer ago than ``offsets.retention.minutes``. So the coordinator's log deletes one that
        is as old, while that log gave the partition to nobody. Whoever deletes it else (an administrator, the end of
        the topic) may do so at any age; what the harness does is a declared act, which excuses more than this.
        """
        found: dict[int, list[Expiry]] = {}
        for tp, rows in self.accepted_of.items():
            for before, now in pairwise(rows):
                old = now.written.end_ns - before.written.begin_ns >= self.offsets_kept_ns
                if now.offset < 0 <= before.offset and old and not self._given_to(tp, now.order):
                    found.setdefault(tp, []).append(Expiry(before.offset, now.order, now.at_ns, now.written))
        return found

    def _given_to(self, tp: int, order: int) -> str:
        """The member id that had a partition before a record of the coordinator's log; empty: nobody."""
        given = self.given_of.get(tp, [])
        last = bisect_left(given, order, key=lambda g: g.order) - 1
        return given[last].member_id if last >= 0 else ""

    def expired(self, tp: int, offset: int, from_ns: int, to_ns: int) -> bool:
        """Whether a committed offset above this one may have expired between two moments."""
        between = Window(from_ns, to_ns)
        return any(e.offset > offset and e.written.meets(between) for e in self.expiries.get(tp, ()))

    def certain_owner(self, tp: int, at_ns: int) -> AssignmentChange | None:
        """The coordinator's record that gave the partition to whoever certainly had it at ``at_ns``.

        None when that is not certain: no record, a change within the uncertainty, nobody, or an unknown member id.
        """
        rows = self.given_of.get(tp, [])
        last = bisect_right(rows, at_ns, key=lambda g: g.at_ns - g.uncertainty_ns) - 1
        if last < 0 or rows[last].at_ns + rows[last].uncertainty_ns > at_ns or not rows[last].incarnation:
            return None
        return rows[last]

    def coordinator_owner(self, tp: int, at_ns: int) -> str:
        """Who certainly had a partition at a moment, by the coordinator's log; empty: nobody, or not certain."""
        given = self.certain_owner(tp, at_ns)
        return given.incarnation if given else ""

    def forked(self, incarnation: str) -> bool:
        """Whether its consumer was polled where nothing can come; see ``Life``."""
        return incarnation in self.lives and self.lives[incarnation].forked

    def unreachable_coordinator_owner(self, tp: int, at_ns: int) -> str:
        """Who certainly had a partition at a moment by the coordinator's log alone, as its consumer is ``forked``, and
        callbacks come from inside a poll; empty: nobody."""
        keeper = self.coordinator_owner(tp, at_ns)
        return keeper if self.forked(keeper) else ""

    def coordinator_owners(self, tp: int) -> Iterator[tuple[AssignmentChange, int]]:
        """The coordinator's records that gave a partition to somebody, in their order, each with the moment from which
        on another one may have had it; FOREVER: nobody had."""
        rows = self.given_of.get(tp, ())
        for given, after in zip_longest(rows, rows[1:]):
            if given.member_id:
                yield given, after.at_ns - after.uncertainty_ns if after else FOREVER

    def last_coordinator_owner(self, tp: int) -> str:
        """Who had a partition last, by the coordinator's log; empty: nobody that is known."""
        return next((given.incarnation for given in reversed(self.given_of.get(tp, [])) if given.incarnation), "")

    def last_silent_coordinator_owner(self, tp: int) -> str:
        """The same where callbacks do not tell it: of black boxes, and of who is ``forked``; empty: nobody."""
        last = self.last_coordinator_owner(tp)
        return last if self.black_box or self.forked(last) else ""

    def advances(self, tp: int) -> list[OffsetCommit]:
        """The commits that took a partition on, in the order of the coordinator's log: above all that were before them,
        since it was last taken back by a deletion or after a declared act."""
        found, high = list[OffsetCommit](), 0
        for row in self.accepted_of.get(tp, ()):
            if row.offset > high:
                found.append(row)
            if row.offset > high or row.offset < 0 or self.declared(tp, row.at_ns):
                high = max(0, row.offset)
        return found

    def one_owner(self, tp: int, *incarnations: str) -> str:
        """``one owner`` when these are one incarnation, which was assigned the partition once; else empty."""
        had = [i for i in self.intervals_by_tp.get(tp, ()) if i.incarnation == incarnations[0]]
        return "one owner" if len({*incarnations}) == len(had) == 1 else ""

    def paused_by(self, incarnation: str, tp: int, window: Window, bound_ns: int) -> bool:
        """Whether a time is no longer than a bound, without what the program had paused the partition of it."""
        paused = self.paused_of.meeting((incarnation, tp), window)
        return window.length_ns - sum(p.window.common(window).length_ns for p in paused) <= bound_ns

    def removed(self, interval: Interval, by_ns: int) -> MemberRemoval | None:
        """The coordinator's record that the owner of ``interval`` was gone during it, if possibly by ``by_ns``."""
        during = Window(interval.assigned_begin_ns, by_ns)
        if interval.member_id:
            found = self.gone_of.meeting(interval.member_id, during)
        else:
            found = self.gone_by_incarnation.meeting(interval.incarnation, during)
        return min(found, key=lambda g: g.order, default=None)

    def acts_on(self, tp: int) -> Sequence[DeclaredAction]:
        """The declared acts that concern the partition, as they began."""
        return sorted([*self.acts_of.get(tp, ()), *self.acts_of.get(-1, ())], key=lambda act: act.begin_ns)

    def declared(self, tp: int, by_ns: int) -> str:
        """The excuse by a declared act on the partition that began before ``by_ns``, and of which something may have
        come then; empty when there is none."""
        return next((f"declared act: {a.what}" for a in self.acts_on(tp) if a.begin_ns <= by_ns <= a.end_ns), "")

    def recreated(self, tp: int, by_ns: int) -> str:
        """The same of the act alone that made the partition in place of another one."""
        made = (act for act in self.acts_of.get(tp, ()) if act.skipped >= 0 and act.begin_ns <= by_ns <= act.end_ns)
        return next((f"declared act: {act.what}" for act in made), "")

    def passed_over(self, tp: int) -> tuple[int, str]:
        """Below which offset records of the partition may have been skipped for one that had its name; the excuse."""
        return max(((act.skipped, f"declared act: {act.what}") for act in self.acts_of.get(tp, ())), default=(0, ""))

    @cached_property
    def by_name(self) -> Tables:
        """The tables without the partitions that are gone: those of their names have all of their callbacks, too."""
        gone = {tp for tp, partition in self.partitions.items() if partition.gone}
        if not gone:
            return self
        there = {tp: partition for tp, partition in self.partitions.items() if tp not in gone}
        intervals = tuple(interval for interval in self.intervals if interval.tp not in gone)
        return replace(
            self, partitions=there, intervals=intervals, given=tuple(g for g in self.given if g.tp not in gone)
        )

    def leaderless(self, tp: int, from_ns: int, to_ns: int) -> bool:
        """Whether the partition had possibly no leader at some moment between two."""
        return any(True for _ in self.without_leader.meeting(tp, Window(from_ns, to_ns)))

    @cached_property
    def closing_ns(self) -> int:
        """When the first member began to leave in the drain (who loses a partition does not); FOREVER when none did.
        A black box may leave from when it was asked to end."""
        drain = self.phases.get("drain", Window(FOREVER, 0))
        signs = [life.asked_ns for life in self.lives.values() if life.asked_ns >= drain.begin_ns]
        for life in self.lives.values():
            if life.how == "closed" and life.ended_ns >= drain.begin_ns:
                own = self.intervals_by_incarnation.get(life.incarnation, ())
                own = [i for i in own if i.how not in ("", "lost")]
                given_up = (i.given_up_begin_ns for i in own if i.given_up_begin_ns >= drain.begin_ns)
                signs.append(max(given_up, default=life.ended_ns))
        return min(signs, default=FOREVER)

    @property
    def quiet(self) -> Window:
        """When liveness is judged: from the end of healing (without faults: of warming up) to the end of the drain.

        Empty when the run never got there.
        """
        after = self.phases.get("heal" if self.steps else "warm-up", Window(0, 0)).end_ns
        end = self.phases.get("drain", Window(0, 0)).end_ns
        return Window(after, end) if after and end else Window(0, 0)

    @cached_property
    def rests(self) -> list[StablePeriod]:
        """When the group rested after a rebalance, before the first member left because the run was over."""
        return stable_periods(self.rounds, self.given, self.calm.end_ns or FOREVER, self.firsts)

    def firsts(self, names: Iterable[str]) -> list[str]:
        """Of each name that is a life of a static id the first one; others as they are."""
        return [self.first_of.get(name, name) for name in names]

    @property
    def calm(self) -> Window:
        """The quiet window, up to the moment when the first member left because it was over."""
        return Window(self.quiet.begin_ns, min(self.quiet.end_ns, self.closing_ns - 1))
