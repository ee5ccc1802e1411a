"""The records of a user's program that are in flight, and the rules that decide when a record is processed.

Most programs do not report this, so a rule stands in for it:

``next-poll``
    A record is processed when the program polls again, commits past it, or closes its consumer; but never if it came in
    a list and the program never took it out (``taken``). All records count as taken if the program was never seen to
    iterate over a list: it may have passed them to code that is not seen.
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
from itertools import repeat
from typing import Deque, Dict, Iterable, Mapping, Optional, Tuple

from fencepost_member.committing.commits import Work
from fencepost_member.instrument.taken import Taking
from fencepost_member.ownership import Tp
from fencepost_member.recording.recorder import MemberLane

MOST_KEPT = 10_000  # records of a partition that were never taken; older ones are forgotten


# The lane that recorded it, its index there, the next offset; and the list in which it came, with its position there.
Unfinished = Tuple[MemberLane, int, int, Optional[Taking], int]


class InOrder:
    """The records of a partition that are in flight, in the order of their delivery.

    Attributes:
        begun: whether the first one has begun.
    """

    __slots__ = ("begun", "records")

    def __init__(self, records: Iterable[Unfinished] = (), begun: bool = False) -> None:
        self.records: Deque[Unfinished] = deque(records)
        self.begun = begun

    def begin(self) -> None:
        """The first one begins, once."""
        if not self.begun:
            self.begun = True
            lane, index, _, _, _ = self.records[0]
            lane.begin(index)


class InFlight:
    """The records that were delivered and are not processed yet, by partition. Threads may share it.

    Attributes:
        done: number of processed records.
    """

    def __init__(self, rule: str) -> None:
        """``rule`` is one of ``config.PROCESSED``."""
        self._done_by_poll, self._done_by_commit = rule in ("next-poll", "effect"), rule != "told"
        self._looks = rule == "next-poll"
        self._sees = False  # whether the program was seen to iterate over a list
        self._records: Dict[Tp, InOrder] = {}
        self._lock = threading.Lock()
        self.done = 0

    def taking(self, count: int) -> Optional[Taking]:
        """Follows which of ``count`` records of a poll the program takes; None: the rule does not ask."""
        return Taking(count, self._opened) if self._looks and count else None

    def _opened(self, taking: Taking, positions: range) -> None:
        """The program begins with a list: the first records of its partitions begin."""
        with self._lock:
            self._sees = True
            for in_order in self._records.values():
                if in_order.records and in_order.records[0][3] is taking and in_order.records[0][4] in positions:
                    in_order.begin()

    def delivered(
        self, lane: MemberLane, work: Work, taking: Optional[Taking] = None, positions: Iterable[int] = ()
    ) -> None:
        """A poll just delivered these records; ``positions`` are theirs in the list that it returned."""
        places = iter(positions if taking else repeat(0))
        with self._lock:
            for (index, tp, next_offset), position in zip(work, places):  # noqa: B905 (3.8)
                in_order = self._records.get(tp)
                if in_order is None:
                    self._records[tp] = in_order = InOrder()
                in_order.records.append((lane, index, next_offset, taking, position))
                if not in_order.begun and (taking is None or not self._sees):
                    self._begin_first(in_order)

    def polling(self) -> None:
        """The program polls."""
        if self._done_by_poll and self._records:
            with self._lock:
                for in_order in self._records.values():
                    self._finish(in_order, None)
                self._records = {tp: in_order for tp, in_order in self._records.items() if in_order.records}

    def committing(self, offsets: Mapping[Tp, int]) -> None:
        """The program commits these offsets: records below them are processed, whatever the answer will be."""
        with self._lock:
            for tp, offset in offsets.items() if self._done_by_commit else ():
                if tp in self._records:
                    self._finish(self._records[tp], offset)

    def processed(self, tp: Tp, next_offset: int) -> bool:
        """The program reports one record as processed, in any order. Returns whether the record was in flight here."""
        with self._lock:
            in_order = self._records.get(tp)
            for place, (lane, index, following, _, _) in enumerate(in_order.records if in_order else ()):
                if following == next_offset:
                    if place:
                        lane.begin(index)
                    lane.done(index)
                    self.done += 1
                    assert in_order is not None
                    del in_order.records[place]
                    if not place:
                        in_order.begun = False
                        self._begin_first(in_order)
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
                in_order = self._records.pop(tp, None)
                kept = [record for record in in_order.records if record[2] <= offset] if in_order else []
                if in_order and kept:
                    self._records[tp] = InOrder(kept, in_order.begun)

    def _finish(self, in_order: InOrder, below: Optional[int]) -> None:
        """Finish the records below an offset (None: all), but for those that were not taken."""
        records, begun, sees, kept = in_order.records, in_order.begun, self._sees, []
        while records and (below is None or records[0][2] <= below):
            record = records.popleft()
            lane, index, _, taking, position = record
            if taking is not None and sees and not taking.marks[position]:
                kept.append(record)
            else:
                if not begun:
                    lane.begin(index)
                lane.done(index)
                self.done += 1
            begun = False
        records.extendleft(reversed(kept[-MOST_KEPT:]))
        in_order.begun = begun
        if not begun:
            self._begin_first(in_order)

    def _begin_first(self, in_order: InOrder) -> None:
        """Within a partition a record begins when the one before it is processed."""
        if in_order.records and not self._untaken(in_order.records[0]):
            in_order.begin()

    def _untaken(self, record: Unfinished) -> bool:
        """Whether the program certainly did not take a record."""
        taking, position = record[3:]
        return taking is not None and self._sees and not taking.marks[position]
