"""Kernel rules that compare records with the log: lost, phantom, aborted and unseen records; and counts of records.

The *domain* of a partition goes from the group's start to before its final committed offset. A row is *finished* if it
is done or parked.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fencepost.checkers.detections import blamed
from fencepost.checkers.kernel.aggregates import Label, Totals
from fencepost.checkers.kernel.arrays import Columns
from fencepost.checkers.kernel.compacted import ABORTED, NEVER_SENT, SENT, fates, replaced
from fencepost.checkers.kernel.offset_index import RowPositions
from fencepost.checkers.kernel.rows import of_streams
from fencepost.checkers.kernel.task_data import TaskData
from fencepost.checkers.tables.rows import FOREVER
from fencepost.history import RecordState

Array = NDArray[Any]
CAUSES = ("skipped", "in-doubt", "committed-unprocessed", "unrecorded", "seek", "expired", "latest")


def facts(part: TaskData) -> None:
    """The numbers of ``counts.JudgedCounts``, as aggregates whose kinds begin with ``#``."""
    rows = part.rows
    domain = slice(part.places.below(part.start), part.places.below(part.stop))
    judged = part.visible[domain]
    if part.tp in part.tables.compacted:
        judged = judged | (part.finishes[domain] > 0)
    counts = {
        "#acknowledged": sum(len(sent["offset"]) for sent in part.sent),
        "#visible": len(part.log["offset"]),
        "#judged": int(np.count_nonzero(judged)),
        "#begun": int(np.count_nonzero(rows.begun)),
        "#finished": int(np.count_nonzero(rows.finished)),
    }
    for kind, count in counts.items():
        part.aggregates.put(kind, -1, numbers=Totals(count))
    first, last = (int(rows.delivered_ns.min()), int(rows.done_ns.max())) if len(rows) else (0, 0)
    part.aggregates.put("#delivered", -1, numbers=Totals(len(rows), from_ns=first, to_ns=last))


def lost_and_vanished(part: TaskData) -> None:
    """Sends and deliveries whose record the log does not hold at their offset."""
    logged = {name: part.logged(name) for name in ("key", "writer", "seq")}
    _vanished(part, _absent(part, logged, part.where, vars(part.rows)))
    del logged["key"]  # writer and seq identify a send
    lost = [_absent(part, logged, *sent) for sent in zip(part.sent_where, part.sent, strict=True)]
    if part.tp in part.tables.compacted:
        compacted = _compacted_away(part, part.sent_where, part.sent, lost)
        lost = [rows[~of] for rows, of in zip(lost, compacted, strict=True)]
    _lost_write(part, lost)


def _absent(part: TaskData, logged: Columns, where: RowPositions, columns: Mapping[str, Array]) -> Array:
    """The rows at or above the log's start whose record the log does not hold, or holds with other content."""
    there = np.ones(len(columns["offset"]), bool)
    for name, column in logged.items():
        there &= where.same(column, columns[name])
    absent = np.flatnonzero(~there)
    return absent[columns["offset"][absent] >= part.tables.log_start(part.tp)]


def _compacted_away(
    part: TaskData, wheres: Sequence[RowPositions], pieces: Sequence[Mapping[str, Array]], absent: Sequence[Array]
) -> list[Array]:
    """Which rows of each piece compaction may have removed: a later record of their key was in the partition."""
    gone = [~part.visible[where.places(rows)] for where, rows in zip(wheres, absent, strict=True)]
    names, some = ("key", "writer", "offset"), [*zip(pieces, absent, gone, strict=True)]
    if any(map(np.any, gone)):
        rows = {name: np.concatenate([piece[name][index[of]] for piece, index, of in some]) for name in names}
        ends = np.cumsum([np.count_nonzero(of) for of in gone])
        for of, found in zip(gone, np.split(replaced(part, **rows), ends[:-1]), strict=True):
            of[of] = found
    return gone


