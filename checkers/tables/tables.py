"""The small tables of one run, with the lookups that the rules need. Pure.

``IntervalIndex`` finds the rows of a time in logarithmic time.
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
        """The rebalances of the generations ``first`` to ``last``, and later ones if they began by ``until_ns``."""
        upto = self.rounds_by_generation.meeting(None, Window(first, last))
        beyond = self.rounds_by_begin.meeting(None, Window(max(first, last + 1), until_ns))
        return [one for _, one in sorted([*upto, *beyond], key=lambda row: row[0])]

    def host_stalled(self, window: Window) -> bool:
        """Whether the host stood still at some time in a window."""
        return any(True for _ in self.stalled.meeting(None, window))

    def writer(self, commit: OffsetCommit) -> str:
        """The incarnation that wrote an accepted commit; empty: not certain."""
        return self.writer_of.get(commit.order, "")

    def commits_in(self, interval: Interval) -> list[Commit]:
        """The commits of an interval's partition that its incarnation began while it may have owned it, by start."""
        return [*self.commits_of.meeting((interval.incarnation, interval.tp), interval.possible)]

    def sent_ns(self, commit: Commit) -> int:
        """The latest time at which the client may have determined the offset of a commit.

        That is the time of the program's request. But if the client committed an offset that was stored after the
        request, it is the earlier one of two times: the coordinator had written the commit; the member had the answer.
        """
        if commit.asked is None or commit.offset <= commit.asked:
            return commit.begin_ns
        asking = Window(commit.begin_ns, commit.end_ns or FOREVER)
        written = self.accepted_of.meeting(commit.tp, asking)
        last_ns = max((a.written.end_ns for a in written if a.offset == commit.offset), default=FOREVER)
        return min(asking.end_ns, last_ns)

    @cached_property
    def stale(self) -> Mapping[Request, Stale]:
        """The stale answers of coordinators, see ``answers``."""
        return stale(self)

    @cached_property
    def stale_of(self) -> Mapping[tuple[str, int], list[Stale]]:
        """The stale answers by (requesting incarnation, tp), in the order of time."""
        return by_asker(self.stale)

    def moves_in(self, incarnation: str, tp: int, interval: Interval | None, until_ns: int = FOREVER) -> list[Seek]:
        """The moves of a program's position in an interval (None: in the whole life) until ``until_ns``, by start."""
        since = Window(interval.assigned_begin_ns if interval else 0, FOREVER)
        return [move for move in self.moves_of.meeting((incarnation, tp), since) if move.begin_ns <= until_ns]

    def by_seek(self, went: bool, excuse: str) -> tuple[str, str]:
        """Cause and excuse of a finding: ``excuse`` if there is one; else of a moved position, if a program ``went``
        elsewhere."""
        return ("seek", self.sought) if went and not excuse else ("", excuse)

    def left_behind(self, former: Interval) -> list[Seek]:
        """The moves of a program's position in a former interval: the next owner of the partition may begin there."""
        return self.moves_in(former.incarnation, former.tp, former, former.given_up_end_ns or FOREVER)

    def passing(self, tp: int) -> Iterator[tuple[Seek, Interval]]:
        """The moves of programs' positions that may have gone past records, each with the interval that it was in."""
        for seek in self.moves_by_tp.get(tp, ()):
            if interval := self.last_assigned(seek.incarnation, tp, seek.begin_ns):
                yield seek, interval

    def moves_over(self, tp: int, offset: int, window: Window) -> int:
        """How often programs moved positions to ``offset`` or below in ``window``; each may redeliver the record."""
        return sum(seek.offset <= offset for seek in self.moves_by_tp.meeting(tp, window))

    def log_start(self, tp: int) -> int:
        """Where the log of a partition began at the audit. Records below were deleted, which is not a loss."""
        return self.partitions[tp].log_start if tp in self.partitions else 0

    def log_end(self, tp: int) -> int:
        """Where the log of a partition ended at the audit; -1: unknown."""
        return self.partitions[tp].log_end if tp in self.partitions else -1

    def tombstone_gone(self, tp: int, by_ns: int) -> bool:
        """Whether a compacted log may have lost a tombstone, written by ``by_ns``, before the end of the audit."""
        audited_ns = self.phases.get("audit", Window(0, 0)).end_ns
        return tp in self.compacted and by_ns + self.compacted[tp] < audited_ns

    def without_commit(self, tp: int) -> list[tuple[Interval, int]]:
        """The intervals in which a member of a group that starts at the end may have begun without a committed offset:
        those that were assigned before the first commit was certainly in force. Each with the first offset that it
        committed (0: none), at or above its start."""
        if not self.resets_to_end:
            return []
        accepted = self.accepted_of.get(tp)
        in_force_ns = accepted[0].written.end_ns if accepted else FOREVER
        found = [i for i in self.intervals_by_tp.get(tp, ()) if i.assigned_begin_ns < in_force_ns]
        return [(i, next((c.offset for c in self.commits_in(i) if c.outcome != "fail"), 0)) for i in found]

    def final_committed(self, tp: int) -> int:
        """The group's last committed offset of a partition; -1: none."""
        rows = self.accepted_of.get(tp)
        return rows[-1].offset if rows else -1

    def committed_between(self, tp: int, from_ns: int, to_ns: int) -> tuple[int, ...]:
        """Every committed offset that a client may have fetched between two times; -1 stands for none.

        These are the last one that was certainly in force at ``from_ns`` (a member had received its "ok"), and all that
        were appended after it, possibly by ``to_ns``. Times in the wrong order, which only a manipulated history has,
        are swapped.
        """
        return self.committed[tp].between(from_ns, to_ns) if tp in self.committed else (-1,)

    @cached_property
    def expiries(self) -> Mapping[int, list[Expiry]]:
        """The expired committed offsets by partition; most runs have none.

        Kafka deletes the committed offset of a partition that no member of the group may need (classic: while the group
        is empty), if the commit is older than ``offsets.retention.minutes``. So a deletion in the coordinator's log
        counts as expiry if the commit is as old and, by the same log, no member owned the partition. An administrator,
        or the deletion of the topic, may delete offsets of any age. If the harness does so, it is a declared act, which
        excuses more than an expiry.
        """
        found: dict[int, list[Expiry]] = {}
        for tp, rows in self.accepted_of.items():
            for before, now in pairwise(rows):
                old = now.written.end_ns - before.written.begin_ns >= self.offsets_kept_ns
                if now.offset < 0 <= before.offset and old and not self._given_to(tp, now.order):
                    found.setdefault(tp, []).append(Expiry(before.offset, now.order, now.at_ns, now.written))
        return found

    def _given_to(self, tp: int, order: int) -> str:
        """The member id that owned a partition before a record of the coordinator's log; empty: no member."""
        given = self.given_of.get(tp, [])
        last = bisect_left(given, order, key=lambda g: g.order) - 1
        return given[last].member_id if last >= 0 else ""

    def expired(self, tp: int, offset: int, from_ns: int, to_ns: int) -> bool:
        """Whether a committed offset above ``offset`` may have expired between two times."""
        between = Window(from_ns, to_ns)
        return any(e.offset > offset and e.written.meets(between) for e in self.expiries.get(tp, ()))

    def certain_owner(self, tp: int, at_ns: int) -> AssignmentChange | None:
        """The coordinator's record that assigned the partition to its certain owner at ``at_ns``.

        None if the owner is not certain: there is no record, a change within the uncertainty, no owner, or an unknown
        member id.
        """
        rows = self.given_of.get(tp, [])
        last = bisect_right(rows, at_ns, key=lambda g: g.at_ns - g.uncertainty_ns) - 1
        if last < 0 or rows[last].at_ns + rows[last].uncertainty_ns > at_ns or not rows[last].incarnation:
            return None
        return rows[last]

    def coordinator_owner(self, tp: int, at_ns: int) -> str:
        """The certain owner of a partition at ``at_ns``, by the coordinator's log; empty: no certain owner."""
        given = self.certain_owner(tp, at_ns)
        return given.incarnation if given else ""

    def forked(self, incarnation: str) -> bool:
        """Whether an incarnation polled its consumer in a forked process, which receives no records; see ``Life``."""
        return incarnation in self.lives and self.lives[incarnation].forked

    def unreachable_coordinator_owner(self, tp: int, at_ns: int) -> str:
        """The certain owner of a partition at ``at_ns``, if its consumer is ``forked``; empty: no such owner.

        Only the coordinator's log shows it as the owner, because callbacks run inside polls."""
        owner = self.coordinator_owner(tp, at_ns)
        return owner if self.forked(owner) else ""

    def coordinator_owners(self, tp: int) -> Iterator[tuple[AssignmentChange, int]]:
        """The coordinator's records that assigned a partition to a member, in their order.

        Each has the earliest time at which its ownership may have ended; FOREVER: it did not end."""
        rows = self.given_of.get(tp, ())
        for given, after in zip_longest(rows, rows[1:]):
            if given.member_id:
                yield given, after.at_ns - after.uncertainty_ns if after else FOREVER

    def last_coordinator_owner(self, tp: int) -> str:
        """The last known owner of a partition, by the coordinator's log; empty: none."""
        return next((given.incarnation for given in reversed(self.given_of.get(tp, [])) if given.incarnation), "")

    def last_silent_coordinator_owner(self, tp: int) -> str:
        """The last known owner, if it records no callbacks (a black box, or ``forked``); empty: no such owner."""
        last = self.last_coordinator_owner(tp)
        return last if self.black_box or self.forked(last) else ""

    def advances(self, tp: int) -> list[OffsetCommit]:
        """The commits that advanced a partition, in the order of the coordinator's log.

        Each is above all commits before it; the first one is above the start of the log, unless that was moved past it.
        The comparison starts anew after a deletion of the committed offset, and after each commit during a declared
        act."""
        rows, start = self.accepted_of.get(tp, ()), self.log_start(tp)
        if rows and rows[0].offset < start:
            start = 0
        found, high = list[OffsetCommit](), start
        for row in rows:
            if row.offset > high:
                found.append(row)
            if row.offset > high or row.offset < 0 or self.declared(tp, row.at_ns):
                high = start if row.offset < 0 else row.offset
        return found

    def one_owner(self, tp: int, *incarnations: str) -> str:
        """``one owner`` if the names are one incarnation, to which the partition was assigned once; else empty."""
        owned = [i for i in self.intervals_by_tp.get(tp, ()) if i.incarnation == incarnations[0]]
        return "one owner" if len({*incarnations}) == len(owned) == 1 else ""

    def paused_by(self, incarnation: str, tp: int, window: Window, bound_ns: int) -> bool:
        """Whether ``window``, minus the time in which the program had paused the partition, is within ``bound_ns``."""
        paused = self.paused_of.meeting((incarnation, tp), window)
        return window.length_ns - sum(p.window.common(window).length_ns for p in paused) <= bound_ns

    def removed(self, interval: Interval, by_ns: int) -> MemberRemoval | None:
        """The coordinator's record that the owner of ``interval`` was removed during it, possibly by ``by_ns``."""
        during = Window(interval.assigned_begin_ns, by_ns)
        if interval.member_id:
            found = self.gone_of.meeting(interval.member_id, during)
        else:
            found = self.gone_by_incarnation.meeting(interval.incarnation, during)
        return min(found, key=lambda g: g.order, default=None)

    def acts_on(self, tp: int) -> Sequence[DeclaredAction]:
        """The declared acts that concern the partition, in the order of their starts."""
        return sorted([*self.acts_of.get(tp, ()), *self.acts_of.get(-1, ())], key=lambda act: act.begin_ns)

    def declared(self, tp: int, by_ns: int) -> str:
        """The excuse by a declared act on the partition that began by ``by_ns`` and may still have consequences then;
        empty: no such act."""
        return next((f"declared act: {a.what}" for a in self.acts_on(tp) if a.begin_ns <= by_ns <= a.end_ns), "")

    def recreated(self, tp: int, by_ns: int) -> str:
        """The excuse by the declared act that recreated the partition, likewise; empty: no such act."""
        acts = (act for act in self.acts_of.get(tp, ()) if act.skipped >= 0 and act.begin_ns <= by_ns <= act.end_ns)
        return next((f"declared act: {act.what}" for act in acts), "")

    def passed_over(self, tp: int) -> tuple[int, str]:
        """The offset below which positions in a deleted partition of that name may have skipped records; the excuse."""
        return max(((act.skipped, f"declared act: {act.what}") for act in self.acts_of.get(tp, ())), default=(0, ""))

    @cached_property
    def by_name(self) -> Tables:
        """The tables without deleted partitions. Their successors of the same name have all of their callbacks, too."""
        gone = {tp for tp, partition in self.partitions.items() if partition.gone}
        if not gone:
            return self
        existing = {tp: partition for tp, partition in self.partitions.items() if tp not in gone}
        intervals = tuple(interval for interval in self.intervals if interval.tp not in gone)
        return replace(
            self, partitions=existing, intervals=intervals, given=tuple(g for g in self.given if g.tp not in gone)
        )

    def leaderless(self, tp: int, from_ns: int, to_ns: int) -> bool:
        """Whether the partition possibly had no leader at some time between ``from_ns`` and ``to_ns``."""
        return any(True for _ in self.without_leader.meeting(tp, Window(from_ns, to_ns)))

    @cached_property
    def closing_ns(self) -> int:
        """When the first member began to leave in the drain; FOREVER: none did.

        Losing a partition is not leaving. A member may leave as soon as the harness requests its end."""
        drain = self.phases.get("drain", Window(FOREVER, 0))
        signs = [life.asked_ns for life in self.lives.values() if life.asked_ns >= drain.begin_ns]
        for life in self.lives.values():
            if life.how == "closed" and life.ended_ns >= drain.begin_ns:
                own = self.intervals_by_incarnation.get(life.incarnation, ())
                own = [i for i in own if i.how not in ("", "lost")]
                released = (i.given_up_begin_ns for i in own if i.given_up_begin_ns >= drain.begin_ns)
                signs.append(max(released, default=life.ended_ns))
        return min(signs, default=FOREVER)

    @property
    def quiet(self) -> Window:
        """The time in which liveness is judged: from the end of heal (without faults: of warm-up) to the end of drain.

        Empty if the run did not reach it.
        """
        after = self.phases.get("heal" if self.steps else "warm-up", Window(0, 0)).end_ns
        end = self.phases.get("drain", Window(0, 0)).end_ns
        return Window(after, end) if after and end else Window(0, 0)

    @cached_property
    def rests(self) -> list[StablePeriod]:
        """The stable periods of the group before the first member left because the run was over."""
        return stable_periods(self.rounds, self.given, self.calm.end_ns or FOREVER, self.firsts)

    def firsts(self, names: Iterable[str]) -> list[str]:
        """The names, each incarnation of a static id replaced by the first incarnation of that id."""
        return [self.first_of.get(name, name) for name in names]

    @property
    def calm(self) -> Window:
        """The quiet window, until the first member left because the run was over."""
        return Window(self.quiet.begin_ns, min(self.quiet.end_ns, self.closing_ns - 1))
