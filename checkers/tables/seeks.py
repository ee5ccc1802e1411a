"""The moves of programs' positions, from their events. Pure."""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from fencepost.checkers.tables.rows import Commit
from fencepost.history import EventKind
from fencepost.history.events import Event, placed


class Seek(NamedTuple):
    """The program moved its position, to ``offset``; ``aborted``: because its transaction was."""

    tp: int
    incarnation: str
    offset: int
    begin_ns: int
    aborted: bool = False


def seeks(events: Iterable[Event], commits: Iterable[Commit], numbers: Mapping[tuple[str, int], int]) -> list[Seek]:
    """One row per move, as they were told.

    It follows an aborted transaction if the last one of its incarnation with the partition, that began before, was not
    committed; and if it goes no further back than what that incarnation had committed in one before that.
    """
    ended: dict[tuple[str, int], list[Commit]] = defaultdict(list)
    for commit in sorted(commits, key=lambda c: c.begin_ns):
        if commit.mode == "transaction":
            ended[commit.incarnation, commit.tp].append(commit)
    found = []
    for event, tp in placed(events, numbers, EventKind.SEEK):
        own, begin_ns = ended.get((event["actor"], -1 if tp is None else tp), []), event["begin_ns"]
        offset = -1 if event["offset"] is None else event["offset"]
        before = own[: bisect_right(own, begin_ns, key=lambda c: c.begin_ns)]
        reached = next((c.offset for c in reversed(before) if c.outcome == "ok"), 0)
        aborted = bool(before) and before[-1].outcome != "ok" and offset >= reached
        found.append(Seek(tp, event["actor"], offset, begin_ns, aborted))
    return found
