"""The input of the kernel's rules: the records of one task, and lookups about them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fencepost.checkers.kernel.aggregates import Aggregates
from fencepost.checkers.kernel.arrays import Columns, among, each
from fencepost.checkers.kernel.carry import Carry
from fencepost.checkers.kernel.columns import DELIVERED, LOG, NEEDED, SENT, Files, Near, Piece, joined
from fencepost.checkers.kernel.context import KernelContext
from fencepost.checkers.kernel.offset_index import OffsetIndex, RowPositions
from fencepost.checkers.kernel.owners import Owners
from fencepost.checkers.kernel.partition_lookup import PRODUCED, First, PartitionLookup
from fencepost.checkers.kernel.partitioning import Task
from fencepost.checkers.kernel.rows import Rows, Stream, concatenate, inside
from fencepost.checkers.tables import Tables
from fencepost.checkers.tables.passed import PassedRange, passed
from fencepost.checkers.tables.rows import Commit, Interval, Window
from fencepost.checkers.tables.seeks import Seek
from fencepost.history import SendOutcome

Array = NDArray[Any]
NEVER = np.iinfo(np.int64).max


@dataclass(frozen=True)
class TaskData:
    """The records of one task, and lookups about them. ``aggregates`` collects the findings.

    ``before``: in a stretch of a member's deliveries, the ``Carry`` of the stretches before.
    """

    judged: KernelContext
    files: Files
    task: Task
    aggregates: Aggregates = field(default_factory=Aggregates)
    before: Carry | None = None

    @cached_property
    def rows(self) -> Rows:
        """The delivered records; in a stretch, the carried rows are the first, see ``fresh``."""
        near = Near("begin_ns", "done_ns", self.task.spans) if self.task.rules == "overlap" else None
        pieces = self.files.read(self.task, "delivered", NEEDED.get(self.task.rules, DELIVERED), near)
        return concatenate([self.before.piece(), *pieces] if self.before else pieces)

    @property
    def fresh(self) -> int:
        """The first new row of ``rows`` and ``rows.by_interval``: earlier stretches judged the rows before it."""
        return len(self.before.rows) if self.before else 0

    @property
    def lots(self) -> Iterable[TaskData]:
        """This task; if it covers a whole partition that was cut (rules ``stuck``), one part of it for each range."""
        if self.task.rules != "stuck":
            return [self]
        return (replace(self, task=replace(self.task, low=low, high=high)) for low, high in self.task.spans)

    def polls(self, stream: Stream) -> Array:
        """The polls of a stream's rows. Few rules need them: the column is read on demand, and only near these rows."""
        if self.task.rules == "streams":
            return self.rows.by_interval.poll[stream.begin : stream.end]
        near, names = Near("interval", "interval", [(stream.interval,) * 2]), ["interval", "poll", "ord"]
        pieces = self.files.read(self.task.only(self.rows.names[stream.who]), "delivered", names, near)
        rows = concatenate(pieces).by_interval
        return np.asarray(rows.poll[rows.interval == stream.interval])

    def polls_of(self, index: Array) -> Array:
        """The polls of a few rows, each of which is in an interval."""
        rows, polls = self.rows, np.zeros(len(index), np.int64)
        who, interval = rows.who[index], rows.interval[index]
        for stream in rows.streams:
            asked = (who == stream.who) & (interval == stream.interval)
            if asked.any():
                of_stream = np.flatnonzero((rows.who == stream.who) & (rows.interval == stream.interval))
                polls[asked] = self.polls(stream)[np.searchsorted(of_stream, index[asked])]
        return polls

    @cached_property
    def whole(self) -> PartitionLookup:
        """Lookups in the whole partition."""
        return PartitionLookup(self.files, self.task.whole())

    @cached_property
    def sent(self) -> list[Piece]:
        """The acknowledged sends, piece by piece."""
        found = []
        for folder in PRODUCED:
            for piece in self.files.read(self.task, folder, SENT):
                chosen = each(piece["outcome"], lambda outcome: outcome == SendOutcome.OK)
                if folder == "unacked":
                    chosen &= (piece["offset"] >= self.task.low) & (piece["offset"] < self.task.high)
                found.append(piece.where(chosen))
        return [piece for piece in found if piece.rows]

    @cached_property
    def log(self) -> Columns:
        """The visible records of the log by ascending offset; in and among files they may be in any order."""
        names = LOG if self.task.rules != "stuck" else ["offset"]
        log = joined(list(self.files.read(self.task, "log", names)), names)
        if (log["offset"][1:] >= log["offset"][:-1]).all():
            return log
        order = np.argsort(log["offset"], kind="stable")
        return {name: column[order] for name, column in log.items()}

    @property
    def tp(self) -> int:
        """The partition's number."""
        return self.task.tp

    @property
    def tables(self) -> Tables:
        """The small tables."""
        return self.judged.tables

    @property
    def start(self) -> int:
        """The offset at which the group starts."""
        return self.judged.starts.get(self.tp, 0)

    @property
    def stop(self) -> int:
        """The end of the domain, exclusive: the final committed offset, but not below the start."""
        return max(self.start, self.tables.final_committed(self.tp))

    @cached_property
    def places(self) -> OffsetIndex:
        """The places of all offsets that occur: in the log, in the rows, and in each piece of acknowledged sends."""
        return OffsetIndex([self.log["offset"], self.rows.offset, *(sent["offset"] for sent in self.sent)])

    @cached_property
    def where(self) -> RowPositions:
        """The places of the rows."""
        return self.places.where(1)

    @cached_property
    def sent_where(self) -> list[RowPositions]:
        """The places of the acknowledged sends, piece by piece."""
        return [self.places.where(2 + number) for number in range(len(self.sent))]

    @cached_property
    def _log_where(self) -> RowPositions:
        return self.places.where(0)

    @cached_property
    def visible(self) -> Array:
        """Which places have a visible record of the log."""
        return self._log_where.occupied()

    @cached_property
    def deliveries(self) -> Array:
        """How often each place was delivered."""
        return self.where.count()

    @cached_property
    def again(self) -> Array:
        """The rows whose places were delivered several times."""
        return np.flatnonzero(self.where.of(self.deliveries > 1))

    @cached_property
    def finishes(self) -> Array:
        """How often each place was finished."""
        finished = self.rows.finished
        if finished.all():
            return self.deliveries
        return np.bincount(self.where.places(np.flatnonzero(finished)), minlength=len(self.places))

    @cached_property
    def unheld(self) -> Array:
        """Which places no member finished; if effects decide what was processed, only those without an effect."""
        unfinished: Array = self.finishes == 0
        return unfinished & ~self.affected if self.tables.by_effect else unfinished

    @cached_property
    def affected(self) -> Array:
        """Which places had an effect, if effects decide what was processed; else none."""
        found = np.zeros(len(self.places), bool)
        effects = self.tables.affected.get(self.tp) if self.tables.by_effect else None
        if effects and len(found):
            found[among(self.places.offsets(np.arange(len(found))), np.array(sorted(effects), np.int64))] = True
        return found

    @cached_property
    def unread(self) -> Array:
        """For each visible place without a delivery, the number (in ``passed``) of the first assignment that committed
        past it and has no recorded delivery at all; -1: none."""
        found = np.full(len(self.places), -1)
        undelivered = self.visible & (self.deliveries == 0) if self.passed else self.visible
        for number, (interval, _, offsets) in enumerate(self.passed):
            if self.first_delivered(interval.incarnation, interval.number) is None:
                low, high = (self.places.below(max(edge, self.start)) for edge in (offsets.start, offsets.stop))
                found[low:high][undelivered[low:high] & (found[low:high] < 0)] = number
        return found

    @cached_property
    def passed(self) -> Sequence[PassedRange]:
        """The offsets that each assignment of the partition committed past, by commit."""
        return list(passed(self.tables, self.tp))

    @cached_property
    def refinished(self) -> Array:
        """The finished rows of places that were finished several times."""
        rows = self.again[self.rows.finished[self.again]]
        return rows[self.finishes[self.where.places(rows)] > 1]

    @cached_property
    def begun_ns(self) -> Array:
        """When each place was first begun; NEVER if it was not."""
        return self._earliest(self.rows.begin_ns, self.rows.begun)

    @cached_property
    def finished_ns(self) -> Array:
        """When each place was first finished; NEVER if it was not."""
        return self._earliest(self.rows.done_ns, self.rows.finished)

    @cached_property
    def delivered_ns(self) -> Array:
        """When each place was first delivered; NEVER if it was not."""
        return self._earliest(self.rows.delivered_ns, np.ones(len(self.rows), bool))

    def _earliest(self, times: Array, which: Array) -> Array:
        """For each place, the least of ``times`` of its rows that ``which`` selects; NEVER if there is none."""
        found = np.full(len(self.places), NEVER)
        times = times if which.all() else np.where(which, times, NEVER)
        self.where.put(found, times)
        again = self.where.places(self.again)
        found[again] = NEVER
        np.minimum.at(found, again, times[self.again])
        return found

    def logged(self, name: str) -> Array:
        """A column of the log by place; a place without a record has the type's least number, which no record has."""
        column = self.log[name]
        if self._log_where.whole:
            return column
        found = np.full(len(self.places), np.iinfo(column.dtype).min, column.dtype)
        self._log_where.put(found, column)
        return found

    @property
    def commits(self) -> Sequence[Commit]:
        """The commits of the partition, as members recorded them."""
        return self.tables.commits_by_tp.get(self.tp, ())

    @property
    def intervals(self) -> Sequence[Interval]:
        """The assignment intervals of the partition, in the order of time."""
        return self.tables.intervals_by_tp.get(self.tp, ())

    @cached_property
    def owners(self) -> Owners:
        """The certain owners of the partition over time, by the coordinator's records."""
        return Owners(self.tables, self.tp)

    def possibly_owned(self, name: str, at_ns: Array, but: Interval | None = None) -> Array:
        """At which times an incarnation may have owned the partition, in another interval than ``but``."""
        if not len(at_ns):
            return np.zeros(0, bool)
        others = self.tables.intervals_of.meeting((name, self.tp), Window(int(at_ns.min()), int(at_ns.max())))
        return inside(at_ns, at_ns, [other.possible for other in others if other != but])

    def interval_of(self, who: int, number: int) -> Interval | None:
        """The assignment interval with an incarnation and number as rows have them."""
        return self.tables.interval.get((self.rows.names[who], self.tp, number))

    def moves(self, name: str, number: int) -> Sequence[Seek]:
        """The moves of a program's position in an interval of its incarnation, see ``Tables.moves_in``."""
        return self.tables.moves_in(name, self.tp, self.tables.interval.get((name, self.tp, number)))

    def declared(self, by_ns: Array) -> tuple[Array, Callable[[int], str]]:
        """For each time, the number of the declared act that excuses it (0: none), see ``Tables.declared``; and a
        function that returns the excuse of a number."""
        acts, excused = self.tables.acts_on(self.tp), np.zeros(len(by_ns), np.int64)
        for number, act in [*enumerate(acts, 1)][::-1]:
            excused[(act.begin_ns <= by_ns) & (by_ns <= act.end_ns)] = number
        return excused, lambda number: f"declared act: {acts[number - 1].what}" if number else ""

    def first_delivered(self, name: str, number: int) -> First | None:
        """The first delivery of a stream, also if this task has only a part of the stream."""
        if self.tp in self.judged.cut and not self.files.within(self.task, name, number):
            return self.whole.first(name, number)
        rows, stream = self.rows.by_interval, self.rows.stream(name, number)
        return First(int(rows.offset[stream.begin]), int(rows.delivered_ns[stream.begin])) if stream else None
