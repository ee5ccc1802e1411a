"""Partitions that were deleted and made again: rows that name one of them are put where they belong. Pure.

Called by ``tables.load`` alone. Records have the numbers of their own partitions already
(``evidence.recreated_topics``), and whoever tells of a partition by its name has told of the last one so far. The
coordinator deletes what was committed of
a topic that is gone: that record parts commits. Callbacks and assignments are of the name, and of both if they last.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple, TypeVar

from fencepost.checkers.tables.effects import Effect
from fencepost.checkers.tables.rows import FOREVER, Commit, DeclaredAction, Interval, OffsetCommit, Window
from fencepost.checkers.tables.tables import Tables

EFFECT_NS = 2_000_000  # what is written elsewhere bears its time in milliseconds


class RecreatedPartition(NamedTuple):
    """Partition ``tp`` was deleted, and ``successor`` made in its place.

    Attributes:
        window: in which time.
        last_ns: the last sign of a record of the former one; ``next``: the offset after its last delivered one.
        begun: the lowest offset that was delivered of the successor; -1: none.
        begin_ns, done_ns: when each member first began, and finished, one of the successor.
    """

    tp: int
    successor: int
    window: Window
    last_ns: int
    next: int
    begun: int
    begin_ns: Mapping[str, int]
    done_ns: Mapping[str, int]

    @property
    def skipped(self) -> int:
        """How many records of the successor were passed over by positions of the former one, at most."""
        return max(0, min(self.begun, self.next))


Row = TypeVar("Row", bound=Any)


def renewals(entries: Iterable[Mapping[str, Any]]) -> list[RecreatedPartition]:
    """What ``partitions.json`` tells, the last one first."""
    found = []
    for entry in entries:
        if about := entry.get("renewed"):
            window = Window(about.get("begin_ns", 0), about.get("end_ns", 0))
            numbers = (about.get("last_ns", 0), about.get("next", 0), about.get("begun", -1))
            found.append(
                RecreatedPartition(
                    entry["tp"], about["as"], window, *numbers, about.get("begin_ns_of", {}), about.get("done_ns", {})
                )
            )
    return sorted(found, key=lambda r: r.window, reverse=True)


def split_by_generation(tables: Tables, made: Iterable[RecreatedPartition]) -> Tables:
    """The tables, each row with the number of its own partition."""
    for renewal in made:
        tables = _split(tables, renewal)
    return tables


def _split(tables: Tables, r: RecreatedPartition) -> Tables:
    begin_ns, end_ns = r.window
    last = _last_before(tables.accepted, r)
    accepted = _parted(tables.accepted, r, lambda a: a.order <= last)
    before = [a for a in accepted if a.tp == r.tp]
    after = [a for a in accepted if a.tp == r.successor]

    def of_before(offset: int, begun_ns: int, asked: Window) -> bool:
        """Whether who asked for that in some time, certainly from ``begun_ns`` on, meant the former partition."""
        meets = [any(a.offset == offset and a.written.meets(asked) for a in rows) for rows in (before, after)]
        return asked.end_ns < begin_ns or (not meets[1] and (meets[0] or begun_ns < begin_ns))

    started = {life.incarnation: life.started_ns for life in tables.lives.values()}
    commits = _parted(tables.commits, r, lambda c: of_before(c.offset, c.begin_ns, _asked(c, started)))
    settled_ns = _settled_ns(r, commits, after, _late_ns(r, commits, tables.intervals), tables.log_end(r.successor))
    return replace(
        tables,
        commits=commits,
        accepted=accepted,
        overtaken=_parted(tables.overtaken, r, lambda a: a.order <= last),
        asked_commits=_parted(tables.asked_commits, r, lambda q: of_before(q.offset, q.begin_ns, q.served)),
        fetched=_parted(tables.fetched, r, lambda q: q.end_ns < begin_ns),
        seeks=_parted(tables.seeks, r, lambda s: s.begin_ns <= end_ns),
        paused=_with_copies(tables.paused, r, lambda p: p.window.begin_ns <= end_ns),
        effects=_effects(tables.effects, r),
        dead_letters=_effects(tables.dead_letters, r),
        copies=_effects(tables.copies, r),
        intervals=_with_copies(tables.intervals, r, lambda i: i.assigned_begin_ns <= end_ns),
        given=_with_copies(tables.given, r, lambda g: g.at_ns <= end_ns),
        acts=_acts(tables.acts, r, settled_ns),
    )


def _effects(rows: Iterable[Effect], r: RecreatedPartition) -> tuple[Effect, ...]:
    """Those of nobody known were read when the run was over: they count for the partition that there was then."""

    def of_before(effect: Effect) -> bool:
        return effect.at_ns < r.begin_ns.get(effect.incarnation, FOREVER if effect.incarnation else 0) - EFFECT_NS

    return tuple(sorted(_parted(rows, r, of_before)))


def _last_before(accepted: Iterable[OffsetCommit], r: RecreatedPartition) -> int:
    """The place in the coordinator's log of the last commit of the former partition."""
    mine = [a for a in accepted if a.tp == r.successor]
    deleted = [a.order for a in mine if a.offset < 0 and a.written.meets(r.window)]
    return min(deleted, default=max((a.order for a in mine if a.at_ns < r.window.begin_ns), default=-1))


