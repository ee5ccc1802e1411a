"""Partitions that stay where they are: what do they get while others are being given up, by KIP-983's two approaches?

    python tests/benchmarks/staying_partitions.py [--times 3] [--runs build/staying-partitions]

Two members with a pool of workers, six partitions, 20 records/s, each of which takes 2.5 s; a third member comes. Who
gives partitions up waits for the records that are begun: in the callback (the second approach), or while it polls on
(the new one, ``delay_revoke``). Counted is what polls brought per second of the partitions that stay: from when it came
until it was given its first one, and in the 2.5 s before; and how long polls brought nothing of that partition among
them which waited longest. The runs go in turns; medians of all turns. Every run is judged, too.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow.parquet as pq
from in_turns import by_name, medians, performed

from fencepost import at
from fencepost.checkers.tables import Tables
from fencepost.checkers.tables.rows import NS, Window
from fencepost.faults import ScaleOut
from fencepost.model.topic import Topic
from fencepost.scenario.scenario import Group, Scenario
from fencepost.targets import idle
from fencepost.workloads import WorkerPool

TAKES_S, PARTITIONS, NEWCOMER = 2.5, 6, "member-2.1"
WAYS = {"in the callback": False, "polling on": True}
PROTOCOLS = ("cooperative", "consumer")


class Brought(NamedTuple):
    """Of the partitions that stay: records per second before and meanwhile, and the longest time without one."""

    before_hz: float
    meanwhile_hz: float
    longest_s: float


def scenario(protocol: str, delay_revoke: bool) -> Scenario:
    """The load, for such members."""
    return Scenario(
        name="a third member comes",
        topics=[Topic("orders", partitions=PARTITIONS)],
        group=Group(members=2, spare=1, protocol=protocol, config={"session.timeout.ms": 10_000}),
        workload=WorkerPool(
            workers=64, lanes="key", handler_ms=TAKES_S * 1000, rate_hz=20, keys=300, delay_revoke=delay_revoke
        ),
        schedule=[at(5, ScaleOut(joined_within_s=20), idle())],
        min_records=300,
    )


def measured(folder: Path, tables: Tables) -> Brought:
    """What a run's members were given of the partitions that stay."""
    came_ns = min(step.begun_ns for step in tables.steps)
    given_ns = min(i.assigned_begin_ns for i in tables.intervals if i.incarnation == NEWCOMER)
    before, meanwhile = Window(came_ns - int(TAKES_S * NS), came_ns), Window(came_ns, given_ns)
    owned = [(interval.tp, interval.certain) for interval in tables.intervals]
    stays = [tp for tp, of in owned if of.begin_ns <= before.begin_ns and of.end_ns >= given_ns]
    tables_of = (
        pq.read_table(path, columns=["tp", "delivered_ns"]) for path in (folder / "history/delivered").glob("*")
    )
    tp, at_ns = (
        np.concatenate(column) for column in zip(*((t["tp"], t["delivered_ns"]) for t in tables_of), strict=True)
    )

    def rate_hz(window: Window) -> float:
        mine = np.isin(tp, stays) & (at_ns >= window.begin_ns) & (at_ns < window.end_ns)
        return float(mine.sum()) * NS / window.length_ns

    def longest_ns(one: int) -> int:
        mine = np.sort(at_ns[(tp == one) & (at_ns >= came_ns) & (at_ns < given_ns)])
        return int(np.diff([came_ns, *mine, given_ns]).max())

    return Brought(rate_hz(before), rate_hz(meanwhile), max(map(longest_ns, stays)) / NS)


def turns(times: int, runs: Path) -> Iterator[tuple[str, Brought]]:
    """Every run of both ways and protocols."""
    scenarios = {
        f"{protocol}, {way}": scenario(protocol, delays) for protocol in PROTOCOLS for way, delays in WAYS.items()
    }
    for name, folder, tables, _ in performed(scenarios, range(1, times + 1), runs):
        brought = measured(folder, tables)
        print(brought, flush=True)
        yield name, brought


def table(found: Iterable[tuple[str, Brought]]) -> str:
    """Medians, as Markdown."""
    lines = ["| protocol, who waits | before | meanwhile | ratio | longest without a record |", "|---|---|---|---|---|"]
    for name, those in by_name(found).items():
        middle = medians(those)
        rates = f"{middle.before_hz:.1f}/s | {middle.meanwhile_hz:.1f}/s | {middle.meanwhile_hz / middle.before_hz:.2f}"
        lines.append(f"| {name} | {rates} | {middle.longest_s:.1f} s |")
    return "\n".join(lines)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--times", type=int, default=3)
    parser.add_argument("--runs", type=Path, default=Path("build/staying-partitions"))
    asked = parser.parse_args()
    print(table(turns(asked.times, asked.runs)))
