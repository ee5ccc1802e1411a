"""How often does a coordinator that has just moved tell an offset that is older than an acknowledged commit?

    python tests/benchmarks/stale_offsets.py [--moves 200] [--kafka 4.3.1 --kafka 3.9.1]

A group without members; its coordinator goes round three brokers. Before each move an offset is committed, every other
time by a transaction. As soon as that is acknowledged, an election makes the next broker the coordinator, and several
ask that one again and again until it tells the new offset: two raw requests, one of which asks for stable offsets, and
the three client libraries. Whatever they are told meanwhile and is older is a stale answer: the commit had been
acknowledged before any of them asked.
"""

from __future__ import annotations

import argparse
import asyncio
import math
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from statistics import median
from typing import Any, NamedTuple

import aiokafka
import confluent_kafka as ck
import kafka
from cluster import running

from fencepost.clock import NS, eventually, now_ns
from fencepost.clusters.admin import OFFSETS_TOPIC, requests
from fencepost.clusters.admin.connections import Connections
from fencepost.clusters.managed_cluster import ManagedCluster
from fencepost.errors import WaitTimeout
from fencepost.interfaces import ClusterSpec
from fencepost.model import TopicPartition, group_partition
from fencepost.model.endpoint import Endpoint
from fencepost.model.settings import KAFKAS
from fencepost.model.topic import Topic
from fencepost.processes.owner import ProcessOwner

GROUP, PLACE = "movers", TopicPartition("orders", 0)
WITHIN_S = 10.0
PLAIN, STABLE = "a raw request", "a raw request for stable offsets"
Asks = Callable[[int], int | None]  # a broker, if it is to be that one -> the committed offset; None: no answer


class Told(NamedTuple):
    """How many stale answers somebody got after one move; when the last one was given, counted from the acknowledgement
    of the commit; and whether the new offset was told in the end."""

    stale: int
    last_s: float
    heard: bool


class Move(NamedTuple):
    """One move after a commit: whether that was made by a transaction, and what each one was told."""

    transaction: bool
    told: Mapping[str, Told]


@contextmanager
def raw(cluster: ManagedCluster, stable: bool) -> Iterator[Asks]:
    """Whoever asks the new coordinator itself."""
    endpoints = (
        Endpoint(host, int(port)) for host, _, port in (e.rpartition(":") for e in cluster.bootstrap().split(","))
    )
    connections = Connections(dict(zip(cluster.brokers, endpoints, strict=True)))

    def ask(broker: int) -> int | None:
        answer = connections.request_once(broker, requests.offset_fetch(GROUP, stable=stable))
        if answer is None or answer.groups[0].error_code:
            return None
        reported = [one for topic in answer.groups[0].topics for one in topic.partitions]
        return next((int(one.committed_offset) for one in reported if not one.error_code), None)

    try:
        yield ask
    finally:
        connections.close()


@contextmanager
def confluent(cluster: ManagedCluster, isolation: str) -> Iterator[Asks]:
    """confluent-kafka, which finds the coordinator by itself."""
    place = ck.TopicPartition(*PLACE)
    consumer = ck.Consumer({"bootstrap.servers": cluster.bootstrap(), "group.id": GROUP, "isolation.level": isolation})

    def ask(broker: int) -> int | None:
        try:
            reported = consumer.committed([place], timeout=1)[0]
        except ck.KafkaException:
            return None
        return None if reported.error else int(reported.offset)

    try:
        yield ask
    finally:
        consumer.close()


@contextmanager
def kafka_python(cluster: ManagedCluster, isolation: str) -> Iterator[Asks]:
    """kafka-python, likewise."""
    consumer = kafka.KafkaConsumer(
        bootstrap_servers=cluster.bootstrap(), group_id=GROUP, isolation_level=isolation, enable_auto_commit=False
    )
    consumer.assign([kafka.TopicPartition(*PLACE)])

    def ask(broker: int) -> int | None:
        try:
            reported = consumer.committed(kafka.TopicPartition(*PLACE), timeout_ms=1000)
        except kafka.errors.KafkaError:
            return None
        return -1 if reported is None else int(reported)

    try:
        yield ask
    finally:
        consumer.close()


