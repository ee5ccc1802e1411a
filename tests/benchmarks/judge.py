"""How fast a run is judged, beside the plain decode of its files: ``python tests/benchmarks/judge.py [--records N]``.

The decode is the limit: the columns that the judge needs, read by pyarrow with all its threads, and thrown away. All
contestants read the same folder in turns; the median counts, the first turn is told apart. Peak memory is the resident
set of the whole tree of processes in the first turn (shared pages counted more than once; the JVM is in all of them).
At the end: how long a small run takes from the command line, and in a session that is warm.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import psutil
import pyarrow.parquet as pq
from synthetic import Shape, write

from fencepost.checkers import judge
from fencepost.checkers.facts import Bounds
from fencepost.checkers.kernel.part import DELIVERED, LOG
from fencepost.checkers.spark import finder
from fencepost.checkers.spark.session import Spark
from fencepost.checkers.tables import load
from fencepost.clock import ticks
from fencepost.model import Anomaly

ROUNDS = 3
LIMIT = "pyarrow, decode only"
NEEDED = {"delivered": DELIVERED, "produced": ["offset", "writer", "seq", "outcome"], "log": LOG}
Contestant = Callable[[Path], list[Anomaly] | None]


def decode(run: Path) -> None:
    """What no judge of these files can do without."""
    for folder, columns in NEEDED.items():
        for path in sorted((run / "history" / folder).glob("*.parquet")):
            for _ in pq.ParquetFile(path).iter_batches(1 << 18, columns=columns, use_threads=True):
                pass


def on_spark(spark: Spark, run: Path) -> list[Anomaly]:
    """The whole verdict's work: tables, tasks, kernel, sweep."""
    return finder.find(run, load(run), Bounds(), spark)[0]


def in_process(run: Path) -> list[Anomaly]:
    """The same kernel on one core, without Spark."""
    return finder.find_here(run, load(run), Bounds())[0]


@contextmanager
def peak_of_tree() -> Iterator[list[int]]:
    """Puts the greatest resident bytes of this process and its descendants into the list."""
    peak, over = [0], threading.Event()

    def watch() -> None:
        me = psutil.Process()
        for _ in ticks(0.05):
            total = 0
            for process in (me, *me.children(recursive=True)):
                try:
                    total += process.memory_info().rss
                except psutil.NoSuchProcess:
                    continue
            peak[0] = max(peak[0], total)
            if over.is_set():
                return

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        yield peak
    finally:
        over.set()
        watcher.join()


def compare(run: Path, shape: Shape, contestants: dict[str, Contestant], rounds: int) -> None:
    """All contestants in turns; one that finds something else than the others is an error."""
    seconds: dict[str, list[float]] = {name: [] for name in contestants}
    peaks = dict.fromkeys(contestants, 0)
    answers: list[list[Anomaly]] = []
    for _ in range(rounds):
        for name, contestant in contestants.items():
            with peak_of_tree() as peak:
                began = time.perf_counter()
                found = contestant(run)
                seconds[name].append(time.perf_counter() - began)
            peaks[name] = peaks[name] or peak[0]
            answers += [found] if found is not None else []
    assert all(answer == answers[0] for answer in answers), "the contestants disagree"
    size = sum(path.stat().st_size for path in (run / "history").rglob("*.parquet"))
    print(f"{shape.records:,} delivered, produced and logged records each, {size / 1e6:.0f} MB of Parquet")
    limit = statistics.median(seconds[LIMIT])
    print(f"{'':34}{'median s':>9}{'first s':>9}{'M rows/s':>10}{'x decode':>10}{'peak GiB':>10}")
    for name, times in seconds.items():
        median = statistics.median(times)
        rate = shape.records / median / 1e6
        print(f"{name:34}{median:9.2f}{times[0]:9.2f}{rate:10.1f}{median / limit:10.1f}{peaks[name] / 2**30:10.2f}")


def small(runs: Path, spark: Spark, records: int) -> None:
    """A run as tests make them: from the command line, and in a warm session."""
    run = write(runs, Shape(records=records, dirt=1))
    cold = []
    for _ in range(ROUNDS):
        began = time.perf_counter()
        subprocess.run([sys.executable, "-m", "fencepost", "check", str(run)], stdout=subprocess.DEVNULL, check=False)
        cold.append(time.perf_counter() - began)
    warm = []
    for _ in range(2 * ROUNDS):
        began = time.perf_counter()
        verdict = judge.judge(run, finder.finder(spark))
        warm.append(time.perf_counter() - began)
    print(f"{records:,} records: {verdict.validity}")
    print(f"  fencepost check, a new process   {statistics.median(cold):6.2f} s   of {_listed(cold)}")
    print(f"  verdict in a warm session        {statistics.median(warm):6.2f} s   of {_listed(warm)}")


def _listed(times: list[float]) -> str:
    return ", ".join(f"{seconds:.2f}" for seconds in times)


def main() -> None:
    """Make the folders, judge them, print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--records", type=int, default=10_000_000)
    parser.add_argument("--small", type=int, default=100_000)
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    arguments = parser.parse_args()
    began = time.perf_counter()
    spark = Spark.start()
    try:
        spark.get()
        print(f"session after {time.perf_counter() - began:.1f} s")
        with tempfile.TemporaryDirectory(prefix="judge-benchmark-") as folder:
            shape = Shape(records=arguments.records, partitions=24, members=6, dirt=3)
            run = write(Path(folder), shape)
            contestants: dict[str, Contestant] = {
                "Spark, full verdict": partial(on_spark, spark),
                LIMIT: decode,
                "the kernel alone, one core": in_process,
            }
            compare(run, shape, contestants, arguments.rounds)
            small(Path(folder), spark, arguments.small)
    finally:
        spark.stop()


if __name__ == "__main__":
    main()
