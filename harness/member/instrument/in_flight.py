"""The records of a user's program that are in flight, and the rules that decide when a record is processed.

Most programs do not report this, so a rule stands in for it:

``next-poll``
    A record is processed when the program polls again, or commits past it.
``commit``
    A record is processed when the program commits past it (or stores an offset past it, for the client to commit). For
    programs that collect records over several polls, or hand them to other threads.
``told``
    A record is processed when the program reports it, whatever it polls or commits. For programs that do so: by JSON
    lines (``json_lines``) or by calling ``api.processed``.
``effect``
    The judge decides, by what the audit finds (``checkers.tables.processing_rules``). Until then, record as
    ``next-poll`` does.

Within a partition records are processed one after the other: a record begins when the previous one is processed.
"""

from __future__ import annotations

import threading
from collections import deque
from typing import Deque, Dict, Iterable, Mapping, Optional, Tuple

from fencepost_member.commits import Work
from fencepost_member.ownership import Tp
from fencepost_member.recorder import MemberLane

InOrder = Deque[Tuple[MemberLane, int, int]]  # the lane that recorded it, its index there, the next offset


class InFlight:
    """The records that were delivered and are not processed yet, by partition. Threads may share it.

    Attributes:
        done: number of processed records.
    """

    def __init__(self, rule: str) -> None:
        """``rule`` is one of ``config.PROCESSED``."""
        self._done_by_poll, self._done_by_commit = rule in ("next-poll", "effect"), rule != "told"
        self._records: Dict[Tp, InOrder] = {}
        self._lock = threading.Lock()
        self.done = 0

    def delivered(self, lane: MemberLane, work: Work) -> None:
        """A poll just delivered these records."""
        records = self._records
        with self._lock:
            for index, tp, next_offset in work:
                in_order = records.get(tp)
                if not in_order:
                    records[tp] = in_order = deque()
                    lane.begin(index)
                in_order.append((lane, index, next_offset))

    def polling(self) -> None:
        """The program polls."""
        if self._done_by_poll and self._records:
            with self._lock:
                for in_order in self._records.values():
                    self._finish(in_order, None)
                self._records.clear()

    def committing(self, offsets: Mapping[Tp, int]) -> None:
        """The program commits these offsets: records below them are processed, whatever the answer will be."""
        with self._lock:
            for tp, offset in offsets.items() if self._done_by_commit else ():
                if tp in self._records:
                    self._finish(self._records[tp], offset)

    def processed(self, tp: Tp, next_offset: int) -> bool:
        """The program reports one record as processed, in any order. Returns whether the record was in flight here."""
        with self._lock:
            in_order = self._records.get(tp, deque())
            for place, (lane, index, following) in enumerate(in_order):
                if following == next_offset:
                    if place:
                        lane.begin(index)
                    lane.done(index)
                    self.done += 1
                    del in_order[place]
                    if in_order and not place:
                        in_order[0][0].begin(in_order[0][1])
                    return True
        return False

    def assigned(self, partitions: Iterable[Tp]) -> None:
        """Partitions were assigned: their earlier records are committed or will be delivered again. A client that
        rebalances in the background (aiokafka) may call this while the program handles a record; by the rule
        ``next-poll`` that record is still processed at the next poll."""
        if not self._done_by_poll:
            self.released(partitions)

    def released(self, partitions: Iterable[Tp], offset: int = 0) -> None:
        """Records from ``offset`` on will be delivered again: these deliveries of them will never be processed."""
        with self._lock:
            for tp in partitions:
                kept = [record for record in self._records.pop(tp, ()) if record[2] <= offset]
                if kept:
                    self._records[tp] = deque(kept)

    def _finish(self, in_order: InOrder, below: Optional[int]) -> None:
        while in_order and (below is None or in_order[0][2] <= below):
            lane, index, _ = in_order.popleft()
            lane.done(index)
            self.done += 1
            if in_order:
                lane, index, _ = in_order[0]
                lane.begin(index)