@contextmanager
def of_aiokafka(cluster: ManagedCluster, isolation: str) -> Iterator[Asks]:
    """aiokafka, likewise, in an event loop of its own."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()

    def wait(coroutine: Any) -> Any:
        return asyncio.run_coroutine_threadsafe(coroutine, loop).result()

    async def started() -> aiokafka.AIOKafkaConsumer:
        consumer = aiokafka.AIOKafkaConsumer(
            bootstrap_servers=cluster.bootstrap(), group_id=GROUP, isolation_level=isolation, enable_auto_commit=False
        )
        await consumer.start()
        consumer.assign([aiokafka.TopicPartition(*PLACE)])
        return consumer

    consumer = wait(started())

    def ask(broker: int) -> int | None:
        reported = wait(consumer.committed(aiokafka.TopicPartition(*PLACE)))
        if (
            reported is None
        ):  # so it takes an error of the whole request, as NOT_COORDINATOR, and asks the same one again
            consumer._coordinator.coordinator_dead()
        return reported

    try:
        yield ask
    finally:
        wait(consumer.stop())
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


LIBRARIES = {"confluent-kafka": confluent, "kafka-python": kafka_python, "aiokafka": of_aiokafka}
LEVELS = ("read_uncommitted", "read_committed")


@contextmanager
def asking(cluster: ManagedCluster, libraries: bool) -> Iterator[dict[str, Asks]]:
    """Who asks, by what the table calls them: raw requests, or client libraries."""
    with ExitStack() as stack:
        if not libraries:
            yield {name: stack.enter_context(raw(cluster, stable)) for name, stable in ((PLAIN, False), (STABLE, True))}
            return
        yield {
            f"{name}, {level}": stack.enter_context(library(cluster, level))
            for name, library in LIBRARIES.items()
            for level in LEVELS
        }


class Committer:
    """Commits the offsets of the group, and tells when it was acknowledged."""

    def __init__(self, cluster: ManagedCluster) -> None:
        self._admin = cluster.admin
        self._nobody = ck.Consumer({"bootstrap.servers": cluster.bootstrap(), "group.id": GROUP})
        self._producer = ck.Producer({"bootstrap.servers": cluster.bootstrap(), "transactional.id": "mover"})
        self._producer.init_transactions()

    def commit(self, offset: int, transaction: bool) -> int:
        """When that was acknowledged."""
        if transaction:
            where, group = [ck.TopicPartition(*PLACE, offset)], self._nobody.consumer_group_metadata()
            self._producer.begin_transaction()
            self._producer.send_offsets_to_transaction(where, group)
            self._producer.commit_transaction()
        else:
            self._admin.alter_offsets(GROUP, {PLACE: offset})
        return now_ns()

    def close(self) -> None:
        """See ``Consumer.close``."""
        self._nobody.close()


def listened(ask: Asks, broker: int, offset: int, since_ns: int) -> Told:
    """What one is told until it is the new offset, or for ``WITHIN_S``."""
    stale: list[tuple[int, int]] = []

    def new() -> bool:
        asked_ns = now_ns()
        reported = ask(broker)
        if reported is not None and reported < offset:
            stale.append((asked_ns, now_ns()))
        return reported is not None and reported >= offset

    heard = True
    try:
        eventually(new, WITHIN_S, f"broker {broker} to tell offset {offset}", every_s=0.001)
    except WaitTimeout:
        heard = False
    last_s = (stale[-1][1] - since_ns) / NS if stale else math.nan
    return Told(len(stale), last_s, heard)


def moves(version: str, count: int, libraries: bool) -> Iterator[Move]:
    """So many moves of the coordinator of one cluster."""
    with ProcessOwner.open() as owner, running(owner, ClusterSpec(brokers=3, slots=1, kafka=version)) as (cluster, _):
        admin = cluster.admin
        admin.create_topics([Topic(PLACE.topic, partitions=1)])
        eventually(lambda: admin.coordinator(GROUP) >= 0, WITHIN_S, "a coordinator")
        place = TopicPartition(OFFSETS_TOPIC, group_partition(GROUP, len(admin.leaders(OFFSETS_TOPIC))))
        committer = Committer(cluster)
        try:
            committer.commit(1, transaction=False)
            with asking(cluster, libraries) as asks:
                for number in range(count):
                    yield moved(cluster, place, committer, asks, 2 + number)
        finally:
            committer.close()


def moved(
    cluster: ManagedCluster, place: TopicPartition, committer: Committer, asks: Mapping[str, Asks], to: int
) -> Move:
    """One move, right after the offset ``to`` was committed."""
    admin, replicas = cluster.admin, sorted(cluster.admin.replicas(place.topic)[place.partition])
    leader = admin.leaders(place.topic)[place.partition]
    wanted = replicas[(replicas.index(leader) + 1) % len(replicas)]
    eventually(
        lambda: wanted in admin.in_sync_replicas(place.topic)[place.partition], WITHIN_S, f"broker {wanted} in sync"
    )
    order = [wanted, *(replica for replica in replicas if replica != wanted)]
    admin.reassign(place, order)
    transaction, reported = to % 2 == 1, dict[str, Told]()
    acked_ns = committer.commit(to, transaction)

    def listens(name: str) -> None:
        reported[name] = listened(asks[name], wanted, to, acked_ns)

    threads = [threading.Thread(target=listens, args=(name,)) for name in asks]
    election = threading.Thread(target=admin.elect_leader, args=(place, order))
    for thread in (election, *threads):
        thread.start()
    for thread in (election, *threads):
        thread.join()
    return Move(transaction, reported)


def interval(hits: int, tries: int) -> tuple[float, float]:
    """Wilson's interval of 95 % for a share."""
    z, share = 1.96, hits / tries
    middle = (share + z * z / (2 * tries)) / (1 + z * z / tries)
    half = z * math.sqrt(share * (1 - share) / tries + z * z / (4 * tries * tries)) / (1 + z * z / tries)
    return max(0.0, middle - half), min(1.0, middle + half)


