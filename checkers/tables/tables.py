"""How to look things up in the small tables: each question in logarithmic time. Pure.

What was in force when is asked of ``Spans``. An index is made when it is first asked for, once.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from fencepost.checkers.tables.committed import Committed
from fencepost.checkers.tables.recorded import Recorded
from fencepost.checkers.tables.requests import Request, writers
from fencepost.checkers.tables.rows import FOREVER, Accepted, Act, Commit, Given, Gone, Interval, Round, Seek, Window
from fencepost.checkers.tables.spans import Spans


@dataclass(frozen=True)
class Tables(Recorded):
    """The small tables of one run, and the lookups that rules share."""

    @cached_property
    def interval(self) -> Mapping[tuple[str, int, int], Interval]:
        """Assignment intervals by (incarnation, tp, number)."""
        return {(i.incarnation, i.tp, i.number): i for i in self.intervals}

    @cached_property
    def intervals_of(self) -> Spans[tuple[str, int], Interval]:
        """Assignment intervals by (incarnation, tp), in the order of time; in force when they possibly were."""
        return Spans(self.intervals, lambda i: (i.incarnation, i.tp), lambda i: i.possible)

    @cached_property
    def intervals_by_tp(self) -> Spans[int, Interval]:
        """The same by partition."""
        return Spans(self.intervals, lambda i: i.tp, lambda i: i.possible)

    @cached_property
    def intervals_by_incarnation(self) -> Spans[str, Interval]:
        """The same by incarnation, in the order of (tp, time)."""
        return Spans(self.intervals, lambda i: i.incarnation, lambda i: i.possible)

    @cached_property
    def commits_of(self) -> Spans[tuple[str, int], Commit]:
        """What members tell of their commits, by (incarnation, tp), in the order of their begins."""
        rows = sorted(self.commits, key=lambda c: c.begin_ns)
        return Spans(rows, lambda c: (c.incarnation, c.tp), lambda c: Window(c.begin_ns, c.begin_ns))

    @cached_property
    def commits_by_tp(self) -> Spans[int, Commit]:
        """The same by partition, as they are given."""
        return Spans(self.commits, lambda c: c.tp, lambda c: Window(c.begin_ns, c.begin_ns))

    @cached_property
    def highest_tried(self) -> Mapping[int, int]:
        """By partition, the greatest offset that any member tried to commit, with whatever outcome."""
        return {tp: max(c.offset for c in rows) for tp, rows in self.commits_by_tp.items()}

    @cached_property
    def accepted_of(self) -> Spans[int, Accepted]:
        """Accepted commits by partition, in the order of the coordinator's log; in force when they may be written."""
        return Spans(self.accepted, lambda a: a.tp, lambda a: a.written)

    @cached_property
    def given_of(self) -> Spans[int, Given]:
        """The coordinator's changes of owners by partition, in the order of its log; likewise."""
        return Spans(self.given, lambda g: g.tp, _written)

    @cached_property
    def gone_of(self) -> Spans[str, Gone]:
        """The member ids that left the group's records, likewise."""
        return Spans(self.gone, lambda g: g.member_id, _written)

    @cached_property
    def gone_by_incarnation(self) -> Spans[str, Gone]:
        """The same by incarnation (empty: not known)."""
        return Spans(self.gone, lambda g: g.incarnation, _written)

    @cached_property
    def seeks_of(self) -> Spans[tuple[str, int], Seek]:
        """When programs moved their positions, by (incarnation, tp)."""
        return Spans(self.seeks, lambda s: (s.incarnation, s.tp), lambda s: Window(s.begin_ns, s.begin_ns))

    @cached_property
    def rounds_of(self) -> Spans[str, tuple[str, Round]]:
        """The rounds by incarnation, in the order of the coordinator's log; each window ends with its *generation*."""
        joined = ((incarnation, one) for one in self.rounds for incarnation in one.members)
        return Spans(joined, lambda row: row[0], lambda row: Window(0, row[1].generation))

    @cached_property
    def _writers(self) -> Mapping[int, str]:
        return writers(self.accepted, self.asked_commits)

    def writer(self, commit: Accepted) -> str:
        """The incarnation that wrote an accepted commit; empty when that is not certain."""
        return self._writers.get(commit.order, "")

    def commits_in(self, interval: Interval) -> list[Commit]:
        """The commits of an interval's partition that its incarnation began while it may have owned it, by begin."""
        return [*self.commits_of.meeting((interval.incarnation, interval.tp), interval.possible)]

    def log_start(self, tp: int) -> int:
        """Where the log of a partition began at the audit: what was below is deleted, and that is no loss."""
        return self.partitions[tp].log_start if tp in self.partitions else 0

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
        return self._committed[tp].between(from_ns, to_ns) if tp in self._committed else (-1,)

    @cached_property
    def _committed(self) -> Mapping[int, Committed]:
        return {tp: Committed(rows) for tp, rows in self.accepted_of.items()}

    @cached_property
    def fetched_of(self) -> Spans[tuple[str, int], Request]:
        """Answered fetches of offsets by (incarnation, tp), in the order of time; in force while they were served."""
        return Spans(self.fetched, lambda f: (f.incarnation, f.tp), lambda f: f.served)

    @cached_property
    def fetched_by_tp(self) -> Spans[int, Request]:
        """The same by partition."""
        return Spans(self.fetched, lambda f: f.tp, lambda f: f.served)

    def certain_owner(self, tp: int, at_ns: int) -> Given | None:
        """The coordinator's record that gave the partition to whoever certainly had it at ``at_ns``.

        None when that is not certain: no record, a change within the uncertainty, nobody, or an unknown member id.
        """
        rows = self.given_of.get(tp, [])
        last = bisect_right(rows, at_ns, key=lambda g: g.at_ns - g.uncertainty_ns) - 1
        if last < 0 or rows[last].at_ns + rows[last].uncertainty_ns > at_ns or not rows[last].incarnation:
            return None
        return rows[last]

    def removed(self, interval: Interval, by_ns: int) -> Gone | None:
        """The coordinator's record that the owner of ``interval`` was gone during it, if possibly by ``by_ns``."""
        during = Window(interval.assigned_begin_ns, by_ns)
        if interval.member_id:
            found = self.gone_of.meeting(interval.member_id, during)
        else:
            found = self.gone_by_incarnation.meeting(interval.incarnation, during)
        return min(found, key=lambda g: g.order, default=None)

    def act_on(self, tp: int, by_ns: int) -> str:
        """The name of a declared act on the partition that began before ``by_ns``; empty when there is none."""
        first = self.first_act(tp)
        return first.what if first and first.begin_ns <= by_ns else ""

    def first_act(self, tp: int) -> Act | None:
        """The first declared act that concerns the partition."""
        return self._first_acts.get(tp, self._first_acts.get(-1))

    @cached_property
    def _first_acts(self) -> Mapping[int, Act]:
        """By partition the first act that concerns it (-1: all that have none of their own)."""
        found: dict[int, Act] = {}
        for act in self.acts:
            if -1 not in found:
                found.setdefault(act.tp, act)
        return found

    def declared(self, tp: int, by_ns: int) -> str:
        """The excuse by a declared act on the partition that began before ``by_ns``; empty when there is none."""
        act = self.act_on(tp, by_ns)
        return f"declared act: {act}" if act else ""

    def leaderless(self, tp: int, from_ns: int, to_ns: int) -> bool:
        """Whether the partition had possibly no leader at some moment between two."""
        return any(True for _ in self._leaderless.meeting(tp, Window(from_ns, to_ns)))

    @cached_property
    def _leaderless(self) -> Spans[int, tuple[int, Window]]:
        """By partition, from each change that left it without a leader to the next one."""
        found, since = [], dict[int, int]()
        for at_ns, blur_ns, tp, leader in self.leaders:
            if tp in since:
                found.append((tp, Window(since.pop(tp), at_ns + blur_ns)))
            if leader < 0:
                since[tp] = at_ns - blur_ns
        found += [(tp, Window(begin_ns, FOREVER)) for tp, begin_ns in since.items()]
        return Spans(found, lambda gap: gap[0], lambda gap: gap[1])

    @cached_property
    def closing_ns(self) -> int:
        """When the first member began to leave in the drain (who loses a partition does not); FOREVER when none did."""
        drain = self.phases.get("drain", Window(FOREVER, 0))
        signs = []
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


def _written(record: Given | Gone) -> Window:
    """When a record of the coordinator was written."""
    return Window.around(record.at_ns, record.uncertainty_ns)
