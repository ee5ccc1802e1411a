"""Kernel rules ``duplicate-write`` and ``nonmonotonic-send``: a writer's records, along the offsets of the log."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from fencepost.checkers.kernel.part import Part
from fencepost.checkers.kernel.tallies import Label, Numbers

Array = NDArray[Any]


def landed(part: Part) -> None:
    """Where the numbers of each writer ascend there is nothing to say.

    A task that has only some offsets of its partition tells how often they do not, the least and the greatest, see
    ``seams``.
    """
    for writer in _writers(part.log["writer"]):
        mine = part.log["writer"] == writer
        seq = part.log["seq"][mine]
        falls = int(np.count_nonzero(seq[1:] <= seq[:-1]))
        if part.task.rules == "offsets":
            label = Label((f"producer-{writer}",), f"{part.task.low} {part.task.high}")
            part.tallies.put("#sends", part.tp, label, Numbers(falls, int(seq.min()), int(seq.max())))
        elif falls:
            _exact(part, writer, seq, part.log["offset"][mine])


def _writers(writer: Array) -> list[int]:
    """Our writers among those of some records; what one wrote lies together in batches."""
    found = np.unique(np.append(writer[:1], writer[1:][writer[1:] != writer[:-1]]))
    return [int(one) for one in found if one >= 0]


def _exact(part: Part, writer: int, seq: Array, offset: Array) -> None:
    twice = np.ones(len(seq), bool)
    twice[np.unique(seq, return_index=True)[1]] = False
    below = np.append(False, seq[1:] < np.maximum.accumulate(seq)[:-1])
    label = Label((f"producer-{writer}",), "", part.tables.not_idempotent(writer))
    sent_ns = _sent_ns(part, writer, seq[twice | below])
    for kind, which in (("duplicate-write", twice), ("nonmonotonic-send", below & ~twice)):
        at_ns = np.array([sent_ns.get(number, 0) for number in seq[which].tolist()], np.int64)
        codes = [np.zeros(len(at_ns), np.int64)]
        part.tallies.put_many(kind, part.tp, codes, lambda _: label, first=offset[which], from_ns=at_ns, to_ns=at_ns)


def _sent_ns(part: Part, writer: int, wanted: Array) -> dict[int, int]:
    """When these calls of a writer were made, by number."""
    found: dict[int, int] = {}
    for sends in part.sends("writer", "seq", "sent_ns"):
        mine = np.flatnonzero((sends["writer"] == writer) & np.isin(sends["seq"], wanted))
        for number, at_ns in zip(sends["seq"][mine].tolist(), sends["sent_ns"][mine].tolist(), strict=True):
            found[number] = min(at_ns, found.get(number, at_ns))
    return found
