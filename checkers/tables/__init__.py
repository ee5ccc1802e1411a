"""The tables of one run: everything that checkers may ask for, turned from events and evidence into typed rows, once.

The small tables are held by ``Tables``; records stay in their Parquet files (the oracle loads them with
``load_records``, Spark reads them where they are). Whatever is missing or damaged is a row of ``damage``.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from fencepost.checkers.tables import coordinator, lives, wholeness
from fencepost.checkers.tables.reading import Reader
from fencepost.checkers.tables.records import Records, load_records
from fencepost.checkers.tables.rows import (
    FOREVER,
    Accepted,
    Act,
    Commit,
    Damage,
    Given,
    Gone,
    Interval,
    Life,
    Partition,
    Round,
    Seek,
    Step,
    Window,
)
from fencepost.history import EventKind
from fencepost.model import TopicPartition

__all__ = ["PARTS", "Records", "Tables", "load", "load_records"]

# The parts of a history, by which checks say what they need and damage says what it hurts.
PARTS = (
    *("run", "phase", "scenario", "promises", "plan", "clock", "partitions", "events", "delivered", "produced", "log"),
    *("offsets", "requests", "metadata", "host"),
)


@dataclass(frozen=True)
class Tables:
    """The small tables of one run. Rows are ordered by time (commits of the broker: by the offsets log).

    Attributes:
        scenario: ``scenario.json`` as it is; ``asked`` is the scenario proper.
        origin_ns: the run's start; sentences count seconds from here.
        leaders: (at_ns, uncertainty_ns, tp, leader) of every change of a leader, -1 = none.
        phases: the window of each phase by name; an end of 0 means that it never ended.
        broken_off: the phase in which the run was interrupted; empty when it went through.
    """

    run: Path
    scenario: Mapping[str, Any] = field(default_factory=dict)
    plan: Mapping[str, Any] = field(default_factory=dict)
    origin_ns: int = 0
    partitions: Mapping[int, Partition] = field(default_factory=dict)
    lives: Mapping[str, Life] = field(default_factory=dict)
    intervals: tuple[Interval, ...] = ()
    commits: tuple[Commit, ...] = ()
    accepted: tuple[Accepted, ...] = ()
    given: tuple[Given, ...] = ()
    gone: tuple[Gone, ...] = ()
    rounds: tuple[Round, ...] = ()
    steps: tuple[Step, ...] = ()
    seeks: tuple[Seek, ...] = ()
    acts: tuple[Act, ...] = ()
    stalls: tuple[Window, ...] = ()
    phases: Mapping[str, Window] = field(default_factory=dict)
    broken_off: str = ""
    terms: tuple[tuple[int, int, int], ...] = ()
    leaders: tuple[tuple[int, int, int, int], ...] = ()
    damage: tuple[Damage, ...] = ()

    @property
    def asked(self) -> Mapping[str, Any]:
        """The scenario proper."""
        value = self.scenario.get("scenario")
        return value if isinstance(value, Mapping) else {}

    @cached_property
    def interval(self) -> Mapping[tuple[str, int, int], Interval]:
        """Assignment intervals by (incarnation, tp, number)."""
        return {(i.incarnation, i.tp, i.number): i for i in self.intervals}

    @cached_property
    def _by_tp(self) -> tuple[Mapping[int, list[Accepted]], Mapping[int, list[Given]]]:
        accepted, given = defaultdict(list), defaultdict(list)
        for a in self.accepted:
            accepted[a.tp].append(a)
        for g in self.given:
            given[g.tp].append(g)
        return accepted, given

    def final_committed(self, tp: int) -> int:
        """The group's last committed offset of a partition; -1 when there is none."""
        rows = self._by_tp[0].get(tp)
        return rows[-1].offset if rows else -1

    def committed_between(self, tp: int, from_ns: int, to_ns: int) -> tuple[int, ...]:
        """Every committed offset that somebody may have fetched between two moments; -1 stands for none.

        That is: the last one that was certainly in force at ``from_ns`` (a member had its "ok") and all that were
        appended, or may have been, after it and before ``to_ns``. Moments in the wrong order, which only a history that
        was tampered with has, are taken in the right one.
        """
        from_ns, to_ns = sorted((from_ns, to_ns))
        rows = self._by_tp[0].get(tp, [])
        certain = [n for n, a in enumerate(rows) if a.answered_ns and a.answered_ns <= from_ns]
        possible = [a.offset for a in rows[certain[-1] if certain else 0 :] if a.at_ns - a.uncertainty_ns <= to_ns]
        return tuple(possible) if certain else (-1, *possible)

    def certain_owner(self, tp: int, at_ns: int) -> Given | None:
        """The coordinator's record that gave the partition to whoever certainly had it at ``at_ns``.

        None when that is not certain: no record, a change within the uncertainty, nobody, or an unknown member id.
        """
        rows = self._by_tp[1].get(tp, [])
        last = bisect_right(rows, at_ns, key=lambda g: g.at_ns - g.uncertainty_ns) - 1
        if last < 0 or rows[last].at_ns + rows[last].uncertainty_ns > at_ns or not rows[last].incarnation:
            return None
        return rows[last]

    def removed(self, interval: Interval, by_ns: int) -> Gone | None:
        """The coordinator's record that the owner of ``interval`` was gone during it, if possibly by ``by_ns``."""
        for g in self.gone:
            same = g.member_id == interval.member_id if interval.member_id else g.incarnation == interval.incarnation
            during = g.at_ns + g.uncertainty_ns >= interval.assigned_begin_ns
            if same and during and g.at_ns - g.uncertainty_ns <= by_ns:
                return g
        return None

    def act_on(self, tp: int, by_ns: int) -> str:
        """The name of a declared act on the partition that began before ``by_ns``; empty when there is none."""
        return next((a.what for a in self.acts if a.tp in (-1, tp) and a.begin_ns <= by_ns), "")

    def leaderless(self, tp: int, from_ns: int, to_ns: int) -> bool:
        """Whether the partition had possibly no leader at some moment between two."""
        changes = [change for change in self.leaders if change[2] == tp]
        ends = [*(at_ns + blur for at_ns, blur, _, _ in changes[1:]), FOREVER]
        gaps = (Window(c[0] - c[1], end) for c, end in zip(changes, ends, strict=False) if c[3] < 0)
        return any(gap.begin_ns <= to_ns and gap.end_ns >= from_ns for gap in gaps)

    @property
    def quiet(self) -> Window:
        """When liveness is judged: from the end of healing (without faults: of warming up) to the end of the drain.

        Empty when the run never got there.
        """
        after = self.phases.get("heal" if self.steps else "warm-up", Window(0, 0)).end_ns
        end = self.phases.get("drain", Window(0, 0)).end_ns
        return Window(after, end) if after and end else Window(0, 0)