def _lost_write(part: TaskData, lost: Sequence[Array]) -> None:
    """``lost-write``: an acknowledged send that the log does not hold."""
    excuse = part.tables.declared(part.tp, FOREVER) if any(map(len, lost)) else ""
    for sent, which in zip(part.sent, lost, strict=True):
        if not len(which):
            continue
        acked_ns = sent["acked_ns"][which]
        part.aggregates.put_many(
            "lost-write",
            part.tp,
            [sent["writer"][which]],
            lambda writer: Label((f"producer-{writer}",), "", excuse),
            first=sent["offset"][which],
            from_ns=acked_ns,
            to_ns=acked_ns,
        )


def _vanished(part: TaskData, absent: Array) -> None:
    """``phantom``, ``delivered-then-lost``, ``aborted-read``: a delivery that the log lacks; its sends decide which."""
    rows = part.rows
    if not len(absent):
        return
    sent, act = fates(part, absent), part.tables.declared(part.tp, FOREVER)
    if part.tp in part.tables.compacted:
        left = ~_compacted(part, absent, sent)
        absent, sent = absent[left], sent[left]
    excuses: Mapping[str, Mapping[str, str]] = {"aborted-read": part.tables.uncommitted}
    for code, kind in ((NEVER_SENT, "phantom"), (SENT, "delivered-then-lost"), (ABORTED, "aborted-read")):
        which = absent[sent == code]
        part.aggregates.put_many(
            kind,
            part.tp,
            [rows.who[which]],
            partial(_of_one, rows.names, act, excuses.get(kind, {})),
            first=rows.offset[which],
            from_ns=rows.delivered_ns[which],
            to_ns=rows.delivered_ns[which],
        )


def _compacted(part: TaskData, absent: Array, sent: Array) -> Array:
    """Which of these rows compaction may have removed: those of unknown writers, and those sent and not aborted."""
    found, rows = np.zeros(len(absent), bool), part.rows
    foreign = (sent == NEVER_SENT) & (rows.writer[absent] < 0)
    known = np.flatnonzero((sent == SENT) | foreign)
    (found[known],) = _compacted_away(part, [part.where], [vars(rows)], [absent[known]])
    for index in np.flatnonzero(foreign & ~part.visible[part.where.places(absent)]).tolist():
        found[index] |= part.tables.tombstone_gone(part.tp, int(rows.delivered_ns[absent[index]]))
    return found


def _of_one(names: Sequence[str], act: str, excuses: Mapping[str, str], who: int) -> Label:
    return Label((names[who],), "", act or excuses.get(names[who], ""))


def inconsistent_offsets(part: TaskData) -> None:
    """``inconsistent-offsets``: a delivery with other content than the first delivery of its offset."""
    rows = part.rows.in_turn(part.again)
    if not len(rows):
        return
    begin = np.flatnonzero(np.diff(rows.offset, prepend=-2))
    first = np.repeat(begin, np.diff(np.append(begin, len(rows))))
    contents = (rows.key, rows.writer, rows.seq)
    other = np.flatnonzero(np.logical_or.reduce([column != column[first] for column in contents]))
    excuse = part.tables.declared(part.tp, FOREVER)
    part.aggregates.put_many(
        "inconsistent-offsets",
        part.tp,
        [rows.who[other], rows.who[first[other]]],
        lambda who, before: Label(blamed(rows.names[who], rows.names[before]), "", excuse),
        first=rows.offset[other],
        from_ns=rows.delivered_ns[first[other]],
        to_ns=rows.delivered_ns[other],
    )


