"""Rules about commits against records: what a member says is done, and where the next one begins."""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING

from fencepost.checkers.detections import Detection, blamed
from fencepost.checkers.group_rules import commits
from fencepost.checkers.tables.commits import (
    answered_offsets,
    back_ns,
    hindrance,
    is_fence,
    reported_offsets,
    tried_past,
)
from fencepost.checkers.tables.records import Delivered
from fencepost.checkers.tables.rows import Interval, OffsetCommit
from fencepost.history import SendOutcome

if TYPE_CHECKING:
    from fencepost.checkers.oracle.history import History, Rule


def commit_ahead(history: History) -> Iterator[Detection]:
    """``commit-ahead``: a member commits past a record of its own interval that certainly nobody had finished yet.

    For each interval that delivered something, its commits that were not certainly refused, by begin, and the visible
    records from where it started (its first delivered offset, or the greatest one in force from the assigned callback's
    begin to the first delivery, whichever is greater) to before the committed offset: those of which no finished row
    was done by the moment at which the commit was made at the latest (``Tables.sent_ns``); where effects tell what is
    processed, not those that have one and no finished row. One sighting for each, at the first commit of the interval
    that passes it. members: the incarnation; times: begin and end of the commit; excuse: an act that made the
    partition, before the commit.
    """
    for (incarnation, tp, number), rows in sorted(history.streams.items()):
        interval = history.tables.interval.get((incarnation, tp, number))
        if interval is None:
            continue
        reported = history.tables.committed_between(tp, interval.assigned_begin_ns, rows[0].delivered_ns)
        reached = max(rows[0].offset, *reported)
        for commit in history.tables.commits_in(interval):
            if commit.outcome == "fail":
                continue
            sent_ns = history.tables.sent_ns(commit)
            for offset in (o for o in history.visible(tp) if reached <= o < commit.offset):
                done = [row.done_ns for row in history.finished(tp, offset)]
                if not (min(done) <= sent_ns if done else history.had_effect(tp, offset)):
                    times = (commit.begin_ns, commit.end_ns)
                    excuse = history.tables.recreated(tp, commit.begin_ns)
                    yield Detection("commit-ahead", tp, (incarnation,), "", excuse, offset, *times)
            reached = max(reached, commit.offset)


def commit_above_end(history: History) -> Iterator[Detection]:
    """``commit-beyond-end``: above any record that there ever was; see ``group_rules.commits.commit_above_end``."""
    records, reached = history.records, defaultdict[int, int](int)
    for those in (records.log, records.produced, records.delivered):
        for record in those:
            reached[record.tp] = max(reached[record.tp], record.offset + 1)
    yield from commits.commit_above_end(history.tables, reached)


def commit_before_send(history: History) -> Iterator[Detection]:
    """``commit-beyond-end``: the log cannot have held this record when a commit past it was written.

    An acknowledged visible record that was sent after an accepted commit above it was certainly written, and of whose
    offset nobody had been delivered anything before (a log that lost its tail gives an offset again); one sighting for
    each such record, by the first of these commits (by the latest moment at which it was written, then by order).
    members: the commit's writer; offset: the record's; times: when the commit was written, and the send; excuse: a
    declared act before the commit.
    """
    for p in history.records.produced:
        above = [a for a in history.tables.accepted_of.get(p.tp, ()) if a.offset > p.offset]
        if p.outcome != SendOutcome.OK or history.record(p.tp, p.offset) is None or not above:
            continue
        at_ns, _, commit = min((a.at_ns + a.uncertainty_ns, a.order, a) for a in above)
        again = any(row.delivered_ns < p.sent_ns for row in history.of_offset.get((p.tp, p.offset), ()))
        if at_ns < p.sent_ns and not again:
            excuse, times = history.declared(p.tp, commit.at_ns), (commit.at_ns, p.sent_ns)
            members = blamed(history.tables.writer(commit))
            yield Detection("commit-beyond-end", p.tp, members, "", excuse, p.offset, *times)


def off_by_one(history: History) -> Iterator[Detection]:
    """``off-by-one``: the group commits the last record it finished instead of the next one to read.

    Judged at quiescence (the drain ended), and only if it holds for each partition of which anything was finished and
    committed, and these are at least two: of the visible records at or above the final committed offset exactly one was
    finished, the one at that offset, certainly before that commit was written; and nobody ever tried to commit past it
    (or else the group knew better and a commit merely failed). One sighting for each partition; members: the writer of
    the final commit; offset: the committed one; times: when it was written.
    """
    if not history.tables.quiet.end_ns:
        return
    found = []
    for tp, rows in history.tables.accepted_of.items():
        final = rows[-1]
        done = [offset for offset in history.visible(tp) if history.finished(tp, offset)]
        if done and final.offset >= 0:
            behind = [offset for offset in done if offset >= final.offset]
            found.append((final, behind == [final.offset] and _knew(history, final)))
    if len(found) > 1 and all(behind for _, behind in found):
        for final, _ in found:
            members, times = blamed(history.tables.writer(final)), (final.at_ns, final.at_ns)
            yield Detection("off-by-one", final.tp, members, "", "", final.offset, *times)


