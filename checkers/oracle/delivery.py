"""Rules about records against the log: what was written, delivered and finished, and whether the history is whole."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from fencepost.checkers.detections import Detection, blamed
from fencepost.checkers.tables.records import Delivered
from fencepost.checkers.tables.rows import FOREVER, Commit
from fencepost.history import RecordState, SendOutcome

if TYPE_CHECKING:
    from fencepost.checkers.oracle.history import History, Rule

DIED = ("killed", "crashed")


def lost_write(history: History) -> Iterator[Detection]:
    """``lost-write``: an acknowledged send whose record (offset, writer, seq) is not in the log at the audit.

    Not below the log's start: retention or a declared act deleted these records. Nor if compaction may have replaced
    the record by a later one of its key (``History.replaced``): that one must be in the log, or is lost itself.

    members: ``producer-<writer>``; offset: the acknowledged one; times: acked_ns; excuse: a declared act on the
    partition.
    """
    for p in history.records.produced:
        if p.outcome != SendOutcome.OK or p.offset < history.tables.log_start(p.tp):
            continue
        there = history.record(p.tp, p.offset)
        if (there is None or (there.writer, there.seq) != (p.writer, p.seq)) and not history.replaced(p):
            excuse = history.declared(p.tp, FOREVER)
            yield Detection("lost-write", p.tp, (f"producer-{p.writer}",), "", excuse, p.offset, p.acked_ns, p.acked_ns)


def vanished(history: History) -> Iterator[Detection]:
    """``phantom``, ``delivered-then-lost``, ``aborted-read``: a row whose record (key, writer, seq) is not in the log
    at its offset.

    Not below the log's start: retention or a declared act deleted these records. Nor if compaction may have removed
    the record:

    * a later record of its key replaced it (``History.replaced``), and it was sent and not aborted, or its writer is
      unknown;
    * or its writer is unknown, no record is at its offset, and it may have been a tombstone that is deleted by now.

    The kind of the others:

    * ``aborted-read`` (Adya's G1a) if the record (tp, key, writer, seq) is among the sends and one of these was aborted
      with its transaction (outcome ``aborted``): a consumer with ``read_committed`` never receives it (KIP-98);
    * else ``delivered-then-lost`` if the record is among the sends, with any outcome: a consumer receives only
      replicated records;
    * else ``phantom``.

    members: the incarnation; times: delivered_ns; excuse: a declared act on the partition; else, for an aborted read,
    that the consumer reads uncommitted records, or that this is unknown (``BaseTables.uncommitted``).
    """
    for row in history.records.delivered:
        there = history.record(row.tp, row.offset)
        in_log = there is not None and (there.key, there.writer, there.seq) == (row.key, row.writer, row.seq)
        if not in_log and row.offset >= history.tables.log_start(row.tp):
            aborted = history.aborted.get((row.tp, row.key, row.writer, row.seq))
            if not aborted and _compacted(history, row, known=aborted is not None):
                continue
            kind = "phantom" if aborted is None else "aborted-read" if aborted else "delivered-then-lost"
            excuse, at_ns = history.declared(row.tp, FOREVER), row.delivered_ns
            if aborted:
                excuse = excuse or history.tables.uncommitted.get(row.incarnation, "")
            yield Detection(kind, row.tp, (row.incarnation,), "", excuse, row.offset, at_ns, at_ns)


def _compacted(history: History, row: Delivered, known: bool) -> bool:
    """Whether compaction may have removed a delivered record; ``known``: its send is recorded, and was not aborted."""
    if known or row.writer >= 0:
        return known and history.replaced(row)
    gone = history.tables.tombstone_gone(row.tp, row.delivered_ns)
    return history.replaced(row) or (gone and history.record(row.tp, row.offset) is None)


def inconsistent_offsets(history: History) -> Iterator[Detection]:
    """``inconsistent-offsets``: one offset was delivered with two contents (key, writer, seq).

    One detection for each row of an offset (by delivered_ns, incarnation, ord) that differs from the first row.
    members: its incarnation, then the first row's; times: delivered_ns of the first row, and its own; excuse: a
    declared act on the partition.
    """
    for (tp, offset), (first, *others) in history.of_offset.items():
        for row in others:
            if (row.key, row.writer, row.seq) != (first.key, first.writer, first.seq):
                members, times = blamed(row.incarnation, first.incarnation), (first.delivered_ns, row.delivered_ns)
                excuse = history.declared(tp, FOREVER)
                yield Detection("inconsistent-offsets", tp, members, "", excuse, offset, *times)


def unseen(history: History) -> Iterator[Detection]:
    """``unseen``: a visible record of the domain that no member finished; not if effects decide, and it has one.

    Its *passer* is the first commit of its partition (by begin_ns, then incarnation) with an offset above it that was
    not definitely refused (outcome ``fail``). Its *holder* is the row that was delivered last (by delivered_ns, then
    incarnation), preferring rows in doubt: rows in the state begun whose incarnation was killed or crashed.

    The cause of a record without a row is the first that holds:

    * ``unrecorded``: an assignment without any recorded delivery committed past it (``History.unread``);
    * ``seek``: the program of the passer's incarnation had moved its position past it, not because of an aborted
      transaction, before the passer's start, and had received no record above it in that interval before the move.
      Without a passer the move of any program counts;
    * ``expired``: the group resets to the end of the log, and its committed offset, at or below this record, had
      expired. The earliest first delivery of the intervals that were assigned since is above this record;
    * ``latest``: the group resets to the end of the log, and an interval that may have begun without a committed offset
      (``Tables.without_commit``) has its first delivery, or without any delivery its first commit, above this record;
    * ``skipped``.

    The cause of the others: ``in-doubt`` if the holder is in doubt, else ``committed-unprocessed``. A program may move
    its position and choose its reset policy; a record that no member processes is lost all the same.

    members: the passer's incarnation, then the holder's; times: the passer's begin_ns (0: no member reported a passer).
    The excuse is the first that holds:

    * a declared act on the partition;
    * a declared act that recreated the partition: positions in its predecessor may have made members skip the record
      (``Tables.passed_over``);
    * if the holder's poll is the last one that returned records of its (incarnation, tp, interval): ``in hand when its
      owner died`` (the interval ended by death), or ``in hand when its owner was evicted`` (it ended by lost, or the
      coordinator removed the owner before the end of its revocation).
    """
    last_poll = {stream: max(row.poll for row in rows) for stream, rows in history.streams.items()}
    for tp, log in history.log.items():
        domain = history.domain(tp)
        passing = passes(history, tp)
        for offset in log:
            if offset not in domain or history.finished(tp, offset) or history.had_effect(tp, offset):
                continue
            passer = next((c for c in passing if c.offset > offset), None)
            yield _unprocessed(history, tp, offset, passer, last_poll)


def _unprocessed(
    history: History, tp: int, offset: int, passer: Commit | None, last_poll: Mapping[tuple[str, int, int], int]
) -> Detection:
    rows = history.of_offset.get((tp, offset), [])
    doubtful = [row for row in rows if _in_doubt(history, row)]
    holder = max(doubtful or rows, key=lambda r: (r.delivered_ns, r.incarnation), default=None)
    cause = "in-doubt" if doubtful else "committed-unprocessed"
    if holder is None:
        cause = _why_skipped(history, tp, offset, passer)
    passed, act = history.tables.passed_over(tp)
    excuse = history.declared(tp, FOREVER) or (act if offset < passed else "")
    if holder and not excuse and holder.poll == last_poll.get((holder.incarnation, tp, holder.interval)):
        excuse = _in_hand(history, holder)
    members = blamed(passer.incarnation if passer else "", holder.incarnation if holder else "")
    at = passer.begin_ns if passer else 0
    return Detection("unseen", tp, members, cause, excuse, offset, at, at)


def _why_skipped(history: History, tp: int, offset: int, passer: Commit | None) -> str:
    """The cause of ``unseen`` for a record that was never delivered."""
    if offset in history.unread(tp):
        return "unrecorded"
    if _sought(history, tp, offset, passer):
        return "seek"
    if any(low <= offset < high for low, high in forgotten(history, tp)):
        return "expired"
    for interval, committed in history.tables.without_commit(tp):
        rows = history.streams.get((interval.incarnation, tp, interval.number))
        if (rows[0].offset if rows else committed) > offset:
            return "latest"
    return "skipped"


def _sought(history: History, tp: int, offset: int, passer: Commit | None) -> bool:
    """Whether a program moved its position past a record that was never delivered."""
    for seek, interval in history.tables.passing(tp):
        before = passer is None or (passer.incarnation == seek.incarnation and seek.begin_ns <= passer.begin_ns)
        rows = history.streams.get((seek.incarnation, tp, interval.number), ())
        above = any(row.offset > offset and row.delivered_ns <= seek.begin_ns for row in rows)
        if before and offset < seek.offset and not above:
            return True
    return False


def forgotten(history: History, tp: int) -> Iterator[tuple[int, int]]:
    """The offsets that the group may have skipped after an expiry, if it resets to the end of the log.

    Each range goes from the expired offset to before the earliest first delivery of the intervals that were assigned
    since (0: there was none).
    """
    if history.tables.resets_to_end:
        intervals = history.tables.intervals_by_tp.get(tp, ())
        for expiry in history.tables.expiries.get(tp, ()):
            since = (i for i in intervals if i.assigned_begin_ns >= expiry.written.begin_ns)
            streams = [history.streams.get((i.incarnation, tp, i.number)) for i in since]
            firsts = [(rows[0].delivered_ns, rows[0].offset) for rows in streams if rows]
            yield expiry.offset, min(firsts, default=(0, 0))[1]


def _in_doubt(history: History, row: Delivered) -> bool:
    life = history.tables.lives.get(row.incarnation)
    return row.state == RecordState.BEGUN and life is not None and life.how in DIED


def _in_hand(history: History, row: Delivered) -> str:
    interval = history.interval(row)
    if interval is None:
        return ""
    if interval.how == "died":
        return "in hand when its owner died"
    evicted = interval.how == "lost" or history.tables.removed(interval, interval.given_up_end_ns or FOREVER)
    return "in hand when its owner was evicted" if evicted else ""


def passes(history: History, tp: int) -> list[Commit]:
    """The commits of a partition that were not definitely refused, by begin_ns and incarnation."""
    commits = [c for c in history.tables.commits if c.tp == tp and c.outcome != "fail"]
    return sorted(commits, key=lambda c: (c.begin_ns, c.incarnation))


def unconsumed(history: History) -> Iterator[Detection]:
    """``unconsumed``: a visible record at or above the final committed offset that no member finished.

    Not below the group's start, and only if the drain ended. A record with an effect does not count where effects
    decide what is processed. members: the incarnation that was assigned the partition last (for black boxes by the
    coordinator's log); times: the quiet window.
    """
    quiet = history.tables.quiet
    if not quiet.end_ns:
        return
    for tp, log in history.log.items():
        owners = [i for i in history.tables.intervals if i.tp == tp]
        last = max(owners, key=lambda i: (i.assigned_begin_ns, i.incarnation), default=None)
        owner = last.incarnation if last else history.tables.last_silent_coordinator_owner(tp)
        end = history.domain(tp).stop
        for offset in log:
            if offset >= end and not history.finished(tp, offset) and not history.had_effect(tp, offset):
                yield Detection("unconsumed", tp, blamed(owner), "", "", offset, *quiet)


def history_incomplete(history: History) -> Iterator[Detection]:
    """``history-incomplete``: rows of an (incarnation, tp) are missing, or contradict each other or their interval.

    * One detection for each row whose ``ord`` is not the previous one plus 1 (for the first row: not 0). cause ``hole``
      (count: the missing ords) or ``twice`` (count 1); times: delivered_ns of the previous row (0: there is none) and
      of that row.
    * One for each row that was delivered before its interval was assigned. cause ``early``; times: delivered_ns and the
      interval's assigned_begin_ns.

    offset: that row's; members: the incarnation.
    """
    for tp, rows in history.rows.items():
        before: dict[str, tuple[int, int]] = {}
        for row in rows:
            last, at = before.get(row.incarnation, (-1, 0))
            missing, members = row.ord - last - 1, (row.incarnation,)
            if missing:
                cause, count = ("hole", missing) if missing > 0 else ("twice", 1)
                yield Detection("history-incomplete", tp, members, cause, "", row.offset, at, row.delivered_ns, count)
            before[row.incarnation] = (row.ord, row.delivered_ns)
            interval = history.interval(row)
            if interval and row.delivered_ns < interval.assigned_begin_ns:
                times = (row.delivered_ns, interval.assigned_begin_ns)
                yield Detection("history-incomplete", tp, members, "early", "", row.offset, *times)


def unrecorded_delivery(history: History) -> Iterator[Detection]:
    """``unrecorded-delivery``: a member must have received a record, and no delivery of it is recorded.

    One detection for each such record.

    * cause ``unread``: an assignment of a user's program committed past it, and no delivery at all of that assignment
      is recorded (``History.unread``). Either its client skipped all these records, or the program polls where no
      instrument records it. members: the incarnation; times: the starts of the assignment and of the commit.
    * else cause ``effect``: a visible record of the domain has an effect, where effects decide what is processed.
      members: the passer (see ``unseen``); times: its begin_ns (0: there is none).
    """
    for tp, log in history.log.items():
        unread, passing = history.unread(tp), passes(history, tp)
        for offset, span in unread.items():
            owner, times = span.interval.incarnation, (span.interval.assigned_begin_ns, span.commit.begin_ns)
            yield Detection("unrecorded-delivery", tp, (owner,), "unread", "", offset, *times)
        for offset in log:
            delivered = offset in unread or (tp, offset) in history.of_offset
            if offset in history.domain(tp) and not delivered and history.had_effect(tp, offset):
                passer = next((c for c in passing if c.offset > offset), None)
                members, at_ns = blamed(passer.incarnation if passer else ""), passer.begin_ns if passer else 0
                yield Detection("unrecorded-delivery", tp, members, "effect", "", offset, at_ns, at_ns)


RULES: dict[Rule, tuple[str, ...]] = {
    lost_write: ("lost-write",),
    vanished: ("phantom", "delivered-then-lost", "aborted-read"),
    inconsistent_offsets: ("inconsistent-offsets",),
    unseen: ("unseen",),
    unconsumed: ("unconsumed",),
    history_incomplete: ("history-incomplete",),
    unrecorded_delivery: ("unrecorded-delivery",),
}