def unseen(part: TaskData) -> None:
    """``unseen``: a visible record of the domain that no member finished."""
    low, high = part.places.below(part.start), part.places.below(part.stop)
    missed = low + np.flatnonzero(part.visible[low:high] & part.unheld[low:high])
    if not len(missed):
        return
    rows, offsets = part.rows, part.places.offsets(missed)
    names, passer, at_ns = passers(part, offsets)
    holder, doubtful = _holders(part, missed)
    held = holder >= 0
    who = np.where(held, rows.who[holder], -1) if len(rows) else holder
    interval = np.where(held, rows.interval[holder], -1) if len(rows) else holder
    cause = np.where(held, np.where(doubtful, 1, 2), np.where(part.unread[missed] >= 0, 3, 0))
    last = np.zeros(len(missed), bool)
    known = np.flatnonzero(interval >= 0)
    if len(known):
        last_poll = of_streams(who[known], interval[known], lambda w, i: part.whole.polls(rows.names[w], i)[1])
        last[known] = part.polls_of(holder[known]) == last_poll
    cause = np.where((cause == 0) & _skipped_by_seek(part, offsets, names, passer, at_ns), CAUSES.index("seek"), cause)
    cause = np.where((cause == 0) & _skipped_after_expiry(part, offsets), CAUSES.index("expired"), cause)
    cause = np.where((cause == 0) & (offsets < _began_at_end(part)), CAUSES.index("latest"), cause)
    act, (passed, remade) = part.tables.declared(part.tp, FOREVER), part.tables.passed_over(part.tp)

    def label(passer: int, who: int, interval: int, cause: int, last: int, over: int) -> Label:
        excuse = act or (remade if over else _in_hand(part, who, interval) if last else "")
        return Label(blamed(names[passer], rows.names[who] if who >= 0 else ""), CAUSES[cause], excuse)

    codes = [passer, who, interval, cause, last, offsets < passed]
    part.aggregates.put_many("unseen", part.tp, codes, label, first=offsets, from_ns=at_ns, to_ns=at_ns)


def unrecorded_delivery(part: TaskData) -> None:
    """``unrecorded-delivery``: a record that must have been delivered to a member, without a recorded delivery."""
    if not (part.passed or part.tables.by_effect):
        return
    unread = np.flatnonzero(part.unread >= 0)
    codes = part.unread[unread]
    begun = np.array([(one.interval.assigned_begin_ns, one.commit.begin_ns) for one in part.passed], np.int64)
    part.aggregates.put_many(
        "unrecorded-delivery",
        part.tp,
        [codes],
        lambda number: Label((part.passed[number].interval.incarnation,), "unread"),
        first=part.places.offsets(unread),
        from_ns=begun.reshape(-1, 2)[codes, 0],
        to_ns=begun.reshape(-1, 2)[codes, 1],
    )
    low, high = part.places.below(part.start), part.places.below(part.stop)
    unreported = part.visible & part.affected & (part.deliveries == 0) & (part.unread < 0)
    effects = low + np.flatnonzero(unreported[low:high])
    if len(effects):
        offsets = part.places.offsets(effects)
        names, passer, at_ns = passers(part, offsets)
        part.aggregates.put_many(
            "unrecorded-delivery",
            part.tp,
            [passer],
            lambda passer: Label(blamed(names[passer]), "effect"),
            first=offsets,
            from_ns=at_ns,
            to_ns=at_ns,
        )


def _skipped_by_seek(part: TaskData, offsets: Array, names: Sequence[str], passer: Array, at_ns: Array) -> Array:
    """Which of these offsets a seek skipped: one by the first incarnation that committed past them, before that commit;
    or one by any incarnation, if none committed past them."""
    found, not_passed = np.zeros(len(offsets), bool), passer == names.index("")
    for seek, interval in part.tables.passing(part.tp):
        own = passer == (names.index(seek.incarnation) if seek.incarnation in names else -1)
        reached = part.whole.reached(seek.incarnation, interval.number, seek.begin_ns)
        found |= (not_passed | (own & (at_ns >= seek.begin_ns))) & (reached <= offsets) & (offsets < seek.offset)
    return found


