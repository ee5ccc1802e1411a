"""What it costs a program to be recorded: ``python tests/benchmarks/instrument.py [CLIENT ...]``.

One real cluster, one topic, one bare loop of each client that does nothing with what it gets. The same program
reads the same records as it is and as a member of a run, in turns; medians of the rounds, and their ratio. Single
polls, batches, and records with a header as foreign payloads have it.
"""

from __future__ import annotations

import json
import os
import statistics
import sys
import tempfile
import textwrap
from collections.abc import Mapping
from pathlib import Path

from fencepost.clock import eventually
from fencepost.clusters import local
from fencepost.clusters.managed_cluster import ManagedCluster
from fencepost.group import running_group
from fencepost.group.incarnation import Incarnation, RunPaths
from fencepost.interfaces import ClusterSpec
from fencepost.interfaces.process import Interpreter
from fencepost.model.run_names import RunNames
from fencepost.processes.owner import ProcessOwner
from fencepost.scenario import scenario
from fencepost.workloads import OwnProgram
from fencepost_member.recording.events import EventLog

ROUNDS, READ_S, RECORDS, PARTITIONS = 3, 2.0, 1_000_000, 6
WITHIN_S = 120.0
WAYS = ("as it is", "recorded")
LOOP = """
records, began, cpu = 0, time.monotonic(), time.thread_time()
while time.monotonic() - began < read_s:
    records += AWAIT poll()
print(json.dumps((records, time.monotonic() - began, time.thread_time() - cpu)))
"""
CONFLUENT = """
import json, sys, time
from confluent_kafka import Consumer

consumer = Consumer({"bootstrap.servers": sys.argv[1], "group.id": sys.argv[2], "auto.offset.reset": "earliest"})
consumer.subscribe(["bench"])
batch, read_s = int(sys.argv[3]), float(sys.argv[4])

def poll():
    if batch == 1:
        return consumer.poll(0.1) is not None
    return len(consumer.consume(batch, 0.1))

while not poll():
    pass
LOOP
consumer.close()
"""
KAFKA_PYTHON = """
import json, sys, time
from kafka import KafkaConsumer

consumer = KafkaConsumer("bench", bootstrap_servers=sys.argv[1], group_id=sys.argv[2], auto_offset_reset="earliest")
batch, read_s = int(sys.argv[3]), float(sys.argv[4])

def poll():
    if batch == 1:
        return next(consumer) is not None
    return sum(map(len, consumer.poll(100, batch).values()))

while not poll():
    pass
LOOP
consumer.close()
"""
AIOKAFKA = """
import asyncio, json, sys, time
from aiokafka import AIOKafkaConsumer

async def main():
    options = {"bootstrap_servers": sys.argv[1], "group_id": sys.argv[2], "auto_offset_reset": "earliest"}
    consumer = AIOKafkaConsumer("bench", **options)
    await consumer.start()
    batch, read_s = int(sys.argv[3]), float(sys.argv[4])

    async def poll():
        if batch == 1:
            return await consumer.getone() is not None
        return sum(map(len, (await consumer.getmany(timeout_ms=100, max_records=batch)).values()))

    while not await poll():
        pass
LOOP
    await consumer.stop()

asyncio.run(main())
"""
PROGRAMS = {
    "confluent-kafka": CONFLUENT.replace("LOOP", LOOP.replace("AWAIT ", "")),
    "kafka-python": KAFKA_PYTHON.replace("LOOP", LOOP.replace("AWAIT ", "")),
    "aiokafka": AIOKAFKA.replace("LOOP", textwrap.indent(LOOP.replace("AWAIT", "await"), "    ")),
}
PAYLOADS = {"": "our values", "bench_fakes:order": "foreign values"}
FAKES = "VALUE = b'x' * 64\ndef order(key, seq): return VALUE\n"


