"""Run folders of any size in the real format, without a cluster: what the judge's benchmark and big tests read.

    python tests/benchmarks/synthetic.py --records 1e8 --shape hot --dirt 3 out/

A group is rebalanced round after round: in each, every partition goes to the next member. Every second owner *loses* it
with records processed and not committed, which the next one gets again (a permitted redelivery). ``dirt`` plants
anomalies on top, each kind in a turn of its own, so that ``planted`` can say how many of each must be found.

Everything follows from (partition, round) by arithmetic and is written a row group at a time, a file per process: a
thousand million records need no more memory than a million.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import asdict, dataclass, fields
from functools import cached_property, partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from fencepost.evidence.sealing import parquet_records
from fencepost.evidence.sealing.seal import seal
from fencepost.history import DELIVERED_COLUMNS, EVENT_COLUMNS, LOG_COLUMNS, PRODUCED_COLUMNS, RecordState
from fencepost.history.run_folder import RunFolder
from fencepost.model.topic import Topic
from fencepost.scenario.scenario import Group, Scenario
from fencepost.schedule.plan import plan_to_json
from fencepost.workloads import PollLoop

Array = NDArray[Any]
Job = Callable[[], None]

TOPIC = "orders"
T0 = 1_000_000_000_000
S, MS, US = 1_000_000_000, 1_000_000, 1_000
STEP_NS = 50 * US  # from one record of the busiest partition to the next
POLL_NS = 25 * MS
WRITERS, BATCH = 4, 128
BLUR_NS = 100 * US
ALONE = 2_000_000  # records up to which one process is quicker than several
# The turns of a partition in which ``dirt`` is planted. Even ones end by lost, odd ones by revoked.
SKIP, REWIND, VANISH, PHANTOM, AHEAD = 1, 2, 3, 4, 5
MISSING, REGRESSION, ZOMBIE, OVERLAP = SKIP, VANISH, PHANTOM, AHEAD


@dataclass(frozen=True)
class Shape:
    """How large, and how dirty.

    Attributes:
        records: of all partitions; what is redelivered comes on top.
        handovers: how often each partition goes to the next member.
        redelivered: records of a partition that are processed and not committed when it is lost; at most a quarter.
        commit_every: a member commits after so many records of a partition, and where it gives it up.
        dirt: planted records of each kind in each partition, see ``planted``.
        spread: an offset of so many is a record (as compaction leaves them); 1: all are.
        hot: whether partition 0 has half of all records.
        rounds_each_life: a member's process is bounced after so many rounds; 0: never.
        rest_ns: nothing happens for so long between two rounds.
        seed: moves what is planted inside its turn, who owns what first, and how long records take.
    """

    records: int = 100_000
    partitions: int = 12
    members: int = 4
    handovers: int = 6
    redelivered: int = 50
    commit_every: int = 5_000
    dirt: int = 0
    first_offset: int = 0
    spread: int = 1
    hot: int = 0
    rounds_each_life: int = 0
    rest_ns: int = 0
    seed: int = 0

    def __post_init__(self) -> None:
        if self.dirt and (self.handovers < 6 or 0 < self.rounds_each_life < 7 or self.members < 2):
            raise ValueError("dirt needs 6 handovers, between 2 members that live 7 rounds")
        if self.partitions < self.members:
            raise ValueError("there are members without a partition")
        if min(self.each(1), self.each(0)) // self.turns < max(1, 8 * self.dirt):
            raise ValueError(f"{self.records:,} records are too few for {self.turns} turns of {self.partitions}")

    @property
    def turns(self) -> int:
        """Assignment intervals of one partition."""
        return self.handovers + 1

    def each(self, tp: Any) -> Any:
        """Records of one partition, or of each of several."""
        if not self.hot or self.partitions < 2:
            return self.records // self.partitions + 0 * tp
        half = self.records // 2
        return np.where(tp == 0, half, half // (self.partitions - 1))

    def offsets(self, tp: int | Array, index: Array) -> Array:
        """The offsets of the records number ``index`` of a partition."""
        ragged = (index * 40503 + tp) % self.spread if self.spread > 1 else 0
        return self.first_offset + index * self.spread + ragged

    def next_offset(self, tp: int | Array, index: Array) -> Array:
        """The offset that is committed when the records below ``index`` are done; the first one when there are none."""
        return np.where(index > 0, self.offsets(tp, index - 1) + 1, self.first_offset)

    @property
    def lives(self) -> int:
        """Incarnations of each member."""
        return -(-self.turns // self.rounds_each_life) if self.rounds_each_life else 1

    def names(self) -> list[str]:
        """All incarnations; ``BugTrigger.who`` is an index into them."""
        return [f"member-{member}.{life + 1}" for life in range(self.lives) for member in range(self.members)]


def shape(name: str, records: int, **changes: int) -> Shape:
    """One of ``SHAPES`` with so many records."""
    return Shape(**{"records": records, **SHAPES[name](records), **changes})


def _lived(records: int, partitions: int) -> dict[str, int]:
    turns = min(10_000, records // 50 // partitions)
    lives = {"members": 10, "rounds_each_life": max(10, turns // 100)}
    return {"partitions": partitions, "handovers": turns - 1, **lives}


SHAPES: dict[str, Callable[[int], dict[str, int]]] = {
    "uniform": lambda n: {"partitions": 24, "members": 6, "handovers": max(6, min(200, n // 500_000))},
    "hot": lambda n: {**SHAPES["uniform"](n), "hot": 1, "partitions": 12},
    "wide": lambda n: {"partitions": min(10_000, n // 100), "members": 8},
    "lives": lambda n: _lived(n, max(6, min(100, n // 1_000))),
    "sparse": lambda n: {**SHAPES["uniform"](n), "first_offset": 1 << 40, "spread": 16},
    "commits": lambda n: {**SHAPES["uniform"](n), "commit_every": max(1, n // 1_000_000)},
}


def planted(shape: Shape) -> dict[str, int]:
    """How many of each kind are in the history: the counts of all anomalies of that kind added up."""
    tps, d = shape.partitions, shape.dirt
    again = int(Turns.of(shape).again.sum()) * ((shape.handovers + 1) // 2)
    records = {"poll-skip": d, "unseen": d, "rewind": d, "lost-write": 2 * d, "delivered-then-lost": d, "phantom": d}
    records |= {"processing-after-revocation": d, "commit-ahead": 2 * d}  # the skipped ones, too
    events = dict.fromkeys(("commit-regression", "acknowledged-commit-missing", "assignment-overlap"), 1)
    found = {kind: count * tps for kind, count in {**records, **events}.items()} if d else {}
    if d:  # where partitions overlap every member is late for all others but the next owner, and for itself
        found["early-assignment"] = shape.members * (shape.members - 1)
    return {**found, "redelivery": again + d * tps} if again or d else found


@dataclass(frozen=True)
class Turns:
    """The assignment intervals: arithmetic over arrays of partitions ``tp`` and of their rounds ``n``."""

    shape: Shape
    again: Array  # by partition: how many records each lost turn leaves to the next one
    step_ns: Array
    length_ns: int
    gap_ns: int

    @classmethod
    def of(cls, shape: Shape) -> Turns:
        """All partitions work all the time, so that each has its own pace."""
        rows = shape.each(np.arange(shape.partitions)) // shape.turns
        again = np.minimum(shape.redelivered, rows // 4)
        most = rows + 1 + again + 2 * shape.dirt
        length_ns = int(most.max()) * STEP_NS
        gap_ns = 5 * MS + shape.dirt * STEP_NS + shape.rest_ns
        return cls(shape, again, length_ns // most, length_ns, gap_ns)

    def cut(self, tp: Any, n: Any) -> Any:
        """How many records of the partition the turns before ``n`` are meant to get through."""
        return self.shape.each(tp) * n // self.shape.turns

    def first(self, tp: Any, n: Any) -> Any:
        """The record that a turn begins with."""
        return self.cut(tp, n) - self.again[tp] * (n % 2)

    def last(self, tp: Any, n: Any) -> Any:
        """The record that a turn ends before."""
        return self.cut(tp, n + 1)

    def until(self, tp: Any, n: Any) -> Any:
        """Before which record the last commit of a turn is."""
        lost = (n % 2 == 0) & (n < self.shape.handovers)
        return self.cut(tp, n + 1) - self.again[tp] * lost

    def middle(self, tp: Any, n: Any) -> Any:
        """Where dirt is planted: about the middle."""
        first, last = self.cut(tp, n), self.cut(tp, n + 1)
        return (first + last) // 2 + (tp * 31 + n + self.shape.seed * 7919) % ((last - first) // 8 + 1)

    def from_ns(self, n: Any) -> Any:
        """When the first record of a turn begins."""
        return T0 + n * (self.length_ns + self.gap_ns)

    def at_ns(self, tp: Any, n: Any, index: Any) -> Any:
        """When the records below ``index`` are done."""
        late = self.shape.dirt * (n == REWIND)
        return self.from_ns(n) + (index - self.first(tp, n) + late) * self.step_ns[tp]

    def to_ns(self, n: Any) -> Any:
        """When a turn is over, in every partition."""
        return self.from_ns(n) + self.length_ns

    @property
    def end_ns(self) -> int:
        """When the last one is over."""
        return int(self.to_ns(self.shape.handovers))

    def who(self, tp: Any, n: Any) -> Any:
        """The owner, as an index into ``Shape.names``."""
        life = n // self.shape.rounds_each_life if self.shape.rounds_each_life else 0 * n
        return (tp + n + self.shape.seed) % self.shape.members + life * self.shape.members

    def mine(self, who: int, tp: int) -> Array:
        """The turns that an incarnation has of a partition."""
        life, member = divmod(who, self.shape.members)
        begin = life * self.shape.rounds_each_life
        end = min(begin + (self.shape.rounds_each_life or self.shape.turns), self.shape.turns)
        return np.arange(begin + (member - tp - self.shape.seed - begin) % self.shape.members, end, self.shape.members)

    @cached_property
    def sent_from_ns(self) -> int:
        """When the first record was sent; all were acknowledged before the group began."""
        return T0 - 2 * S - int(np.max(self.shape.each(np.arange(self.shape.partitions)))) * US


def write(runs: Path, shape: Shape, tell: Callable[[str], None] = lambda _: None) -> Path:
    """Make a run folder under ``runs`` and return it. ``tell`` hears of every file."""
    scenario = Scenario(
        "synthetic", (Topic(TOPIC, shape.partitions),), Group(shape.members, protocol="eager"), PollLoop()
    )
    folder = RunFolder.create(runs, scenario.name, shape.seed)
    folder.write_json("scenario.json", {"scenario": scenario.to_json(), "seed": shape.seed, "versions": {}})
    turns, history = Turns.of(shape), folder.history
    folder.write_json("plan.json", {**plan_to_json(scenario.plan(shape.seed)), "steps": [s for s, _ in _steps(turns)]})
    partitions = [_partition(shape, tp) for tp in range(shape.partitions)]
    folder.write_json("history/partitions.json", {"partitions": partitions})
    folder.write_json("history/clock.json", {"pairs": [[T0, T0], [turns.end_ns, turns.end_ns]]})
    (history / "coordinator/metadata.jsonl").write_text("")
    (history / "host.jsonl").write_text(json.dumps({"kind": "summary", "stalls": 0}) + "\n")
    _perform(list(_jobs(history, shape)), tell, shape.records > ALONE)
    seal(folder.path)
    return folder.path


def _jobs(history: Path, shape: Shape) -> Iterator[tuple[str, Job]]:
    """What writes each file, the largest first."""
    yield "log/audit.parquet", partial(_write_log, history / "log/audit.parquet", shape)
    for writer in range(WRITERS):
        name = f"produced/producer-{writer}"
        yield f"{name}.parquet", partial(_write_produced, history / f"{name}.parquet", shape, writer)
        parquet_records.write(history / f"{name}.unacked.parquet", PRODUCED_COLUMNS, [])
    yield "coordinator", partial(_write_coordinator, history / "coordinator", shape)
    yield "events.parquet", partial(_write_events, history / "events.parquet", shape)
    for who, name in enumerate(shape.names()):
        file = f"delivered/{name}.parquet"
        yield file, partial(_write_delivered, history / file, shape, who)


def _perform(jobs: list[tuple[str, Job]], tell: Callable[[str], None], pool: bool) -> None:
    began = time.perf_counter()

    def told(done: int, name: str) -> None:
        tell(f"[{done}/{len(jobs)}] {time.perf_counter() - began:6.1f} s  {name}")

    if not pool:
        for done, (name, job) in enumerate(jobs, 1):
            job()
            told(done, name)
        return
    with ProcessPoolExecutor(os.cpu_count(), mp_context=get_context("spawn")) as workers:
        futures = {workers.submit(job): name for name, job in jobs}
        for done, future in enumerate(as_completed(futures), 1):
            future.result()
            told(done, futures[future])


def _partition(shape: Shape, tp: int) -> dict[str, Any]:
    end = int(shape.next_offset(tp, np.int64(shape.each(tp))))
    place = {"tp": tp, "topic": TOPIC, "partition": tp}
    return {**place, "log_start": shape.first_offset, "log_end": end, "committed": end}


def _content(shape: Shape, tp: int, index: Array) -> dict[str, Array]:
    return {
        "tp": np.full(len(index), tp, np.int32),
        "offset": shape.offsets(tp, index),
        "key": _mixed(index) % 99_991 * shape.partitions + tp,
        "writer": (index // BATCH % WRITERS).astype(np.int32),
        "seq": index * shape.partitions + tp,
    }


def _mixed(number: Array) -> Array:
    """Numbers that look like chance, as keys and times do: what repeats would be stored and read too well."""
    mixed = number.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    mixed = (mixed ^ (mixed >> np.uint64(29))) * np.uint64(0xBF58476D1CE4E5B9)
    return (mixed >> np.uint64(33)).astype(np.int64)


def _write_produced(path: Path, shape: Shape, writer: int) -> None:
    turns = Turns.of(shape)

    def groups() -> Iterator[parquet_records.Columns]:
        for tp in range(shape.partitions):
            most = -(-int(shape.each(tp)) // (WRITERS * BATCH)) * BATCH
            for cut in range(0, most, parquet_records.ROW_GROUP_ROWS):
                of_writer = np.arange(cut, cut + parquet_records.ROW_GROUP_ROWS)
                index = (of_writer // BATCH * WRITERS + writer) * BATCH + of_writer % BATCH
                index = index[index < shape.each(tp)]
                sent = turns.sent_from_ns + index * US
                times = {"sent_ns": sent, "acked_ns": sent + 2 * MS, "outcome": np.zeros(len(index), np.int8)}
                if len(index):
                    yield {**_content(shape, tp, index), **times}

    parquet_records.write(path, PRODUCED_COLUMNS, groups())


def _write_log(path: Path, shape: Shape) -> None:
    turns = Turns.of(shape)

    def groups() -> Iterator[parquet_records.Columns]:
        for tp in range(shape.partitions):
            gone = turns.middle(tp, VANISH)
            for cut in range(0, int(shape.each(tp)), parquet_records.ROW_GROUP_ROWS):
                index = np.arange(cut, min(cut + parquet_records.ROW_GROUP_ROWS, int(shape.each(tp))))
                if shape.dirt:
                    index = index[(index < gone) | (index >= gone + 2 * shape.dirt)]
                yield {**_content(shape, tp, index), "appended_ms": (turns.sent_from_ns + index * US) // MS}

    parquet_records.write(path, LOG_COLUMNS, groups())


def _stretches(turns: Turns, who: int, tp: int) -> Array:
    """What an incarnation is given of a partition: rows of (turn, first record, before which, rows of the turn before).

    As a rule one for each turn.
    """
    n, d = turns.mine(who, tp), turns.shape.dirt
    odd: list[tuple[int, int, int, int]] = []
    for turn in n[n <= ZOMBIE].tolist() if d else ():
        first, middle, last = (int(of(tp, turn)) for of in (turns.first, turns.middle, turns.last))
        parts = {
            SKIP: [(first, middle), (middle + d, last)],
            REWIND: [(first, middle + d), (middle, last)],
            VANISH: [(first, middle), (middle + d, last)],
            ZOMBIE: [(first, last), (last, last + d)],
        }.get(turn, [(first, last)])
        odd += [(turn, *part, (parts[0][1] - first) * place) for place, part in enumerate(parts)]
    n = n[n > ZOMBIE] if d else n
    even = np.stack([n, turns.first(tp, n), turns.last(tp, n), 0 * n], axis=1)
    return np.concatenate([np.array(odd, np.int64).reshape(-1, 4), even])


def _write_delivered(path: Path, shape: Shape, who: int) -> None:
    turns = Turns.of(shape)

    def groups() -> Iterator[parquet_records.Columns]:
        for tp in range(shape.partitions):
            stretches = _stretches(turns, who, tp)
            ends = np.cumsum(stretches[:, 2] - stretches[:, 1])
            for cut in range(0, int(ends[-1]) if len(ends) else 0, parquet_records.ROW_GROUP_ROWS):
                order = np.arange(cut, min(cut + parquet_records.ROW_GROUP_ROWS, int(ends[-1])))
                yield _delivered(turns, who, tp, order, stretches, ends)

    parquet_records.write(path, DELIVERED_COLUMNS, groups())


def _delivered(turns: Turns, who: int, tp: int, order: Array, stretches: Array, ends: Array) -> parquet_records.Columns:
    """The deliveries number ``order`` of an incarnation and a partition."""
    stretch = np.searchsorted(ends, order, side="right")
    n, first, last, before = stretches[stretch].T
    place = order - (ends[stretch] - (last - first))  # in the stretch
    index, given = first + place, before + place  # which record, and how many the turn was given before
    at_ns = turns.from_ns(n) + given * turns.step_ns[tp]
    after = np.flatnonzero(index >= turns.last(tp, n))  # what a zombie does
    at_ns[after] = turns.to_ns(n[after]) + MS + place[after] * STEP_NS
    poll_ns = at_ns - (at_ns - T0) % POLL_NS
    content = _content(turns.shape, tp, index)
    if turns.shape.dirt:
        phantom = turns.middle(tp, PHANTOM)
        content["seq"] += ((n == PHANTOM) & (index >= phantom) & (index < phantom + turns.shape.dirt)) << 40
    jitter = _mixed(order + turns.shape.seed) % 10_000
    return {
        **content,
        "interval": np.searchsorted(turns.mine(who, tp), n).astype(np.int32),
        "poll": (poll_ns - T0) // POLL_NS,
        "position": ((at_ns - poll_ns) // turns.step_ns[tp]).astype(np.int32),
        "ord": order,
        "delivered_ns": np.maximum(poll_ns, turns.from_ns(n)),
        "begin_ns": at_ns + US + jitter,
        "done_ns": at_ns + 20 * US + 2 * jitter,
        "state": np.full(len(order), RecordState.DONE, np.int8),
        "thread": np.zeros(len(order), np.int16),
    }


class _Commits(NamedTuple):
    """Commits of one partition each. ``index``: of all records below; ``taken``: whether the coordinator has it."""

    at_ns: Array
    tp: Array
    n: Array
    index: Array
    taken: Array


def _commits(turns: Turns) -> _Commits:
    """All of them, in the order of time: every so many records, and at the end of each turn."""
    shape, d = turns.shape, turns.shape.dirt
    n, tp = (grid.ravel() for grid in np.meshgrid(np.arange(shape.turns), np.arange(shape.partitions), indexing="ij"))
    first, until = turns.first(tp, n), turns.until(tp, n)
    odd = np.isin(n, (MISSING, REGRESSION, AHEAD)) & (d > 0)
    stop = until - d * odd
    every = np.where(n == 0, np.minimum(shape.commit_every, np.maximum(1, (until - first) // 2)), shape.commit_every)
    count = np.maximum(0, stop - first - 1) // every
    turn = np.repeat(np.arange(len(n)), count)
    nth = 1 + np.arange(len(turn)) - np.repeat(np.cumsum(count) - count, count)

    def commits(turn: Array, index: Array, stated: Array, late_ns: int = 0, taken: bool = True) -> _Commits:
        at_ns = turns.at_ns(tp[turn], n[turn], index) + late_ns
        return _Commits(at_ns, tp[turn], n[turn], stated, np.full(len(turn), taken))

    every_turn, index = np.arange(len(n)), first[turn] + nth * every[turn]
    found = [commits(turn, index, index), commits(every_turn, until, until)]
    if d:
        missing, again, ahead = (np.flatnonzero(n == turn) for turn in (MISSING, REGRESSION, AHEAD))
        found += [
            commits(missing, stop[missing], stop[missing], taken=False),
            commits(again, stop[again], stop[again]),
            commits(again, stop[again], stop[again] - 1, late_ns=10 * US),
            commits(ahead, stop[ahead], until[ahead]),
        ]
    merged = _Commits(*map(np.concatenate, zip(*found, strict=True)))
    order = np.lexsort((merged.tp, merged.at_ns))
    return _Commits(*(column[order] for column in merged))


def _lives(turns: Turns) -> Iterator[tuple[str, int, int, int]]:
    """Each incarnation, its member, and when it started and closed."""
    shape = turns.shape
    for who, name in enumerate(shape.names()):
        life, member = divmod(who, shape.members)
        begin, end = life * shape.rounds_each_life, (life + 1) * shape.rounds_each_life
        begin_ns = int(turns.from_ns(begin)) - 2 * MS if life else T0 - S
        yield name, member, begin_ns, int(turns.from_ns(end)) - 3 * MS if life + 1 < shape.lives else turns.end_ns + S


def _steps(turns: Turns) -> list[tuple[dict[str, Any], dict[str, Any]]]:
    """The fault steps, as the plan and as an event's detail tell them: every bounce, or a coordinator that moved."""
    bounced = [(name, at_ns) for name, _, _, at_ns in _lives(turns) if at_ns < turns.end_ns]
    found = []
    for step, (name, at_ns) in enumerate(bounced or [("", T0)]):
        fault, target = ("bounce", name.rpartition(".")[0]) if name else ("move_coordinator", "")
        entry = {"step": step, "at_s": (at_ns - T0) / S, "fault": {"type": fault}, "pick": 0.5, "target": None}
        evidence = {"took_effect": True, "at_ns": at_ns + US, "what": "as told", "data": {}}
        reported = {"step": step, "fault": fault, "target": target, "members": [name] if name else [], "brokers": []}
        plan = {**entry, "heal_after_s": None, "required": True, "expect": None}
        found.append((plan, {**reported, "expect": None, "evidence": evidence}))
    return found


