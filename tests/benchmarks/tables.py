"""How long the small tables take, as they grow: ``python tests/benchmarks/tables.py [--intervals 1e4 1e5 1e6]``.

A group of ten members with a hundred partitions is rebalanced again and again, with ten records for each assignment
interval and a commit at its end, so that nearly all work is about intervals, commits, requests and rounds. Each size is
loaded, judged (by the kernel in this process, as its rules ask the tables) and drawn in a process of its own. CPU
seconds do not depend on what else the machine does; growth is that from the size before.
"""

from __future__ import annotations

import argparse
import json
import resource
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from synthetic import Shape, planted, write

from fencepost.checkers import judge
from fencepost.checkers.spark import detector
from fencepost.checkers.tables import load
from fencepost.history.run_folder import RunFolder
from fencepost.reports import html

PARTITIONS = 100


def small_tables(intervals: int) -> Shape:
    """A shape of so many assignment intervals and commits."""
    lives = {"members": 10, "rounds_each_life": max(10, intervals // 10_000)}
    size = {"records": 10 * intervals, "partitions": PARTITIONS, "handovers": intervals // PARTITIONS - 1}
    return Shape(**size, **lives, redelivered=2, dirt=1)


def measure(run: Path) -> None:
    """Print CPU seconds, and the greatest resident bytes until then, of one step after the other."""

    def timed(name: str, work: Callable[[], Any]) -> Any:
        began = time.process_time()
        done = work()
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
        print(json.dumps({"step": name, "cpu_s": time.process_time() - began, "peak": peak}), flush=True)
        return done

    timed("load", partial(load, run))
    verdict = timed("verdict", partial(judge.judge, run, detector.find_here))
    RunFolder.open(run).write_verdict(verdict)
    timed("report", partial(html.render, run))
    found = Counter[str]()
    for finding in (finding for check in verdict.checks for finding in check.findings):
        found[finding.kind] += finding.count
    sizes = {name: (run / name).stat().st_size for name in ("verdict.json", "report.html")}
    print(json.dumps({"found": found, **sizes}))


def compare(runs: Path, intervals: int, limit_s: int, before: dict[str, float]) -> dict[str, float]:
    """Make, judge and print one size; returns the CPU seconds of its steps, which the next one is compared with."""
    shape = small_tables(intervals)
    run = write(runs, shape)
    command = [sys.executable, __file__, "--one", str(run), "--limit", str(limit_s)]
    reported = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
    *steps, last = [json.loads(line) for line in reported.stdout.splitlines()] or [{}]
    print(f"{intervals:,} intervals, {shape.members * shape.lives:,} incarnations, {shape.turns:,} rounds")
    steps += [last] if "step" in last else []
    for step in steps:
        growth = f"{step['cpu_s'] / before[step['step']]:6.1f} x" if step["step"] in before else ""
        print(f"  {step['step']:10}{step['cpu_s']:9.2f} s{step['peak'] / 2**30:8.2f} GiB {growth}")
    if reported.returncode:
        print(f"  given up after {limit_s} s of CPU" if reported.returncode == -signal.SIGXCPU else "  it failed")
    else:
        sizes = (f"{name} {last[name] / 1e6:.1f} MB" for name in ("verdict.json", "report.html"))
        print(f"  {', '.join(sizes)}; {sum(last['found'].values()):,} sightings")
        assert planted(shape).items() <= last["found"].items(), "what was planted was not found"
    return {step["step"]: step["cpu_s"] for step in steps}


def main() -> None:
    """Make the folders, judge each in a process, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--intervals", type=float, nargs="+", default=[1e4, 1e5, 1e6])
    parser.add_argument("--limit", type=int, default=1200, help="CPU seconds until a size is given up")
    parser.add_argument("--one", type=Path, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.one:
        resource.setrlimit(resource.RLIMIT_CPU, (arguments.limit, arguments.limit))
        measure(arguments.one)
        return
    before: dict[str, float] = {}
    for intervals in arguments.intervals:
        with tempfile.TemporaryDirectory(prefix="tables-benchmark-") as folder:
            before = compare(Path(folder), int(intervals), arguments.limit, before)


if __name__ == "__main__":
    main()