def _knew(history: History, final: OffsetCommit) -> bool:
    """Whether the record at a committed offset was finished before the commit, and nobody tried to commit more."""
    done_ns = min(row.done_ns for row in history.finished(final.tp, final.offset))
    return done_ns < final.written.begin_ns and not tried_past(history.tables, final)


def work_after_fencing(history: History) -> Iterator[Detection]:
    """``work-after-fencing``: a commit was refused because the member is out, and it goes on as if it were in.

    The *fence* of an interval is its first commit (but of mode ``auto``: nobody knows the generation that it was sent
    with) whose error is one of ``FENCES``. A row of that interval that was begun, and delivered more than one heartbeat
    interval after the answer, and not by the first such poll of the interval (which may have begun before), with no
    generation later than the commit's begun by then that its incarnation was in (a cooperative member keeps its
    partitions when it joins again; it also may hear of the next generation before the answer to a commit of the last
    one). None where the member does not tell the commit's generation. One sighting for each such row; members: the
    incarnation; cause: the error; excuse: what hindered it between the answer and the row's begin (``hindrance``);
    offset: the row's; times: the answer, and the row's begin.
    """
    for (incarnation, tp, number), rows in sorted(history.streams.items()):
        interval = history.tables.interval.get((incarnation, tp, number))
        refused = (c for c in history.tables.commits_in(interval) if is_fence(c)) if interval else iter(())
        fence = next(refused, None)
        if fence is None:
            continue
        late = [row for row in rows if row.delivered_ns > fence.end_ns + history.tables.heartbeat_ns]
        hindered_ns, hindered_by = hindrance(history.tables, incarnation, fence.end_ns)
        for row in late:
            if row.poll > min(r.poll for r in late) and 0 < row.begin_ns < back_ns(history.tables, fence):
                excuse, times = hindered_by if row.begin_ns >= hindered_ns else "", (fence.end_ns, row.begin_ns)
                yield Detection("work-after-fencing", tp, (incarnation,), fence.error, excuse, row.offset, *times)


def wrong_start(history: History) -> Iterator[Detection]:
    """``wrong-start``, ``stale-offset-answer``: an assignment interval does not begin where the group had got to.

    Judged if the audit saw that record. Right is the first visible record at or above any offset in force
    (``reported_offsets``); where there was none, or one above the end of the log, the group's start, and with a
    reset policy of ``latest`` anything. Also right: what follows all that this incarnation had got of the partition
    before (it kept its position). And what an answer told it that brokers gave it for this interval (``answers``): if
    one of those is stale, the kind is ``stale-offset-answer``, cause ``wrong-start``, and else it is nothing.

    cause ``seek``: it is the first visible record at or above an offset to which the program had moved its position in
    the interval by then, as it may where its offsets are elsewhere; else ``answer not seen``: nothing shows an answer,
    and a stale one may be why (``unseen``). excuse: a declared act before the delivery; else, of cause ``seek``, as for
    ``rewind``. members: the incarnation; offset: the delivered one; times: the assigned callback's begin, and the
    delivery.
    """
    for (incarnation, tp, number), rows in sorted(history.streams.items()):
        interval, first = history.tables.interval.get((incarnation, tp, number)), rows[0]
        if interval is None:
            continue
        begins = partial(_begins, history, interval, first)
        if begins(*reported_offsets(history.tables, interval, first.delivered_ns)):
            continue
        if wrong := answered_offsets(history.tables, interval, first.delivered_ns, begins):
            (kind, cause), excuse = wrong, history.declared(tp, first.delivered_ns)
            if kind == "wrong-start" and _went(history, interval, first):
                cause, excuse = "seek", excuse or history.tables.sought
            times = (interval.assigned_begin_ns, first.delivered_ns)
            yield Detection(kind, tp, (incarnation,), cause, excuse, first.offset, *times)


def _went(history: History, interval: Interval, first: Delivered) -> bool:
    """Whether the program had moved its position to a record, or below it where no other one is visible."""
    visible = history.visible(interval.tp)
    moves = history.tables.moves_in(interval.incarnation, interval.tp, interval, first.delivered_ns)
    return any(first.offset in visible[bisect_left(visible, move.offset) :][:1] for move in moves)


def _begins(history: History, interval: Interval, first: Delivered, reported: Sequence[int], reset: bool) -> bool:
    """Whether who is told one of some offsets, and may reset its position or not, begins with a row."""
    tp, visible = interval.tp, history.visible(interval.tp)
    if history.record(tp, first.offset) is None or (reset and history.tables.resets_to_end):
        return True
    own = (row for row in history.rows[tp] if row.incarnation == interval.incarnation)
    before = [row.offset + 1 for row in own if row.interval < interval.number]
    starts = {*(max(offset, history.start(tp)) for offset in reported), *([max(before)] if before else [])}
    starts |= {history.start(tp)} if reset else set()
    return any(first.offset in visible[bisect_left(visible, start) :][:1] for start in starts)


RULES: dict[Rule, tuple[str, ...]] = {
    commit_ahead: ("commit-ahead",),
    commit_above_end: ("commit-beyond-end",),
    commit_before_send: ("commit-beyond-end",),
    off_by_one: ("off-by-one",),
    work_after_fencing: ("work-after-fencing",),
    wrong_start: ("wrong-start", "stale-offset-answer"),
}