def _write_events(path: Path, shape: Shape) -> None:
    turns, commits = Turns.of(shape), _commits(Turns.of(shape))
    n, tp = (grid.ravel() for grid in np.meshgrid(np.arange(shape.turns), np.arange(shape.partitions), indexing="ij"))
    assigned_ns = turns.from_ns(n) - 200 * US
    given_up_ns = turns.to_ns(n) + 100 * US
    if shape.dirt:
        given_up_ns = np.where(n == OVERLAP, turns.from_ns(n + 1) - 50 * US, given_up_ns)
    names = np.array(shape.names())

    def told(kind: str, tp: Array, n: Array, begin_ns: Array, took_ns: int, **more: Any) -> pa.Table:
        who = turns.who(tp, n)
        place = {"topic": np.full(len(tp), TOPIC), "partition": tp, "generation": n}
        member = {"actor": names[who], "member_id": np.char.add("id-", names)[who]}
        times = {"begin_ns": begin_ns, "end_ns": begin_ns + took_ns}
        return _event_rows({"kind": np.full(len(tp), kind), **member, **times, **place, **more})

    tables = [told("assigned", tp, n, assigned_ns, 100 * US)]
    for kind, which in (("lost", n % 2 == 0), ("revoked", n % 2 == 1)):
        mine = np.flatnonzero(which & (n < shape.handovers))
        tables.append(told(kind, tp[mine], n[mine], given_up_ns[mine], 10 * US))
    how = {"outcome": np.full(len(commits.tp), "ok"), "detail": np.full(len(commits.tp), '{"mode": "sync"}')}
    offset = shape.next_offset(commits.tp, commits.index)
    tables.append(told("commit", commits.tp, commits.n, commits.at_ns, 5 * US, offset=offset, **how))
    tables.append(_event_rows(_rare_events(turns)))
    rows = pa.concat_tables(tables)
    rows = rows.set_column(rows.schema.get_field_index("id"), "id", pa.array(np.arange(1, 1 + len(rows))))
    order = [("begin_ns", "ascending"), ("actor", "ascending"), ("id", "ascending")]
    pq.write_table(rows.sort_by(order), path, compression="zstd", compression_level=1)


