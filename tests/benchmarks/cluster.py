"""How fast a cluster starts, what it weighs, and how fast a coordinator moves: ``python tests/benchmarks/cluster.py``.

Cold: Kafka and Toxiproxy are there, the class archive and the formatted template are not yet. Warm: they are, too. And
on each back-end that is ready here, how soon a group consumes, from nothing; the images are made before.
"""

from __future__ import annotations

import json
import os
import statistics
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import pyarrow.parquet as pq

from fencepost import Group, Scenario, Topic, runner
from fencepost.clock import eventually
from fencepost.clusters import backends, cache, doctor, local, toxiproxy
from fencepost.clusters.admin import OFFSETS_TOPIC
from fencepost.clusters.kafka import provision
from fencepost.clusters.managed_cluster import ManagedCluster
from fencepost.interfaces import ClusterSpec
from fencepost.model import TopicPartition, group_partition
from fencepost.processes.owner import ProcessOwner
from fencepost.workloads import PollLoop

SPEC = ClusterSpec(brokers=3, slots=8)
STARTS, MOVES = 5, 10
GROUP = "movers"
PAIR = Scenario("from nothing", (Topic("orders"),), Group(members=2), PollLoop(rate_hz=500), min_records=0)


@contextmanager
def running(owner: ProcessOwner, spec: ClusterSpec = SPEC) -> Iterator[tuple[ManagedCluster, float]]:
    """A cluster and the seconds that its start took."""
    began = time.perf_counter()
    cluster = local.start(spec, owner)
    try:
        yield cluster, time.perf_counter() - began
    finally:
        cluster.stop()


@contextmanager
def empty_cache() -> Iterator[None]:
    """A cache that has Kafka and Toxiproxy, but nothing that was made from them."""
    provision.kafka()
    toxiproxy.server()
    with tempfile.TemporaryDirectory() as folder:
        for part in (*cache.directory().glob("kafka-*"), *cache.directory().glob("toxiproxy-*")):
            (Path(folder) / part.name).symlink_to(part)
        before = os.environ.get("FENCEPOST_CACHE")
        os.environ["FENCEPOST_CACHE"] = folder
        try:
            yield
        finally:
            del os.environ["FENCEPOST_CACHE"]
            if before is not None:
                os.environ["FENCEPOST_CACHE"] = before


def start_once() -> float:
    """Seconds that one start takes."""
    with ProcessOwner.open() as owner, running(owner) as (_, took):
        return took


def cold_start() -> float:
    """Seconds that the first start on a machine takes, once Kafka and Toxiproxy are there."""
    with empty_cache():
        return start_once()


def memory_mb(cluster: ManagedCluster) -> dict[str, float]:
    """What all processes of a cluster hold: resident each (shared pages counted by each), and their share of it."""
    infos = [psutil.Process(pid).memory_full_info() for pid in cluster.processes]
    return {"rss": sum(i.rss for i in infos) / 1e6, "pss": sum(i.pss for i in infos) / 1e6}


def move(cluster: ManagedCluster) -> float:
    """Seconds from the call until metadata and FindCoordinator both name the new coordinator."""
    admin = cluster.admin
    leaders = admin.leaders(OFFSETS_TOPIC)
    place = TopicPartition(OFFSETS_TOPIC, group_partition(GROUP, len(leaders)))
    wanted = next(broker for broker in cluster.brokers if broker != leaders[place.partition])
    began = time.perf_counter()
    admin.move_leader(place, wanted)

    def proven() -> bool:
        return admin.coordinator(GROUP) == wanted and admin.leaders(OFFSETS_TOPIC)[place.partition] == wanted

    eventually(proven, 10, "the coordinator to move", every_s=0.002)
    return time.perf_counter() - began


def consuming_s(backend: backends.ManagedBackend) -> float:
    """Seconds from nothing to a group of two, both of which consume."""
    with tempfile.TemporaryDirectory() as runs:
        folder = runner.run(PAIR, plan=PAIR.plan(1), runs=Path(runs), backend=backend)
        events = pq.read_table(folder / "history" / "events.parquet").to_pylist()
    phases = {json.loads(event["detail"])["name"]: event for event in events if event["kind"] == "phase"}
    return float(phases["warm-up"]["end_ns"] - phases["provision"]["begin_ns"]) / 1e9


def shown(name: str, seconds: list[float]) -> str:
    """One line of the table."""
    each = ", ".join(f"{value:.3f}" for value in seconds)
    return f"{name:<44} median {statistics.median(seconds):6.3f} s   ({each})"


def main() -> None:
    """Measure and print."""
    print(f"{SPEC.brokers} brokers, 1 controller, {SPEC.slots} slots; {psutil.cpu_count()} cores")
    print(shown("start, cold", [cold_start() for _ in range(STARTS)]))
    start_once()
    print(shown("start, warm", [start_once() for _ in range(STARTS)]))
    with ProcessOwner.open() as owner, running(owner) as (cluster, _):
        memory = memory_mb(cluster)
        print(f"{'memory, 4 JVMs and Toxiproxy':<44} {memory['rss']:.0f} MB resident, {memory['pss']:.0f} MB share")
        print(shown("coordinator move, call to proof", [move(cluster) for _ in range(MOVES)]))
    for name, make in backends.OWN.items():
        if not doctor.missing_parts(make()):
            consuming_s(make())
            print(shown(f"{name}, to a consuming group of two", [consuming_s(make()) for _ in range(STARTS)]))


if __name__ == "__main__":
    main()
