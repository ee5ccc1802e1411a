"""What compaction took of a log: records that a later one of their key replaced. Asked only where topics are compacted,
and of records that are missing."""

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
    """Which of some records have a later one of their key in the partition that was committed, as far as is known.

    As a rule the log tells of all of them, and then nothing else is read.
    """
    keys = _same if (writer < 0).any() or _strangers(part) else _as_they_are
    wanted, of = np.unique(keys(key, writer), return_inverse=True)
    greatest, highest = np.full(len(wanted), -1), np.full(len(wanted), -1)
    np.maximum.at(greatest, of, offset)
    for known in (_logged, _acknowledged, _delivered):
        unknown = wanted[highest <= greatest]
        for those, offsets in known(part, keys, unknown) if len(unknown) else ():
            place = np.minimum(np.searchsorted(wanted, those), len(wanted) - 1)
            mine = np.flatnonzero(wanted[place] == those)
            np.maximum.at(highest, place[mine], offsets[mine])
    return np.asarray((highest[of] > offset) & (wanted[of] != NO_KEY))


Known = Iterator[tuple[Array, Array]]  # keys and offsets of records, those of some keys at least
Keys = Callable[[Array, Array], Array]


def _logged(part: TaskData, keys: Keys, _: Array) -> Known:
    for piece in part.whole.records("log", ["offset", "key", "writer"]):
        yield keys(piece["key"], piece["writer"]), piece["offset"]


def _acknowledged(part: TaskData, keys: Keys, _: Array) -> Known:
    for folder in PRODUCED:
        for piece in part.whole.records(folder, ["offset", "key", "writer", "outcome"]):
            mine = np.flatnonzero(piece["outcome"] == SendOutcome.OK)
            yield keys(piece["key"][mine], piece["writer"][mine]), piece["offset"][mine]


def _delivered(part: TaskData, keys: Keys, wanted: Array) -> Known:
    for piece in part.whole.records("delivered", ["offset", "key", "writer", "seq"]):
        those = keys(piece["key"], piece["writer"])
        mine = np.flatnonzero(np.isin(those, wanted))
        mine = mine[among_sends(part, *(piece[name][mine] for name in ("key", "writer", "seq"))) < ABORTED]
        yield those[mine], piece["offset"][mine]


def _strangers(part: TaskData) -> bool:
    """Whether the partition has records of writers that nobody knows, whose keys are recorded in another way."""
    folders = ("log", "delivered")
    return any((piece["writer"] < 0).any() for name in folders for piece in part.whole.records(name, ["writer"]))


def _as_they_are(key: Array, _: Array) -> Array:
    """What the records of one key have in common, where all are ours."""
    return key


def _same(key: Array, writer: Array) -> Array:
    """The same where not all are: ``same_key`` of each record."""
    ours = writer >= 0
    different, of = np.unique(key[ours], return_inverse=True)
    found = np.array(key, np.int64)
    found[ours] = np.array([same_key(number, 0) for number in different.tolist()], np.int64)[of]
    return found


def among_sends(part: TaskData, key: Array, writer: Array, seq: Array) -> Array:
    """Of each of some records, whether it was sent, and whether one of its sends was aborted with its transaction."""
    wanted = list(zip(key.tolist(), writer.tolist(), seq.tolist(), strict=True))
    found: dict[tuple[int, int, int], int] = {}
    for sends, near in part.whole.sends(seq) if wanted else ():
        aborted = (sends["outcome"][near] == SendOutcome.ABORTED).tolist()
        records = zip(*(sends[name][near].tolist() for name in ("key", "writer", "seq")), strict=True)
        for record, was_aborted in zip(records, aborted, strict=True):
            found[record] = max(found.get(record, SENT), ABORTED if was_aborted else SENT)
    return np.array([found.get(record, NEVER_SENT) for record in wanted], np.int8)


def fates(part: TaskData, index: Array) -> Array:
    """The same of some delivered rows. Of a compacted log these are many: mostly an acknowledged send has a row's own
    offset, and nothing was aborted."""
    rows, names = part.rows, ("key", "writer", "seq")
    found = np.full(len(index), NEVER_SENT, np.int8)
    if part.tp in part.tables.compacted:
        found[_acknowledged_there(part, index)] = SENT
    doubtful = np.flatnonzero(found == NEVER_SENT)
    found[doubtful] = among_sends(part, *(getattr(rows, name)[index[doubtful]] for name in names))
    return found


def _acknowledged_there(part: TaskData, index: Array) -> Array:
    """Which of some rows have an acknowledged send at their own offset, and none that was aborted."""
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
    of_aborted = np.concatenate([rows.seq[:0], *(piece["seq"][those] for piece, those in aborted if len(those))])
    return np.asarray(found & ~np.isin(rows.seq[index], of_aborted))
