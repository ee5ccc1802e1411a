"""A hot partition: what becomes of the others while the handler is slow for one alone, by workload?

    python tests/benchmarks/hot_partition.py [--times 3] [--runs build/hot-partition]

Two members, six partitions, 600 records/s; a record of partition 0 takes 20 ms, so it gets 50 of its 100 records/s
done, and any other takes no time. Counted is what members finished, by the history, in the last seconds before the
drain begins, when producers stop. The runs go in turns; medians of all turns. Every run is judged, too.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow.parquet as pq
from in_turns import by_name, medians, performed

from fencepost.checkers.tables import Tables
from fencepost.checkers.tables.rows import NS, Window
from fencepost.model.topic import Topic
from fencepost.scenario.scenario import Group, Scenario
from fencepost.workloads import PollLoop, WorkerPool

PARTITIONS, HOT, SLOW_MS, RATE_HZ = 6, 0, 20, 600
LAST_S = 5
WORKLOADS = {
    "poll_loop": PollLoop(rate_hz=RATE_HZ, slow_partition=HOT, slow_ms=SLOW_MS),
    "worker_pool": WorkerPool(rate_hz=RATE_HZ, slow_partition=HOT, slow_ms=SLOW_MS),
}


class Rates(NamedTuple):
    """Records per second: of the hot partition, of all others together, and of the slowest of these."""

    hot_hz: float
    others_hz: float
    slowest_hz: float


def scenario(workload: PollLoop | WorkerPool) -> Scenario:
    """The load, for such members."""
    return Scenario(
        name="a hot partition",
        topics=[Topic("orders", partitions=PARTITIONS)],
        group=Group(members=2, config={"session.timeout.ms": 10_000}),
        workload=workload,
        schedule=[],
        chaos_s=30,
        min_records=9000,
    )


def measured(folder: Path, tables: Tables) -> Rates | None:
    """The rates of a run; None when it warmed up for so long that too little came after it."""
    end_ns = tables.phases["drain"].begin_ns
    during = Window(end_ns - LAST_S * NS, end_ns)
    if during.begin_ns < tables.phases["warm-up"].end_ns:
        return None
    counts = np.zeros(PARTITIONS)
    for path in (folder / "history/delivered").glob("*.parquet"):
        rows = pq.read_table(path, columns=["tp", "done_ns"])
        done_ns = rows["done_ns"].to_numpy()
        inside = (during.begin_ns <= done_ns) & (done_ns < during.end_ns)
        counts += np.bincount(rows["tp"].to_numpy()[inside], minlength=PARTITIONS)
    rates = counts / (during.length_ns / NS)
    others = np.delete(rates, HOT)
    return Rates(float(rates[HOT]), float(others.sum()), float(others.min()))


def turns(times: int, runs: Path) -> Iterator[tuple[str, Rates]]:
    """Every run of every workload."""
    scenarios = {name: scenario(workload) for name, workload in WORKLOADS.items()}
    for name, folder, tables, _ in performed(scenarios, range(1, times + 1), runs):
        rates = measured(folder, tables)
        print(rates or f"not counted: less than {LAST_S} s passed between warm-up and drain", flush=True)
        if rates:
            yield name, rates


def table(found: Iterable[tuple[str, Rates]]) -> str:
    """Medians, as Markdown."""
    middle = {name: medians(those) for name, those in by_name(found).items()}
    lines = ["| workload | hot partition | the others together | the slowest of these |", "|---|---|---|---|"]
    lines += [f"| {name} | {' | '.join(f'{hz:.0f}/s' for hz in rates)} |" for name, rates in middle.items()]
    loop, pool = middle["poll_loop"], middle["worker_pool"]
    ratios = [f"{mine / theirs:.2f}" if theirs else "" for mine, theirs in zip(pool, loop, strict=True)]
    return "\n".join([*lines, f"| ratio | {' | '.join(ratios)} |"])


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--times", type=int, default=3)
    parser.add_argument("--runs", type=Path, default=Path("build/hot-partition"))
    asked = parser.parse_args()
    print(table(turns(asked.times, asked.runs)))