def _event_rows(known: dict[str, Any]) -> pa.Table:
    size = len(known["kind"])
    blank = {"generation": np.full(size, -1), "detail": np.full(size, "{}"), "id": np.zeros(size, np.int64), **known}
    kinds = {name: getattr(pa, kind)() for name, kind in EVENT_COLUMNS.items()}
    rows = [pa.array(blank[name], kind) if name in blank else pa.nulls(size, kind) for name, kind in kinds.items()]
    return pa.Table.from_arrays(rows, schema=pa.schema(kinds))


def _rare_events(turns: Turns) -> dict[str, list[Any]]:
    """Phases, faults and lives."""
    end_ns = turns.end_ns
    edges = [
        ("warm-up", T0 - S, T0),
        ("chaos", T0, end_ns),
        ("heal", end_ns, end_ns + 1),
        ("drain", end_ns + 1, end_ns + S),
    ]
    found: list[tuple[str, str, int, int, Any]] = [("phase", "harness", a, b, {"name": name}) for name, a, b in edges]
    for plan, detail in _steps(turns):
        at_ns = detail["evidence"]["at_ns"]
        found.append(("fault", "harness", at_ns - US, at_ns, {**detail, "required": plan["required"]}))
    for name, member, begin_ns, end_ns in _lives(turns):
        about = {"pid": member, "slot": member, "member": member, "how": "closed", "exit_code": 0}
        for kind, at_ns in (
            ("launched", begin_ns),
            ("started", begin_ns + 1),
            ("closed", end_ns),
            ("ended", end_ns + 2),
        ):
            found.append((kind, name, at_ns, at_ns + 1, about))
    kinds, actors, begins, ends, details = zip(*found, strict=True)
    reported = [json.dumps(detail) for detail in details]
    return {"kind": kinds, "actor": actors, "begin_ns": begins, "end_ns": ends, "detail": reported}