def _skipped_after_expiry(part: TaskData, offsets: Array) -> Array:
    """Which of these offsets the group skipped because its committed offset had expired: it began at the log's end."""
    found = np.zeros(len(offsets), bool)
    for expiry in part.tables.expiries.get(part.tp, ()) if part.tables.resets_to_end else ():
        since = (i for i in part.intervals if i.assigned_begin_ns >= expiry.written.begin_ns)
        firsts = [part.first_delivered(i.incarnation, i.number) for i in since]
        high = min(((first.delivered_ns, first.offset) for first in firsts if first), default=(0, 0))[1]
        found |= (expiry.offset <= offsets) & (offsets < high)
    return found


def _began_at_end(part: TaskData) -> int:
    """The highest offset at which an interval without a committed offset may have begun, at the log's end: that of its
    first delivery, or without any delivery that of its first commit."""
    found = [0]
    for interval, committed in part.tables.without_commit(part.tp):
        first = part.first_delivered(interval.incarnation, interval.number)
        found.append(first.offset if first else committed)
    return max(found)


def passers(part: TaskData, offsets: Array) -> tuple[list[str], Array, Array]:
    """The incarnation that first committed past each offset: names, an index into them for each offset, and the starts
    of these commits (0: none).

    Only a commit above all earlier ones can be the first past an offset.
    """
    commits = [commit for commit in part.commits if commit.outcome != "fail"]
    commits.sort(key=lambda commit: (commit.begin_ns, commit.incarnation))
    further, top = [], -1
    for commit in commits:
        if commit.offset > top:
            top = commit.offset
            further.append(commit)
    index = np.searchsorted(np.array([commit.offset for commit in further], np.int64), offsets, side="right")
    names = sorted({"", *(commit.incarnation for commit in further)})
    of = np.array([*(names.index(commit.incarnation) for commit in further), 0])  # names[0] is empty: no commit
    return names, of[index], np.array([*(commit.begin_ns for commit in further), 0])[index]


def _holders(part: TaskData, missed: Array) -> tuple[Array, Array]:
    """The last delivery of each missed place (-1: none), and whether it is in doubt.

    A row is in doubt if it was begun and its incarnation was killed or crashed; such rows are preferred.
    """
    rows = part.rows
    is_missed = np.zeros(len(part.places), bool)
    is_missed[missed] = True
    index = np.flatnonzero(part.where.of(is_missed))
    at = part.where.places(index)
    lives = part.tables.lives
    died = np.array([name in lives and lives[name].how in ("killed", "crashed") for name in rows.names], bool)
    doubtful = (rows.state[index] == RecordState.BEGUN) & (died[rows.who[index]] if len(index) else False)
    order = np.lexsort((-index, rows.who[index], rows.delivered_ns[index], doubtful, at))
    holder = np.full(len(part.places), -1)
    in_doubt = np.zeros(len(part.places), bool)
    holder[at[order]] = index[order]  # the last one of a place stays
    in_doubt[at[order]] = doubtful[order]
    return holder[missed], in_doubt[missed]


def _in_hand(part: TaskData, who: int, number: int) -> str:
    interval = part.interval_of(who, number)
    if interval is None:
        return ""
    if interval.how == "died":
        return "in hand when its owner died"
    evicted = interval.how == "lost" or part.tables.removed(interval, interval.given_up_end_ns or FOREVER)
    return "in hand when its owner was evicted" if evicted else ""


def unconsumed(part: TaskData) -> None:
    """``unconsumed``: a visible record at or above the final committed offset that no member finished."""
    quiet = part.tables.quiet
    if not quiet.end_ns:
        return
    high = part.places.below(part.stop)
    left = high + np.flatnonzero(part.visible[high:] & part.unheld[high:])
    if not len(left):
        return
    last = max(part.intervals, key=lambda i: (i.assigned_begin_ns, i.incarnation), default=None)
    owner = last.incarnation if last else part.tables.last_silent_coordinator_owner(part.tp)
    first, end = (int(part.places.offsets(left[at])) for at in (0, -1))
    numbers = Totals(len(left), first, end, quiet.begin_ns, quiet.end_ns)
    part.aggregates.put("unconsumed", part.tp, Label(blamed(owner)), numbers)
