"""A process that records at full speed is killed at random moments: nothing that it had finished is missing.

The child tells what it finished through a file of counters, one per thread, written *after* ``done`` returned. The
parent chooses the moment of the kill by these counters, never by a clock.
"""

from __future__ import annotations

import random
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from fencepost.clock import eventually
from fencepost.evidence.sealing.seal import SealReport, seal
from fencepost.history import RecordState
from fencepost.history.run_folder import RunFolder

ACTOR = "member-0.1"
THREADS = 2
KILLS = 20
MOST_BEFORE_KILL = 12_000

CHILD = """
import os, struct, sys, threading
from fencepost_member.recording.events import EventLog
from fencepost_member.recording.recorder import Recorder

history, actor, threads = sys.argv[1], sys.argv[2], int(sys.argv[3])
recorder = Recorder(history + "/segments", actor, capacity=1000)
log = EventLog(history + "/events/" + actor + ".jsonl", actor)
told = os.open(history + "/told", os.O_WRONLY | os.O_CREAT)
os.truncate(told, 16 * threads)

def work(thread):
    lane, pack, n = recorder.lane(), struct.Struct("<Q").pack, 0
    while True:
        index = lane.delivered(thread, n, n, 0, n, 0, n, 0)
        lane.begin(index)
        lane.done(index)
        n += 1
        os.pwrite(told, pack(n), 16 * thread)
        if n % 100 == 0:
            log.note("commit", partitions=[("t", thread, n)], detail={"thread": thread})
            os.pwrite(told, pack(n // 100), 16 * thread + 8)

for thread in range(threads):
    threading.Thread(target=work, args=(thread,)).start()
"""


def told(history: Path) -> np.ndarray[tuple[int, int], np.dtype[np.uint64]]:
    """Records and events that each thread said it had finished, one row per thread."""
    path = history / "told"
    data = path.read_bytes() if path.exists() else b""
    return np.frombuffer(data.ljust(16 * THREADS, b"\0"), dtype="<u8").reshape(THREADS, 2)


def record_and_kill(history: Path, after: int) -> None:
    """Start the child, kill it when it told of ``after`` records, and reap it."""
    child = subprocess.Popen([sys.executable, "-c", CHILD, str(history), ACTOR, str(THREADS)])
    try:
        eventually(
            lambda: child.poll() is not None or told(history)[:, 0].sum() >= after,
            within_s=60,
            describe=f"{after} records",
            every_s=0.0001,
        )
    finally:
        child.kill()
        assert child.wait(60) == -9


@pytest.fixture(params=range(KILLS))
def killed(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[RunFolder, SealReport]:
    run = RunFolder.create(tmp_path, "kill", request.param)
    record_and_kill(run.history, random.Random(request.param).randint(1, MOST_BEFORE_KILL))
    return run, seal(run.path)


def test_everything_finished_is_there_after_sigkill(killed: tuple[RunFolder, SealReport]) -> None:
    run, report = killed
    finished = told(run.history)
    rows = pq.read_table(run.history / "delivered" / f"{ACTOR}.parquet")
    events = pq.read_table(run.history / "events.parquet")
    assert finished.any()
    assert report.damage == ()
    assert sum(file.torn for file in report.files if file.file.startswith("segments/")) <= THREADS
    for thread in range(THREADS):
        mine = rows.filter(np.asarray(rows["thread"]) == thread)
        states = np.asarray(mine["state"])
        count = int(finished[thread, 0])
        assert (states[:count] == RecordState.DONE).all(), "a record that the child had finished is not done"
        assert count <= len(states) <= count + 1
        assert mine["offset"].to_pylist() == mine["ord"].to_pylist() == list(range(len(states)))
        commits = [row["offset"] for row in events.to_pylist() if row["partition"] == thread]
        assert commits == [100 * n for n in range(1, len(commits) + 1)]
        assert int(finished[thread, 1]) <= len(commits)
