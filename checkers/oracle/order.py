"""Rules about order: records that an interval skipped, and keys that were processed out of order."""

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
    """``poll-skip``: inside one interval number of an (incarnation, tp), the deliveries skip visible records.

    One detection for each visible offset between the position of the stream (``StreamPosition.at``) and the next row's
    offset. Records before the first row of an interval are not skipped. offset: the skipped one; times: delivered_ns of
    the previous row and of the row; members: the incarnation. cause: ``inside one poll`` if an earlier row of the
    interval has the same poll number; else ``seek`` if the program had moved its position past the record. excuse: as
    for ``rewind``: a program may skip records, and ``unseen`` reports those that are lost.
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
    """``key-order``: a record is first begun, by any member, before an earlier one of its key is first finished.

    *First start* of an offset: the smallest (begin_ns, incarnation) of its begun rows. *First finish*: the smallest
    (done_ns, incarnation) of its finished rows. A record that was never finished delays no later one. The key of an
    offset is that of its first delivered row. A detection is an offset whose first start is before the latest first
    finish among the lower offsets of its key (of equal ones, the lowest offset).

    members: the incarnations of the first start, and of that finish; times: the first start, and the finish. excuse: a
    declared act before the first start; else, if these are two incarnations, ``deleted``, if the log begins above the
    earlier record, or ``compacted``, if the log is compacted and no longer has it: the next owner could not receive the
    earlier record again.
    """
    keys: dict[tuple[int, int], list[int]] = defaultdict(list)
    for (tp, offset), rows in sorted(history.of_offset.items()):
        keys[tp, rows[0].key].append(offset)
    for (tp, _), offsets in sorted(keys.items()):
        latest, finisher, at = 0, "", -1
        for offset in offsets:
            begun = [(r.begin_ns, r.incarnation) for r in history.of_offset[tp, offset] if r.begin_ns]
            begin_ns, beginner = min(begun, default=(0, ""))
            if begin_ns and begin_ns < latest:
                deleted = _deleted(history, tp, at) if beginner != finisher else ""
                excuse = history.declared(tp, begin_ns) or deleted
                yield Detection("key-order", tp, blamed(beginner, finisher), "", excuse, offset, begin_ns, latest)
            finished = [(r.done_ns, r.incarnation) for r in history.finished(tp, offset)]
            if finished and min(finished)[0] > latest:
                (latest, finisher), at = min(finished), offset


def _deleted(history: History, tp: int, offset: int) -> str:
    if offset < history.tables.log_start(tp):
        return DELETED
    compacted = tp in history.tables.compacted and history.record(tp, offset) is None
    return COMPACTED if compacted else ""


RULES: dict[Rule, tuple[str, ...]] = {poll_skip: ("poll-skip",), key_order: ("key-order",)}
