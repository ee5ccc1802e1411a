"""Partitions that were deleted and recreated: gives each row the number of its own partition. Pure.

Only called by ``tables.load``. Records already have the numbers of their own partitions (see
``evidence.recreated_topics``). All other rows name only topic and partition, so at first they have the number of the
last partition with that name. The coordinator deletes the committed offsets of a deleted topic: its record of the
deletion separates the commits of the two partitions. Callbacks and assignments count for the successor; if they began
before the recreation ended, they count for the former partition, too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple, TypeVar

from fencepost.checkers.tables.effects import Effect
from fencepost.checkers.tables.rows import FOREVER, Commit, DeclaredAction, Interval, OffsetCommit, Window
from fencepost.checkers.tables.tables import Tables

EFFECT_NS = 2_000_000  # tolerance: the times of effects in external stores are in milliseconds


class RecreatedPartition(NamedTuple):
    """Partition ``tp`` was deleted and recreated as ``successor``.

    Attributes:
        window: the time of the recreation.
        last_ns: the time of the last sign of a record of the former partition.
        next: the offset after the last delivered record of the former partition.
        begun: the lowest delivered offset of the successor; -1: none.
        begin_ns, done_ns: when each incarnation first began, and first finished, a record of the successor.
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
        """The number of records of the successor that positions in the former partition may have skipped, at most."""
        return max(0, min(self.begun, self.next))


Row = TypeVar("Row", bound=Any)


def renewals(entries: Iterable[Mapping[str, Any]]) -> list[RecreatedPartition]:
    """The recreations in the entries of ``partitions.json``, the last one first."""
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
    """The tables, in which each row has the number of its own partition; ``made``: the last recreation first."""
    for renewal in made:
        tables = _split(tables, renewal)
    return tables


def _split(tables: Tables, r: RecreatedPartition) -> Tables:
    begin_ns, end_ns = r.window
    last = _last_before(tables.accepted, r)
    accepted = _renumbered(tables.accepted, r, lambda a: a.order <= last)
    before = [a for a in accepted if a.tp == r.tp]
    after = [a for a in accepted if a.tp == r.successor]

    def of_before(offset: int, begun_ns: int, asked: Window) -> bool:
        """Whether a request about ``offset`` in the window ``asked``, which began by ``begun_ns``, meant ``r.tp``."""
        meets = [any(a.offset == offset and a.written.meets(asked) for a in rows) for rows in (before, after)]
        return asked.end_ns < begin_ns or (not meets[1] and (meets[0] or begun_ns < begin_ns))

    started = {life.incarnation: life.started_ns for life in tables.lives.values()}
    commits = _renumbered(tables.commits, r, lambda c: of_before(c.offset, c.begin_ns, _asked(c, started)))
    settled_ns = _settled_ns(r, commits, after, _late_ns(r, commits, tables.intervals), tables.log_end(r.successor))
    return replace(
        tables,
        commits=commits,
        accepted=accepted,
        overtaken=_renumbered(tables.overtaken, r, lambda a: a.order <= last),
        asked_commits=_renumbered(tables.asked_commits, r, lambda q: of_before(q.offset, q.begin_ns, q.served)),
        fetched=_renumbered(tables.fetched, r, lambda q: q.end_ns < begin_ns),
        seeks=_renumbered(tables.seeks, r, lambda s: s.begin_ns <= end_ns),
        paused=_with_copies(tables.paused, r, lambda p: p.window.begin_ns <= end_ns),
        effects=_effects(tables.effects, r),
        dead_letters=_effects(tables.dead_letters, r),
        copies=_effects(tables.copies, r),
        intervals=_with_copies(tables.intervals, r, lambda i: i.assigned_begin_ns <= end_ns),
        given=_with_copies(tables.given, r, lambda g: g.at_ns <= end_ns),
        acts=_acts(tables.acts, r, settled_ns),
    )


