"""Applies the rules of processing to columns of delivered records; ``tables.processing_rules`` explains them. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from fencepost.checkers.kernel.arrays import Array, Columns
from fencepost.checkers.tables.processing_rules import ByCommits, FirstDeliveries, Inferred, LastCommit
from fencepost.history import RecordState

Rules = Mapping[tuple[str, int], Sequence[Inferred]]  # by incarnation and partition

PROCESSED = frozenset({"begin_ns", "done_ns", "state"})  # the columns that rules change
ASKED = (*PROCESSED, "offset", "poll", "ord", "delivered_ns")  # the columns that rules read


def as_processed(columns: Columns, rules: Iterable[Inferred]) -> Columns:
    """The columns of deliveries of one incarnation and partition, after the rules are applied one after the other."""
    for rule in rules:
        columns = _after(columns, rule)
    return columns


def _after(columns: Columns, rule: Inferred) -> Columns:
    begin_ns, done_ns, state = (np.array(columns[name], np.int64) for name in ("begin_ns", "done_ns", "state"))
    if isinstance(rule, ByCommits):
        begin_ns, done_ns = rule.times(columns["ord"])
        state = np.select([done_ns > 0, begin_ns > 0], [RecordState.DONE, RecordState.BEGUN], RecordState.DELIVERED)
        return {**columns, "begin_ns": begin_ns, "done_ns": done_ns, "state": state}
    if isinstance(rule, FirstDeliveries):
        begin_ns[:], done_ns[:], state[:] = 0, 0, RecordState.DELIVERED
    processed = _processed(columns, rule)
    begin_ns[processed] = done_ns[processed] = columns["delivered_ns"][processed]
    state[processed] = RecordState.DONE
    return {**columns, "begin_ns": begin_ns, "done_ns": done_ns, "state": state}


def _processed(columns: Columns, rule: FirstDeliveries | LastCommit) -> Array:
    """Which rows were processed, by one rule."""
    if isinstance(rule, FirstDeliveries):
        return np.isin(columns["ord"], np.array([*rule.ords], np.int64))
    return _in_flight(columns, rule) & (columns["offset"] < rule.offset)


def _in_flight(columns: Columns, rule: LastCommit) -> Array:
    """Which rows were in flight when the incarnation sent its last commit."""
    asked = (columns["poll"] == rule.poll) & (columns["delivered_ns"] <= rule.asked_ns)
    return np.asarray(asked & (columns["done_ns"] == 0))