def _write_coordinator(folder: Path, shape: Shape) -> None:
    """A classic group: what its members asked, and the coordinator's records of every round and commit."""
    turns, commits, names = Turns.of(shape), _commits(Turns.of(shape)), shape.names()
    offsets = shape.next_offset(commits.tp, commits.index)
    owners = turns.who(commits.tp, commits.n)
    columns = (commits.at_ns, commits.tp, owners, offsets, commits.taken)
    cuts, order = np.searchsorted(commits.n, np.arange(shape.turns + 1)), 0
    with (folder / "offsets.jsonl").open("w") as log, (folder / "requests.jsonl").open("w") as requests:
        for n in range(shape.turns):
            owned: dict[str, list[int]] = {}
            for tp, who in enumerate(turns.who(np.arange(shape.partitions), n).tolist()):
                owned.setdefault(names[who], []).append(tp)
            members = [{"member_id": f"id-{name}", "assignment": {TOPIC: tps}} for name, tps in owned.items()]
            log.write(_record(order, int(turns.from_ns(n)) - MS, "classic-group", generation=n, members=members))
            order += 1
            requests.writelines(_round(turns, n, owned))
            for at_ns, tp, who, offset, taken in zip(
                *(c[cuts[n] : cuts[n + 1]].tolist() for c in columns), strict=True
            ):
                asked = [[TOPIC, tp, offset, None]]
                requests.write(_request("OFFSET_COMMIT", names[who], n, at_ns + US, 3 * US, offsets=asked))
                if taken:
                    log.write(_record(order, at_ns + 2 * US, "commit", topic=TOPIC, partition=tp, committed=offset))
                    order += 1


