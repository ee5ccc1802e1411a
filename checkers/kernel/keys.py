"""Kernel rule ``key-order``: a record was begun before an earlier record of its key was finished."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from fencepost.checkers.detections import COMPACTED, DELETED, blamed
from fencepost.checkers.kernel.aggregates import Label, Totals
from fencepost.checkers.kernel.arrays import among, stepwise
from fencepost.checkers.kernel.task_data import NEVER, TaskData

Array = NDArray[Any]
EXCUSES = ("", DELETED, COMPACTED)


def key_order(part: TaskData) -> None:
    """If every record was begun after all records below it were finished, keys are not compared.

    A task that has only a range of its partition also returns the times at its edges, see ``boundaries``.
    """
    early, last_ns = _early(part.begun_ns, part.finished_ns)
    if part.task.rules == "offsets" and len(part.rows):
        first_ns = int(part.begun_ns.min()) if part.rows.begun.any() else 0
        part.aggregates.put("#edge", part.tp, Label(cause=_range(part)), Totals(1, -1, -1, first_ns, last_ns))
    if len(early):
        _exact(part, early)


def _early(begun_ns: Array, finished_ns: Array) -> tuple[Array, int]:
    """The places that were begun before all places below them were finished, and when the last place was finished."""
    found, last_ns = [np.empty(0, np.int64)], 0
    for some in stepwise(len(begun_ns)):
        begun, finished = begun_ns[some], finished_ns[some]
        if _one_by_one(begun, finished, last_ns):
            last_ns = int(finished[-1])
            continue
        latest_ns = np.maximum.accumulate(np.append(last_ns, np.where(finished == NEVER, 0, finished)))
        found.append(some.start + np.flatnonzero(begun < latest_ns[:-1]))
        last_ns = int(latest_ns[-1])
    return np.concatenate(found), last_ns


def _one_by_one(begun: Array, finished: Array, last_ns: int) -> bool:
    """Whether each place was begun after all before it were finished, and all were finished: usual, quickly checked."""
    in_turn = begun[0] >= last_ns and (begun[1:] >= finished[:-1]).all() and (finished >= begun).all()
    return bool(in_turn and finished[-1] < NEVER)


def _near(part: TaskData, early: Array) -> Array:
    """The rows of all places that have a row with one of the keys at the places ``early``."""
    near = np.zeros(len(part.places), bool)
    near[early] = True
    keys = part.rows.key[part.where.of(near)]
    near[part.where.places(among(part.rows.key, keys))] = True
    return np.flatnonzero(part.where.of(near))


def _first(at: Array, times: Array, which: Array) -> Array:
    """For each number in ``at``, its row with the smallest (time, incarnation); -1 if there is none."""
    index = np.flatnonzero(which)  # in the order of (incarnation, ord), which a stable sort keeps
    index = index[np.argsort(times[index], kind="stable")][::-1]
    first = np.full(int(at.max()) + 1, -1)
    first[at[index]] = index  # of each number the last assignment stays: the smallest
    return first


def _times(times: Array, index: Array) -> Array:
    return np.where(index >= 0, times[index], 0)


def _exact(part: TaskData, early: Array) -> None:
    """Compare the records of the keys at the places ``early``, all at once: a running maximum within each key."""
    rows, near = part.rows, _near(part, early)
    places, at = np.unique(part.where.places(near), return_inverse=True)
    begin_ns, done_ns = rows.begin_ns[near], rows.done_ns[near]
    begun, finished = _first(at, begin_ns, rows.begun[near]), _first(at, done_ns, rows.finished[near])
    keys = rows.key[near[_first(at, rows.delivered_ns[near], np.ones(len(near), bool))]]
    order = np.argsort(keys, kind="stable")  # by key, and by offset within a key
    places, keys, begun, finished = places[order], keys[order], begun[order], finished[order]
    finish_ns = _times(done_ns, finished)
    rank = np.empty(len(places), np.int64)  # by finish; of equal times the lowest offset counts, so it ranks highest
    rank[np.lexsort((-np.arange(len(places)), finish_ns))] = np.arange(len(places))
    first_of_key = np.append(True, keys[1:] != keys[:-1])
    group = np.cumsum(first_of_key) * len(places)
    latest = np.maximum.accumulate(group + rank) - group
    blocker = np.where(first_of_key, -1, np.roll(np.argsort(rank)[latest], 1))
    begun_ns = _times(begin_ns, begun)
    wrong = (blocker >= 0) & (begun_ns > 0) & (begun_ns < finish_ns[blocker])
    began, ended = near[begun[wrong]], near[finished[blocker[wrong]]]
    act, excuse_of = part.declared(rows.begin_ns[began])
    earlier = places[blocker[wrong]]
    deleted = np.where(~part.visible[earlier], 2, 0) if part.tp in part.tables.compacted else np.zeros_like(earlier)
    deleted[part.places.offsets(earlier) < part.tables.log_start(part.tp)] = 1
    deleted[rows.who[began] == rows.who[ended]] = 0
    kind, of = ("#key-order", _range(part)) if part.task.rules == "offsets" else ("key-order", "")
    part.aggregates.put_many(
        kind,
        part.tp,
        [rows.who[began], rows.who[ended], act, deleted],
        lambda beginner, finisher, act, deleted: Label(
            blamed(rows.names[beginner], rows.names[finisher]), of, excuse_of(act) or EXCUSES[deleted]
        ),
        first=part.places.offsets(places[wrong]),
        from_ns=rows.begin_ns[began],
        to_ns=rows.done_ns[ended],
    )


def _range(part: TaskData) -> str:
    return f"{part.task.low} {part.task.high}"