def _effects(rows: Iterable[Effect], r: RecreatedPartition) -> tuple[Effect, ...]:
    """Effects of unknown writers were read after the run, so they count for the partition that existed then."""

    def of_before(effect: Effect) -> bool:
        return effect.at_ns < r.begin_ns.get(effect.incarnation, FOREVER if effect.incarnation else 0) - EFFECT_NS

    return tuple(sorted(_renumbered(rows, r, of_before)))


def _last_before(accepted: Iterable[OffsetCommit], r: RecreatedPartition) -> int:
    """The order, in the coordinator's log, of the last row of the former partition; -1: it has none.

    That row is the deletion of the committed offset; without a deletion it is the last commit before the recreation."""
    both = [a for a in accepted if a.tp == r.successor]
    deleted = [a.order for a in both if a.offset < 0 and a.written.meets(r.window)]
    return min(deleted, default=max((a.order for a in both if a.at_ns < r.window.begin_ns), default=-1))


def _asked(commit: Commit, started: Mapping[str, int]) -> Window:
    """The time of a commit's request. Of an automatic commit only the answer is recorded: it may have begun since the
    start of its incarnation."""
    begin_ns = started.get(commit.incarnation, 0) if commit.mode == "auto" else commit.begin_ns
    return Window(begin_ns, commit.end_ns or FOREVER)


def _late_ns(r: RecreatedPartition, commits: Iterable[Commit], intervals: Iterable[Interval]) -> int:
    """The time of the last commit by a member that had owned the former partition, and had begun no record of the
    successor yet; 0: there is none.

    With the consumer protocol, the coordinator may assign the successor to another member while such a member still
    processes records of the deleted partition.
    """
    held = {i.incarnation for i in intervals if i.tp == r.successor and i.assigned_begin_ns <= r.window.end_ns}
    theirs = (c for c in commits if c.tp == r.successor and c.incarnation in held)
    return max(
        (c.end_ns or c.begin_ns for c in theirs if c.begin_ns < r.begin_ns.get(c.incarnation, FOREVER)), default=0
    )


def _settled_ns(
    r: RecreatedPartition, commits: Iterable[Commit], accepted: Sequence[OffsetCommit], late_ns: int, end: int
) -> int:
    """The time until which the former partition may affect the successor; ``end``: where the log of the successor ends
    (-1: unknown).

    The effects end with the first successful commit after ``late_ns`` by a member that had finished a record of the
    successor before. Some commits do not count:

    * a commit of the offset at which the former partition ended: a member with records of both partitions in flight may
      commit it once more;
    * the first automatic commit of each such member: the client may have sent it before;
    * automatic commits above the end of the successor's log: a client may retry its automatic commits for a long time.
    """
    ends, once = [], set[str]()
    for commit in sorted((c for c in commits if c.tp == r.successor), key=lambda c: c.begin_ns):
        done_ns = r.done_ns.get(commit.incarnation, FOREVER)
        if commit.outcome == "ok" and commit.offset != r.next and commit.begin_ns > max(done_ns, late_ns):
            if commit.mode == "auto" and 0 <= end < commit.offset:
                continue
            if commit.mode == "auto" and commit.incarnation not in once:
                once.add(commit.incarnation)
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


def _renumbered(rows: Iterable[Row], r: RecreatedPartition, before: Callable[[Row], bool]) -> tuple[Row, ...]:
    """All rows, each once; the number of the former partition replaces the successor's where ``before`` is true."""
    return tuple(row._replace(tp=r.tp) if row.tp == r.successor and before(row) else row for row in rows)


def _with_copies(rows: Iterable[Row], r: RecreatedPartition, before: Callable[[Row], bool]) -> tuple[Row, ...]:
    """All rows, and a copy for the former partition of each row for which ``before`` is true."""
    copies = (row._replace(tp=r.tp) for row in rows if row.tp == r.successor and before(row))
    return (*rows, *copies)
