"""Random histories of a few records, in memory: moments and offsets are few, so that nearly all of them meet.

No life is as odd. What rules say of them is compared, by the thousand, where a run folder for each would take too long.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from fencepost.checkers.counts import Bounds
from fencepost.checkers.kernel.columns import Columns, Files, Near, Piece
from fencepost.checkers.kernel.partitioning import COUNTERS, RowGroup, Task
from fencepost.checkers.oracle import FINISHED, History
from fencepost.checkers.tables import Tables
from fencepost.checkers.tables.effects import LETTER_NS, Effect
from fencepost.checkers.tables.records import Delivered, Logged, Produced, Records
from fencepost.checkers.tables.requests import LATE_NS, Heartbeat, Request
from fencepost.checkers.tables.rows import (
    FOREVER,
    AssignmentChange,
    Commit,
    CoordinatorChange,
    DeclaredAction,
    Interval,
    LeaderChange,
    Life,
    MemberRemoval,
    OffsetCommit,
    Partition,
    PerformedStep,
    Rebalance,
    Window,
)
from fencepost.checkers.tables.seeks import Seek
from fencepost.history import RecordState, SendOutcome
from fencepost.model import TopicPartition

TPS = (3, 4)
NAMES = ("a.1", "a.2", "b.1")
END_NS, END = 60, 14  # moments and offsets are below
BOUNDS = Bounds(stuck_ns=6, recovers_ns=4, catches_up_ns=2, done_again=0, loop_deliveries=3, loop_ns=8)
HOW = ("revoked", "lost", "closed", "died", "reassigned", "")
OUTCOMES, ERRORS = ("ok", "ok", "fail", "info"), ("", "UNKNOWN_MEMBER_ID", "ILLEGAL_GENERATION")


def history(seed: int) -> History:
    """The same seed tells the same one."""
    reported = _Teller(random.Random(seed), random.Random(f"kept/{seed}"), random.Random(f"programs/{seed}")).history()
    return replace(reported, tables=_answered(random.Random(f"answers/{seed}"), reported))


class _Teller:
    def __init__(self, chance: random.Random, keeping: random.Random, of_programs: random.Random) -> None:
        """``keeping`` decides how brokers keep what is written; ``of_programs`` what is so of users' programs alone."""
        self.chance, self.keeping, self.of_programs = chance, keeping, of_programs
        self.compacted = {tp: keeping.choice([0, 20, FOREVER]) for tp in TPS if keeping.random() < 0.4}

    def at(self, low: int = 1, high: int = END_NS) -> int:
        return self.chance.randrange(low, max(high, low + 1))

    def maybe(self, share: float) -> bool:
        return self.chance.random() < share

    def some(self, most: int) -> range:
        return range(self.chance.randrange(most + 1))

    def window(self) -> Window:
        begin_ns = self.at()
        return Window(begin_ns, begin_ns + self.chance.choice([0, 1, 5, 20]))

    def history(self) -> History:
        log = [record for tp in TPS for record in self.log(tp)]
        intervals = [interval for name in NAMES for tp in TPS for interval in self.intervals(name, tp)]
        rows = [row for name in NAMES for tp in TPS for row in self.rows(name, tp, intervals, log)]
        sends = [send for record in log for send in self.sends(record)]
        log = [record for record in log if record.tp not in self.compacted or self.keeping.random() < 0.5]
        tables = self.tables(sorted(intervals, key=lambda i: i.assigned_begin_ns), rows)
        return History(tables, Records(tuple(rows), tuple(sends), tuple(log)), BOUNDS)

    def log(self, tp: int) -> Iterator[Logged]:
        for offset in range(self.chance.choice([0, 0, 3]), self.chance.choice([3, END])):
            if self.maybe(0.85):
                seq = offset if self.maybe(0.85) else self.chance.randrange(END)
                yield Logged(tp, offset, self.chance.randrange(3), self.chance.choice([-1, 0, 0, 0, 1]), seq, 0)

    def sends(self, record: Logged) -> Iterator[Produced]:
        sent_ns = self.at(1, 40)
        content = [record.tp, record.offset, record.key, record.writer, record.seq]
        if record.writer >= 0 and self.maybe(0.9):
            if self.maybe(0.1):
                content[self.chance.randrange(2, 5)] += 1
            outcome = self.chance.choice([SendOutcome.OK] * 6 + [SendOutcome.INFO, SendOutcome.ABORTED])
            content[1] = record.offset if outcome == SendOutcome.OK else -1
            yield Produced(*content, sent_ns, self.at(sent_ns, sent_ns + 6), outcome)
            if self.maybe(0.1):
                yield Produced(
                    record.tp, -1, *content[2:], sent_ns - self.chance.randrange(-2, 3), -1, SendOutcome.ABORTED
                )

    def intervals(self, name: str, tp: int) -> Iterator[Interval]:
        at_ns = self.at(1, 20)
        for number in self.some(3):
            begin_ns, how = at_ns, self.chance.choice(HOW)
            end_ns = begin_ns + self.chance.choice([0, 0, 1])
            given_up_ns = end_ns + self.chance.choice([0, 2, 10, 20])
            until_ns = given_up_ns + self.chance.choice([0, 1]) if how else 0
            member_id = self.chance.choice(["", f"id-{name}"])
            yield Interval(tp, name, number, 1, member_id, begin_ns, end_ns, given_up_ns, until_ns, how)
            at_ns = given_up_ns + self.chance.choice([-1, 0, 1, 6])

    def rows(self, name: str, tp: int, intervals: Sequence[Interval], log: Sequence[Logged]) -> Iterator[Delivered]:
        content = {r.offset: (r.key, r.writer, r.seq) for r in log if r.tp == tp}
        own = [i for i in intervals if (i.incarnation, i.tp) == (name, tp)]
        ord_ = poll = 0
        for number in [*(i.number for i in own), *self.chance.choice([[], [], [-1], [7]])]:
            begin_ns = next((i.assigned_begin_ns for i in own if i.number == number), self.at())
            at_ns, offset = begin_ns + self.chance.choice([0, 0, 1, 3, -1]), self.chance.randrange(END - 4)
            for _ in self.some(8):
                record = content.get(offset, (0, 0, offset))
                if self.maybe(0.05):
                    record = (record[0], record[1], record[2] + 1)
                times = max(1, at_ns), *self.work(max(1, at_ns))
                yield Delivered(name, tp, offset, *record, number, poll, 0, ord_, *times, 0)
                offset = max(0, offset + self.chance.choice([1, 1, 1, 1, 2, 0, -1, -3]))
                poll += self.chance.choice([0, 1])
                ord_ += self.chance.choice([1] * 12 + [0, 2])
                at_ns += self.chance.choice([0, 0, 1, 4, 4, 8, -1])

    def work(self, at_ns: int) -> tuple[int, int, int]:
        state = self.chance.choice(
            [RecordState.DELIVERED, RecordState.BEGUN, RecordState.FAILED, RecordState.PARKED] + [RecordState.DONE] * 6
        )
        if state == RecordState.DELIVERED:
            return 0, 0, state
        begin_ns = at_ns + self.chance.choice([0, 0, 1, 5])
        done_ns = begin_ns + self.chance.choice([0, 1, 2, 10])
        return begin_ns, 0 if state == RecordState.BEGUN else done_ns, state

    def tables(self, intervals: Sequence[Interval], rows: Sequence[Delivered]) -> Tables:
        accepted = tuple(a._replace(offset=-1) if self.keeping.random() < 0.2 else a for a in self.accepted())
        commits = [self.commit(intervals) for _ in self.some(16)]
        if self.maybe(0.3):
            last = {a.tp: a for a in self.behind(rows)}
            commits = [c for c in commits if c.tp not in last or c.offset <= last[c.tp].offset or self.maybe(0.05)]
            accepted += (*last.values(),)
        tables = Tables(
            Path(),
            {"scenario": self.scenario()},
            partitions={tp: self.partition(tp) for tp in TPS},
            lives={name: self.life(name) for name in NAMES},
            intervals=tuple(intervals),
            commits=tuple(commits),
            accepted=accepted,
            given=tuple(self.given()),
            gone=tuple(
                MemberRemoval(f"id-{n}", n, k, self.at(), self.at(0, 3)) for k, n in enumerate(NAMES) if self.maybe(0.2)
            ),
            rounds=tuple(Rebalance(0, n, at, at + 2, NAMES[n % 2 :]) for n, at in enumerate(self.ascending(2), 1)),
            steps=tuple(self.step(n) for n in self.some(2)),
            seeks=tuple(
                Seek(self.tp(), self.name(), self.chance.randrange(END), at, self.maybe(0.5))
                for at in self.ascending(4)
            ),
            acts=tuple(self.act() for _ in self.some(2)) if self.maybe(0.4) else (),
            stalls=(self.window(),) if self.maybe(0.3) else (),
            phases={
                "warm-up": Window(1, 2),
                "heal": Window(2, self.at(3, 15)),
                "drain": Window(40, self.at(40, 70)),
                "audit": Window(70, 80),
            },
            compacted=self.compacted,
            offsets_kept_ns=self.keeping.choice([0, 3, FOREVER]),
            leaders=tuple(LeaderChange(at, self.at(0, 2), self.tp(), self.at(-1, 1)) for at in self.ascending(2)),
            unguarded=frozenset([0] if self.maybe(0.2) else []),
            fetched=tuple(
                Request(self.tp(), -1, self.name(), at + LATE_NS, at + self.chance.choice([0, 2]), 1)
                for at in self.ascending(4)
            ),
            heartbeats=tuple(Heartbeat(self.name(), 1, at + LATE_NS, at + LATE_NS, 1) for at in self.ascending(12)),
            effects=tuple(self.effects(0)),
            dead_letters=tuple(one._replace(retried_ns=self.retried()) for one in self.effects(LETTER_NS)),
            copies=tuple(one._replace(again=self.chance.randrange(END)) for one in self.effects(LETTER_NS)),
        )
        vars(tables)["writer_of"] = {a.order: self.name() for a in accepted if self.maybe(0.8)}
        return tables

    def tp(self) -> int:
        return self.chance.choice(TPS)

    def name(self) -> str:
        return self.chance.choice(NAMES)

    def ascending(self, most: int) -> list[int]:
        return sorted(self.at() for _ in self.some(most))

    def scenario(self) -> dict[str, Any]:
        config = {"heartbeat.interval.ms": self.chance.choice(["0", "0.000004"])}
        config |= {"auto.offset.reset": "latest"} if self.maybe(0.15) else {}
        config |= {"isolation.level": "read_uncommitted"} if self.maybe(0.15) else {}
        promises = [{"type": "effects"}, {"type": "parked", "in_order": True}, {"type": "requeued"}]
        protocol = self.chance.choice(["cooperative", "eager"])
        return {
            "group": {"config": config, "protocol": protocol},
            "promises": promises if self.maybe(0.9) else [],
            "workload": {
                "poison_every": self.chance.choice([0, 3]),
                "type": "own_program" if self.of_programs.random() < 0.4 else "poll_loop",
                "processed": "effect" if self.of_programs.random() < 0.2 else "next-poll",
            },
        }

    def partition(self, tp: int) -> Partition:
        return Partition(tp, TopicPartition("orders", tp), self.chance.choice([0, 0, 3]), self.chance.choice([-1, END]))

    def life(self, name: str) -> Life:
        how = self.chance.choice(["closed", "killed", "crashed", ""])
        ended_ns = self.at(30, 80) if how else 0
        paused = tuple(self.window() for _ in self.some(2))
        unpolled = tuple(Window(at, at + self.at(6, 40)) for at in self.ascending(2))
        forked = self.of_programs.random() < 0.1
        return Life(name, 0, 0, 1, ended_ns, how, ended_ns - 1, paused, unpolled=unpolled, forked=forked)

    def commit(self, intervals: Sequence[Interval]) -> Commit:
        tp, name, begin_ns = self.tp(), self.name(), self.at(1, 40)
        if intervals and self.maybe(0.6):
            interval = self.chance.choice(intervals)
            tp, name, begin_ns = interval.tp, interval.incarnation, self.at(interval.assigned_begin_ns, 30)
        outcome, generation = self.chance.choice(OUTCOMES), self.chance.choice([-1, 1, 2, 3])
        error = self.chance.choice(ERRORS) if outcome == "fail" else ""
        end_ns, mode = begin_ns + self.chance.choice([0, 1, 3]), self.chance.choice(["sync", "sync", "auto"])
        offset = self.chance.randrange(END + 1)
        return Commit(tp, offset, name, "", generation, begin_ns, end_ns, outcome, error, mode)

    def accepted(self) -> Iterator[OffsetCommit]:
        high = dict.fromkeys(TPS, 0)
        for order, at_ns in enumerate(self.ascending(8)):
            tp = self.tp()
            high[tp] = min(END, max(0, high[tp] + self.chance.choice([-2, 1, 2, 4])))
            offset = -1 if self.maybe(0.05) else high[tp]
            answered_ns = self.chance.choice([0, at_ns, at_ns + 2])
            yield OffsetCommit(tp, offset, order, at_ns, self.chance.choice([0, 0, 1, 3]), answered_ns)

    def behind(self, rows: Sequence[Delivered]) -> Iterator[OffsetCommit]:
        """As of a group that commits the last record that it finished."""
        for tp in TPS:
            done = [row.offset for row in rows if row.tp == tp and row.state in FINISHED]
            if done:
                yield OffsetCommit(tp, max(done), 100 + tp, self.at(50), self.chance.choice([0, 2]))

    def given(self) -> Iterator[AssignmentChange]:
        for order, at_ns in enumerate(self.ascending(5)):
            name = self.chance.choice(["", *NAMES])
            yield AssignmentChange(self.tp(), order, at_ns, self.chance.choice([0, 1, 3]), name and f"id-{name}", name)

    def step(self, number: int) -> PerformedStep:
        times = sorted(self.at() for _ in range(4))
        heals = self.maybe(0.7)
        members = self.chance.choice([(), ("a.1",), ("b.1",)])
        undone_ns, healed_ns = times[2:] if heals and self.maybe(0.8) else (0, 0)
        return PerformedStep(number, "pause", "", members, (), "", True, heals, *times[:2], undone_ns, healed_ns)

    def act(self) -> DeclaredAction:
        end_ns = self.chance.choice([FOREVER, self.at()])
        return DeclaredAction(
            self.chance.choice(["reset", "made anew"]),
            self.chance.choice([-1, *TPS]),
            self.at(),
            end_ns,
            self.chance.choice([-1, 0, 4]),
        )

    def effects(self, earlier_ns: int) -> Iterator[Effect]:
        for number in self.some(9):
            offset, key = self.chance.randrange(END), self.chance.choice([-1, 0, 1, 2])
            yield Effect(number, self.tp(), offset, self.name(), 0, self.at() - earlier_ns, key)

    def retried(self) -> int:
        return self.chance.choice([FOREVER, self.at(1, 20) + LETTER_NS])


