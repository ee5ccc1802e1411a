"""Which records compaction removed, because a later record of their key replaced them. Used only for records that are
missing from a compacted topic."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fencepost.checkers.kernel.partition_lookup import PRODUCED
from fencepost.checkers.kernel.task_data import TaskData
from fencepost.checkers.tables.retention import NO_KEY, same_key
from fencepost.history import SendOutcome

Array = NDArray[Any]
NEVER_SENT, SENT, ABORTED = 0, 1, 2


def replaced(part: TaskData, key: Array, writer: Array, offset: Array) -> Array:
    """Which of some records have a later committed record of their key in the partition, as far as is known.

    Usually the log shows this for all of them, and no other file is read.
    """
    keys = _hashed if (writer < 0).any() or _has_foreign_records(part) else _unchanged
    distinct, of = np.unique(keys(key, writer), return_inverse=True)
    greatest, highest = np.full(len(distinct), -1), np.full(len(distinct), -1)
    np.maximum.at(greatest, of, offset)
    for known in (_logged, _acknowledged, _delivered):
        unknown = distinct[highest <= greatest]
        for others, offsets in known(part, keys, unknown) if len(unknown) else ():
            place = np.minimum(np.searchsorted(distinct, others), len(distinct) - 1)
            match = np.flatnonzero(distinct[place] == others)
            np.maximum.at(highest, place[match], offsets[match])
    return np.asarray((highest[of] > offset) & (distinct[of] != NO_KEY))


Known = Iterator[tuple[Array, Array]]  # keys and offsets of records, at least for the unknown keys
Keys = Callable[[Array, Array], Array]


def _logged(part: TaskData, keys: Keys, _: Array) -> Known:
    for piece in part.whole.records("log", ["offset", "key", "writer"]):
        yield keys(piece["key"], piece["writer"]), piece["offset"]


def _acknowledged(part: TaskData, keys: Keys, _: Array) -> Known:
    for folder in PRODUCED:
        for piece in part.whole.records(folder, ["offset", "key", "writer", "outcome"]):
            acked = np.flatnonzero(piece["outcome"] == SendOutcome.OK)
            yield keys(piece["key"][acked], piece["writer"][acked]), piece["offset"][acked]


def _delivered(part: TaskData, keys: Keys, unknown: Array) -> Known:
    for piece in part.whole.records("delivered", ["offset", "key", "writer", "seq"]):
        own = keys(piece["key"], piece["writer"])
        match = np.flatnonzero(np.isin(own, unknown))
        match = match[among_sends(part, *(piece[name][match] for name in ("key", "writer", "seq"))) < ABORTED]
        yield own[match], piece["offset"][match]


def _has_foreign_records(part: TaskData) -> bool:
    """Whether the partition has records of unknown writers, whose keys are recorded in another form (``same_key``)."""
    folders = ("log", "delivered")
    return any((piece["writer"] < 0).any() for name in folders for piece in part.whole.records(name, ["writer"]))


def _unchanged(key: Array, _: Array) -> Array:
    """What the records of one key have in common, if the harness wrote all of them: the recorded key."""
    return key


def _hashed(key: Array, writer: Array) -> Array:
    """The same if other programs wrote some of them: ``same_key`` of each record."""
    ours = writer >= 0
    distinct, of = np.unique(key[ours], return_inverse=True)
    found = np.array(key, np.int64)
    found[ours] = np.array([same_key(number, 0) for number in distinct.tolist()], np.int64)[of]
    return found


def among_sends(part: TaskData, key: Array, writer: Array, seq: Array) -> Array:
    """For each record, whether it was sent, and whether one of its sends was aborted with its transaction."""
    records = list(zip(key.tolist(), writer.tolist(), seq.tolist(), strict=True))
    found: dict[tuple[int, int, int], int] = {}
    for sends, near in part.whole.sends(seq) if records else ():
        aborted = (sends["outcome"][near] == SendOutcome.ABORTED).tolist()
        sent = zip(*(sends[name][near].tolist() for name in ("key", "writer", "seq")), strict=True)
        for record, was_aborted in zip(sent, aborted, strict=True):
            found[record] = max(found.get(record, SENT), ABORTED if was_aborted else SENT)
    return np.array([found.get(record, NEVER_SENT) for record in records], np.int8)


def fates(part: TaskData, index: Array) -> Array:
    """The same for delivered rows, by index.

    If the log is compacted, these may be many. Most of them have an acknowledged send at their own offset, and need no
    further lookup.
    """
    rows, names = part.rows, ("key", "writer", "seq")
    found = np.full(len(index), NEVER_SENT, np.int8)
    if part.tp in part.tables.compacted:
        found[_acknowledged_there(part, index)] = SENT
    doubtful = np.flatnonzero(found == NEVER_SENT)
    found[doubtful] = among_sends(part, *(getattr(rows, name)[index[doubtful]] for name in names))
    return found


def _acknowledged_there(part: TaskData, index: Array) -> Array:
    """Which rows have an acknowledged send at their own offset, and no aborted send with their ``seq``."""
    rows, places, names = part.rows, part.where.places(index), ("key", "writer", "seq")
    found = np.zeros(len(index), bool)
    for sent, where in zip(part.sent, part.sent_where, strict=True):
        at = np.full(len(part.places), -1)
        where.put(at, np.arange(len(sent["offset"])))
        there = np.flatnonzero(at[places] >= 0)
        same = [sent[name][at[places[there]]] == getattr(rows, name)[index[there]] for name in names]
        found[there[np.logical_and.reduce(same)]] = True
    pieces = (piece for folder in PRODUCED for piece in part.whole.records(folder, ["outcome"]))
    aborted = ((piece, np.flatnonzero(piece["outcome"] == SendOutcome.ABORTED)) for piece in pieces)
    of_aborted = np.concatenate([rows.seq[:0], *(piece["seq"][which] for piece, which in aborted if len(which))])
    return np.asarray(found & ~np.isin(rows.seq[index], of_aborted))
