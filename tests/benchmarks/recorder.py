"""What recording costs and how fast it is sealed, beside its rivals: ``python tests/benchmarks/recorder.py``.

Costs are the processor time of the thread (page faults included), medians over rounds in which all candidates take
turns, so that a busy machine hits all of them alike. The seal is in wall time.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from fencepost.evidence.sealing.seal import seal
from fencepost.history.run_folder import RunFolder
from fencepost_member.recording.recorder import Recorder

RECORDS = 200_000  # per round; less than a segment
PARTITIONS = 12
Round = Callable[[Path], float]  # nanoseconds per record


@contextmanager
def timed(records: int) -> Iterator[list[float]]:
    """Puts the nanoseconds per record of the block into the list."""
    result: list[float] = []
    began = time.thread_time_ns()
    yield result
    result.append((time.thread_time_ns() - began) / records)


def clocks(directory: Path, readings: int) -> float:
    """The floor: a loop that only reads the clock."""
    now = time.monotonic_ns
    with timed(RECORDS) as took:
        if readings == 2:
            for _ in range(RECORDS):
                now()
                now()
        else:
            for _ in range(RECORDS):
                now()
                now()
                now()
    return took[0]


def whole_life(directory: Path) -> float:
    """Delivered, begun and done, as a member that polls single records does it."""
    recorder = Recorder(directory, "whole-life")
    lane = recorder.lane()
    delivered, begin, done = lane.delivered, lane.begin, lane.done
    with timed(RECORDS) as took:
        for n in range(RECORDS):
            index = delivered(3, n, n, 0, n, 0, n, 0)
            begin(index)
            done(index)
    recorder.close()
    return took[0]


def begun_and_done(directory: Path) -> float:
    """The two stamps alone, of records that are delivered already."""
    recorder = Recorder(directory, "begun-and-done")
    lane = recorder.lane()
    indices = [lane.delivered(3, n, n, 0, n, 0, n, 0) for n in range(RECORDS)]
    begin, done = lane.begin, lane.done
    with timed(RECORDS) as took:
        for index in indices:
            begin(index)
            done(index)
    recorder.close()
    return took[0]


def sent_and_acked(directory: Path) -> float:
    """The producer's side."""
    recorder = Recorder(directory, "sent-and-acked")
    lane = recorder.producer_lane()
    sent, acked = lane.sent, lane.acked
    with timed(RECORDS) as took:
        for n in range(RECORDS):
            acked(sent(3, n, 0, n), n)
    recorder.close()
    return took[0]


def json_lines(directory: Path, every: int) -> float:
    """The rival: one JSON line per record with all three stamps, one write for ``every`` lines."""
    records = RECORDS // 10
    now, lines = time.monotonic_ns, []
    fd = os.open(directory / "lines.jsonl", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    with timed(records) as took:
        for n in range(records):
            stamps = {"delivered_ns": now(), "begin_ns": now(), "done_ns": now()}
            place = {"tp": 3, "offset": n, "key": n, "writer": 0, "seq": n, "interval": 0, "poll": n, "position": 0}
            lines.append(json.dumps({**place, "ord": n, **stamps}))
            if len(lines) == every:
                os.write(fd, ("\n".join(lines) + "\n").encode())
                lines.clear()
    os.close(fd)
    return took[0]


CANDIDATES: dict[str, Round] = {
    "loop with 2 clock readings": partial(clocks, readings=2),
    "loop with 3 clock readings": partial(clocks, readings=3),
    "begun + done (2 readings)": begun_and_done,
    "delivered + begun + done (3 readings)": whole_life,
    "sent + acked (2 readings)": sent_and_acked,
    "JSON lines, one write each (3 readings, survives)": partial(json_lines, every=1),
    "JSON lines, one write per 500 (3 readings, loses)": partial(json_lines, every=500),
}


def costs(rounds: int) -> None:
    """Print nanoseconds per record of every candidate, and the ratio to a whole life in the recorder."""
    taken: dict[str, list[float]] = {name: [] for name in CANDIDATES}
    for _ in range(rounds):
        for name, candidate in CANDIDATES.items():
            with tempfile.TemporaryDirectory() as directory:
                taken[name].append(candidate(Path(directory)))
    medians = {name: statistics.median(values) for name, values in taken.items()}
    whole = medians["delivered + begun + done (3 readings)"]
    print(f"{'ns per record':<52}{'median':>8}{'min':>8}{'max':>8}{'ratio':>8}")
    for name, values in taken.items():
        print(f"{name:<52}{medians[name]:8.0f}{min(values):8.0f}{max(values):8.0f}{medians[name] / whole:8.2f}")
    net = medians["begun + done (2 readings)"] - medians["loop with 2 clock readings"]
    print(f"begun + done, net of the clock: {net:.0f} ns; goal with the clock: 800 ns\n")


def sealing(records: int, members: int, rounds: int) -> None:
    """Print how long the seal of ``records`` delivered and as many produced records takes."""
    took = []
    for _ in range(rounds):
        with tempfile.TemporaryDirectory() as directory:
            run = RunFolder.create(Path(directory), "seal", 1)
            for member in range(members):
                record_member(run.history / "segments", member, members, records // members)
            record_producer(run.history / "segments", records)
            began = time.perf_counter()
            assert not seal(run.path).damage
            took.append(time.perf_counter() - began)
            bytes_ = sum(path.stat().st_size for path in run.history.rglob("*.parquet"))
    median = statistics.median(took)
    print(
        f"seal of {records:,} delivered ({members} members) + {records:,} produced records: "
        f"median {median:.2f} s (min {min(took):.2f}, max {max(took):.2f}), "
        f"{2 * records / median / 1e6:.1f} million rows/s, {bytes_ / 2 / records:.1f} bytes a row"
    )


def record_member(directory: Path, member: int, members: int, records: int) -> None:
    """A member that owns its share of the partitions and polls 500 records of one at a time."""
    recorder = Recorder(directory, f"member-{member}.1")
    lane = recorder.lane()
    mine = [tp for tp in range(PARTITIONS) if tp % members == member]
    offsets = dict.fromkeys(mine, 0)
    for n in range(records):
        tp = mine[n // 500 % len(mine)]
        index = lane.delivered(tp, offsets[tp], n % 1000, 0, n, 0, n // 500, n % 500)
        lane.begin(index)
        lane.done(index)
        offsets[tp] += 1
    recorder.close()


def record_producer(directory: Path, records: int) -> None:
    """A producer whose keys go round the partitions; acknowledgements come in batches."""
    recorder = Recorder(directory, "producer-0")
    lane = recorder.producer_lane()
    waiting = []
    for n in range(records):
        waiting.append((lane.sent(n % PARTITIONS, n % 1000, 0, n), n // PARTITIONS))
        if len(waiting) == 128:
            for index, offset in waiting:
                lane.acked(index, offset)
            waiting.clear()
    recorder.close()


def main() -> None:
    """Print both tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--seal-records", type=int, default=1_000_000)
    parser.add_argument("--members", type=int, default=4)
    arguments = parser.parse_args()
    costs(arguments.rounds)
    sealing(arguments.seal_records, arguments.members, min(5, arguments.rounds))


if __name__ == "__main__":
    main()
