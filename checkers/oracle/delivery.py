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

    Not below the log's start: retention or an act deleted that. Nor where a later record of its key replaced it
    (``History.replaced``): that one is to be there, or lost.
    members: ``producer-<writer>``; offset: the acknowledged one; times: acked_ns; excuse: a declared act on it.
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

    Not below the log's start: retention or an act deleted that. Nor, if it was sent and not aborted, or is of a writer
    that nobody knows, where a later record of its key replaced it (``History.replaced``); or where it is of such a
    writer, and may have been a tombstone that is gone by now.

    * ``aborted-read`` (Adya's G1a) when it (tp, key, writer, seq) is among the sends and one of these was aborted with
      its transaction (outcome ``aborted``): who reads with ``read_committed`` is never given it (KIP-98);
    * else ``delivered-then-lost`` when it is among the sends, of any outcome, for a consumer gets only what is
      replicated;
    * else ``phantom``.

    members: the incarnation; times: delivered_ns; excuse: a declared act on it; of an aborted read else that its
    consumer reads what is not committed, or that nobody knows (``BaseTables.uncommitted``).
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
    """Whether compaction may have taken a record that was delivered; ``known``: its send is."""
    if known or row.writer >= 0:
        return known and history.replaced(row)
    gone = history.tables.tombstone_gone(row.tp, row.delivered_ns)
    return history.replaced(row) or (gone and history.record(row.tp, row.offset) is None)


def inconsistent_offsets(history: History) -> Iterator[Detection]:
    """``inconsistent-offsets``: one offset was delivered with two contents (key, writer, seq).

    Of the rows of one offset (by delivered_ns, incarnation, ord) each that differs from the first one. members: its
    incarnation, then the first one's; times: delivered_ns of the first one, and its own; excuse: a declared act on it.
    """
    for (tp, offset), (first, *others) in history.of_offset.items():
        for row in others:
            if (row.key, row.writer, row.seq) != (first.key, first.writer, first.seq):
                members, times = blamed(row.incarnation, first.incarnation), (first.delivered_ns, row.delivered_ns)
                excuse = history.declared(tp, FOREVER)
                yield Detection("inconsistent-offsets", tp, members, "", excuse, offset, *times)


def unseen(history: History) -> Iterator[Detection]:
    """``unseen``: a visible record of the domain that nobody finished, and that had no effect where these tell that.

    Its *passer* is the first commit of its partition (by begin_ns, then incarnation) with an offset above it that was
    not definitely refused (outcome ``fail``). Its *holder* is the row that was delivered last (by delivered_ns, then
    incarnation), preferring rows in doubt: begun, state still begun, the incarnation killed or crashed.

    * cause ``unrecorded``: no row, and an assignment committed past it of which no delivery at all is recorded
      (``History.unread``); else ``seek``: no row, and the passer's program (anybody's, without a passer) had moved its
      position past it, not because of an aborted transaction, before the passer's begin, and had got nothing above it
      before that in the interval of the move; else ``expired``: no row, and the group, which begins at the end where
      nothing is committed, did so after its committed offset had expired: of the first deliveries in intervals that
      were assigned since, the earliest is above this record, which is not below that offset; else ``skipped``: no row;
      ``in-doubt``: the holder is in doubt; ``committed-unprocessed``: any other holder. (A program may go where it
      likes, and choose its reset policy. What nobody processes is lost all the same.)
    * members: the passer's incarnation, then the holder's; times: the passer's begin_ns (0: no member tells of it).
    * excuse: a declared act on the partition; one that made it, of a record that it may have led members past, so that
      nobody got it (``Tables.passed_over``); else, when the holder's poll is the last one that brought records of its
      (incarnation, tp, interval): ``in hand when its owner died`` (the interval ended by death), or ``in hand when
      its owner was evicted`` (it ended by lost, or the coordinator removed the owner before it was given up).
    """
    last_poll = {stream: max(row.poll for row in rows) for stream, rows in history.streams.items()}
    for tp, log in history.log.items():
        domain = history.domain(tp)
        passing = passes(history, tp)
        for offset in log:
            if offset not in domain or history.finished(tp, offset) or history.had_effect(tp, offset):
                continue
            passer = next((c for c in passing if c.offset > offset), None)
            yield _unseen(history, tp, offset, passer, last_poll)


def _unseen(
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
    """Why nobody was given a record, as far as is known."""
    if offset in history.unread(tp):
        return "unrecorded"
    if _sought(history, tp, offset, passer):
        return "seek"
    return "expired" if any(low <= offset < high for low, high in forgotten(history, tp)) else "skipped"


def _sought(history: History, tp: int, offset: int, passer: Commit | None) -> bool:
    """Whether a program moved its position past a record that nobody was given."""
    for seek, interval in history.tables.passing(tp):
        before = passer is None or (passer.incarnation == seek.incarnation and seek.begin_ns <= passer.begin_ns)
        rows = history.streams.get((seek.incarnation, tp, interval.number), ())
        above = any(row.offset > offset and row.delivered_ns <= seek.begin_ns for row in rows)
        if before and offset < seek.offset and not above:
            return True
    return False


def forgotten(history: History, tp: int) -> Iterator[tuple[int, int]]:
    """What the group went past when it began at the end, as its committed offset had expired: from there, to where."""
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
    """``unconsumed``: a visible record at or above the final committed offset that nobody finished.

    Not below the group's start, and only when the drain ended. members: whoever was assigned the partition last (of
    black boxes by the coordinator's log); times: the quiet window.
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
    """``history-incomplete``: the rows of an (incarnation, tp) cannot be all that there were, or not as they are.

    * One sighting at each row whose ``ord`` is not the one before plus 1, the first being 0. cause ``hole`` (count:
      ords missing) or ``twice`` (count 1); times: delivered_ns of the row before (0: there is none) and of that row.
    * One at each row that was delivered before its interval was assigned. cause ``early``; times: delivered_ns and the
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
    """``unrecorded-delivery``: a record that must have been given to a member, and nobody tells of that. One sighting
    for each.

    * cause ``unread``: an assignment of a user's program committed past it of which no delivery at all is recorded
      (``History.unread``): either its client skipped all of that, or its program reads where nobody records it.
      members: the incarnation; times: when that was assigned, and the begin of the commit.
    * cause ``effect``: else, of a visible record of the domain, its effect was there. members: the passer (see
      ``unseen``); times: its begin_ns.
    """
    for tp, log in history.log.items():
        unread, passing = history.unread(tp), passes(history, tp)
        for offset, one in unread.items():
            owner, times = one.interval.incarnation, (one.interval.assigned_begin_ns, one.commit.begin_ns)
            yield Detection("unrecorded-delivery", tp, (owner,), "unread", "", offset, *times)
        for offset in log:
            given = offset in unread or (tp, offset) in history.of_offset
            if offset in history.domain(tp) and not given and history.had_effect(tp, offset):
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
