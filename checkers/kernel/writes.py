"""Kernel rules ``duplicate-write`` and ``nonmonotonic-send``: the records of each writer, in the order of the log."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fencepost.checkers.kernel.aggregates import Label, Totals
from fencepost.checkers.kernel.task_data import TaskData

Array = NDArray[Any]


def send_order(part: TaskData) -> None:
    """A writer whose numbers ascend needs no further check.

    A task that has only a range of its partition returns how often they do not ascend, and the least and the greatest
    number (``#sends``), see ``boundaries``.
    """
    copies = [copy.again for copy in part.tables.copies_of.get(part.tp, ())]
    sent = np.where(np.isin(part.log["offset"], copies), -1, part.log["writer"]) if copies else part.log["writer"]
    batches = _batches(sent, part.log["seq"])
    for writer in np.unique(batches.writer[batches.writer >= 0]).tolist():
        own = batches.take(batches.writer == writer)
        falls = int(own.falls.sum() + np.count_nonzero(own.first[1:] <= own.last[:-1]))
        if part.task.rules == "offsets":
            label = Label((f"producer-{writer}",), f"{part.task.low} {part.task.high}")
            part.aggregates.put("#sends", part.tp, label, Totals(falls, int(own.least.min()), int(own.most.max())))
        elif falls:
            which = sent == writer
            _exact(part, writer, part.log["seq"][which], part.log["offset"][which])


class _Batches(NamedTuple):
    """Runs of consecutive records of one writer: how often their numbers do not ascend; their first, last, least and
    greatest number."""

    writer: Array
    falls: Array
    first: Array
    last: Array
    least: Array
    most: Array

    def take(self, which: Array) -> _Batches:
        return _Batches(*(column[which] for column in self))


def _batches(writer: Array, seq: Array) -> _Batches:
    begin = np.append(0, np.flatnonzero(writer[1:] != writer[:-1]) + 1)[: len(writer)]
    falls = np.flatnonzero(seq[1:] <= seq[:-1]) + 1
    of = np.searchsorted(begin, falls, side="right") - 1
    inside = np.bincount(of[begin[of] != falls], minlength=len(begin))
    last = seq[np.append(begin[1:], len(seq)) - 1] if len(seq) else seq
    least, most = seq[begin], last
    if inside.any():
        least, most = np.minimum.reduceat(seq, begin), np.maximum.reduceat(seq, begin)
    return _Batches(writer[begin], inside, seq[begin], last, least, most)


def _exact(part: TaskData, writer: int, seq: Array, offset: Array) -> None:
    twice = np.ones(len(seq), bool)
    twice[np.unique(seq, return_index=True)[1]] = False
    below = np.append(False, seq[1:] < np.maximum.accumulate(seq)[:-1])
    label = Label((f"producer-{writer}",), "", part.tables.not_idempotent(writer))
    sent_ns = _sent_ns(part, writer, seq[twice | below])
    for kind, which in (("duplicate-write", twice), ("nonmonotonic-send", below & ~twice)):
        at_ns = np.array([sent_ns.get(number, 0) for number in seq[which].tolist()], np.int64)
        codes = [np.zeros(len(at_ns), np.int64)]
        part.aggregates.put_many(kind, part.tp, codes, lambda _: label, first=offset[which], from_ns=at_ns, to_ns=at_ns)


def _sent_ns(part: TaskData, writer: int, seq: Array) -> dict[int, int]:
    """When a writer first sent each of the numbers ``seq``."""
    found: dict[int, int] = {}
    for sends, near in part.whole.sends(seq):
        own = near[sends["writer"][near] == writer]
        for number, at_ns in zip(sends["seq"][own].tolist(), sends["sent_ns"][own].tolist(), strict=True):
            found[number] = min(at_ns, found.get(number, at_ns))
    return found
