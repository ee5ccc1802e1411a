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
    """The program moved its position to ``offset``; ``aborted``: because its transaction was aborted."""

    tp: int
    incarnation: str
    offset: int
    begin_ns: int
    aborted: bool = False


def seeks(events: Iterable[Event], commits: Iterable[Commit], numbers: Mapping[tuple[str, int], int]) -> list[Seek]:
    """One row per recorded move, in the order of the events.

    A move follows an aborted transaction if two conditions are met. The last transaction that its incarnation began
    before, with this partition, was not committed. And the new position is not below the offset that the incarnation
    committed in its last committed transaction before the move.
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
