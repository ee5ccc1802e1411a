"""How fast a member, a producer and the audit are, and what recording costs: ``python tests/benchmarks/member.py``.

One real cluster, one topic, one member behind its proxies at a time. Three loops read the same records in turn: the
client alone (poll and nothing else), the member's loop with a recorder that does nothing, and the member's loop as it
is. Each gets a group of its own and a few seconds; the best of the rounds counts. Beside the rate stands the CPU time
that the thread spends on a record, which other load on the machine does not blur.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

from fencepost.clock import eventually
from fencepost.clusters import local
from fencepost.clusters.managed_cluster import ManagedCluster
from fencepost.evidence import audit
from fencepost.group import running_group
from fencepost.interfaces import ClusterSpec
from fencepost.model import TopicPartition
from fencepost.model.run_names import RunNames
from fencepost.processes.owner import ProcessOwner
from fencepost.scenario import scenario
from fencepost.workloads import PollLoop
from fencepost_member import adapters
from fencepost_member.config import LoopConfig, MemberConfig
from fencepost_member.loop import POLL_S, MemberLoop
from fencepost_member.process import open_history
from fencepost_member.recording.events import EventLog, read
from fencepost_member.recording.recorder import MemberLane

ROUNDS, READ_S, WRITE_S = 3, 2.0, 5.0
WRITES, AUDITS = 3, 5
PARTITIONS = 6
LOOPS = ("client alone", "not recorded", "recorded")
TOPICS = {"bench": {str(p): p for p in range(PARTITIONS)}}


def nothing(*_: int) -> int:
    """Records nothing."""
    return 0


NOT_RECORDED = MemberLane(*[nothing] * len(MemberLane._fields))


class Ignoring:
    """A listener that does what the client asks and tells nobody."""

    def assigned(self, partitions: Any, apply: Any) -> None:
        apply()

    revoked = lost = assigned

    def committed(self, offsets: Any, errors: Any) -> None:
        """Nothing to do."""

    def error(self, name: str, text: str, fatal: bool) -> None:
        print(name, text, file=sys.stderr)


def child(loop: str, path: str) -> None:
    """Read for a while; prints records, seconds and CPU seconds as JSON."""
    data = json.loads(Path(path).read_text())
    config = MemberConfig(**{**data, "loop": LoopConfig(**data["loop"])})
    stop = threading.Event()
    if loop == "client alone":
        adapter = adapters.connect(config, Ignoring())
        adapter.subscribe(["bench"])
        while not adapter.poll(config.loop.batch, POLL_S):
            pass
        threading.Timer(READ_S, stop.set).start()
        records, began, cpu = 0, time.monotonic(), time.thread_time()
        while not stop.is_set():
            records += len(adapter.poll(config.loop.batch, POLL_S))
        print(json.dumps((records, time.monotonic() - began, time.thread_time() - cpu)))
        adapter.close()
        return
    events, recorder = open_history(config.run, config.actor)
    lane = recorder.lane() if loop == "recorded" else NOT_RECORDED
    member = MemberLoop(config, lane, events, stop)
    threading.Timer(READ_S, stop.set).start()
    cpu = time.thread_time()
    member.run()
    cpu = time.thread_time() - cpu
    reported = read(Path(config.run) / "events" / f"{config.actor}.jsonl").events
    assigned = next(e["end_ns"] for e in reported if e["kind"] == "assigned" and e["end_ns"])
    left = next(e["begin_ns"] for e in reported if e["kind"] == "revoked")
    print(json.dumps((reported[-1]["detail"]["records"], (left - assigned) / 1e9, cpu)))


def write(cluster: ManagedCluster, owner: ProcessOwner, folder: Path) -> float:
    """Write as fast as one producer can for a while; records per second."""
    log = EventLog(folder / "history" / "events" / "harness.jsonl", "harness")
    home = running_group.RunPaths(owner, log, folder / "history", folder / "logs")
    spec = scenario.Group(members=1)
    topics = {t: {int(p): tp for p, tp in ps.items()} for t, ps in TOPICS.items()}
    writers = running_group.make(home, cluster, spec, PollLoop(rate_hz=0), names=RunNames("g"), topics=topics, seed=1)
    writers.start_producers()
    until = time.monotonic() + WRITE_S
    eventually(lambda: time.monotonic() > until, WRITE_S + 1, "the time to pass")
    writers.stop_producers(30)
    first, *_, last = read(folder / "history" / "events" / "producer-0.jsonl").events
    seconds = (last["begin_ns"] - first["begin_ns"]) / 1e9
    count = last["detail"]["outcomes"]["ok"]
    return float(count / seconds)


def audit_once(cluster: ManagedCluster, folder: Path) -> float:
    """Read the whole topic; records per second."""
    began = time.monotonic()
    numbers = {TopicPartition("bench", partition): partition for partition in range(PARTITIONS)}
    entries = audit.read(cluster.bootstrap(), numbers, folder)
    return sum(entry["log_end"] for entry in entries) / (time.monotonic() - began)


def shown(name: str, rates: list[float]) -> str:
    """One line: the median, and each."""
    return f"{name}: median {statistics.median(rates):,.0f} records/s ({', '.join(f'{r:,.0f}' for r in rates)})"


def measure(cluster: ManagedCluster, folder: Path, batch: int) -> None:
    """Rates and CPU times of the three loops."""
    best: dict[str, tuple[float, float]] = {}
    base = MemberConfig(
        "m", 0, 0, str(folder / "history"), "g", TOPICS, cluster.bootstrap(0), loop=LoopConfig(batch=batch)
    )
    for turn in range(ROUNDS):
        for loop in LOOPS:
            name = f"{loop.replace(' ', '-')}-{batch}-{turn}"
            config = folder / f"{name}.json"
            config.write_text(json.dumps({**vars(replace(base, actor=name, group=name)), "loop": vars(base.loop)}))
            argv = [sys.executable, __file__, "--child", loop, str(config)]
            records, seconds, cpu = json.loads(subprocess.run(argv, check=True, capture_output=True).stdout)
            rate, cost = best.get(loop, (0.0, 1e9))
            best[loop] = (max(rate, records / seconds), min(cost, cpu / records * 1e6))
    print(f"\none member, {'batches of ' + str(batch) if batch > 1 else 'single polls'}, best of {ROUNDS}:")
    print(f"  {'loop':<14}{'records/s':>12}{'CPU µs/record':>16}")
    for loop, (rate, cost) in best.items():
        print(f"  {loop:<14}{rate:>12,.0f}{cost:>16.2f}")
    recording = best["recorded"][1] - best["not recorded"][1]
    lost = 1 - best["recorded"][0] / best["not recorded"][0]
    print(f"  recording: {recording:.2f} µs/record of CPU, {lost:.1%} of the top speed,", end=" ")
    print(f"{recording * 20_000 / 1e6:.1%} of a core at 20,000 records/s")


def main() -> None:
    """Run everything on a cluster of its own."""
    with tempfile.TemporaryDirectory() as folder, ProcessOwner.open() as owner:
        cluster = local.start(ClusterSpec(slots=2), owner)
        cluster.admin.create_topics([scenario.Topic("bench", PARTITIONS)])
        rates = [write(cluster, owner, Path(folder) / f"write-{turn}") for turn in range(WRITES)]
        print(shown("producer, unpaced, acks=all, idempotent, recorded", rates))
        print(shown("audit", [audit_once(cluster, Path(folder) / f"audit-{turn}") for turn in range(AUDITS)]))
        for batch in (500, 1):
            measure(cluster, Path(folder), batch)
        cluster.stop()


if __name__ == "__main__":
    if sys.argv[1:2] == ["--child"]:
        child(*sys.argv[2:])
    else:
        main()
