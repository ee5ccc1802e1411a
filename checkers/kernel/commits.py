"""Kernel rules about commits: commit-ahead, commit-beyond-end, off-by-one, work-after-fencing, wrong-start."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from itertools import accumulate
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fencepost.checkers.detections import Detection, blamed
from fencepost.checkers.kernel.aggregates import Aggregates, Label, Totals
from fencepost.checkers.kernel.task_data import NEVER, TaskData
from fencepost.checkers.tables import Tables
from fencepost.checkers.tables.commits import (
    answered_offsets,
    back_ns,
    hindrance,
    is_fence,
    reported_offsets,
    tried_past,
)
from fencepost.checkers.tables.rows import Interval, OffsetCommit

Array = NDArray[Any]


def commit_ahead(part: TaskData) -> None:
    """``commit-ahead``: an interval committed past a visible record that no member had finished by then."""
    done_ns = part.finished_ns
    if part.tables.by_effect:
        done_ns = np.where(part.affected & (part.finishes == 0), 0, done_ns)
    for interval in part.intervals:
        reached = min(part.tables.committed_between(part.tp, interval.assigned_begin_ns, interval.assigned_begin_ns))
        for commit in part.tables.commits_in(interval):
            if commit.outcome == "fail":
                continue
            low, high = part.places.below(reached), part.places.below(commit.offset)
            sent_ns = part.tables.sent_ns(commit)
            if low < high and done_ns[low:high].max() > sent_ns:
                late = low + np.flatnonzero(part.visible[low:high] & (done_ns[low:high] > sent_ns))
                late = late[part.places.offsets(late) >= _start(part, interval)]
            else:  # the usual case
                late = np.empty(0, np.int64)
            if len(late):
                offsets = part.places.offsets(late)
                numbers = Totals(len(late), int(offsets[0]), int(offsets[-1]), commit.begin_ns, commit.end_ns)
                excuse = part.tables.recreated(part.tp, commit.begin_ns)
                part.aggregates.put("commit-ahead", part.tp, Label((interval.incarnation,), "", excuse), numbers)
            reached = max(reached, commit.offset)


def _start(part: TaskData, interval: Interval) -> int:
    """The highest offset at which an interval may have begun to read; ``NEVER`` if nothing was delivered in it."""
    first = part.first_delivered(interval.incarnation, interval.number)
    if first is None:
        return NEVER
    reported = part.tables.committed_between(part.tp, interval.assigned_begin_ns, first.delivered_ns)
    return max(first.offset, *reported)


def commit_before_send(part: TaskData) -> None:
    """``commit-beyond-end``: a record was sent after a commit past it had been written."""
    commits = sorted(part.tables.accepted_of.get(part.tp, ()), key=lambda a: a.offset)
    if not commits:
        return
    edges = np.array([commit.offset for commit in commits], np.int64)
    written = [(commit.at_ns + commit.uncertainty_ns, commit.order, n) for n, commit in enumerate(commits)]
    first = [*reversed([*accumulate(reversed(written), min)])]  # the earliest of the commits at or above each edge
    at_ns = np.array([*(at_ns for at_ns, _, _ in first), NEVER], np.int64)
    number = np.array([*(n for _, _, n in first), -1], np.int64)

    def label(n: int) -> Label:
        return Label(blamed(part.tables.writer(commits[n])), "", part.tables.declared(part.tp, commits[n].at_ns))

    for sent, where in zip(part.sent, part.sent_where, strict=True):
        late = _after(sent["offset"], sent["sent_ns"], edges, at_ns)
        late = late[part.visible[where.places(late)]]
        if len(late):
            late = late[part.delivered_ns[where.places(late)] >= sent["sent_ns"][late]]
        offsets = sent["offset"][late]
        codes = number[np.searchsorted(edges, offsets, side="right")]
        begin_ns = np.array([commits[n].at_ns for n in codes.tolist()], np.int64)
        times = {"from_ns": begin_ns, "to_ns": sent["sent_ns"][late]}
        part.aggregates.put_many("commit-beyond-end", part.tp, [codes], label, first=offsets, **times)


def _after(offset: Array, sent_ns: Array, edges: Array, at_ns: Array) -> Array:
    """The sends that are too late: after ``at_ns[n]``, if ``n`` of the ``edges`` are at or below their offset.

    If the offsets ascend, first only the latest send between each two edges is compared.
    """
    if len(offset) and (offset[1:] > offset[:-1]).all():
        cuts = np.unique(np.searchsorted(offset, edges))
        cuts = np.union1d(cuts[cuts < len(offset)], [0])
        latest = np.maximum.reduceat(sent_ns, cuts)
        if (at_ns[np.searchsorted(edges, offset[cuts], side="right")] >= latest).all():
            return np.empty(0, np.int64)
    return np.flatnonzero(at_ns[np.searchsorted(edges, offset, side="right")] < sent_ns)


def off_by_one(part: TaskData) -> None:
    """``#done``: the partition has finished visible records. ``#behind``: those at or above the final committed offset.

    ``off_by_one_of`` judges all partitions together. ``to_ns``: when the lowest of ``#behind`` was first finished.
    """
    done = part.visible & (part.finishes > 0)
    if not done.any():
        return
    part.aggregates.put("#done", part.tp)
    low = part.places.below(part.tables.final_committed(part.tp))
    behind = low + np.flatnonzero(done[low:])
    if len(behind):
        offsets, done_ns = part.places.offsets(behind[[0, -1]]), int(part.finished_ns[behind[0]])
        numbers = Totals(len(behind), int(offsets[0]), int(offsets[1]), 0, done_ns)
        part.aggregates.put("#behind", part.tp, numbers=numbers)


def off_by_one_of(aggregates: Aggregates, tables: Tables) -> Iterator[Detection]:
    """``off-by-one``: in every partition, the only finished but uncommitted record is at the committed offset."""
    of = {(kind, tp): numbers for (kind, tp, *_), numbers in aggregates.items() if kind in ("#done", "#behind")}
    final = [tables.accepted_of[tp][-1] for kind, tp in of if kind == "#done" and tables.final_committed(tp) >= 0]

    def knew(commit: OffsetCommit) -> bool:
        n = of.get(("#behind", commit.tp), Totals(0))
        done_ns = n.to_ns if (n.count, n.first) == (1, commit.offset) else NEVER
        return done_ns < commit.written.begin_ns and not tried_past(tables, commit)

    for commit in final if tables.quiet.end_ns and len(final) > 1 and all(map(knew, final)) else ():
        members, at_ns = blamed(tables.writer(commit)), commit.at_ns
        yield Detection("off-by-one", commit.tp, members, "", "", commit.offset, at_ns, at_ns)


def work_after_fencing(part: TaskData) -> None:
    """``work-after-fencing``: a member was fenced (a commit in the interval was refused), and later began records."""
    rows = part.rows.by_interval
    for interval in part.intervals:
        fence = next((c for c in part.tables.commits_in(interval) if is_fence(c)), None)
        stream = part.rows.stream(interval.incarnation, interval.number)
        if fence is None or stream is None:
            continue
        late_ns, span = fence.end_ns + part.tables.heartbeat_ns, slice(stream.begin, stream.end)
        begun = rows.begun[span] & (rows.begin_ns[span] < back_ns(part.tables, fence))
        on = stream.begin + np.flatnonzero(begun & (rows.delivered_ns[span] > late_ns))
        if len(on):
            first, _ = part.whole.polls(interval.incarnation, interval.number, late_ns)
            on = on[part.polls(stream)[on - stream.begin] > first]
        hindered_ns, hindered_by = hindrance(part.tables, interval.incarnation, fence.end_ns)
        hindered = rows.begin_ns[on] >= hindered_ns
        for group, excuse in ((on[~hindered], ""), (on[hindered], hindered_by)):
            if len(group):
                offsets, last_ns = rows.offset[group], int(rows.begin_ns[group].max())
                label = Label((interval.incarnation,), fence.error, excuse)
                numbers = Totals(len(offsets), int(offsets.min()), int(offsets.max()), fence.end_ns, last_ns)
                part.aggregates.put("work-after-fencing", part.tp, label, numbers)


def wrong_start(part: TaskData) -> None:
    """``wrong-start``, ``stale-offset-answer``: the first record of an interval is not at the group's position."""
    rows = part.rows.by_interval
    reached = {0: part.before.reached} if part.before else {}
    for stream in rows.streams:
        before = reached.get(stream.who)
        reached[stream.who] = max(before or 0, int(rows.offset[stream.begin : stream.end].max()) + 1)
        interval = part.interval_of(stream.who, stream.interval)
        if interval is None or stream.begin < part.fresh:
            continue
        offset, at_ns = int(rows.offset[stream.begin]), int(rows.delivered_ns[stream.begin])
        begins = partial(_begins, part, offset, before)
        wrong = None
        if not begins(*reported_offsets(part.tables, interval, at_ns)):
            wrong = answered_offsets(part.tables, interval, at_ns, begins)
        if wrong:
            (kind, cause), excuse = wrong, part.tables.declared(part.tp, at_ns)
            if kind == "wrong-start" and _moved_to(part, interval, offset, at_ns):
                cause, excuse = "seek", excuse or part.tables.sought
            label, numbers = (
                Label((interval.incarnation,), cause, excuse),
                Totals(1, offset, offset, interval.assigned_begin_ns, at_ns),
            )
            part.aggregates.put(kind, part.tp, label, numbers)


def _moved_to(part: TaskData, interval: Interval, offset: int, at_ns: int) -> bool:
    """Whether the program had moved its position to ``offset``, or below it with no visible record in between."""
    moves = part.tables.moves_in(interval.incarnation, part.tp, interval, at_ns)
    goals = np.array([move.offset for move in moves if move.offset <= offset], np.int64)
    between = part.whole.between(goals - 1, np.full(len(goals), offset)).counts
    return bool(len(goals)) and not between.all()


def _begins(part: TaskData, offset: int, kept: int | None, reported: Sequence[int], reset: bool) -> bool:
    if reset and part.tables.resets_to_end:
        return True
    starts = [max(start, part.start) for start in reported] + ([] if kept is None else [kept])
    starts += [part.start] if reset else []
    if offset in starts:
        return True
    below = np.array([offset, *(start for start in starts if start <= offset)], np.int64)
    visible, *passed = part.whole.between(below - 1, np.append(offset + 1, np.full(len(below) - 1, offset))).counts
    return not visible or not all(passed)
