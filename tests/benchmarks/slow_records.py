"""Slow records: what it costs to wait, to let the group rebalance, to relinquish, to re-queue and to park, under one
and the same outage.

    python tests/benchmarks/slow_records.py [--times 3] [--protocol cooperative] [--runs build/slow-records]

Three members, six partitions, 300 records/s; for 15 s every record of one member takes as long as it is let. Members
have to poll within 4 s, or 60 s where they wait. Counted is, from the start of the outage until 5 s after its end: for
how long the worst and the middle partition had nothing done, how often the group rebalanced, and records that were
done more than once. The runs go in turns; medians of all turns. Every run is judged, too, also by whether no partition
was ever worked on by two members at a time.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from statistics import median
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from in_turns import by_name, medians, performed

from fencepost.checkers import Commits, Delivery, Order, Ownership, Progress
from fencepost.checkers.tables import Tables
from fencepost.checkers.tables.rows import NS, Window
from fencepost.faults import Stall
from fencepost.history import RecordState
from fencepost.model import Severity, Verdict
from fencepost.model.topic import Topic
from fencepost.scenario.scenario import Group, Scenario
from fencepost.schedule.entries import at
from fencepost.targets import member
from fencepost.workloads import DeadLetters, PollLoop, Requeue

PARTITIONS, RATE_HZ, OUTAGE_S, AFTER_S = 6, 300, 15, 5
INTERVAL_MS, LONG_MS = 4000, 60_000
LOOP = PollLoop(rate_hz=RATE_HZ, handler_ms=2, batch=50)
AGAIN = Requeue(rate_hz=RATE_HZ, handler_ms=2, batch=5, deadline_ms=500)
LETTERS = DeadLetters(rate_hz=RATE_HZ, handler_ms=2, batch=5, deadline_ms=500, poison_every=0)
STRATEGIES = {
    "1 wait: a long `max.poll.interval.ms`": (LOOP, LONG_MS),
    "2 let the group rebalance": (LOOP, INTERVAL_MS),
    "3 relinquish after 2 s": (replace(LOOP, deadline_ms=INTERVAL_MS / 2), INTERVAL_MS),
    "4 re-queue after 0.5 s": (AGAIN, INTERVAL_MS),
    "5 park after 0.5 s": (LETTERS, INTERVAL_MS),
}


class Cost(NamedTuple):
    """What a strategy cost, see the module; ``aside``: dead letters, or copies of records that were re-queued."""

    worst_s: float
    middle_s: float
    rebalances: int
    again: int
    aside: int


def scenario(workload: PollLoop | DeadLetters | Requeue, interval_ms: float, protocol: str) -> Scenario:
    """The outage, for such members."""
    return Scenario(
        name="slow records",
        topics=[Topic("orders", partitions=PARTITIONS)],
        group=Group(
            members=3,
            protocol=protocol,
            config={"session.timeout.ms": 4000, "heartbeat.interval.ms": 500, "max.poll.interval.ms": interval_ms},
        ),
        workload=workload,
        schedule=[at(5, Stall(), member(1), heal_after=OUTAGE_S)],
        promises=[
            Delivery("at-least-once"),
            Order(by="key"),
            Ownership(of="processing"),
            Progress(within_s=30),
            Commits(),
        ],
        chaos_s=120,
        min_records=RATE_HZ * (OUTAGE_S + 2 * AFTER_S),
    )


def measured(folder: Path, tables: Tables, verdict: Verdict) -> Cost:
    """The cost in a run."""
    (outage,) = tables.steps
    during = Window(outage.begun_ns, outage.undone_ns + AFTER_S * NS)
    columns = ["tp", "offset", "done_ns", "state"]
    rows = pa.concat_tables(pq.read_table(path, columns=columns) for path in (folder / "history/delivered").iterdir())
    done = rows.filter(pa.compute.equal(rows["state"], int(RecordState.DONE)))
    tp, offset, done_ns = (done[name].to_numpy() for name in columns[:3])
    inside = (during.begin_ns <= done_ns) & (done_ns < during.end_ns)
    idle_s = [longest_s(done_ns[inside & (tp == one)], during) for one in range(PARTITIONS)]
    places = np.unique(np.stack([tp, offset]), axis=1).shape[1]
    rounds = [one for one in verdict.rebalances if during.begin_ns <= one["begin_ns"] < during.end_ns]
    return Cost(
        max(idle_s), median(idle_s), len(rounds), len(tp) - places, len(tables.dead_letters) + len(tables.copies)
    )


def longest_s(moments: np.ndarray, during: Window) -> float:
    """The longest time in a window without any of these moments."""
    edges = np.concatenate([[during.begin_ns], np.sort(moments), [during.end_ns]])
    return float(np.diff(edges).max() / NS)


def turns(asked: argparse.Namespace) -> Iterator[tuple[str, Cost, str]]:
    """Every run of every strategy, and what was found in it."""
    scenarios = {name: scenario(*made, asked.protocol) for name, made in STRATEGIES.items()}
    for name, folder, tables, verdict in performed(scenarios, range(1, asked.times + 1), asked.runs):
        cost = measured(folder, tables, verdict)
        findings = (finding for check in verdict.checks for finding in check.findings)
        found = sorted({finding.kind for finding in findings if finding.severity is Severity.VIOLATION})
        print(cost, *found, flush=True)
        yield name, cost, ", ".join(found)


def table(found: Iterable[tuple[str, Cost, str]]) -> str:
    """Medians, as Markdown."""
    lines = [
        "| strategy | worst partition idle | the middle one | rebalances | done again | put aside | found |",
        "|---|---|---|---|---|---|---|",
    ]
    for name, those in by_name((name, (cost, kinds)) for name, cost, kinds in found).items():
        middle = medians(cost for cost, _ in those)
        kinds = sorted({kinds for _, kinds in those} - {""})
        lines.append(
            f"| {name} | {middle.worst_s:.1f} s | {middle.middle_s:.1f} s | {middle.rebalances:g} | {middle.again:g} "
            f"| {middle.aside:g} | {'; '.join(kinds) or 'nothing'} |"
        )
    return "\n".join(lines)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--times", type=int, default=3)
    parser.add_argument("--protocol", default="cooperative")
    parser.add_argument("--runs", type=Path, default=Path("build/slow-records"))
    print(table(turns(parser.parse_args())))
