"""Kernel rules about records against the log: what of them is lost, made up or aborted, unseen; how much was judged."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fencepost.checkers.kernel.columns import Columns
from fencepost.checkers.kernel.part import Part
from fencepost.checkers.kernel.places import Where
from fencepost.checkers.kernel.rows import of_streams
from fencepost.checkers.kernel.tallies import Label, Numbers
from fencepost.checkers.sightings import people
from fencepost.checkers.tables.rows import FOREVER
from fencepost.history import Sent, State

Array = NDArray[Any]
CAUSES = ("skipped", "in-doubt", "committed-unprocessed")


def facts(part: Part) -> None:
    """The numbers of ``facts.Facts``, as tallies whose kinds begin with ``#``."""
    rows = part.rows
    domain = slice(part.places.below(part.start), part.places.below(part.stop))
    counts = {
        "#acknowledged": sum(len(sent["offset"]) for sent in part.sent),
        "#visible": len(part.log["offset"]),
        "#judged": int(np.count_nonzero(part.visible[domain])),
        "#begun": int(np.count_nonzero(rows.begun)),
        "#finished": int(np.count_nonzero(rows.finished)),
    }
    for kind, count in counts.items():
        part.tallies.put(kind, -1, numbers=Numbers(count))
    first, last = (int(rows.delivered_ns.min()), int(rows.done_ns.max())) if len(rows) else (0, 0)
    part.tallies.put("#delivered", -1, numbers=Numbers(len(rows), from_ns=first, to_ns=last))


def beside_the_log(part: Part) -> None:
    """What the log does not hold at its offset, of all that was sent and of all that was delivered."""
    logged = {name: part.logged(name) for name in ("key", "writer", "seq")}
    _vanished(part, _strange(part, logged, part.where, vars(part.rows)))
    del logged["key"]  # of a send, writer and number say everything
    _lost_write(part, [_strange(part, logged, *sent) for sent in zip(part.sent_where, part.sent, strict=True)])


def _strange(part: Part, logged: Columns, where: Where, columns: Mapping[str, Array]) -> Array:
    """The rows for which the log has nothing, or another content, where it begins or above."""
    there = np.ones(len(columns["offset"]), bool)
    for name, column in logged.items():
        there &= where.same(column, columns[name])
    strange = np.flatnonzero(~there)
    return strange[columns["offset"][strange] >= part.tables.log_start(part.tp)]


def _lost_write(part: Part, lost: Sequence[Array]) -> None:
    """``lost-write``: an acknowledged send that the log does not hold."""
    excuse = part.tables.declared(part.tp, FOREVER) if any(map(len, lost)) else ""
    for sent, which in zip(part.sent, lost, strict=True):
        if not len(which):
            continue
        acked_ns = sent["acked_ns"][which]
        part.tallies.put_many(
            "lost-write",
            part.tp,
            [sent["writer"][which]],
            lambda writer: Label((f"producer-{writer}",), "", excuse),
            first=sent["offset"][which],
            from_ns=acked_ns,
            to_ns=acked_ns,
        )


def _vanished(part: Part, strange: Array) -> None:
    """``phantom``, ``delivered-then-lost``, ``aborted-read``: a row that the log does not hold, by its sends."""
    rows = part.rows
    if not len(strange):
        return
    sent, act = _among_sends(part, strange), part.tables.declared(part.tp, FOREVER)
    excuses: Mapping[str, Mapping[str, str]] = {"aborted-read": part.tables.uncommitted}
    for code, kind in enumerate(("phantom", "delivered-then-lost", "aborted-read")):
        which = strange[sent == code]
        part.tallies.put_many(
            kind,
            part.tp,
            [rows.who[which]],
            partial(_of_one, rows.names, act, excuses.get(kind, {})),
            first=rows.offset[which],
            from_ns=rows.delivered_ns[which],
            to_ns=rows.delivered_ns[which],
        )


def _of_one(names: Sequence[str], act: str, excuses: Mapping[str, str], who: int) -> Label:
    return Label((names[who],), "", act or excuses.get(names[who], ""))


def inconsistent_offsets(part: Part) -> None:
    """``inconsistent-offsets``: delivered with another content than the first delivery of its offset."""
    rows = part.rows.in_turn(part.again)
    if not len(rows):
        return
    begin = np.flatnonzero(np.diff(rows.offset, prepend=-2))
    first = np.repeat(begin, np.diff(np.append(begin, len(rows))))
    contents = (rows.key, rows.writer, rows.seq)
    other = np.flatnonzero(np.logical_or.reduce([column != column[first] for column in contents]))
    excuse = part.tables.declared(part.tp, FOREVER)
    part.tallies.put_many(
        "inconsistent-offsets",
        part.tp,
        [rows.who[other], rows.who[first[other]]],
        lambda who, before: Label(people(rows.names[who], rows.names[before]), "", excuse),
        first=rows.offset[other],
        from_ns=rows.delivered_ns[first[other]],
        to_ns=rows.delivered_ns[other],
    )