def load(run: Path) -> Tables:
    """The tables of the run folder ``run``; never raises for a damaged one."""
    reader = Reader(run)
    scenario, plan = reader.json("scenario", "scenario.json"), reader.json("plan", "plan.json")
    pairs = reader.json("clock", "history/clock.json").get("pairs") or []
    partitions = _partitions(reader)
    numbers = {(p.name.topic, p.name.partition): p.tp for p in partitions.values()}
    events = reader.events()
    of_harness = events or reader.unsealed_events("harness")
    phases = lives.phases(of_harness)
    offsets = reader.lines("offsets", "history/coordinator/offsets.jsonl")
    requests = reader.lines("requests", "history/coordinator/requests.jsonl")
    metadata = reader.lines("metadata", "history/coordinator/metadata.jsonl")
    host = reader.lines("host", "history/host.jsonl")
    steps = lives.steps(of_harness, plan.get("steps") or ())
    known = lives.lives(events, steps)
    commits = lives.commits(events, numbers)
    who = coordinator.incarnations(events, requests, known)
    given, gone = coordinator.assignments(offsets, who, numbers)
    broken_off = lives.broken_off(phases)
    wholeness.check(reader, scenario, events, known, broken_off)
    return Tables(
        run=run,
        scenario=scenario,
        plan=plan,
        origin_ns=int(pairs[0][0]) if pairs else min((e["begin_ns"] for e in events if e["begin_ns"]), default=0),
        partitions=partitions,
        lives=known,
        intervals=lives.intervals(events, known, numbers),
        commits=commits,
        accepted=coordinator.accepted(offsets, commits, numbers),
        given=given,
        gone=gone,
        rounds=coordinator.rounds(offsets, requests, who),
        steps=steps,
        seeks=tuple(
            Seek(tp, e["actor"], -1 if e["offset"] is None else e["offset"], e["begin_ns"])
            for e, tp in lives.placed(events, numbers, EventKind.SEEK)
        ),
        acts=tuple(
            Act(str(e["detail"].get("what") or "act"), -1 if tp is None else tp, e["begin_ns"])
            for e, tp in lives.placed(events, numbers, EventKind.ACT, anywhere=True)
        ),
        stalls=tuple(Window(int(s["from_ns"]), int(s["to_ns"])) for s in host if s.get("kind") == "stall"),
        phases=phases,
        broken_off=broken_off,
        terms=coordinator.terms(offsets),
        leaders=coordinator.leaders(metadata, numbers),
        damage=tuple(reader.damage),
    )


def _partitions(reader: Reader) -> dict[int, Partition]:
    """``{"partitions": [...]}`` or the list alone."""
    value = reader.json("partitions", "history/partitions.json")
    found = {}
    for entry in value.get("partitions", value.get("")) or ():
        name = TopicPartition(str(entry["topic"]), int(entry["partition"]))
        tp = int(entry["tp"])
        found[tp] = Partition(tp, name, int(entry.get("log_start", 0)))
    return found
