"""How fast a run is judged, beside rivals and the plain decode: ``python tests/benchmarks/judge.py [--records N]``.

All contestants read the same files in turns, each in a process of its own; the median of the wall times counts, the
first turn (cold code, new workers) is told apart. The rivals look for what the judge finds in records
(``rivals.KINDS``), and must find as many of each as the judge, which must find exactly what was planted. The decode is
the limit: the columns that the judge needs, read by pyarrow on all cores and thrown away. ``--growth`` draws the
judge's curve over the sizes up to ``--records``, with ``--draw`` as a picture. At the end: how long a small run takes
from the command line, and when its seal is waited for by a Spark that is warm; ``--records 0`` for these alone.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from functools import cache
from pathlib import Path
from threading import Event

import pyarrow.parquet as pq
import rival_duckdb
import rival_polars
import rival_spark
import rivals
import synthetic
from contest import MEASURE, Contestant, Play, Turn
from drawing import draw

from fencepost.checkers import judge
from fencepost.checkers.counts import Bounds
from fencepost.checkers.kernel.columns import DELIVERED, LOG, SENT
from fencepost.checkers.spark import detector
from fencepost.checkers.spark.session import Spark
from fencepost.checkers.tables import load
from fencepost.model import Anomaly

ROUNDS = 3
WARM_S = 60.0
NEEDED = {"delivered": DELIVERED, "produced": SENT, "log": LOG}


@cache
def session() -> Spark:
    """The one of this process."""
    return Spark.start()


def on_spark(run: Path) -> list[Anomaly]:
    """The whole verdict's work: tables, tasks, kernel, sweep."""
    return detector.find(run, load(run), Bounds(), session())[0]


def in_process(run: Path) -> list[Anomaly]:
    """The same kernel on one core, without Spark."""
    return detector.find_here(run, load(run), Bounds())[0]


def decode(run: Path) -> None:
    """What no judge of these files can do without, a row group at a time on each core."""
    files = [(path, names) for name, names in NEEDED.items() for path in (run / "history" / name).glob("*.parquet")]

    def read(path: Path, names: list[str], number: int) -> None:
        with pq.ParquetFile(path) as file:
            file.read_row_group(number, columns=names, use_threads=False)

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        groups = [(path, names, n) for path, names in files for n in range(pq.read_metadata(path).num_row_groups)]
        for done in [pool.submit(read, *group) for group in groups]:
            done.result()


OURS, LIMIT = "fencepost on Spark, all findings", "pyarrow, decode only"
CONTESTANTS: dict[str, Play] = {
    OURS: on_spark,
    "its kernel alone, one core": in_process,
    LIMIT: decode,
    "DuckDB, findings in records": rival_duckdb.judge,
    "Polars, findings in records": rival_polars.judge,
    "plain Spark, findings in records": rival_spark.judge,
}


def compare(
    run: Path, shape: synthetic.Shape, chosen: Iterable[str], arguments: argparse.Namespace
) -> dict[str, float]:
    """All contestants in turns; one that finds something else than was planted is an error.

    Returns:
        The median of the seconds of each that came to an end.
    """
    names = list(chosen)
    limits = {"seconds": 60 * arguments.minutes, "memory": int(arguments.gib * 2**30)}
    contestants: dict[str, Contestant] = {}
    turns: dict[str, list[Turn]] = {name: [] for name in names}
    with ExitStack() as stack:
        for name in names:
            contestants[name] = Contestant(CONTESTANTS[name], **limits)
            stack.callback(contestants[name].end)
        for number in range(arguments.rounds):
            for name in names:
                if not any(turn.failed for turn in turns[name]):
                    turns[name].append(contestants[name].turn(run, watched=number == 0))
                    check(name, turns[name][-1], synthetic.planted(shape))
    size = sum(path.stat().st_size for path in (run / "history").rglob("*.parquet"))
    print(f"\n{shape.records:,} produced and logged records, and delivered ones; {size / 1e6:,.0f} MB of Parquet")
    print(f"{'':34}{'median s':>9}{'first s':>9}{'CPU s':>8}{'M rows/s':>10}{'x decode':>10}{MEASURE + ' GiB':>10}")
    limit = _median_s(turns[LIMIT]) if LIMIT in turns else float("nan")
    for name in names:
        print(f"{name:34}{line(turns[name], shape.records, limit)}", flush=True)
    return {name: _median_s(turns[name]) for name in names if not any(turn.failed for turn in turns[name])}


def check(name: str, turn: Turn, planted: dict[str, int]) -> None:
    """Nobody is measured at doing less than told."""
    if turn.failed or turn.answer is None:
        return
    if isinstance(turn.answer, list):
        counts = Counter[str]()
        for anomaly in turn.answer:
            counts[anomaly.kind] += anomaly.count
        assert counts == planted, f"{name} found {counts}, and planted was {planted}"
    else:
        expected = rivals.answer((kind, count) for kind, count in planted.items() if kind in rivals.KINDS)
        assert turn.answer == expected, f"{name} found {turn.answer}, and planted was {expected}"