def shown(reported: Sequence[Told]) -> str:
    """Of how many moves there were stale answers, and how long after the acknowledgement the last one was given."""
    lasted_s = [one.last_s for one in reported if one.stale]
    low, high = interval(len(lasted_s), len(reported))
    rate = f"{len(lasted_s)} of {len(reported)} ({low:.1%} to {high:.1%})"
    times = f", for {median(lasted_s):.2f} s, at most {max(lasted_s):.2f} s" if lasted_s else ""
    deaf = sum(not one.heard for one in reported)
    return f"{rate}{times}" + (f"; {deaf} not told the new one within {WITHIN_S:g} s" if deaf else "")


def tell(found: Sequence[Move]) -> None:
    """A line of the table for each one who asked."""
    for name in sorted(found[0].told):
        by_commit, by_transaction = ([m.told[name] for m in found if m.transaction is how] for how in (False, True))
        print(f"| {name} | {shown(by_commit)} | {shown(by_transaction)} |", flush=True)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--moves", type=int, default=200)
    parser.add_argument("--kafka", action="append", choices=KAFKAS)
    asked = parser.parse_args()
    for version in asked.kafka or KAFKAS:
        print(
            f"\n| Kafka {version}: who asks | after a commit | after one by a transaction |\n|---|---|---|", flush=True
        )
        for libraries in (False, True):
            tell(list(moves(version, asked.moves, libraries)))


if __name__ == "__main__":
    main()