def _asked(commit: Commit, started: Mapping[str, int]) -> Window:
    """When it was asked for; one that the client made by itself tells only when it was told."""
    begin_ns = started.get(commit.incarnation, 0) if commit.mode == "auto" else commit.begin_ns
    return Window(begin_ns, commit.end_ns or FOREVER)


def _late_ns(r: RecreatedPartition, commits: Iterable[Commit], intervals: Iterable[Interval]) -> int:
    """When the last commit was made by who had the former partition in hand, and nothing of the successor yet.

    The coordinator of the consumer protocol gives the successor to others while a member works on what is gone.
    """
    held = {i.incarnation for i in intervals if i.tp == r.successor and i.assigned_begin_ns <= r.window.end_ns}
    mine = (c for c in commits if c.tp == r.successor and c.incarnation in held)
    return max((c.end_ns or c.begin_ns for c in mine if c.begin_ns < r.begin_ns.get(c.incarnation, FOREVER)), default=0)


def _settled_ns(
    r: RecreatedPartition, commits: Iterable[Commit], accepted: Sequence[OffsetCommit], late_ns: int, end: int
) -> int:
    """Until when the former partition may show in what concerns the successor, whose log ends at ``end`` (-1: unknown).

    That is until a member has committed, after ``late_ns``, that had finished a record of the successor before: of
    commits that the client made by itself the second one, as the first may have been made before; and none above all
    records of the successor, as a client may try its own ones again for long. Whoever had records of both in hand may
    commit once more where the former one ended.
    """
    ends, alone = [], set[str]()
    for commit in sorted((c for c in commits if c.tp == r.successor), key=lambda c: c.begin_ns):
        done_ns = r.done_ns.get(commit.incarnation, FOREVER)
        if commit.outcome == "ok" and commit.offset != r.next and commit.begin_ns > max(done_ns, late_ns):
            if commit.mode == "auto" and 0 <= end < commit.offset:
                continue
            if commit.mode == "auto" and commit.incarnation not in alone:
                alone.add(commit.incarnation)
            else:
                same = (a.written for a in accepted if a.offset == commit.offset)
                ends.append(max([commit.end_ns, *(w.end_ns for w in same if w.begin_ns <= commit.end_ns)]))
    return max(r.window.end_ns, r.last_ns, min(ends, default=FOREVER - 1))


def _acts(acts: Iterable[DeclaredAction], r: RecreatedPartition, settled_ns: int) -> tuple[DeclaredAction, ...]:
    found = []
    for act in acts:
        if act.tp == r.successor:
            found.append(act._replace(tp=r.tp))
            if act.begin_ns == r.window.begin_ns:
                act = act._replace(end_ns=settled_ns, skipped=r.skipped)
        found.append(act)
    return tuple(found)


def _parted(rows: Iterable[Row], r: RecreatedPartition, before: Callable[[Row], bool]) -> tuple[Row, ...]:
    """Each row once."""
    return tuple(row._replace(tp=r.tp) if row.tp == r.successor and before(row) else row for row in rows)


def _with_copies(rows: Iterable[Row], r: RecreatedPartition, before: Callable[[Row], bool]) -> tuple[Row, ...]:
    """All rows, and copies of those that concern the former partition, too."""
    copies = (row._replace(tp=r.tp) for row in rows if row.tp == r.successor and before(row))
    return (*rows, *copies)