class Held(Files):
    """The records of a history in row groups of a few, as if they were read from files."""

    def __init__(self, records: Records, rows: int) -> None:
        super().__init__(Path())
        self.groups: list[RowGroup] = []
        self._held: dict[tuple[str, str, int], Columns] = {}
        for name in NAMES:
            self._hold(
                "delivered", f"{name}.parquet", [r[1:] for r in records.delivered if r[0] == name], Delivered, rows
            )
        acked = [send for send in records.produced if send.offset >= 0]
        self._hold("produced", "producer-0.parquet", acked, Produced, rows)
        self._hold("unacked", "producer-0.unacked.parquet", [*{*records.produced} - {*acked}], Produced, rows)
        self._hold("log", "audit.parquet", records.log, Logged, rows)

    def _hold(self, folder: str, file: str, given: Sequence[Any], kind: Any, rows: int) -> None:
        names, number = [name for name in kind._fields if name != "incarnation"], 0
        for tp in TPS:
            mine = [row for row in given if row[names.index("tp")] == tp]
            for begin in range(0, len(mine), rows):
                columns = dict(zip(names, np.array(mine[begin : begin + rows], np.int64).T, strict=True))
                counters = [columns[name] for name in COUNTERS if folder == "delivered"]
                bounds = tuple((int(column.min()), int(column.max())) for column in counters)
                low, high = (int(columns["offset"].min()), int(columns["offset"].max()))
                self.groups.append(
                    RowGroup(folder, file, number, tp, low, high, len(mine[begin : begin + rows]), bounds)
                )
                self._held[folder, file, number] = columns
                number += 1

    def read(self, task: Task, folder: str, names: Sequence[str], near: Near | None = None) -> Iterator[Piece]:
        for file, numbers in task.of(folder):
            for number in numbers:
                columns = self._held[folder, file, number]

                def some(names: Sequence[str], columns: Columns = columns) -> Columns:
                    return {name: columns[name] for name in names}

                piece = Piece(file.removesuffix(".parquet"), some, names, len(columns["offset"]))
                if folder != "unacked":
                    piece = piece.where((columns["offset"] >= task.low) & (columns["offset"] < task.high))
                if piece.rows:
                    yield piece

    def within(self, task: Task, name: str, interval: int) -> bool:
        mine = [of for (_, file, _), of in self._held.items() if file == f"{name}.parquet" and of["tp"][0] == task.tp]
        offsets = np.concatenate([np.zeros(0, np.int64), *(of["offset"][of["interval"] == interval] for of in mine)])
        return bool(((task.low <= offsets) & (offsets < task.high)).all())


