"""A rolling bounce of a group: for how long is each partition without an owner, by protocol?

    python tests/benchmarks/rolling_bounce.py [--members 10] [--partitions 30] [--times 3] [--runs build/rolling-bounce]

Every member is stopped, is gone for a second, and comes back, one after the other. A partition pauses while no member
certainly owns it, by the members' own callbacks; that is added up from the first stop until the last member is at work
again and all are told to leave. The runs go in turns, so that what else the machine does hits all protocols alike;
medians of all turns. Every run is judged, too: its promises are those of any group.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from statistics import median
from typing import NamedTuple

from in_turns import by_name, groups, performed

from fencepost.checkers.tables import Tables
from fencepost.checkers.tables.rows import NS, Window
from fencepost.model import Verdict
from fencepost.model.topic import Topic
from fencepost.scenario.scenario import Group, Scenario
from fencepost.schedule.combinators import rolling_deploy
from fencepost.workloads import PollLoop

RATE_HZ = 500
GROUPS = groups({"session.timeout.ms": 10_000, "heartbeat.interval.ms": 1000})


class Bounce(NamedTuple):
    """What one bounce cost: the pause of each partition, in their order; how many partitions moved, how often the group
    rebalanced, and how long all of it took; times in seconds."""

    pauses_s: tuple[float, ...]
    moved: int
    rebalances: int
    took_s: float


def scenario(group: Group, members: int, partitions: int) -> Scenario:
    """The bounce of such a group."""
    return Scenario(
        name="a rolling bounce",
        topics=[Topic("orders", partitions=partitions)],
        group=replace(group, members=members),
        workload=PollLoop(rate_hz=RATE_HZ),
        schedule=[rolling_deploy(2, pause_s=3, down_s=1)],
        chaos_s=60 + 12 * members,
        min_records=RATE_HZ * (15 + 5 * members),  # the last one that comes back is to be given its partitions, too
    )


def measured(tables: Tables, verdict: Verdict) -> Bounce:
    """The pauses of a run that was performed: from the first stop until members are told to leave for good."""
    bounce = Window(min(step.begun_ns for step in tables.steps), tables.closing_ns)
    pauses_s = tuple((bounce.length_ns - owned_ns(tables, tp, bounce)) / NS for tp in sorted(tables.partitions))
    rounds = [one for one in verdict.rebalances if bounce.begin_ns <= one["begin_ns"] <= bounce.end_ns]
    moved = sum(one["moved"] for one in rounds)
    return Bounce(pauses_s, moved, len(rounds), bounce.length_ns / NS)


def owned_ns(tables: Tables, tp: int, during: Window) -> int:
    """How long somebody certainly owned a partition, during a window."""
    spans = sorted(interval.certain.common(during) for interval in tables.certain_by_tp.meeting(tp, during))
    total, until = 0, during.begin_ns
    for span in spans:
        total += max(0, span.end_ns - max(until, span.begin_ns))
        until = max(until, span.end_ns)
    return total


def turns(asked: argparse.Namespace) -> Iterator[tuple[str, Bounce]]:
    """Every bounce of every protocol."""
    scenarios = {name: scenario(GROUPS[name], asked.members, asked.partitions) for name in asked.only or GROUPS}
    for name, _, tables, verdict in performed(scenarios, range(1, asked.times + 1), asked.runs):
        bounce = measured(tables, verdict)
        print(name, bounce, flush=True)
        yield name, bounce


def table(found: Mapping[str, Sequence[Bounce]]) -> str:
    """Medians, as Markdown."""
    lines = [
        "| protocol | pause in sum | of the middle partition | of the worst | partitions moved | rebalances | took |",
        "|---|---|---|---|---|---|---|",
    ]
    for name, those in found.items():
        times = [f"{median(of(one.pauses_s) for one in those):.1f} s" for of in (sum, median, max)]
        moved, rebalances, took_s = (median(numbers) for numbers in zip(*(one[1:] for one in those), strict=True))
        lines.append(f"| {name} | {' | '.join(times)} | {moved:g} | {rebalances:g} | {took_s:.0f} s |")
    return "\n".join(lines)


def by_partition(found: Mapping[str, Sequence[Bounce]]) -> str:
    """The median pause of each partition, as Markdown."""
    pauses = [[median(one) for one in zip(*(b.pauses_s for b in those), strict=True)] for those in found.values()]
    lines = [f"| partition | {' | '.join(found)} |", f"|---|{'---|' * len(found)}"]
    rows = enumerate(zip(*pauses, strict=True))
    return "\n".join([*lines, *(f"| {tp} | {' | '.join(f'{one:.1f} s' for one in row)} |" for tp, row in rows)])


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--members", type=int, default=10)
    parser.add_argument("--partitions", type=int, default=30)
    parser.add_argument("--times", type=int, default=3)
    parser.add_argument("--only", action="append", choices=GROUPS)
    parser.add_argument("--runs", type=Path, default=Path("build/rolling-bounce"))
    bounces = by_name(turns(parser.parse_args()))
    print(table(bounces), by_partition(bounces), sep="\n\n")