def write(home: RunPaths, cluster: ManagedCluster, topics: Mapping[str, Mapping[int, int]], payload: str) -> None:
    """Fill the topic as fast as one producer can."""
    spec = scenario.Group(command=["none"], members=1)
    made = running_group.make(
        home, cluster, spec, OwnProgram(payload=payload, rate_hz=1e6), names=RunNames("g"), topics=topics, seed=1
    )
    made.start_producers()
    eventually(lambda: made.progress().acknowledged >= RECORDS, WITHIN_S, "the records to be written")
    made.stop_producers(WITHIN_S)


def read(
    home: RunPaths, cluster: ManagedCluster, topics: Mapping[str, Mapping[int, int]], way: str, batch: int
) -> list[float]:
    """One life of the program: records, seconds, CPU seconds of its thread."""
    name = f"{way.replace(' ', '-')}-{batch}-{os.urandom(4).hex()}"
    command = (sys.executable, "program.py", cluster.bootstrap(0), name, str(batch), str(READ_S))
    config = {"member": 0, "slot": 0, "group": name, "topics": topics, "bootstrap": cluster.bootstrap(0)}
    if way == "recorded":
        own = {**config, "protocol": "eager", "loop": {"processed": "next-poll"}}
        life = Incarnation(home, f"member-{name}", "", own, Interpreter(command=command))
        code, log = life.wait_ended(WITHIN_S), life.log
    else:
        log = home.logs / f"{name}.log"
        process = home.owner.spawn(command, log=log, cwd=Path.cwd())
        code = process.wait(WITHIN_S)
    if code:
        raise SystemExit(log.read_text())
    found: list[float] = json.loads(log.read_text().splitlines()[-1])
    return found


def measure(
    home: RunPaths, cluster: ManagedCluster, topics: Mapping[str, Mapping[int, int]], batch: int, values: str
) -> None:
    """Rates and CPU times of both, in turns."""
    rates: dict[str, list[float]] = {way: [] for way in WAYS}
    costs: dict[str, list[float]] = {way: [] for way in WAYS}
    for _ in range(ROUNDS):
        for way in WAYS:
            records, seconds, cpu = read(home, cluster, topics, way, batch)
            rates[way].append(records / seconds)
            costs[way].append(cpu / records * 1e6)
    rate, cost = ({way: statistics.median(each[way]) for way in WAYS} for each in (rates, costs))
    print(f"\n{values}, {'single polls' if batch == 1 else f'batches of {batch}'}; medians of {ROUNDS}:")
    for way in WAYS:
        each = ", ".join(f"{r:,.0f}" for r in rates[way])
        print(f"  {way:<10}{rate[way]:>12,.0f} records/s{cost[way]:>8.2f} µs of CPU a record   ({each})")
    print(
        f"  ratio {rate['recorded'] / rate['as it is']:.2f}; {cost['recorded'] - cost['as it is']:.2f} µs more a record"
    )


def main() -> None:
    """Run everything on clusters of their own, one for each kind of value."""
    print(f"load {os.getloadavg()[0]:.1f}")
    topics = {"bench": {p: p for p in range(PARTITIONS)}}
    for payload, values in PAYLOADS.items():
        with tempfile.TemporaryDirectory() as folder, ProcessOwner.open() as owner:
            os.chdir(folder)
            Path("bench_fakes.py").write_text(FAKES)
            history = Path(folder) / "history"
            home = RunPaths(
                owner, EventLog(history / "events" / "harness.jsonl", "harness"), history, Path(folder) / "logs"
            )
            cluster = local.start(ClusterSpec(slots=2), owner)
            cluster.admin.create_topics([scenario.Topic("bench", PARTITIONS)])
            write(home, cluster, topics, payload)
            for client in sys.argv[1:] or PROGRAMS:
                Path("program.py").write_text(PROGRAMS[client])
                for batch in (1, 500):
                    measure(home, cluster, topics, batch, f"{client}, {values}")
            cluster.stop()
            os.chdir("/")
    print(f"load {os.getloadavg()[0]:.1f}")


if __name__ == "__main__":
    main()
