"""Rules about commits against records: what members committed and had finished, and where the next owner started."""

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
    """``commit-ahead``: a member commits past a record of its own interval that certainly no member had finished yet.

    Only intervals with a delivery, and their commits that were not certainly refused, in the order of their starts. A
    detection is a visible record below the committed offset of which no finished row was done by the latest time at
    which the client may have chosen that offset (``Tables.sent_ns``). Records below the start of the interval do not
    count. It starts at its first delivered offset, or at the greatest committed offset in force between the start of
    the assigned callback and the first delivery, whichever is greater. Where effects decide what is processed, a
    record without a finished row does not count if it has an effect.

    One detection for each record, at the first commit of the interval past it. members: the incarnation; times: begin
    and end of the commit; excuse: a declared act that recreated the partition before the commit.
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
    """``commit-beyond-end``: a commit above every known record; see ``group_rules.commits.commit_above_end``."""
    records, reached = history.records, defaultdict[int, int](int)
    for kept in (records.log, records.produced, records.delivered):
        for record in kept:
            reached[record.tp] = max(reached[record.tp], record.offset + 1)
    yield from commits.commit_above_end(history.tables, reached)


def commit_before_send(history: History) -> Iterator[Detection]:
    """``commit-beyond-end``: a record was sent only after a commit past its offset had been written.

    A detection is an acknowledged visible record that was sent after an accepted commit above it was certainly written.
    It does not count if its offset had been delivered before the send: a log that lost its tail reuses offsets. The
    commit is the first one above the record, by the latest time at which it was written, then by order.

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

    Judged only if the drain ended. At least two partitions must have a committed offset and a finished visible record,
    and all these partitions must meet both conditions:

    * of their visible records at or above the final committed offset, exactly one was finished: the record at that
      offset, certainly before that commit was written;
    * no member ever tried to commit past that offset (otherwise the group was right, and only a commit failed).

    One detection for each partition; members: the writer of the final commit; offset: the committed one; times: when it
    was written.
    """
    if not history.tables.quiet.end_ns:
        return
    found = []
    for tp, rows in history.tables.accepted_of.items():
        final = rows[-1]
        done = [offset for offset in history.visible(tp) if history.finished(tp, offset)]
        if done and final.offset >= 0:
            behind = [offset for offset in done if offset >= final.offset]
            found.append((final, behind == [final.offset] and _finished_before(history, final)))
    if len(found) > 1 and all(behind for _, behind in found):
        for final, _ in found:
            members, times = blamed(history.tables.writer(final)), (final.at_ns, final.at_ns)
            yield Detection("off-by-one", final.tp, members, "", "", final.offset, *times)


def _finished_before(history: History, final: OffsetCommit) -> bool:
    """Whether the record at the committed offset was finished before the commit, and no member tried to commit more."""
    done_ns = min(row.done_ns for row in history.finished(final.tp, final.offset))
    return done_ns < final.written.begin_ns and not tried_past(history.tables, final)


def work_after_fencing(history: History) -> Iterator[Detection]:
    """``work-after-fencing``: a commit was refused because the member was fenced, and the member goes on processing.

    The *fence* of an interval is its first commit whose error is one of ``FENCES``. Commits of mode ``auto`` do not
    count: the program did not see their answers. A detection is a row of that interval that

    * was begun, and was delivered more than one heartbeat interval after the answer to the fence,
    * but not by the first poll of the interval that returned so late: that poll may have begun before the answer;
    * and before whose start the incarnation was in no generation later than the fence's (``back_ns``). A cooperative
      member keeps its partitions when it rejoins, and may learn of the next generation before it receives the answer to
      a commit of the previous one.

    There is none if the member did not report the commit's generation. members: the incarnation; cause: the error;
    excuse: a fault or stall between the answer and the row's start (``hindrance``); offset: the row's; times: the
    answer, and the row's start.
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
    """``wrong-start``, ``stale-offset-answer``: the first delivery of an assignment interval is at a wrong offset.

    Judged only if the first delivered record is visible at the audit. It is right if it is the first visible record at
    or above

    * a committed offset that was in force (``reported_offsets``), or the group's start if that is higher;
    * the group's start, if no offset was committed, or one above the end of the log. With the reset policy ``latest``
      every record is right then;
    * the offset after the last one that this incarnation had received of the partition in an earlier interval: it kept
      its position;
    * the offset in an answer of a broker to its fetch of committed offsets for this interval (``answers``). If a stale
      answer explains the start, the kind is ``stale-offset-answer`` with cause ``wrong-start``.

    cause ``seek``: it is the first visible record at or above an offset to which the program had moved its position in
    the interval by then, as a program does that stores its offsets elsewhere; else ``answer not seen``: no answer was
    logged, and a stale one may explain the start (``unseen``). excuse: a declared act before the delivery; else, for
    cause ``seek``, as for ``rewind``. members: the incarnation; offset: the delivered one; times: the assigned
    callback's start, and the delivery.
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
            if kind == "wrong-start" and _starts_by_seek(history, interval, first):
                cause, excuse = "seek", excuse or history.tables.sought
            times = (interval.assigned_begin_ns, first.delivered_ns)
            yield Detection(kind, tp, (incarnation,), cause, excuse, first.offset, *times)


def _starts_by_seek(history: History, interval: Interval, first: Delivered) -> bool:
    """Whether a row is the first visible record at or above an offset to which the program had moved its position."""
    visible = history.visible(interval.tp)
    moves = history.tables.moves_in(interval.incarnation, interval.tp, interval, first.delivered_ns)
    return any(first.offset in visible[bisect_left(visible, move.offset) :][:1] for move in moves)


def _begins(history: History, interval: Interval, first: Delivered, reported: Sequence[int], reset: bool) -> bool:
    """Whether a client begins with a row if it fetched one of the ``reported`` offsets.

    ``reset``: whether the client may also have reset its position.
    """
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