def _answered(chance: random.Random, reported: History) -> Tables:
    """The tables with answers of coordinators, by which members begin; some are older than what had been committed."""
    rows, tables = reported.records.delivered, reported.tables
    accepted, fetched = [*tables.accepted], [*tables.fetched]
    for n, row in enumerate(rows):
        if row.interval == rows[n - 1].interval:
            continue
        at_ns = row.delivered_ns - chance.choice([0, 0, 1])
        if chance.random() < 0.15:
            before = ((2 * n - 99, row.offset), (2 * n - 98, row.offset + 2))
            accepted[:0] = [OffsetCommit(row.tp, offset, order, at_ns - 3, 0, at_ns - 3) for order, offset in before]
        if chance.random() < 0.3:
            times = at_ns + LATE_NS, at_ns + chance.choice([0, 2]), 1
            who = row.tp, chance.choice([row.offset, row.offset, -1]), row.incarnation
            fetched.append(Request(*who, *times, broker=chance.randrange(2), stable=chance.random() < 0.5))
    moments = [chance.randrange(1, END_NS) for _ in range(2)]
    return replace(
        tables,
        accepted=tuple(sorted(accepted, key=lambda a: a.order)),
        fetched=tuple(sorted(fetched, key=lambda f: f.begin_ns)),
        seats=tuple(
            CoordinatorChange(at_ns, chance.randrange(3), chance.randrange(-1, 2), at_ns + 9)
            for at_ns in sorted(moments)
        ),
        loads=tuple(Window(at_ns, at_ns + chance.choice([0, 5])) for at_ns in moments),
    )