def _among_sends(part: Part, which: Array) -> Array:
    """Of the record of each of these rows, by (key, writer, seq): 0: never sent, 1: sent, 2: aborted, too."""
    rows = part.rows.take(which)
    wanted = list(zip(rows.key.tolist(), rows.writer.tolist(), rows.seq.tolist(), strict=True))
    sent: dict[tuple[int, int, int], int] = {}
    for sends, near in part.whole.sends(rows.seq):
        aborted = (sends["outcome"][near] == Sent.ABORTED).tolist()
        records = zip(*(sends[name][near].tolist() for name in ("key", "writer", "seq")), strict=True)
        for record, code in zip(records, aborted, strict=True):
            sent[record] = max(sent.get(record, 1), 1 + code)
    return np.array([sent.get(record, 0) for record in wanted], np.int8)


def unseen(part: Part) -> None:
    """``unseen``: a visible record of the domain that nobody finished."""
    low, high = part.places.below(part.start), part.places.below(part.stop)
    missed = low + np.flatnonzero(part.visible[low:high] & (part.finishes[low:high] == 0))
    if not len(missed):
        return
    rows, offsets = part.rows, part.places.offsets(missed)
    names, passer, at_ns = passers(part, offsets)
    holder, doubtful = _holders(part, missed)
    held = holder >= 0
    who = np.where(held, rows.who[holder], -1) if len(rows) else holder
    interval = np.where(held, rows.interval[holder], -1) if len(rows) else holder
    cause = np.where(held, np.where(doubtful, 1, 2), 0)
    last = np.zeros(len(missed), bool)
    theirs = np.flatnonzero(interval >= 0)
    if len(theirs):
        last_poll = of_streams(who[theirs], interval[theirs], lambda w, i: part.whole.polls(rows.names[w], i)[1])
        last[theirs] = part.polls_of(holder[theirs]) == last_poll
    act, (passed, remade) = part.tables.declared(part.tp, FOREVER), part.tables.passed_over(part.tp)

    def label(passer: int, who: int, interval: int, cause: int, last: int, over: int) -> Label:
        excuse = act or (remade if over else _in_hand(part, who, interval) if last else "")
        return Label(people(names[passer], rows.names[who] if who >= 0 else ""), CAUSES[cause], excuse)

    codes = [passer, who, interval, cause, last, offsets < passed]
    part.tallies.put_many("unseen", part.tp, codes, label, first=offsets, from_ns=at_ns, to_ns=at_ns)


def passers(part: Part, offsets: Array) -> tuple[list[str], Array, Array]:
    """Who committed past each offset first: names, an index into them for each offset, and when it did.

    Only commits that go further than all before them come into question.
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
    of = np.array([*(names.index(commit.incarnation) for commit in further), 0])  # names[0] is nobody
    return names, of[index], np.array([*(commit.begin_ns for commit in further), 0])[index]


def _holders(part: Part, missed: Array) -> tuple[Array, Array]:
    """The row that holds each missed place (-1: none), and whether it is in doubt."""
    rows = part.rows
    wanted = np.zeros(len(part.places), bool)
    wanted[missed] = True
    mine = np.flatnonzero(part.where.of(wanted))
    at = part.where.places(mine)
    lives = part.tables.lives
    died = np.array([name in lives and lives[name].how in ("killed", "crashed") for name in rows.names], bool)
    doubtful = (rows.state[mine] == State.BEGUN) & (died[rows.who[mine]] if len(mine) else False)
    order = np.lexsort((-mine, rows.who[mine], rows.delivered_ns[mine], doubtful, at))
    holder = np.full(len(part.places), -1)
    in_doubt = np.zeros(len(part.places), bool)
    holder[at[order]] = mine[order]  # the last one of a place stays
    in_doubt[at[order]] = doubtful[order]
    return holder[missed], in_doubt[missed]


def _in_hand(part: Part, who: int, number: int) -> str:
    interval = part.interval_of(who, number)
    if interval is None:
        return ""
    if interval.how == "died":
        return "in hand when its owner died"
    evicted = interval.how == "lost" or part.tables.removed(interval, interval.given_up_end_ns or FOREVER)
    return "in hand when its owner was evicted" if evicted else ""


def unconsumed(part: Part) -> None:
    """``unconsumed``: a visible record behind the final committed offset that nobody finished."""
    quiet = part.tables.quiet
    if not quiet.end_ns:
        return
    high = part.places.below(part.stop)
    left = high + np.flatnonzero(part.visible[high:] & (part.finishes[high:] == 0))
    if not len(left):
        return
    last = max(part.intervals, key=lambda i: (i.assigned_begin_ns, i.incarnation), default=None)
    owner = last.incarnation if last else part.tables.last_keeper(part.tp) if part.tables.black_box else ""
    first, end = (int(part.places.offsets(left[at])) for at in (0, -1))
    numbers = Numbers(len(left), first, end, quiet.begin_ns, quiet.end_ns)
    part.tallies.put("unconsumed", part.tp, Label(people(owner)), numbers)