def _round(turns: Turns, n: int, owned: dict[str, list[int]]) -> Iterator[str]:
    """What the members ask in a round: to join, where to start, and whether all is well."""
    from_ns = int(turns.from_ns(n))
    for name in owned:
        yield _request("JOIN_GROUP", name, n, from_ns - 2 * MS + MS // 2, MS // 4, reason="")
    for name, tps in owned.items():
        some = np.array(tps)
        starts = turns.shape.next_offset(some, turns.first(some, n)) if n else np.full(len(tps), -1)
        reported = [[TOPIC, tp, start, None] for tp, start in zip(tps, starts.tolist(), strict=True)]
        yield _request("OFFSET_FETCH", name, n, from_ns - 150 * US, 20 * US, offsets=reported)
    for name in owned:
        yield _request("HEARTBEAT", name, n, from_ns - 100 * US, 20 * US)


def _record(order: int, at_ns: int, kind: str, **fields: Any) -> str:
    head = {"order": order, "batch": order, "at_ns": at_ns, "uncertainty_ns": BLUR_NS, "term": 1}
    return json.dumps({**head, "type": kind, "deleted": False, **fields}) + "\n"


def _request(api: str, name: str, generation: int, begin_ns: int, took_ns: int, **fields: Any) -> str:
    who = {"slot": int(name.split("-")[1].split(".")[0]), "client_id": name, "member_id": f"id-{name}"}
    times = {"start_ns": begin_ns, "end_ns": begin_ns + took_ns, "uncertainty_ns": BLUR_NS}
    return json.dumps({"api": api, **who, "generation": generation, **times, "error": None, **fields}) + "\n"


def main() -> None:
    """Write one run folder."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("runs", type=Path, help="where the run folder is made")
    parser.add_argument("--shape", choices=SHAPES, default="uniform")
    for field in fields(Shape):
        kind = int if field.name != "records" else lambda text: int(float(text))
        parser.add_argument(f"--{field.name.replace('_', '-')}", type=kind, default=None)
    arguments = vars(parser.parse_args())
    runs, name, records = (arguments.pop(key) for key in ("runs", "shape", "records"))
    changes = {key: value for key, value in arguments.items() if value is not None}
    asked = shape(name, records or Shape.records, **changes)
    run = write(runs, asked, lambda line: print(line, file=sys.stderr, flush=True))
    print(json.dumps({"run": str(run), "shape": asdict(asked), "planted": planted(asked)}, indent=1))


if __name__ == "__main__":
    main()
