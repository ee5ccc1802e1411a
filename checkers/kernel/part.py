"""What the kernel's rules look at: the records of one task, and how to look up what is known about them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fencepost.checkers.kernel.columns import Columns, Files
from fencepost.checkers.kernel.judged import Judged
from fencepost.checkers.kernel.owners import Owners
from fencepost.checkers.kernel.ranges import Task
from fencepost.checkers.kernel.rows import Places, Rows, concatenate, inside
from fencepost.checkers.kernel.tallies import Tallies
from fencepost.checkers.tables import Tables
from fencepost.checkers.tables.rows import FOREVER, Commit, Interval, Window
from fencepost.history import Sent

Array = NDArray[Any]
LOG = ["offset", "key", "writer", "seq"]
DELIVERED = [*LOG, "interval", "ord", "delivered_ns", "begin_ns", "done_ns", "state"]
PRODUCED = ("produced", "unacked")  # the folders of sends
NEEDED = {  # columns of delivered records by what a task's rules look at; all by default
    "streams": ["offset", "interval", "ord", "delivered_ns"],
    "overlap": ["offset", "interval", "ord", "begin_ns", "done_ns"],
}


@dataclass(frozen=True)
class Part:
    """The records of one task, and what to look up about them. ``tallies`` takes what is found."""

    judged: Judged
    files: Files
    task: Task
    tallies: Tallies = field(default_factory=Tallies)

    @cached_property
    def rows(self) -> Rows:
        """The delivered records."""
        names = NEEDED.get(self.task.rules, DELIVERED)
        return concatenate(self.files.read(self.task, "delivered", names))

    @cached_property
    def polled(self) -> Rows:
        """The delivered records with their polls. Few rules ask, so that column is not read before."""
        told = concatenate(self.files.read(self.task, "delivered", ["offset", "poll", "ord"]))
        return replace(self.rows, poll=told.poll)

    @cached_property
    def sent(self) -> list[Columns]:
        """The acknowledged sends, file by file."""
        return list(self.acknowledged("writer", "seq"))

    def acknowledged(self, *names: str) -> Iterator[Columns]:
        """Columns of the acknowledged sends, file by file, always in the same order; ``offset`` is one of them."""
        low, high = self.task.low, self.task.high
        for folder in PRODUCED:
            for _, columns in self.files.read(self.task, folder, ["offset", "outcome", *names]):
                wanted = columns["outcome"] == Sent.OK
                if folder == "unacked":
                    wanted &= (columns["offset"] >= low) & (columns["offset"] < high)
                yield columns if wanted.all() else {name: column[wanted] for name, column in columns.items()}

    @cached_property
    def log(self) -> Columns:
        """The visible records of the log, ascending; the rows of a file, and its files, may be in any order."""
        log = _joined([part for _, part in self.files.read(self.task, "log", LOG)], LOG)
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
        """Where the group starts."""
        return self.judged.starts.get(self.tp, 0)

    @property
    def stop(self) -> int:
        """Where its domain ends: the final committed offset."""
        return max(self.start, self.tables.final_committed(self.tp))

    @cached_property
    def places(self) -> Places:
        """The places of all offsets that occur."""
        return Places([self.log["offset"], self.rows.offset, *(sent["offset"] for sent in self.sent)])

    @cached_property
    def at(self) -> Array:
        """The place of each row."""
        return self.places.at(self.rows.offset)

    @cached_property
    def log_at(self) -> Array:
        """The place of each record of the log."""
        return self.places.at(self.log["offset"])

    @cached_property
    def visible(self) -> Array:
        """Which places are visible records of the log."""
        visible = np.zeros(len(self.places), bool)
        visible[self.log_at] = True
        return visible

    @cached_property
    def deliveries(self) -> Array:
        """How often each place was delivered."""
        return np.bincount(self.at, minlength=len(self.places))

    @cached_property
    def finishes(self) -> Array:
        """How often each place was finished."""
        rows = self.rows
        at = self.at if rows.finished.all() else self.at[rows.finished]
        return np.bincount(at, minlength=len(self.places))

    def logged(self, name: str) -> Array:
        """A column of the log by place; anything where there is no record."""
        column = self.log[name]
        if self._in_places:
            return column
        found = np.zeros(len(self.places), column.dtype)
        found[self.log_at] = column
        return found

    @cached_property
    def _in_places(self) -> bool:
        """Whether the log has exactly one record in each place, in their order."""
        return len(self.log_at) == len(self.places) and bool((np.diff(self.log_at) == 1).all())

    @cached_property
    def seen(self) -> Array:
        """The visible offsets, ascending."""
        log = self.log if self.task.rules != "streams" else self._whole_log
        offsets = log["offset"]
        return offsets if (np.diff(offsets) > 0).all() else np.unique(offsets)

    @property
    def commits(self) -> Sequence[Commit]:
        """The commits of the partition, as members tell of them."""
        return self.tables.commits_by_tp.get(self.tp, ())

    @property
    def intervals(self) -> Sequence[Interval]:
        """The assignment intervals of the partition, in the order of time."""
        return self.tables.intervals_by_tp.get(self.tp, ())

    @cached_property
    def owners(self) -> Owners:
        """Who certainly owned the partition when, by the coordinator."""
        return Owners(self.tables, self.tp)

    def possibly_owned(self, name: str, at_ns: Array, but: Interval | None = None) -> Array:
        """At which moments an incarnation may have owned the partition, in another interval than ``but``."""
        if not len(at_ns):
            return np.zeros(0, bool)
        around = Window(int(at_ns.min()), int(at_ns.max()))
        others = self.tables.intervals_of.meeting((name, self.tp), around)
        return inside(at_ns, at_ns, [other.possible for other in others if other != but])

    def interval_of(self, who: int, number: int) -> Interval | None:
        """The assignment interval that rows name."""
        return self.tables.interval.get((self.rows.names[who], self.tp, number))

    def declared(self, by_ns: Array) -> tuple[Array, Callable[[int], str]]:
        """For each moment whether it has the excuse by a declared act that began before it; and what each says."""
        first = self.tables.first_act(self.tp)
        excused = first.begin_ns <= by_ns if first else np.zeros(len(by_ns), bool)
        return excused, lambda excused: self.tables.declared(self.tp, FOREVER) if excused else ""

    def first_delivered(self, name: str, number: int) -> tuple[int, int] | None:
        """Offset and time of the first delivery of a whole stream, of which this task may have only a part."""
        rows = self._polls.get(name) if self.tp in self.judged.cut else self.rows
        stream = rows.stream(name, number) if rows else None
        if rows is None or stream is None:
            return None
        return int(rows.by_interval.offset[stream.begin]), int(rows.by_interval.delivered_ns[stream.begin])

    def first_delivered_ns(self, name: str, number: int) -> int:
        """When the first record of a whole stream was delivered; 0: never."""
        first = self.first_delivered(name, number)
        return first[1] if first else 0

    def first_poll(self, name: str, number: int, after_ns: int) -> int:
        """The smallest poll of those of a whole stream that returned after a moment; there is one."""
        poll, delivered_ns = self._whole_stream(name, number)
        return int(poll[delivered_ns > after_ns].min())

    def last_poll(self, name: str, number: int) -> int:
        """The greatest poll of a whole stream."""
        return int(self._whole_stream(name, number)[0].max())

    def _whole_stream(self, name: str, number: int) -> tuple[Array, Array]:
        """The polls of a whole stream, and when each returned."""
        rows, stream = self._polls[name].by_interval, self._polls[name].stream(name, number)
        mine = slice(stream.begin, stream.end) if stream else slice(0)
        return rows.poll[mine], rows.delivered_ns[mine]

    @cached_property
    def _polls(self) -> dict[str, Rows]:
        """The rows of the whole partition by incarnation, with the columns that tell of polls only."""
        names = ("offset", "interval", "poll", "ord", "delivered_ns")
        files = self.files.read(self.task.whole(), "delivered", names)
        return {name: concatenate([(name, part)]) for name, part in files}

    @property
    def _whole_log(self) -> Columns:
        return _joined([part for _, part in self.files.read(self.task.whole(), "log", ["offset"])], ["offset"])

    def sends(self, *names: str) -> Iterator[Columns]:
        """Columns of all sends of the partition, of whatever outcome and offset; ``offset`` is one of them."""
        for folder in PRODUCED:
            for _, columns in self.files.read(self.task.whole(), folder, ["offset", *names]):
                yield columns


def _joined(parts: list[Columns], names: list[str]) -> Columns:
    if len(parts) == 1:
        return parts[0]
    return {name: np.concatenate([part[name] for part in parts] or [np.empty(0, np.int64)]) for name in names}
