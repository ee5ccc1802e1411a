"""The host witness: what it reads of the kernel, and what it tells of a machine that stood still."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path

import psutil

from fencepost.clock import NS, eventually, now_ns
from fencepost.evidence import host_monitor
from fencepost.processes.owner import ProcessOwner

LONG_S = 60  # for what comes at once on a machine that has nothing else to do
STAT = "cpu  100 0 50 800 10 0 5 35 0 0\ncpu0 1 2 3\n"
PRESSURE = (
    "some avg10=2.94 avg60=28.87 avg300=24.60 total=1500000\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=250000\n"
)


def test_stolen_time_and_pressure_are_read_in_seconds() -> None:
    tick = os.sysconf("SC_CLK_TCK")
    assert host_monitor.parse_stat(STAT) == (1000 / tick, 35 / tick)
    assert host_monitor.parse_pressure(PRESSURE, "some") == 1.5
    assert host_monitor.parse_pressure(PRESSURE, "full") == 0.25


def test_shares_are_of_all_cpu_time_for_steal_and_of_real_time_for_pressure() -> None:
    before = host_monitor.Counters(0, 10.0, {"steal": 1.0, "io": 0.0})
    after = host_monitor.Counters(2 * NS, 14.0, {"steal": 2.0, "io": 0.5})
    assert host_monitor.shares(before, after) == {"steal": 0.25, "io": 0.25}


def test_a_gap_between_two_moments_is_a_stall_and_a_short_one_is_not() -> None:
    begin = now_ns()
    moments = [begin, begin + NS // 20, begin + NS // 20 + NS // 2, begin + NS]
    gaps = [line for line in host_monitor.watch(moments) if line.get("why") == "gap"]
    assert [(line["from_ns"] - begin, line["seconds"]) for line in gaps] == [
        (NS // 20, 0.5),
        (NS // 20 + NS // 2, 0.45),
    ]


def test_the_last_line_is_a_summary_even_of_nothing() -> None:
    (line,) = host_monitor.watch([])
    assert (line["kind"], line["samples"], line["gaps"]) == ("summary", 0, 0)


def lines(path: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def test_a_witness_that_was_itself_frozen_tells_of_it_and_survives_a_kill(tmp_path: Path) -> None:
    with ProcessOwner.open(tmp_path) as owner:
        witness = host_monitor.start(owner, tmp_path / "history")
        path = tmp_path / "history" / host_monitor.FILE
        eventually(path.exists, LONG_S, "the witness to begin")
        eventually(lambda: _asleep(witness.process), LONG_S, "its first sample")
        witness.process.send_signal(signal.SIGSTOP)
        eventually(lambda: witness.process.status() == psutil.STATUS_STOPPED, LONG_S, "the witness to be frozen")
        frozen_ns = now_ns()
        eventually(lambda: now_ns() - frozen_ns > 0.4 * NS, LONG_S, "a stall")
        thawed_ns = now_ns()
        witness.process.send_signal(signal.SIGCONT)

        def told() -> list[dict[str, object]]:
            """The gap that we made; a busy machine makes others."""
            gaps = [line for line in lines(path) if line.get("why") == "gap"]
            return [g for g in gaps if int(str(g["from_ns"])) <= frozen_ns and int(str(g["to_ns"])) >= thawed_ns]

        eventually(told, LONG_S, "the gap to be told", state=lambda: str(lines(path)))
        witness.process.kill()
        witness.process.wait()
    (gap,) = told()
    assert float(str(gap["seconds"])) >= 0.4


def test_a_witness_that_is_stopped_writes_its_summary(tmp_path: Path) -> None:
    with ProcessOwner.open(tmp_path) as owner:
        witness = host_monitor.start(owner, tmp_path)
        eventually((tmp_path / host_monitor.FILE).exists, LONG_S, "the witness to begin")
        witness.stop()
        witness.stop()
    assert lines(tmp_path / host_monitor.FILE)[-1]["kind"] == "summary"


def _asleep(process: psutil.Popen) -> bool:
    return process.status() == psutil.STATUS_SLEEPING and sum(process.cpu_times()[:2]) > 0.02
