"""Rules about order: records jumped over inside an interval, and keys processed out of order."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterator
from itertools import pairwise
from typing import TYPE_CHECKING

from fencepost.checkers.detections import COMPACTED, DELETED, Detection, blamed
from fencepost.checkers.oracle.repeats import places

if TYPE_CHECKING:
    from fencepost.checkers.oracle.history import History, Rule


def poll_skip(history: History) -> Iterator[Detection]:
    """``poll-skip``: inside one interval number of an (incarnation, tp), a row's offset jumps over visible records.

    One sighting for each visible offset between where the stream was (``Place``) and its own. What comes before the
    first row of an interval is no skip. offset: the one jumped over; times: delivered_ns of the row just before and of
    the row; members: the incarnation. cause: ``inside one poll`` when a row of the same poll number came before it in
    the interval; else ``seek`` when the program had moved its position past it. excuse: as for ``rewind``: a program
    may skip what it likes, and ``unseen`` says what is lost by that.
    """
    for (incarnation, tp, _), rows in sorted(history.streams.items()):
        visible = history.visible(tp)
        for (before, _), (row, place) in pairwise(places(history, rows)):
            for offset in visible[bisect_right(visible, place.at) : bisect_left(visible, row.offset)]:
                act, times = history.declared(tp, row.delivered_ns), (before.delivered_ns, row.delivered_ns)
                cause = "inside one poll" if place.of_poll >= 0 else "seek" if offset <= place.gone_to else ""
                excuse = act or (history.tables.sought if cause == "seek" else "")
                yield Detection("poll-skip", tp, (incarnation,), cause, excuse, offset, *times)


def key_order(history: History) -> Iterator[Detection]:
    """``key-order``: a record is first begun, by anyone, before an earlier one of its key is first finished.

    *First begin* of an offset: the smallest (begin_ns, incarnation) of its begun rows; *first finish*: the smallest
    (done_ns, incarnation) of its finished rows; records that were never finished hold nobody up. The offsets of one key
    are taken in ascending order; a sighting is an offset whose first begin is before the latest first finish among the
    offsets below it (the lowest such offset, when equal). The key of an offset is that of its first delivered row.

    members: who began it, who finished the earlier one; excuse: a declared act before the first begin, or ``deleted``,
    where they are two and the log begins above the earlier one: whoever owned the partition next could not be given it
    once more; or ``compacted``, where they are two, the log is compacted and no longer has the earlier one: likewise;
    times: the first begin, and the finish.
    """
    keys: dict[tuple[int, int], list[int]] = defaultdict(list)
    for (tp, offset), rows in sorted(history.of_offset.items()):
        keys[tp, rows[0].key].append(offset)
    for (tp, _), offsets in sorted(keys.items()):
        latest, by, at = 0, "", -1
        for offset in offsets:
            begun = [(r.begin_ns, r.incarnation) for r in history.of_offset[tp, offset] if r.begin_ns]
            begin_ns, beginner = min(begun, default=(0, ""))
            if begin_ns and begin_ns < latest:
                deleted = _deleted(history, tp, at) if beginner != by else ""
                excuse = history.declared(tp, begin_ns) or deleted
                yield Detection("key-order", tp, blamed(beginner, by), "", excuse, offset, begin_ns, latest)
            finished = [(r.done_ns, r.incarnation) for r in history.finished(tp, offset)]
            if finished and min(finished)[0] > latest:
                (latest, by), at = min(finished), offset


def _deleted(history: History, tp: int, offset: int) -> str:
    if offset < history.tables.log_start(tp):
        return DELETED
    compacted = tp in history.tables.compacted and history.record(tp, offset) is None
    return COMPACTED if compacted else ""


RULES: dict[Rule, tuple[str, ...]] = {poll_skip: ("poll-skip",), key_order: ("key-order",)}
