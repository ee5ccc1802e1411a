"""The host witness: a small separate process that notices stalls of the machine itself.

``host.jsonl`` has one line per stall: ``why`` is ``gap`` (this process, which only sleeps, was not scheduled in time),
``steal`` (the hypervisor used the processors for others), ``io`` or ``memory`` (every task waited for them). High CPU
pressure is recorded as kind ``pressure`` and is not a stall: a busy machine still schedules every process. The last
line is a summary. Each line is written at once, so that a killed witness loses none.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil

from fencepost.clock import NS, now_ns, ticks
from fencepost.processes.owner import ProcessOwner, send, wait_ended

FILE = "host.jsonl"
PERIOD_S = 0.05
GAP_S = 0.25
WINDOW_S = 1.0
# The share of a window from which it is recorded; steal, io and memory are stalls, cpu is not.
LIMITS = {"steal": 0.25, "io": 0.9, "memory": 0.5, "cpu": 0.9}


@dataclass(frozen=True)
class HostMonitor:
    """The running process of the witness."""

    process: psutil.Popen

    def stop(self) -> None:
        """Make it write its summary and end. May be called twice."""
        send(self.process, signal.SIGTERM)
        wait_ended(self.process, within_s=10)


def start(owner: ProcessOwner, into: Path) -> HostMonitor:
    """Start the witness; it writes ``host.jsonl`` into ``into``, the ``history`` folder of the run.

    Raises:
        ClusterError: it cannot be started.
    """
    path = into / FILE
    path.parent.mkdir(parents=True, exist_ok=True)
    log = owner.directory / "host-witness.log"
    return HostMonitor(owner.spawn([sys.executable, "-P", "-m", __name__, path], log=log))


@dataclass(frozen=True)
class Counters:
    """The kernel's counters: seconds of CPU; by name, stolen seconds and seconds of pressure for each resource."""

    at_ns: int
    cpu: float
    seconds: dict[str, float] = field(default_factory=dict)


def parse_stat(text: str) -> tuple[float, float]:
    """(all, stolen) CPU seconds of ``/proc/stat``, over all processors."""
    fields = [int(n) for n in text.split("\n", 1)[0].split()[1:9]]
    return sum(fields) / os.sysconf("SC_CLK_TCK"), fields[7] / os.sysconf("SC_CLK_TCK")


def parse_pressure(text: str, scope: str) -> float:
    """Seconds of pressure of ``/proc/pressure/*``; scope ``some``: a task waited, ``full``: all tasks waited."""
    line = next(line for line in text.splitlines() if line.startswith(scope))
    return int(line.rsplit("total=", 1)[1]) / 1e6


def counters() -> Counters:
    """The current counters; counters that this kernel does not have are left out."""
    seconds, cpu = {}, 0.0
    try:
        cpu, seconds["steal"] = parse_stat(Path("/proc/stat").read_text())
        for resource, scope in (("cpu", "some"), ("io", "full"), ("memory", "full")):
            seconds[resource] = parse_pressure(Path("/proc/pressure", resource).read_text(), scope)
    except (OSError, StopIteration, ValueError, IndexError):
        pass  # no /proc, or a kernel without pressure: only gaps are recorded
    return Counters(now_ns(), cpu, seconds)


def shares(before: Counters, after: Counters) -> dict[str, float]:
    """The share of each counter in the time between two readings: of all CPU time for steal, else of real time."""
    real, cpu = (after.at_ns - before.at_ns) / NS, after.cpu - before.cpu
    found = {}
    for name, seconds in after.seconds.items():
        whole = cpu if name == "steal" else real
        found[name] = round((seconds - before.seconds.get(name, seconds)) / whole, 4) if whole > 0 else 0.0
    return found


def watch(moments: Iterable[int]) -> Iterator[dict[str, Any]]:
    """The lines of the witness for the moments at which it ran, the summary last."""
    first = window = counters()
    samples, gaps, longest_ns, before_ns = 0, 0, 0, 0
    for now in moments:
        gap_ns = now - before_ns if before_ns else 0
        if gap_ns > GAP_S * NS:
            yield {"kind": "stall", "why": "gap", "from_ns": before_ns, "to_ns": now, "seconds": gap_ns / NS}
        samples, gaps, longest_ns = samples + 1, gaps + (gap_ns > GAP_S * NS), max(longest_ns, gap_ns)
        before_ns = now
        if now - window.at_ns >= WINDOW_S * NS:
            latest = counters()
            span = {"from_ns": window.at_ns, "to_ns": latest.at_ns}
            for name, share in shares(window, latest).items():
                if share >= LIMITS[name]:
                    yield {"kind": "pressure" if name == "cpu" else "stall", "why": name, **span, "share": share}
            window = latest
    last = counters()
    yield {
        "kind": "summary",
        "from_ns": first.at_ns,
        "to_ns": last.at_ns,
        "samples": samples,
        "gaps": gaps,
        "longest_gap_s": longest_ns / NS,
        "shares": shares(first, last),
    }


def main(path: Path) -> None:
    """Watch until SIGTERM, appending to ``path``."""
    asked: list[int] = []
    signal.signal(signal.SIGTERM, lambda number, frame: asked.append(number))

    def moments() -> Iterator[int]:
        for now in ticks(PERIOD_S):
            if asked:
                return
            yield now

    with path.open("a", buffering=1) as file:
        for line in watch(moments()):
            file.write(json.dumps(line) + "\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