def line(turns: list[Turn], records: int, limit: float) -> str:
    """The figures of one contestant."""
    failed = [turn.failed for turn in turns if turn.failed]
    if failed:
        return f"  {failed[0]}"
    median = _median_s(turns)
    cpu_s = statistics.median(turn.cpu_s for turn in turns)
    rate, peak = records / median / 1e6, max(turn.peak for turn in turns) / 2**30
    return f"{median:9.2f}{turns[0].seconds:9.2f}{cpu_s:8.1f}{rate:10.1f}{median / limit:10.1f}{peak:10.2f}"


def _median_s(turns: list[Turn]) -> float:
    return statistics.median(turn.seconds for turn in turns)


def small(runs: Path, records: int) -> None:
    """A run as tests make them: from the command line, and as ``fencepost run`` judges it after the seal."""
    run = synthetic.write(runs, synthetic.shape("uniform", records, dirt=1))
    check = [sys.executable, "-m", "fencepost", "check", str(run)]
    cold = [_timed(lambda: subprocess.run(check, stdout=subprocess.DEVNULL, check=False)) for _ in range(ROUNDS)]
    first, later = [], []
    for _ in range(ROUNDS):
        warm = Event()
        with Spark.start(warm_up=lambda engine, warm=warm: (detector.warm_up(engine), warm.set())) as spark:
            warm.wait(WARM_S)  # a real run takes longer than that
            times = [_timed(lambda spark=spark: judge.judge(run, detector.detector(spark))) for _ in range(ROUNDS)]
        first.append(times[0])
        later += times[1:]
    print(f"\n{records:,} records, median seconds (CPU seconds of a new process and all that it starts)")
    cpu_s = statistics.median(cpu_s for _, cpu_s in cold)
    print(f"  fencepost check, a new process   {_listed(cold)}  ({cpu_s:.1f} of CPU)")
    print(f"  verdict after the seal           {_listed(first)}")
    print(f"  further ones in that process     {_listed(later)}")


def _timed(work: Callable[[], object]) -> tuple[float, float]:
    """Wall seconds, and CPU seconds of the processes that came and went meanwhile."""
    before, began = _cpu_s(), time.perf_counter()
    work()
    return time.perf_counter() - began, _cpu_s() - before


def _cpu_s() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _listed(times: Sequence[tuple[float, float]]) -> str:
    walls = [seconds for seconds, _ in times]
    return f"{statistics.median(walls):6.2f}   of {', '.join(f'{seconds:.2f}' for seconds in walls)}"


def _sizes(arguments: argparse.Namespace) -> list[int]:
    size = arguments.records
    return [n for n in (10**power for power in range(5, 13)) if n < size and arguments.growth] + [size] * bool(size)


def main() -> None:
    """Make the folders, judge them, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--records", type=lambda text: int(float(text)), default=10_000_000)
    parser.add_argument("--shape", choices=synthetic.SHAPES, default="uniform")
    parser.add_argument("--small", type=int, default=100_000, help="records of the small run; 0: none")
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--only", default="", help="contestants whose name has this word, and ours")
    parser.add_argument("--growth", action="store_true", help="all sizes from 10^5 up to --records")
    parser.add_argument("--minutes", type=float, default=10, help="a contestant that takes longer for a turn is ended")
    parser.add_argument("--gib", type=float, default=12, help="and one that needs more memory")
    parser.add_argument("--draw", type=Path, help="the curves of all sizes as this SVG file")
    arguments = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))  # nothing is left: see every ``with``
    chosen = [name for name in CONTESTANTS if not arguments.only or arguments.only.lower() in name.lower()]
    curves: dict[str, list[tuple[int, float]]] = {name: [] for name in chosen}
    with tempfile.TemporaryDirectory(prefix="judge-benchmark-") as folder:
        os.environ["TMPDIR"] = folder  # what contestants leave there that are ended goes with it
        for records in _sizes(arguments):
            shape = synthetic.shape(arguments.shape, records, dirt=3)
            began = time.perf_counter()
            run = synthetic.write(Path(folder), shape)
            print(json.dumps({"written_s": round(time.perf_counter() - began, 1), "planted": synthetic.planted(shape)}))
            for name, median_s in compare(run, shape, chosen, arguments).items():
                curves[name].append((records, median_s))
            shutil.rmtree(run)
            if arguments.draw:
                draw(curves, f"Judging a run ({arguments.shape}), {os.cpu_count()} cores", arguments.draw)
        if arguments.small:
            small(Path(folder), arguments.small)


if __name__ == "__main__":
    main()
